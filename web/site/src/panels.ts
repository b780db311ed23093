// The side panel: which model, on which device, with which settings; what is stored.
import {
  IntegrityError, LimitError, OutOfMemoryError, cache, estimate, load, type DeviceInfo, type Fallback, type FritError, type Model,
  type ModelSource, type Progress,
} from "frit";
import { ICONS, bytes, h, icon, num } from "./dom";
import { ES_FALLBACKS, language, say, sayAll, t, type Key } from "./i18n";
import { settings } from "./settings";

interface BuiltIn { name: string; url: string; size: number; sha256: string }

export class ModelPanel {
  readonly element: HTMLElement;
  /** The model that is loaded, or null. */
  onModel: (m: Model | null) => void = () => {};
  #model: Model | null = null;
  #loading: AbortController | null = null;
  #files: File[] = []; // one, or the parts of one
  #builtIn: BuiltIn[] = [];
  #pick = h("select", { id: "pick", onchange: () => this.#picked() });
  #url: HTMLInputElement;
  #fileInput = h("input", { type: "file", id: "file", accept: ".gguf", multiple: true, onchange: () => this.take(this.#fileInput.files) });
  #fileName = h("span", { class: "muted" });
  #urlRow: HTMLElement;
  #fileRow: HTMLElement;
  #loadButton: HTMLButtonElement;
  #cancel: HTMLButtonElement;
  #unload: HTMLButtonElement;
  #bar = h("progress", { max: "1", value: 0, "aria-labelledby": "phase" });
  #phase = h("span", { id: "phase", role: "status" });
  #text = (): string => "";
  #note = sayAll(h("p", { class: "note", role: "status" }), () => this.#text());
  #shown = "";

  constructor() {
    this.#url = h("input", { type: "url", id: "url", placeholder: "https://", autocomplete: "off", spellcheck: "false" });
    this.#urlRow = h("div", { class: "field wide" }, say(h("label", { for: "url" }), "url"), this.#url);
    const choose = h("label", { class: "button", for: "file" }, icon(ICONS.file), say(h("span"), "choose"));
    this.#fileInput.classList.add("hidden");
    this.#fileRow = h("div", { class: "field wide" }, this.#fileInput, choose, this.#fileName, say(h("span", { class: "muted" }), "drop"));
    const button = (key: Key, cls: string, f: () => void) => say(h("button", { class: cls, type: "button", onclick: f }), key);
    this.#loadButton = button("load", "primary", () => void this.load());
    this.#cancel = button("cancel", "", () => this.#loading?.abort());
    this.#unload = button("unload", "", () => void this.unload());
    const choice = <K extends "device" | "precision">(id: K, names: readonly (Key & (typeof settings)[K])[]) => {
      const select = h("select", { id, onchange: () => {
        settings[id] = select.value as (typeof settings)[K];
        settings.save();
      } }, ...names.map((k) => say(h("option", { value: k }), k)));
      select.value = settings[id];
      return h("div", { class: "field" }, say(h("label", { for: id }), id), select);
    };
    const context = h("input", { id: "context", type: "number", min: "256", max: "131072", step: "256", value: settings.context ?? "",
      oninput: () => {
        settings.context = context.value ? Math.max(16, context.valueAsNumber) : null;
        settings.save();
      } });
    const keep = h("input", { id: "keep", type: "checkbox", checked: settings.keep, onchange: () => {
      settings.keep = keep.checked;
      settings.save();
    } });
    this.element = h("div", { class: "fields" },
      h("div", { class: "field wide" }, say(h("label", { for: "pick" }), "which"), this.#pick),
      this.#urlRow, this.#fileRow,
      choice("device", ["auto", "gpu", "cpu"]), choice("precision", ["auto", "f32"]),
      h("div", { class: "field" }, say(h("label", { for: "context" }), "context"), context),
      h("div", { class: "field wide check" }, keep, say(h("label", { for: "keep" }), "keep")),
      h("div", { class: "buttons wide" }, this.#loadButton, this.#cancel, this.#unload, button("check", "", () => void this.#check())),
      h("div", { class: "progress wide" }, this.#phase, this.#bar), this.#note);
    void this.#fill();
    this.#refresh();
  }

  /** Chooses a file, or the parts of one, from the button or a drop. */
  take(files: FileList | null | undefined): void {
    if (!files?.length) return;
    this.#files = [...files].sort((a, b) => (a.name < b.name ? -1 : 1)); // NAME-00001-of-0000N.gguf
    const size = this.#files.reduce((n, f) => n + f.size, 0), more = this.#files.length > 1 ? ` + ${this.#files.length - 1}` : "";
    this.#fileName.textContent = `${this.#files[0].name}${more} (${bytes(size)})`;
    this.#pick.value = "file";
    this.#picked();
  }

  /** Chooses a URL and loads it. */
  open(url: string): void {
    const at = this.#builtIn.findIndex((m) => new URL(m.url, location.href).href === url);
    this.#pick.value = at >= 0 ? String(at) : "url";
    this.#url.value = url;
    this.#picked();
    void this.load();
  }

  async load(): Promise<void> {
    let source;
    if (this.#loading || !(source = this.#source())) return;
    await this.unload();
    const control = (this.#loading = new AbortController());
    this.#say(() => "");
    this.#progress(null);
    this.#refresh();
    try {
      this.#model = await atMost(settings.context, (context) => load(source, {
        device: settings.device, precision: settings.precision, context, cache: settings.keep, signal: control.signal,
        onProgress: (p) => this.#progress(p),
      }));
      if (settings.keep) void cache.persist();
      const { name, size } = this.#model.info;
      this.#say(() => `${t("loaded")}: ${name}, ${bytes(size)}`);
    } catch (e) {
      if ((e as Error).name === "AbortError") this.#say(() => t("stopped"));
      else this.#say(() => words(e as Error), true);
    }
    this.#loading = null;
    this.#refresh();
    this.onModel(this.#model);
  }

  async unload(): Promise<void> {
    const model = this.#model;
    if (!model) return;
    this.#model = null;
    this.onModel(null);
    await model.dispose();
    this.#say(() => "");
    this.#refresh();
  }

  async #fill(): Promise<void> {
    const list = (await fetch("models.json").then((r) => r.json()).catch(() => [])) as BuiltIn[];
    this.#builtIn = list;
    this.#pick.replaceChildren(
      ...(list.length ? [h("optgroup", { label: t("builtin") }, ...list.map((m, i) =>
        h("option", { value: i }, `${m.name}, ${bytes(m.size)}`)))] : []),
      say(h("option", { value: "url" }), "fromUrl"), say(h("option", { value: "file" }), "fromFile"));
    this.#picked();
  }

  #picked(): void {
    this.#urlRow.hidden = this.#pick.value !== "url";
    this.#fileRow.hidden = this.#pick.value !== "file";
  }

  #source(): ModelSource | null {
    const v = this.#pick.value;
    if (v === "file") return this.#files.length ? this.#files : (this.#fileInput.click(), null);
    if (v !== "url") {
      const { url, sha256 } = this.#builtIn[Number(v)];
      return { url: new URL(url, location.href), sha256 };
    }
    if (URL.canParse(this.#url.value.trim(), location.href) && this.#url.value.trim()) return new URL(this.#url.value.trim(), location.href);
    this.#url.focus();
    return null;
  }

  async #check(): Promise<void> {
    const source = this.#source();
    if (!source || this.#loading) return;
    this.#say(() => "…");
    try {
      const e = await atMost(settings.context, (context) => estimate(source, { device: settings.device, context }));
      this.#say(() => (e.memory ? `${e.name}: ${bytes(e.size)}, ${t("needs")} ${bytes(e.memory)}. ` : `${e.name}: ${bytes(e.size)}. `) +
        (e.fits ? `${t("fits")}.` : `${t("fitsNot")}: ${e.why}.`));
    } catch (e) {
      this.#say(() => words(e as Error), true);
    }
  }

  #say(text: () => string, bad = false): void {
    this.#text = text;
    this.#note.className = bad ? "note error" : "note";
    this.#note.textContent = text();
  }

  #progress(p: Progress | null): void {
    const sized = p && p.total > 0;
    if (sized) this.#bar.value = p.done / p.total;
    else this.#bar.removeAttribute("value");
    const name = t(!p ? "opening" : p.phase === "verify" ? "verifying" : p.phase);
    const size = !sized ? "" : p.phase === "compile" ? `${num(p.done)} / ${num(p.total)}` : `${bytes(p.done)} / ${bytes(p.total)}`;
    const text = `${name} ${size}`;
    if (text !== this.#shown) this.#phase.textContent = this.#shown = text;
  }

  #refresh(): void {
    const busy = this.#loading !== null;
    this.element.classList.toggle("loading", busy);
    this.#loadButton.hidden = busy;
    this.#cancel.hidden = !busy;
    this.#unload.hidden = busy || !this.#model;
    this.#bar.parentElement!.hidden = !busy;
  }
}

/** With the context wished for, or all of the model's own where that is shorter. */
function atMost<T>(wish: number | null, f: (context: number | undefined) => Promise<T>): Promise<T> {
  return f(wish ?? undefined).catch((e: FritError) => {
    if (e.code !== "argument" || !wish) throw e;
    return f(undefined);
  });
}

/** An error's own sentence, and what can be done about it. */
function words(e: Error): string {
  const more = e instanceof OutOfMemoryError || e instanceof LimitError ? ` ${t("smaller")}` : "";
  return `${e.message}.${more}`.replace(/([.!?])\.( |$)/, "$1$2");
}

/** In the page's language; the package's own words are English. */
function fallbackText(f: Fallback): string {
  return language() === "es" ? ES_FALLBACKS[f.code] : f.text;
}

/** Adapter, features, limits, fall-backs. */
export function devicePanel(d: DeviceInfo | null): HTMLElement {
  if (!d) return say(h("p", { class: "muted" }), "noDevice");
  const row = (k: Key, v: string) => [say(h("dt"), k), h("dd", {}, v)];
  const limits = Object.entries(d.limits).flatMap(([k, v]) => [
    h("dt", {}, ...k.split(/(?=[A-Z])/).flatMap((part) => [part, h("wbr")])), h("dd", {}, num(v))]);
  return h("div", { class: "device" },
    h("dl", {}, ...row("device", d.kind === "gpu" ? t("gpu") : t("cpu")), ...row("name", d.name || "-"),
      ...(d.vendor ? row("vendor", d.vendor) : []), ...(d.kind === "gpu" ? row("software", t(d.software ? "yes" : "no")) : []),
      ...(d.features.length ? row("features", d.features.join(", ")) : [])),
    say(h("h3"), "fallbacks"),
    d.fallbacks.length ? h("ul", {}, ...d.fallbacks.map((f) => h("li", {}, fallbackText(f)))) : say(h("p", { class: "muted" }), "noFallbacks"),
    limits.length ? h("details", {}, say(h("summary"), "limits"), h("dl", { class: "limits" }, ...limits)) : null);
}

/** What is stored, with buttons to check and to delete each, and one to load it. */
export class CachePanel {
  readonly element = h("div", { class: "stored" });
  #list = h("div");
  #said = h("p", { class: "note", role: "status" });
  #checking: AbortController | null = null;
  constructor(private open: (url: string) => void) {
    this.element.append(this.#list, this.#said);
  }

  async refresh(): Promise<void> {
    const [list, use] = await Promise.all([cache.list(), cache.usage()]);
    const button = (key: Key, path: string, name: string, f: () => void, disabled = false) => h("button", {
      class: "small", type: "button", disabled, "aria-label": `${t(key)}: ${name}`, title: t(key), onclick: f,
    }, icon(path));
    const row = (m: (typeof list)[number]) => h("li", {},
      h("button", { class: "link", type: "button", title: m.url, onclick: () => this.open(m.url) }, m.name),
      h("span", { class: "muted" }, !m.complete ? `${bytes(m.stored)} / ${bytes(m.size)}, ${t("partial")}`
        : `${bytes(m.size)}${m.sha256 ? `, ${t("checked")}` : ""}`),
      h("span", { class: "acts" },
        button("verify", ICONS.check, m.name, () => void this.#verify(m.url, m.name), !m.complete),
        button("remove", ICONS.trash, m.name, () => void this.#remove(m.url))));
    this.#list.replaceChildren(
      list.length ? h("ul", {}, ...list.map(row)) : say(h("p", { class: "muted" }), "empty"),
      h("p", { class: "muted" }, `${t("used")}: ${bytes(use.used)} / ${bytes(use.quota)}`));
  }

  async #remove(url: string): Promise<void> {
    this.#say("");
    await cache.delete(url);
    await this.refresh();
  }

  /** The file's SHA-256 against the one that is known. */
  async #verify(url: string, name: string): Promise<void> {
    this.#checking?.abort();
    const control = (this.#checking = new AbortController());
    this.#say(`${t("verifying")} ${name}…`);
    try {
      const r = await cache.verify(url, { signal: control.signal, onProgress: (p) =>
        this.#say(`${t("verifying")} ${name}: ${num(100 * p.done / p.total)} %`) });
      this.#say(`${name}: ${t(r.compared ? "asExpected" : "firstCheck")}`);
    } catch (e) {
      if ((e as Error).name === "AbortError") return;
      this.#say(e instanceof IntegrityError ? `${name}: ${t("damaged")}` : (e as Error).message, true);
    }
    await this.refresh();
  }

  #say(text: string, bad = false): void {
    this.#said.className = bad ? "note error" : "note";
    if (this.#said.textContent !== text) this.#said.textContent = text;
  }
}

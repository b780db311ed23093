// The page: header, chat, side panel.
import type { Model } from "frit";
import { Chat } from "./chat";
import { ICONS, bytes, h, icon } from "./dom";
import { language, say, setLanguage, t, type Key, type Lang } from "./i18n";
import { CachePanel, ModelPanel, devicePanel } from "./panels";
import { settings } from "./settings";
import "./style.css";

const remembered = (key: string) => { try { return localStorage.getItem(key); } catch { return null; } };
const remember = (key: string, v: string) => { try { localStorage.setItem(key, v); } catch { /* as settings.ts */ } };

const spoken = remembered("frit-language") ?? navigator.language.slice(0, 2);
setLanguage(spoken === "es" ? "es" : "en");

let model: Model | null = null;
const chat = new Chat();
const picker = new ModelPanel();
const stored = new CachePanel((url) => picker.open(url));
const deviceBox = h("div", {}, devicePanel(null));
const memory = h("span", { class: "memory muted" });

function section(key: Key, content: HTMLElement, open: boolean): HTMLElement {
  return h("details", { class: "section", open }, h("summary", {}, say(h("h2"), key)), content);
}
const sections = [
  section("model", picker.element, true), section("settings", settings.form(), false),
  section("device", deviceBox, false), section("cache", stored.element, false),
];
const closePanel = say(h("button", { class: "small only-phone", type: "button", onclick: () => showPanel(false) }, icon(ICONS.close)), "close", "aria-label");
const panel = say(h("aside", { class: "panel", id: "panel" }, closePanel, ...sections), "panel", "aria-label");
const menu = say(h("button", { class: "small only-phone", type: "button", "aria-controls": "panel", onclick: () => showPanel(true) }, icon(ICONS.menu)), "panel", "aria-label");
const shade = h("div", { class: "shade", onclick: () => showPanel(false) });
const phone = matchMedia("(max-width: 820px)");

function showPanel(open: boolean): void {
  document.body.classList.toggle("panel-open", open);
  const away = phone.matches && !open;
  panel.inert = away;
  menu.setAttribute("aria-expanded", String(open));
  for (const e of [chat.element, header]) e.inert = phone.matches && open;
  if (phone.matches && open) closePanel.focus();
  else if (phone.matches) menu.focus();
}

const lang = say(h("select", { class: "small", onchange: () => {
  setLanguage(lang.value as Lang);
  remember("frit-language", lang.value);
  chat.refresh();
  deviceBox.replaceChildren(devicePanel(model?.info.device ?? null));
  void stored.refresh();
} }, h("option", { value: "en" }, "English"), h("option", { value: "es" }, "Español")), "language", "aria-label");
lang.value = language();

function setTheme(to: string): void {
  if (to === "auto") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = to;
  remember("frit-theme", to);
}
const theme = say(h("select", { class: "small", onchange: () => setTheme(theme.value) },
  ...(["auto", "light", "dark"] as const).map((k) => say(h("option", { value: k }), k === "auto" ? "system_theme" : k))), "theme", "aria-label");
theme.value = remembered("frit-theme") ?? "auto";
setTheme(theme.value);

const fresh = say(h("button", { class: "small", type: "button", onclick: () => chat.clear() }, icon(ICONS.edit)), "newChat", "aria-label");
const header = h("header", {}, menu, h("h1", {}, h("img", { src: "./icon.svg", alt: "", width: "22", height: "22" }), "frit"),
  memory, h("span", { class: "space" }), fresh, theme, lang);
const skip = say(h("a", { class: "skip", href: "#message" }), "skip");
document.getElementById("app")!.append(skip, header, panel, shade, chat.element);

async function showMemory(): Promise<void> {
  const use = model ? await model.memory().catch(() => null) : null;
  memory.textContent = use ? `${use.gpu ? `GPU ${bytes(use.gpu)} · ` : ""}${t("heap")} ${bytes(use.heap)}` : "";
  memory.title = t("memory");
}

picker.onModel = (m) => {
  model = chat.model = m;
  chat.refresh();
  deviceBox.replaceChildren(devicePanel(m?.info.device ?? null));
  void stored.refresh();
  if (m) {
    if (phone.matches) showPanel(false);
    chat.focus();
  }
};
chat.onChange = () => {
  fresh.disabled = chat.count === 0;
  void showMemory();
};

document.addEventListener("keydown", (e) => {
  if (e.key === "Escape" && document.body.classList.contains("panel-open")) showPanel(false);
});
document.addEventListener("dragover", (e) => {
  if (!e.dataTransfer?.types.includes("Files")) return;
  e.preventDefault();
  document.body.classList.add("dropping");
});
document.addEventListener("dragleave", (e) => { if (!e.relatedTarget) document.body.classList.remove("dropping"); });
document.addEventListener("drop", (e) => {
  e.preventDefault();
  document.body.classList.remove("dropping");
  picker.take(e.dataTransfer?.files);
});
chat.refresh();
const layout = () => {
  document.body.classList.remove("panel-open");
  panel.inert = phone.matches;
  chat.element.inert = header.inert = false;
};
phone.addEventListener("change", layout);
layout();
if (phone.matches) showPanel(true);
void stored.refresh();
addEventListener("pagehide", () => void model?.dispose());
if ("serviceWorker" in navigator && import.meta.env.PROD) navigator.serviceWorker.register("sw.js").catch(() => {});

// Settings: kept in localStorage, shown as a form.
import type { LoadOptions, SamplingParams } from "frit";
import { h } from "./dom";
import { say, type Key } from "./i18n";

interface NumberField { key: Key & keyof SamplingParams; min: number; max: number; step: number; value: number | null }
const FIELDS: NumberField[] = [
  { key: "temperature", min: 0, max: 2, step: 0.05, value: 0.7 },
  { key: "top_p", min: 0, max: 1, step: 0.01, value: 0.95 },
  { key: "top_k", min: 0, max: 1000, step: 1, value: 40 },
  { key: "min_p", min: 0, max: 1, step: 0.01, value: 0.05 },
  { key: "repetition_penalty", min: 0.5, max: 2, step: 0.01, value: 1.1 },
  { key: "max_tokens", min: 1, max: 131072, step: 1, value: 512 },
  { key: "seed", min: 0, max: 4294967295, step: 1, value: null },
];

function stored(): Record<string, unknown> {
  try {
    return JSON.parse(localStorage.getItem("frit-settings") ?? "{}") as Record<string, unknown>;
  } catch {
    return {};
  }
}

class Settings {
  system = "";
  device: NonNullable<LoadOptions["device"]> = "auto";
  precision: NonNullable<LoadOptions["precision"]> = "auto";
  context: number | null = 4096;
  keep = true;
  #numbers: Record<string, number | null> = {};

  constructor() {
    const s = stored();
    for (const f of FIELDS) this.#numbers[f.key] = typeof s[f.key] === "number" ? (s[f.key] as number) : f.value;
    if (typeof s.system === "string") this.system = s.system;
    if (s.device === "cpu" || s.device === "gpu") this.device = s.device;
    if (s.precision === "f32") this.precision = s.precision;
    if (typeof s.context === "number") this.context = s.context;
    if (s.keep === false) this.keep = false;
  }

  save(): void {
    const { system, device, precision, context, keep } = this;
    try {
      localStorage.setItem("frit-settings", JSON.stringify({ ...this.#numbers, system, device, precision, context, keep }));
    } catch { /* storage is full or forbidden: settings last as long as the page */ }
  }

  sampling(): SamplingParams {
    return { ...this.#numbers };
  }

  /** The form for answers. */
  form(): HTMLElement {
    const system = h("textarea", { rows: "3", id: "system", value: this.system, oninput: (e: Event) => {
      this.system = (e.target as HTMLTextAreaElement).value;
      this.save();
    } });
    return h("div", { class: "fields" },
      h("div", { class: "field wide" }, say(h("label", { for: "system" }), "system"), system),
      ...FIELDS.map((f) => this.#number(f)));
  }

  #number(f: NumberField): HTMLElement {
    const input = h("input", {
      id: f.key, type: "number", inputmode: "decimal", min: f.min, max: f.max, step: f.step,
      value: this.#numbers[f.key] ?? "", oninput: (e: Event) => {
        const el = e.target as HTMLInputElement;
        const v = el.value === "" ? null : el.valueAsNumber;
        const ok = v === null || (v >= f.min && v <= f.max);
        el.setAttribute("aria-invalid", String(!ok));
        if (!ok) return;
        this.#numbers[f.key] = v;
        this.save();
      },
    });
    return h("div", { class: "field" }, say(h("label", { for: f.key }), f.key), input);
  }
}

export const settings = new Settings();

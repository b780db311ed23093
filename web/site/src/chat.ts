// The conversation: messages, the answer as it comes, what it cost.
import type { ChatMessage, CompletionUsage, FinishReason, Model } from "frit";
import { ICONS, h, icon, num } from "./dom";
import { say, sayAll, t, type Key } from "./i18n";
import { settings } from "./settings";

/** Not needed to open the page, so it comes after that. */
const markdown = () => import("./markdown");

export class Chat {
  readonly element: HTMLElement;
  model: Model | null = null;
  /** Called when an answer begins and ends. */
  onChange: () => void = () => {};
  #log = h("div", { class: "log", role: "log", "aria-live": "off", tabindex: "0" });
  #empty = h("div", { class: "empty" });
  #spoken = h("div", { class: "hidden", role: "status", "aria-live": "polite" });
  #input: HTMLTextAreaElement;
  #send: HTMLButtonElement;
  #stop: HTMLButtonElement;
  #messages: ChatMessage[] = [];
  #running: AbortController | null = null;
  #stick = true;

  constructor() {
    setTimeout(() => void markdown(), 1000);
    this.#input = say(h("textarea", {
      rows: "1", id: "message", oninput: () => this.#grow(), onkeydown: (e: KeyboardEvent) => this.#key(e),
    }), "placeholder", "placeholder");
    say(this.#input, "placeholder", "aria-label");
    this.#send = say(h("button", { class: "round primary", type: "submit" }, icon(ICONS.send)), "send", "aria-label");
    this.#stop = say(h("button", { class: "round", type: "button", onclick: () => this.stop() }, icon(ICONS.stop)), "stop", "aria-label");
    const form = h("form", { class: "composer", onsubmit: (e: Event) => { e.preventDefault(); this.#submit(); } },
      this.#input, this.#send, this.#stop);
    this.#log.append(this.#empty);
    this.#log.addEventListener("scroll", () => {
      this.#stick = this.#log.scrollTop + this.#log.clientHeight > this.#log.scrollHeight - 40;
    });
    this.element = h("main", { class: "chat" }, this.#log, form, this.#spoken);
    this.refresh();
  }

  get running(): boolean { return this.#running !== null; }
  get count(): number { return this.#messages.length; }

  /** Shows what the model's state allows. */
  refresh(): void {
    const busy = this.running;
    this.#send.hidden = busy;
    this.#stop.hidden = !busy;
    this.#send.disabled = !this.model || !this.#input.value.trim();
    this.#empty.hidden = this.#messages.length > 0;
    const tries = this.model ? (["try1", "try2", "try3"] as Key[]).map((k) =>
      say(h("button", { class: "chip", type: "button", onclick: () => this.ask(t(k)) }), k)) : [];
    this.#empty.replaceChildren(
      say(h("h2"), "tagline"),
      this.model ? h("div", { class: "chips" }, ...tries) : say(h("p"), "loadFirst"));
    this.onChange();
  }

  focus(): void { this.#input.focus(); }

  clear(): void {
    this.stop();
    this.#messages = [];
    this.#log.replaceChildren(this.#empty);
    this.refresh();
    this.focus();
  }

  stop(): void { this.#running?.abort(); }

  ask(text: string): void {
    if (!this.model || this.running) return;
    this.#messages.push({ role: "user", content: text });
    const bubble = h("article", { class: "message user" }, say(h("h3", { class: "hidden" }), "you"), h("div", { class: "text" }, text));
    this.#log.append(bubble);
    this.#stick = true;
    void this.#answer();
  }

  #submit(): void {
    const text = this.#input.value.trim();
    if (!text || !this.model || this.running) return;
    this.#input.value = "";
    this.#grow();
    this.ask(text);
  }

  #key(e: KeyboardEvent): void {
    if (e.key === "Enter" && !e.shiftKey && !e.isComposing) {
      e.preventDefault();
      this.#submit();
    } else if (e.key === "Escape") this.stop();
  }

  #grow(): void {
    this.#input.style.height = "auto";
    this.#input.style.height = `${Math.min(this.#input.scrollHeight, 200)}px`;
    this.#send.disabled = !this.model || !this.#input.value.trim();
  }

  #follow(): void {
    if (this.#stick) this.#log.scrollTop = this.#log.scrollHeight;
  }

  async #answer(): Promise<void> {
    const model = this.model!, control = new AbortController();
    const body = h("div", { class: "text markdown" }), foot = h("div", { class: "foot" });
    const article = h("article", { class: "message assistant busy" }, say(h("h3", { class: "hidden" }), "assistant"), body, foot);
    body.addEventListener("grown", () => this.#follow());
    for (const old of this.#log.querySelectorAll(".retry")) old.remove();
    this.#log.append(article);
    this.#running = control;
    this.refresh();
    this.#spoken.textContent = t("answering");
    this.#follow();
    const { MarkdownView } = await markdown(), view = new MarkdownView(body);
    let usage: CompletionUsage | undefined, finish: FinishReason | undefined, error: Error | undefined;
    try {
      const system = settings.system.trim();
      const stream = await model.chat.completions.create({
        messages: [...(system ? [{ role: "system" as const, content: system }] : []), ...this.#messages],
        ...settings.sampling(), stream: true, stream_options: { include_usage: true },
      }, { signal: control.signal });
      for await (const c of stream) {
        const text = c.choices[0]?.delta.content;
        if (text) view.push(text);
        finish = c.choices[0]?.finish_reason ?? finish;
        usage = c.usage ?? usage;
      }
    } catch (e) {
      error = e as Error;
    }
    view.flush();
    article.classList.remove("busy");
    if (view.text) this.#messages.push({ role: "assistant", content: view.text });
    this.#foot(foot, view.text, usage, finish, error);
    this.#running = null;
    this.#spoken.textContent = error ? error.message : `${t("answered")}: ${view.text}`;
    this.refresh();
    this.#follow();
  }

  #foot(foot: HTMLElement, text: string, usage?: CompletionUsage, finish?: FinishReason, error?: Error): void {
    if (error && error.name !== "AbortError") foot.append(h("p", { class: "error", role: "alert" }, `${t("failed")}: ${error.message}`));
    const facts = () => [
      ...(usage ? [
        `${num(usage.extra.decode_tokens_per_s, 1)} ${t("perSecond")}`,
        `${t("firstToken")} ${num(usage.extra.time_to_first_token_s, 2)} s`,
        `${num(usage.completion_tokens)} ${t("tokens")}`,
      ] : []),
      ...(error?.name === "AbortError" ? [t("stopped")] : []),
      ...(finish === "length" ? [t("length")] : []),
    ].join(" · ");
    const copy = say(h("button", { class: "small", type: "button", onclick: async () => {
      await navigator.clipboard.writeText(text).catch(() => {});
      this.#spoken.textContent = t("copied");
    } }, icon(ICONS.copy)), "copy", "aria-label");
    const retry = say(h("button", { class: "small retry", type: "button", onclick: () => this.#retry() }, icon(ICONS.retry)), "retry", "aria-label");
    foot.append(copy, retry, sayAll(h("span", { class: "facts" }), facts));
  }

  #retry(): void {
    if (!this.model || this.running) return;
    if (this.#messages.at(-1)?.role === "assistant") this.#messages.pop();
    this.#log.lastElementChild?.remove();
    void this.#answer();
  }
}

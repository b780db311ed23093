// Markdown that grows: finished blocks are rendered once, only the last one again and again, and that
// for no more than a fifth of the time, however long it is.
// Nothing that loads by itself (images, styles, frames) gets through.
import DOMPurify from "dompurify";
import { marked } from "marked";

const RULES = {
  ALLOWED_TAGS: ["p", "br", "hr", "strong", "em", "del", "code", "pre", "blockquote", "ul", "ol", "li", "a", "h1", "h2", "h3",
    "h4", "h5", "h6", "table", "thead", "tbody", "tr", "th", "td"],
  ALLOWED_ATTR: ["href", "start", "align"],
  RETURN_DOM_FRAGMENT: true as const,
};

function render(text: string): DocumentFragment {
  const out = DOMPurify.sanitize(marked.parse(text, { async: false, breaks: true }), RULES);
  for (const a of out.querySelectorAll("a")) {
    a.target = "_blank";
    a.rel = "noopener noreferrer";
  }
  for (const pre of out.querySelectorAll("pre")) pre.tabIndex = 0; // scrolls by keyboard
  return out;
}

export class MarkdownView {
  text = "";
  #done = document.createElement("div");
  #tail = document.createElement("div");
  #tailText = "";
  #frame = 0;
  #timer = 0;
  #rest = 0; // no rendering before this moment

  constructor(private into: HTMLElement) {
    into.replaceChildren(this.#done, this.#tail);
  }

  push(piece: string): void {
    this.text += piece;
    this.#tailText += piece;
    if (this.#frame || this.#timer) return;
    const wait = this.#rest - performance.now(), draw = () => { this.#frame = requestAnimationFrame(() => this.flush()); };
    if (wait <= 0) draw();
    else this.#timer = setTimeout(() => { this.#timer = 0; draw(); }, wait);
  }

  flush(): void {
    cancelAnimationFrame(this.#frame);
    clearTimeout(this.#timer);
    this.#frame = this.#timer = 0;
    const begin = performance.now(), blocks = marked.lexer(this.#tailText);
    const finished = blocks.slice(0, -1).map((b) => b.raw).join("");
    if (finished) {
      this.#done.append(render(finished));
      this.#tailText = this.#tailText.slice(finished.length);
    }
    this.#tail.replaceChildren(render(this.#tailText));
    this.into.dispatchEvent(new Event("grown"));
    const end = performance.now();
    this.#rest = end + 4 * (end - begin);
  }
}

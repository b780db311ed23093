// SHA-256 of bytes that come in pieces; the platform's own digest wants them all at once.
import type { Core } from "./core.js";

const STAGE = 1 << 16; // bytes copied to the module at a time

export class Sha256 {
  #core: Core;
  #state: number;
  #stage: number;

  constructor(core: Core) {
    this.#core = core;
    this.#stage = core.alloc(STAGE);
    this.#state = core.x.frit_sha256_new();
  }

  add(bytes: Uint8Array): void {
    for (let at = 0; at < bytes.length; at += STAGE) {
      const piece = bytes.subarray(at, at + STAGE);
      new Uint8Array(this.#core.x.memory.buffer, this.#stage, piece.length).set(piece);
      this.#core.x.frit_sha256_add(this.#state, this.#stage, piece.length);
    }
  }

  /** The digest in lower-case hex; nothing can be added after it. */
  hex(): string {
    this.#core.x.frit_sha256_end(this.#state, this.#stage);
    const digest = new Uint8Array(this.#core.x.memory.buffer, this.#stage, 32);
    const text = [...digest].map((b) => b.toString(16).padStart(2, "0")).join("");
    this.dispose();
    return text;
  }

  dispose(): void {
    this.#core.x.frit_free(this.#state);
    this.#core.x.frit_free(this.#stage);
    this.#state = this.#stage = 0;
  }
}

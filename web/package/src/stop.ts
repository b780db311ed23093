// Stop strings over text that comes in pieces: holds back what may be the beginning of one.

export class StopFilter {
  /** The stop string that was met. */
  hit: string | null = null;
  #held = "";
  constructor(private stops: readonly string[]) {}

  /** Text that is safe to show; once `hit` is set, no more comes. */
  push(piece: string): string {
    if (this.hit !== null) return "";
    const text = this.#held + piece;
    let first = -1;
    for (const s of this.stops) {
      const at = text.indexOf(s);
      if (at >= 0 && (first < 0 || at < first)) [first, this.hit] = [at, s];
    }
    if (this.hit !== null) {
      this.#held = "";
      return text.slice(0, first);
    }
    const hold = Math.max(0, ...this.stops.map((s) => overlap(text, s)));
    this.#held = text.slice(text.length - hold);
    return text.slice(0, text.length - hold);
  }

  /** What was held back, at the end. */
  end(): string {
    const rest = this.#held;
    this.#held = "";
    return rest;
  }
}

/** Length of the longest end of `text` that begins `s`, shorter than `s`. */
function overlap(text: string, s: string): number {
  for (let n = Math.min(s.length - 1, text.length); n > 0; n--) if (text.endsWith(s.slice(0, n))) return n;
  return 0;
}

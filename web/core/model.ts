// A model in the module: its header, its loading, its text. Made by Core.
import type { Core } from "./core.js";
import { errorOf, FritError } from "./errors.js";
import type { AdapterFacts } from "./hw_browser.js";
import type { Source } from "./source.js";
import type {
  DeviceInfo, End, Exports, Message, ModelInfo, ModelOptions, Need, Phase, Piece, Progress, Sampling, Usage,
} from "./types.js";

/** Bytes of a model that the module can hold beside its own; memory of 32-bit wasm ends at 4 GiB. */
export const HEAP = 3.5 * 2 ** 30;
const HEADER = 2 << 20; // bytes tried first; doubled while the header is longer
const PHASES: Phase[] = ["open", "compile", "upload", "warmup", "ready"];
const ENDS: (End | undefined)[] = [undefined, "stop", "length", "context", "cancelled"];

/** A model, loaded. One generation at a time. */
export class Model {
  readonly onGpu: boolean;
  #core: Core;
  #m: number;
  #out: number; // 64 bytes for results
  #drop: () => void;
  #busy = false;
  #info?: ModelInfo;

  /** @internal */
  constructor(core: Core, source: number, onGpu: boolean, drop: () => void) {
    this.#core = core;
    this.onGpu = onGpu;
    this.#drop = drop;
    this.#out = core.alloc(64);
    this.#m = core.x.frit_model_new(source);
    if (!this.#m) throw new FritError("out-of-memory", "out of memory: model");
  }

  /** Frees all memory, the GPU's too. */
  dispose(): void {
    if (!this.#m) return;
    this.#core.x.frit_model_free(this.#m);
    this.#core.x.frit_free(this.#out);
    this.#m = 0;
    this.#drop();
  }

  get #x(): Exports {
    if (!this.#m) throw new FritError("argument", "the model was disposed");
    return this.#core.x;
  }

  #doubles(n: number): number[] {
    return [...new Float64Array(this.#core.x.memory.buffer, this.#out, n)];
  }

  #words(n: number): number[] {
    return [...new Uint32Array(this.#core.x.memory.buffer, this.#out, n)];
  }

  // ---- loading ----

  /** @internal */
  async readHeader(source: Source, signal?: AbortSignal): Promise<void> {
    for (let part = 0, parts = 1; part < parts; part++) {
      await this.#readPart(source, part, signal);
      parts = this.#x.frit_parts(this.#m);
    }
    for (let i = 0; this.#x.frit_need(this.#m, i, this.#out); i++) {
      const [part, off, size] = this.#doubles(3);
      const p = this.#put(await source.read(part, off, size, signal));
      this.#core.check(this.#x.frit_give(this.#m, i, p));
    }
  }

  #put(bytes: Uint8Array): number {
    const p = this.#core.alloc(bytes.length);
    new Uint8Array(this.#core.x.memory.buffer, p, bytes.length).set(bytes);
    return p;
  }

  async #readPart(source: Source, part: number, signal?: AbortSignal): Promise<void> {
    let size: number;
    try {
      size = await source.size(part);
      for (let n = Math.min(HEADER, size); ; n = Math.min(2 * n, size)) {
        const head = this.#put(await source.read(part, 0, n, signal));
        const code = this.#core.withText(source.name(part), (name) => this.#x.frit_part(this.#m, name, head, n, size));
        if (!code) return;
        this.#core.x.frit_free(head);
        const e = errorOf(code, this.#core.cstr(this.#core.x.frit_error()));
        if (e.code !== "truncated" || n === size) throw e;
      }
    } catch (e) {
      if (e instanceof FritError || signal?.aborted) throw e;
      throw new FritError("io", e instanceof Error ? e.message : String(e), { cause: e });
    }
  }

  /** @internal */
  open(o: ModelOptions): void {
    const flags = (o.f32 ? 1 : 0) | (o.noF16 ? 2 : 0) | (o.noSubgroups ? 4 : 0) |
      (o.level === "none" ? 8 : o.level === "role" ? 16 : 0);
    const batch = o.batch || (this.onGpu ? 0 : 32);
    this.#core.check(this.#x.frit_open(this.#m, Number(this.onGpu), flags, o.context ?? 0, batch, o.limitBinding ?? 0));
  }

  /** @internal */
  async load(onProgress?: (p: Progress) => void, signal?: AbortSignal): Promise<void> {
    const steps = this.#core.drive<Progress>(() => {
      signal?.throwIfAborted();
      this.#core.check(this.#x.frit_load(this.#m, this.#out));
      const [phase, done, total, finished, moved] = this.#doubles(5);
      return { moved: !!moved, done: !!finished, value: moved ? { phase: PHASES[phase], done, total } : undefined };
    });
    let last = 0, phase = "";
    for await (const p of steps) {
      const now = performance.now();
      if (p.phase === phase && now - last < 50 && p.phase !== "ready") continue;
      last = now;
      phase = p.phase;
      onProgress?.(p);
    }
  }

  // ---- facts ----

  get info(): ModelInfo {
    return (this.#info ??= JSON.parse(this.#core.cstr(this.#x.frit_info(this.#m))) as ModelInfo);
  }

  get device(): DeviceInfo {
    return JSON.parse(this.#core.cstr(this.#x.frit_device(this.#m))) as DeviceInfo;
  }

  /** Bytes needed on a device; without an adapter: on the CPU. @internal */
  need(adapter: AdapterFacts | undefined, o: ModelOptions): Need {
    const limits = adapter?.limits ?? {}, has = (f: string, off?: boolean) => !off && !!adapter?.features.includes(f);
    const huge = 2 ** 46, features = (has("shader-f16", o.noF16) ? 1 : 0) | (has("subgroups", o.noSubgroups) ? 2 : 0);
    const binding = Math.min(limits.maxStorageBufferBindingSize ?? huge, o.limitBinding || huge);
    this.#core.check(this.#x.frit_estimate(this.#m, binding, limits.maxBufferSize ?? huge,
      limits.maxStorageBuffersPerShaderStage ?? 10, limits.maxComputeInvocationsPerWorkgroup ?? 1024,
      limits.maxComputeWorkgroupStorageSize ?? 1 << 20, features, features & 2 ? 4 : 0, features & 2 ? 128 : 0, this.#out));
    const [weights, kv, work] = this.#doubles(3);
    return { weights, kv, work, total: weights + kv + work };
  }

  /** Throws when the module's own memory cannot hold the model. @internal */
  mustFit(o: ModelOptions): void {
    const { total } = this.onGpu ? { total: 0 } : this.need(undefined, o);
    if (total <= HEAP) return;
    throw new FritError("limit", `on the CPU the model needs ${mib(total)}, and a wasm heap holds ${mib(HEAP)} of it`,
      { shortage: { needed: total, limit: HEAP } });
  }

  /** An error about memory, with what the model needs and what there was of it. @internal */
  withNeed(e: unknown, adapter: AdapterFacts | undefined, o: ModelOptions): unknown {
    if (!(e instanceof FritError) || !/out-of-memory$/.test(e.code)) return e;
    let needed: number;
    try {
      needed = this.need(this.onGpu ? adapter : undefined, o).total;
    } catch {
      return e;
    }
    const { granted, refused } = this.#core.hw.bytes();
    const limit = this.onGpu ? granted : this.#core.heapBytes;
    if (this.onGpu) needed = Math.max(needed, granted + refused); // while loading a little more than after it
    return new FritError(e.code, `${e.message}; the model needs about ${mib(needed)}, and ${mib(limit)} were to be had`,
      { cause: e, shortage: { needed, limit } });
  }

  /** Bytes on the device now and at most so far; buffers alive; bind groups ever made. */
  get memory(): { bytes: number; peak: number; buffers: number; bindGroups: number } {
    this.#x.frit_counts(this.#m, this.#out);
    const [bytes, peak, buffers, bindGroups] = this.#doubles(4);
    return { bytes, peak, buffers, bindGroups };
  }

  // ---- tokens ----

  /** special: texts of control tokens stand for them. add: BOS and EOS as the file says. */
  encode(text: string, { special = true, add = true } = {}): number[] {
    this.#core.withText(text, (p, n) =>
      this.#core.check(this.#x.frit_encode(this.#m, p, n, Number(special), Number(add), this.#out)));
    const [p, n] = this.#words(2);
    return [...new Uint32Array(this.#core.x.memory.buffer, p, n)];
  }

  decode(ids: Iterable<number>, { special = true } = {}): string {
    const decoder = new TextDecoder();
    let text = "";
    for (const id of ids) {
      this.#core.check(this.#x.frit_piece(this.#m, id, Number(special), this.#out));
      const [p, n] = this.#words(2);
      text += decoder.decode(new Uint8Array(this.#core.x.memory.buffer, p, n), { stream: true });
    }
    return text + decoder.decode();
  }

  /** Whether the token ends a generation. */
  isEnd(id: number): boolean {
    return !!this.#x.frit_is_eog(this.#m, id);
  }

  /** The timeline: prompt and answer so far. Readable after the device was lost, to go on elsewhere
   * with `continue`. */
  get tokens(): number[] {
    this.#x.frit_tokens(this.#m, this.#out);
    const [p, n] = this.#words(2);
    return [...new Uint32Array(this.#core.x.memory.buffer, p, n)];
  }

  // ---- text ----

  /** The answer to a conversation, by the model's own template. What it has in common with the call
   * before is not run again. */
  chat(messages: Message[], o: Sampling = {}): AsyncGenerator<Piece, Usage, void> {
    return this.#generate(o, () => {
      this.#x.frit_chat_clear(this.#m);
      for (const { role, content } of messages)
        this.#core.withText(role, (r) => this.#core.withText(content, (p, n) =>
          this.#core.check(this.#x.frit_chat_add(this.#m, r, p, n))));
      this.#core.check(this.#x.frit_chat_begin(this.#m));
    });
  }

  /** The continuation of a text as it stands. */
  complete(text: string, o: Sampling & { special?: boolean } = {}): AsyncGenerator<Piece, Usage, void> {
    return this.#generate(o, () => this.#core.withText(text, (p, n) =>
      this.#core.check(this.#x.frit_complete(this.#m, p, n, Number(o.special ?? true)))));
  }

  /** The continuation of tokens. */
  continue(ids: ArrayLike<number>, o: Sampling = {}): AsyncGenerator<Piece, Usage, void> {
    return this.#generate(o, () => this.#core.withBytes(new Uint8Array(Uint32Array.from(ids).buffer), (p) =>
      this.#core.check(this.#x.frit_continue(this.#m, p, ids.length))));
  }

  async *#generate(o: Sampling, begin: () => void): AsyncGenerator<Piece, Usage, void> {
    if (this.#busy) throw new FritError("argument", "the model is busy with another generation");
    o.signal?.throwIfAborted();
    this.#busy = true;
    let ended = false;
    const step = () => {
      if (o.signal?.aborted) this.#x.frit_stop(this.#m);
      this.#core.check(this.#x.frit_step(this.#m, this.#out));
      const [event, p, n, id, moved] = this.#words(5);
      ended = event === 2;
      const text = n ? this.#core.text(p, n) : "";
      return { moved: !!moved, done: ended, value: event === 1 || text ? { text, id } : undefined };
    };
    try {
      const zone = new Date().getTimezoneOffset() * 60;
      this.#x.frit_sampling(this.#m, o.temperature ?? 0, o.topK ?? 0, o.topP ?? 0, o.minP ?? 0,
        o.repetitionPenalty ?? 0, (o.seed ?? 0) >>> 0, o.maxTokens ?? 0, Math.floor(Date.now() / 1000) - zone);
      begin();
      yield* this.#core.drive(step);
    } catch (e) {
      ended = true;
      throw e;
    } finally {
      try { // the caller left the loop: what is in flight comes to an end
        if (!ended && this.#m) {
          this.#x.frit_stop(this.#m);
          for await (const _ of this.#core.drive(step)) continue;
        }
      } finally {
        this.#busy = false;
      }
    }
    return this.usage;
  }

  /** Of the last generation. */
  get usage(): Usage {
    this.#x.frit_usage(this.#m, this.#out);
    const [promptTokens, promptRun, tokens, promptSeconds, seconds, submits, dispatches, end] = this.#doubles(8);
    return { promptTokens, promptRun, tokens, promptSeconds, seconds, submits, dispatches, ...(ENDS[end] && { end: ENDS[end] }) };
  }
}

function mib(n: number): string {
  return `${Math.ceil(n / 2 ** 20)} MiB`;
}

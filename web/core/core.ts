// The engine in JavaScript: loads the module, answers its imports, and drives its steps from promises.
//
// Works in a window, in a worker and in Node 20+. Nothing here blocks for more than a few
// milliseconds on a GPU; on the CPU a step is a whole token or chunk, so use a worker there.
// One Core is one instance of the module; it may hold several models.

import { errorOf, FritError } from "./errors.js";
import { type AdapterFacts, describe, HwBrowser } from "./hw_browser.js";
import { ReadAhead, type Source } from "./source.js";

export { FritError, type ErrorCode } from "./errors.js";
export { type AdapterFacts } from "./hw_browser.js";
export { BlobSource, ReadAhead, UrlSource, partName, type Source } from "./source.js";

/** Milliseconds that steps may take before the event loop gets its turn. */
const SLICE = 4;
/** A wait that no promise ends is looked at again after this many milliseconds. */
const RECHECK = 50;
const HEADER = 2 << 20; // bytes tried first; doubled while the header is longer

interface Exports {
  memory: WebAssembly.Memory;
  _initialize(): void;
  [name: `frit_${string}`]: (...args: number[]) => number;
}

export type Phase = "header" | "open" | "compile" | "upload" | "warmup" | "ready";
const PHASES: Phase[] = ["open", "compile", "upload", "warmup", "ready"];
export interface Progress {
  phase: Phase;
  /** Bytes while uploading, kernels while compiling. */
  done: number;
  total: number;
}

export interface ModelOptions {
  /** "auto": the GPU if there is a real one, else the CPU. */
  device?: "auto" | "gpu" | "cpu";
  /** Tokens that a conversation holds; 0: the model's own, at most 8192. */
  context?: number;
  /** Prompt tokens run at once; 0: 512 on a GPU, 32 on the CPU (each chunk blocks). */
  batch?: number;
  /** Nothing is rounded to fewer bits on the way. */
  f32?: boolean;
  /** Pretend that the device lacks these, for tests and for drivers that have them wrong. */
  noF16?: boolean;
  noSubgroups?: boolean;
  limitBinding?: number;
  /** How far operations are fused; by default what suits the device. */
  level?: "none" | "role";
}

export interface ModelInfo {
  architecture: string; name: string; fileBytes: number; parts: number; context: number;
  trainedContext: number; vocabulary: number; layers: number; width: number; heads: number;
  kvHeads: number; ropeScaling: string; chatTemplate: boolean;
}

export interface DeviceInfo {
  kind: "cpu" | "gpu"; name: string; vendor: string; architecture: string; browser: string;
  software: boolean; f16: boolean; subgroups: boolean; dot4i8: boolean; timestamps: boolean;
  subgroupMin: number; subgroupMax: number; maxBinding: number; maxBuffer: number;
  maxWorkgroupMemory: number; maxInvocations: number;
}

/** Bytes that a model needs. */
export interface Need { weights: number; kv: number; work: number; total: number }

export interface Estimate {
  info: ModelInfo;
  device: "gpu" | "cpu";
  need: Need;
  /** Of the GPU asked about, when there is one. */
  adapter?: AdapterFacts;
}

export interface Sampling {
  /** 0 or absent: greedy. */
  temperature?: number;
  topK?: number;
  topP?: number;
  minP?: number;
  repetitionPenalty?: number;
  seed?: number;
  maxTokens?: number;
  signal?: AbortSignal;
}

export interface Message { role: string; content: string }

/** One token: its id and the characters that it completed (maybe none). */
export interface Piece { text: string; id: number }

export type End = "stop" | "length" | "context" | "cancelled";
const ENDS: (End | undefined)[] = [undefined, "stop", "length", "context", "cancelled"];
export interface Usage {
  /** Tokens of the prompt, and those of them that had to be run. */
  promptTokens: number; promptRun: number;
  tokens: number;
  promptSeconds: number; seconds: number;
  submits: number; dispatches: number;
  end?: End;
}

export interface CoreOptions {
  /** navigator.gpu, or an object like it (Node: the `webgpu` package's); null: none. */
  gpu?: GPU | null;
  log?: (level: "debug" | "info" | "warn", text: string) => void;
}

type Reading = { source: Source; signal?: AbortSignal; state: 0 | 1 | 2; text: string };

export class Core {
  /** @internal */ readonly x: Exports;
  /** @internal */ readonly hw: HwBrowser;
  readonly gpu: GPU | undefined;
  #readings = new Map<number, Reading>();
  #next = 1;
  #fetching = 0;
  #wakers: (() => void)[] = [];

  private constructor(make: (core: Core) => { x: Exports; hw: HwBrowser }, gpu: GPU | undefined) {
    this.gpu = gpu;
    const { x, hw } = make(this);
    this.x = x;
    this.hw = hw;
    hw.wake = () => this.#wake();
  }

  /** `wasm`: frit.wasm by URL, as bytes, or compiled. */
  static async load(wasm: string | URL | BufferSource | WebAssembly.Module, o: CoreOptions = {}): Promise<Core> {
    const module = wasm instanceof WebAssembly.Module ? wasm
      : typeof wasm === "string" || wasm instanceof URL ? await compile(wasm) : await WebAssembly.compile(wasm);
    const gpu = o.gpu === null ? undefined : o.gpu ?? globalThis.navigator?.gpu;
    let core: Core, memory: WebAssembly.Memory;
    const hw = new HwBrowser(() => memory.buffer, gpu);
    const text = (p: number, n: number) => new TextDecoder().decode(new Uint8Array(memory.buffer, p, n));
    const log = o.log ?? ((level, line) => level === "warn" && console.warn(`frit: ${line}`));
    const frit = {
      ...hw.imports,
      log: (level: number, p: number, n: number) => log((["debug", "info", "warn"] as const)[level] ?? "warn", text(p, n)),
      source_fetch: (...a: [number, number, number, number, number, number]) => core.#fetch(...a),
      source_fetched: (id: number, p: number, room: number) => core.#fetched(id, p, room),
    };
    const { exports } = await WebAssembly.instantiate(module, { frit, wasi_snapshot_preview1: wasi(() => memory, log) });
    const x = exports as unknown as Exports;
    memory = x.memory;
    x._initialize();
    core = new Core(() => ({ x, hw }), gpu);
    return core;
  }

  get version(): string {
    return this.cstr(this.x.frit_version());
  }

  /** Bytes of the module's memory: it grows and never shrinks. */
  get heapBytes(): number {
    return this.x.memory.buffer.byteLength;
  }

  /** The adapter that a model would be loaded on. */
  async adapter(): Promise<AdapterFacts | undefined> {
    const a = await this.gpu?.requestAdapter({ powerPreference: "high-performance" });
    return a ? describe(a) : undefined;
  }

  /** What a model is and needs, from its header alone. */
  async estimate(source: Source, o: ModelOptions = {}, signal?: AbortSignal): Promise<Estimate> {
    const adapter = o.device === "cpu" ? undefined : await this.adapter();
    const model = await this.#begin(source, o, adapter, signal);
    try {
      const need = model.need(adapter, o);
      return { info: model.info, device: model.onGpu ? "gpu" : "cpu", need, ...(adapter && { adapter }) };
    } finally {
      model.dispose();
    }
  }

  /** Loads a model. Rejects with a FritError, or the signal's reason. */
  async openModel(source: Source, o: ModelOptions = {}, onProgress?: (p: Progress) => void,
    signal?: AbortSignal): Promise<Model> {
    onProgress?.({ phase: "header", done: 0, total: 0 });
    const adapter = o.device === "cpu" ? undefined : await this.adapter();
    const model = await this.#begin(new ReadAhead(source), o, adapter, signal);
    try {
      await model.load(onProgress, signal);
      return model;
    } catch (e) {
      model.dispose();
      throw e;
    }
  }

  async #begin(source: Source, o: ModelOptions, adapter: AdapterFacts | undefined, signal?: AbortSignal): Promise<Model> {
    if (o.device === "gpu" && !adapter)
      throw new FritError("no-device", this.gpu ? "no adapter: the browser has WebGPU but no GPU that it would use"
        : "this browser has no WebGPU (navigator.gpu is missing)");
    const gpu = o.device === "gpu" || (o.device !== "cpu" && !!adapter && !adapter.software);
    const id = this.#next++;
    this.#readings.set(id, { source, signal, state: 0, text: "" });
    const model = new Model(this, id, gpu, () => this.#readings.delete(id));
    try {
      await model.readHeader(source, signal);
      model.open(o);
      return model;
    } catch (e) {
      model.dispose();
      throw e;
    }
  }

  // ---- weights ----

  #fetch(id: number, part: number, off: number, size: number, buf: number, dst: number): void {
    const r = this.#readings.get(id)!;
    r.state = 0;
    this.#fetching++;
    r.source.read(part, off, size, r.signal).then((bytes) => {
      if (!this.#readings.has(id)) return; // disposed meanwhile
      if (buf) this.hw.write(buf, dst, bytes);
      else new Uint8Array(this.x.memory.buffer, dst, size).set(bytes);
      r.state = 1;
    }).catch((e: unknown) => {
      r.state = 2;
      r.text = e instanceof Error ? e.message : String(e);
    }).finally(() => {
      this.#fetching--;
      this.#wake();
    });
  }

  #fetched(id: number, p: number, room: number): number {
    const r = this.#readings.get(id)!;
    if (r.state === 2) this.putCstr(p, room, r.text);
    return r.state;
  }

  // ---- driving ----

  #wake(): void {
    const wakers = this.#wakers;
    this.#wakers = [];
    for (const w of wakers) w();
  }

  /** Resolves when a promise that a step may wait for has settled. */
  #waited(): Promise<void> {
    if (this.hw.pending + this.#fetching === 0) return turn();
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, RECHECK);
      this.#wakers.push(() => {
        clearTimeout(timer);
        resolve();
      });
    });
  }

  /** Calls `step` until it is done, with turns of the event loop in between. @internal */
  async *drive<T>(step: () => { moved: boolean; done: boolean; value?: T }): AsyncGenerator<T, void, void> {
    for (let until = performance.now() + SLICE; ;) {
      const { moved, done, value } = step();
      if (value !== undefined) yield value;
      if (done) return;
      if (!moved) await this.#waited();
      else if (performance.now() < until) continue;
      else await turn();
      until = performance.now() + SLICE;
    }
  }

  // ---- the module's memory ----

  /** @internal */
  check(code: number): void {
    if (code) throw errorOf(code, this.cstr(this.x.frit_error()));
  }

  /** @internal */
  alloc(n: number): number {
    const p = this.x.frit_alloc(Math.max(n, 1));
    if (!p) throw new FritError("out-of-memory", `out of memory: ${n} bytes in the module's heap`);
    return p;
  }

  /** Calls fn with the address of a copy of `bytes`, NUL-terminated. @internal */
  withBytes<T>(bytes: Uint8Array, fn: (p: number, n: number) => T): T {
    const p = this.alloc(bytes.length + 1);
    const to = new Uint8Array(this.x.memory.buffer, p, bytes.length + 1);
    to.set(bytes);
    to[bytes.length] = 0;
    try {
      return fn(p, bytes.length);
    } finally {
      this.x.frit_free(p);
    }
  }

  /** @internal */
  withText<T>(text: string, fn: (p: number, n: number) => T): T {
    return this.withBytes(new TextEncoder().encode(text), fn);
  }

  /** @internal */
  text(p: number, n: number): string {
    return new TextDecoder().decode(new Uint8Array(this.x.memory.buffer, p, n));
  }

  /** @internal */
  cstr(p: number): string {
    const all = new Uint8Array(this.x.memory.buffer);
    return this.text(p, all.indexOf(0, p) - p);
  }

  /** @internal */
  putCstr(p: number, room: number, text: string): void {
    const to = new Uint8Array(this.x.memory.buffer, p, room);
    to[new TextEncoder().encodeInto(text, to.subarray(0, room - 1)).written] = 0;
  }
}

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

// ---- the module's surroundings ----

async function compile(url: string | URL): Promise<WebAssembly.Module> {
  const res = await fetch(url);
  if (!res.ok) throw new FritError("io", `${url}: HTTP ${res.status}`);
  return WebAssembly.compile(await res.arrayBuffer());
}

/** A turn of the event loop, sooner than a timer would give it. */
function turn(): Promise<void> {
  const { setImmediate } = globalThis as { setImmediate?: (fn: () => void) => void };
  if (setImmediate) return new Promise((resolve) => setImmediate(resolve));
  return new Promise((resolve) => {
    const { port1, port2 } = new MessageChannel();
    port1.onmessage = () => {
      port1.close();
      resolve();
    };
    port2.postMessage(0);
  });
}

/** The calls of WASI that the C library keeps: a clock, and standard error for failed asserts. */
function wasi(memory: () => WebAssembly.Memory, log: (level: "warn", text: string) => void) {
  return {
    clock_time_get(_id: number, _precision: bigint, out: number): number {
      const ns = BigInt(Math.round(performance.now() * 1e6));
      new DataView(memory().buffer).setBigUint64(out, _id === 0 ? BigInt(Date.now()) * 1_000_000n : ns, true);
      return 0;
    },
    fd_write(_fd: number, iovs: number, n: number, out: number): number {
      const v = new DataView(memory().buffer);
      let text = "", total = 0;
      for (let i = 0; i < n; i++) {
        const size = v.getUint32(iovs + 8 * i + 4, true);
        text += new TextDecoder().decode(new Uint8Array(memory().buffer, v.getUint32(iovs + 8 * i, true), size));
        total += size;
      }
      log("warn", text.trimEnd());
      v.setUint32(out, total, true);
      return 0;
    },
    fd_close: (): number => 8,
    fd_seek: (): number => 8,
  };
}

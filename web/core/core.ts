// The engine in JavaScript: loads the module, answers its imports, and drives its steps from promises.
//
// Works in a window, in a worker and in Node 20+. Nothing here blocks for more than a few
// milliseconds on a GPU; on the CPU a step is a whole token or chunk, so use a worker there.
// One Core is one instance of the module; it may hold several models.

import { errorOf, FritError } from "./errors.js";
import { type AdapterFacts, describe, HwBrowser } from "./hw_browser.js";
import { Model } from "./model.js";
import { compile, turn, wasi } from "./module.js";
import { ReadAhead, type Source } from "./source.js";
import type { Estimate, Exports, ModelOptions, Progress } from "./types.js";

export { FritError, type ErrorCode, type Shortage } from "./errors.js";
export { type AdapterFacts } from "./hw_browser.js";
export { HEAP, Model } from "./model.js";
export { Sha256 } from "./sha256.js";
export { BlobSource, ReadAhead, UrlSource, partName, type Source } from "./source.js";
export type {
  DeviceInfo, End, Estimate, Message, ModelInfo, ModelOptions, Need, Phase, Piece, Progress, Sampling, Usage,
} from "./types.js";

/** Milliseconds that steps may take before the event loop gets its turn. */
const SLICE = 4;
/** A wait that no promise ends is looked at again after this many milliseconds. */
const RECHECK = 50;

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
      model.mustFit(o);
      await model.load(onProgress, signal);
      return model;
    } catch (e) {
      const told = model.withNeed(e, adapter, o);
      model.dispose();
      throw told;
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

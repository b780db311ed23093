// The engine as the Host drives it: the wasm core (web/core) with a model in it. A device that is lost
// while text is made is opened again, and the text goes on from the tokens that are there.
import {
  Core, HEAP, type AdapterFacts, type DeviceInfo as CoreDevice, type Model as CoreModel, type ModelOptions, type Piece,
  type Sampling, type Source, type Usage,
} from "../../core/core.js";
import { makeError, throwIfAborted, toFritError, type FritError } from "./errors.js";
import { nodeModule } from "./source.js";
import type { LoadMessage, Prompt } from "./protocol.js";
import type { DeviceInfo, Estimate, Fallback, FinishReason, MemoryUse, ModelInfo, Progress, SamplingParams } from "./types.js";

export interface GenerateEnd { finish: FinishReason; tokens: number; promptTokens: number; cachedTokens: number }

const RELOADS = 2; // times that one answer may lose its device

export async function loadCore(wasm: string, gpu?: unknown): Promise<Core> {
  const o = { gpu: (gpu as GPU | undefined) ?? globalThis.navigator?.gpu ?? null };
  const fs = wasm.startsWith("file:") ? nodeModule<{ readFileSync(u: URL): Uint8Array<ArrayBuffer> }>("node:fs") : undefined;
  try {
    return await Core.load(fs ? fs.readFileSync(new URL(wasm)) : wasm, o);
  } catch (e) {
    throw makeError("worker", `${wasm}: ${(e as Error).message}`);
  }
}

export async function estimateSource(core: Core, source: Source, o: { context?: number; device?: LoadMessage["device"] },
  signal: AbortSignal): Promise<Estimate> {
  const size = await source.size(0);
  try {
    const e = await core.estimate(source, { context: o.context, device: o.device }, signal);
    const { info, need } = e, why = lacks(need.total, e.device);
    return {
      name: info.name || source.name(0), size: info.fileBytes, architecture: info.architecture, context: info.context,
      device: e.device, weights: need.weights, kv: need.kv, memory: need.total, fits: !why, why,
    };
  } catch (e) {
    const { code, message } = toFritError(e, "io");
    if (code !== "limit" && code !== "unsupported") throw e;
    return {
      name: source.name(0), size, architecture: "", context: 0, device: o.device === "gpu" ? "gpu" : "cpu", weights: 0, kv: 0, memory: 0,
      fits: false, why: message,
    };
  }
}

function lacks(need: number, device: "gpu" | "cpu"): string {
  const mib = (n: number) => `${Math.ceil(n / 2 ** 20)} MiB`;
  if (device === "cpu" && need > HEAP) return `on the CPU it needs ${mib(need)}, and a wasm heap holds ${mib(HEAP)} of it`;
  // Browsers say at most 8 GiB, whatever there is: only less than that tells something.
  const ram = ((globalThis.navigator as { deviceMemory?: number } | undefined)?.deviceMemory ?? 8) * 2 ** 30;
  return ram < 8 * 2 ** 30 && need > 0.75 * ram ? `it needs ${mib(need)}, and this device has about ${mib(ram)} of memory` : "";
}

export class Engine {
  readonly info: ModelInfo;
  #core: Core;
  #model: CoreModel;
  #source: Source;
  #options: ModelOptions;

  private constructor(core: Core, model: CoreModel, source: Source, options: ModelOptions, device: DeviceInfo) {
    this.#core = core;
    this.#model = model;
    this.#source = source;
    this.#options = options;
    const { name, fileBytes, architecture, context } = model.info;
    this.info = { name: name || source.name(0), size: fileBytes, architecture, context, device };
  }

  static async open(core: Core, source: Source, o: LoadMessage, signal: AbortSignal, report: (p: Progress) => void):
    Promise<Engine> {
    const options: ModelOptions = {
      device: o.device ?? "auto", context: o.context ?? 0, f32: o.precision === "f32", noF16: o.pretend?.noF16,
      noSubgroups: o.pretend?.noSubgroups, limitBinding: o.pretend?.maxBinding,
    };
    const model = await core.openModel(source, options, ({ phase, done, total }) => {
      if (phase !== "header" && phase !== "open" && phase !== "ready") report({ phase, done, total });
    }, signal);
    const adapter = model.onGpu || options.device !== "cpu" ? await core.adapter() : undefined;
    return new Engine(core, model, source, options, describeDevice(model.device, adapter, options, !!core.gpu));
  }

  /** Text by pieces, one a token, some empty; returns how it ended. */
  async *generate(prompt: Prompt, params: SamplingParams, signal: AbortSignal): AsyncGenerator<string, GenerateEnd, void> {
    const o = samplingOf(params);
    let run = prompt.type === "chat"
      ? this.#model.chat(prompt.messages.map((m) => ({ role: m.role, content: textOf(m.content) })), o)
      : this.#model.complete(prompt.text, { ...o, special: prompt.special });
    let made = 0, first: Usage | null = null;
    for (let reloads = 0; ;) {
      try {
        const usage: Usage = yield* this.#pieces(run, () => made++);
        throwIfAborted(signal);
        const of = first ?? usage;
        return {
          finish: usage.end === "stop" ? "stop" : "length", tokens: first ? made : usage.tokens,
          promptTokens: of.promptTokens, cachedTokens: of.promptTokens - of.promptRun,
        };
      } catch (e) {
        throwIfAborted(signal);
        if (++reloads > RELOADS || !(await this.#isLost(e))) throw e;
        const ids = this.#model.tokens;
        first ??= this.#model.usage;
        await this.#reload(signal, toFritError(e));
        run = this.#model.continue(ids, { ...o, maxTokens: o.maxTokens ? Math.max(1, o.maxTokens - made) : 0 });
      }
    }
  }

  /** Ends a run before its end; what was made counts. */
  async leave(run: AsyncGenerator<string, GenerateEnd, void>, tokens: number): Promise<GenerateEnd> {
    await run.return(undefined as unknown as GenerateEnd);
    const { promptTokens, promptRun } = this.#model.usage;
    return { finish: "stop", tokens, promptTokens, cachedTokens: promptTokens - promptRun };
  }

  async *#pieces(run: AsyncGenerator<Piece, Usage, void>, count: () => void): AsyncGenerator<string, Usage, void> {
    try {
      for (;;) {
        const { value, done } = await run.next();
        if (done) return value;
        count();
        yield value.text;
      }
    } finally {
      await run.return(undefined as unknown as Usage).catch(() => {}); // the caller may have left
    }
  }

  /** What was in flight may fail as a plain device error before the browser tells of the loss. */
  async #isLost(e: unknown): Promise<boolean> {
    const { code } = toFritError(e), device = this.#core.hw.device();
    if (code !== "device" || !device) return code === "device-lost";
    const soon = new Promise<false>((r) => setTimeout(r, 250, false));
    return Promise.race([device.lost.then(() => true), soon]);
  }

  async #reload(signal: AbortSignal, lost: FritError): Promise<void> {
    this.#model.dispose();
    try {
      this.#model = await this.#core.openModel(this.#source, this.#options, undefined, signal);
    } catch (e) {
      throwIfAborted(signal);
      throw makeError("device-lost", `${lost.message}; and it could not be opened again: ${(e as Error).message}`);
    }
  }

  tokenize(text: string, special: boolean): Uint32Array {
    return Uint32Array.from(this.#model.encode(text, { special, add: false }));
  }

  memory(): MemoryUse {
    return { gpu: this.#model.onGpu ? this.#model.memory.bytes : 0, heap: this.#core.heapBytes };
  }

  loseDevice(): void {
    this.#core.hw.device()?.destroy();
  }

  close(): void {
    this.#model.dispose();
  }
}

function textOf(content: string | { text: string }[]): string {
  return typeof content === "string" ? content : content.map((p) => p.text).join("");
}

/** The signal is left out: the loop over the pieces is left instead, and what is in flight comes to an end. */
function samplingOf(p: SamplingParams): Sampling {
  return {
    temperature: p.temperature ?? 0, topK: p.top_k ?? 0, topP: p.top_p ?? 1, minP: p.min_p ?? 0,
    repetitionPenalty: p.repetition_penalty ?? 1, seed: p.seed ?? 0, maxTokens: p.max_tokens ?? 0,
  };
}

function describeDevice(d: CoreDevice, adapter: AdapterFacts | undefined, o: ModelOptions, webgpu: boolean): DeviceInfo {
  const fallbacks: Fallback[] = [];
  const say = (code: Fallback["code"], text: string) => fallbacks.push({ code, text });
  if (d.kind === "cpu") {
    if (o.device !== "cpu" && !webgpu) say("no-webgpu", "There is no WebGPU here: the CPU runs the model.");
    else if (o.device !== "cpu" && !adapter) say("no-adapter", "WebGPU offers no adapter: the CPU runs the model.");
    else if (o.device !== "cpu") say("software", "The only WebGPU adapter is itself software: the CPU runs the model directly.");
    return { kind: "cpu", name: d.name, vendor: d.vendor, architecture: d.architecture, software: false,
      features: ["WebAssembly SIMD"], limits: {}, fallbacks };
  }
  if (!d.f16) say("no-f16", "No 16-bit floats: values are kept and computed in 32 bits.");
  if (!d.subgroups) say("no-subgroups", "No subgroups: sums go through workgroup memory.");
  if (!d.dot4i8) say("no-dot4i8", "No packed 8-bit dot products: weights are multiplied as floats.");
  if (d.maxBinding < 2 ** 30) say("small-bindings", `Bindings end at ${Math.floor(d.maxBinding / 2 ** 20)} MiB: larger tensors are split.`);
  const features = [d.f16 && "shader-f16", d.subgroups && `subgroups (${d.subgroupMin} to ${d.subgroupMax})`,
    d.dot4i8 && "packed 8-bit dot products", d.timestamps && "timestamp-query"].filter((f) => typeof f === "string");
  return {
    kind: "gpu", name: d.name, vendor: d.vendor, architecture: d.architecture, software: d.software, features,
    limits: { ...adapter?.limits, maxStorageBufferBindingSize: d.maxBinding }, fallbacks,
  };
}

// The engine's side: answers the messages of protocol.ts, one generation at a time. Runs in a worker
// or, when asked, beside the Model on the main thread.
import { AbortError, factsOf, makeError, throwIfAborted, toFritError } from "./errors.js";
import { openUrl, type ChunkedSource } from "./cache.js";
import { BlobSource, PartsSource, UrlSource, openPath, type ByteSource } from "./source.js";
import { Engine, estimateSource, loadCore, type GenerateEnd } from "./engine.js";
import { partName } from "../../core/source.js";
import { StopFilter } from "./stop.js";
import type { FromHost, GenerateResult, LoadMessage, Ops, Prompt, SourceMessage, ToHost } from "./protocol.js";
import type { ModelInfo, Progress, SamplingParams } from "./types.js";

const now = () => performance.now() / 1000;

export class Host {
  #post: (m: FromHost) => void;
  #running = new Map<number, AbortController>();
  #engine: Engine | null = null;
  #source: PartsSource | null = null; // as long as the engine, which may have to read it again
  #disposed = false;
  #turn: Promise<unknown> = Promise.resolve(); // generations wait for each other

  constructor(post: (m: FromHost) => void) {
    this.#post = post;
  }

  /** Never throws: what fails is answered by an error. */
  async handle(m: ToHost): Promise<void> {
    if (m.op === "abort") return this.#running.get(m.id)?.abort();
    const control = new AbortController();
    this.#running.set(m.id, control);
    try {
      const value = await this.#do(m, control.signal);
      this.#post({ id: m.id, type: "done", value });
    } catch (e) {
      const error = toFritError(e);
      this.#post({ id: m.id, type: "error", code: error.code, message: error.message, facts: factsOf(error) });
    } finally {
      this.#running.delete(m.id);
    }
  }

  #do(m: Exclude<ToHost, { op: "abort" }>, signal: AbortSignal): Promise<Ops[keyof Ops]["gives"]> {
    switch (m.op) {
      case "load": return this.#load(m.arg, signal, (progress) => this.#post({ id: m.id, type: "progress", progress }));
      case "estimate": return this.#estimate(m.arg, signal);
      case "generate": return this.#inTurn(() =>
        this.#generate(m.arg.prompt, m.arg.params, signal, (text) => this.#post({ id: m.id, type: "text", text })));
      case "tokenize": return this.#inTurn(async () => this.#ready().tokenize(m.arg.text, m.arg.special));
      case "memory": return Promise.resolve(this.#ready().memory());
      case "lose": return Promise.resolve((this.#ready().loseDevice(), null));
      case "dispose": return this.#dispose();
    }
  }

  #ready(): Engine {
    if (!this.#engine) throw makeError("disposed", "the model has been disposed of, or is not loaded");
    return this.#engine;
  }

  #inTurn<T>(f: () => Promise<T>): Promise<T> {
    const mine = this.#turn.then(f, f);
    this.#turn = mine.catch(() => {});
    return mine;
  }

  async #load(o: LoadMessage, signal: AbortSignal, report: (p: Progress) => void): Promise<ModelInfo> {
    const fetched: ChunkedSource[] = [];
    const missing = () => fetched.reduce((n, s) => n + s.missing, 0);
    let whole = false; // a server without ranges is sending the file before anything else
    const source = partsOf(o.source, signal, async (url) => {
      const s = await openUrl(url, { store: o.cache !== false, signal, onFetch: (p) => {
        whole = !fetched.length && p.done < p.total;
        report({ phase: "download", ...(whole ? p : sum()) });
      } });
      fetched.push(s);
      return s;
    });
    const sum = () => {
      const total = fetched.reduce((n, s) => n + s.size, 0);
      return { done: total - missing(), total };
    };
    try {
      const core = await loadCore(o.wasm, o.gpu);
      const engine = await Engine.open(core, source, o, signal, (p) => {
        if (!(p.phase === "upload" && missing() > 0)) report(p);
      });
      this.#engine = engine;
      if (this.#disposed || signal.aborted) throw new AbortError();
      await Promise.all(fetched.map((s) => s.flush()));
    } catch (e) {
      this.#engine?.close();
      this.#engine = null;
      await source.close();
      throwIfAborted(signal);
      throw toFritError(e).code === "io" && source.error ? toFritError(source.error, "io") : e;
    }
    this.#source = source;
    report({ phase: "ready", done: 0, total: 0 });
    return this.#engine.info;
  }

  async #estimate(o: Ops["estimate"]["takes"], signal: AbortSignal) {
    const source = partsOf(o.source, signal, (url) => UrlSource.open(url, signal));
    try {
      return await estimateSource(await loadCore(o.wasm, o.gpu), source, o, signal);
    } catch (e) {
      throwIfAborted(signal);
      throw toFritError(e).code === "io" && source.error ? toFritError(source.error, "io") : e;
    } finally {
      await source.close();
    }
  }

  async #generate(prompt: Prompt, params: SamplingParams, signal: AbortSignal, emit: (text: string) => void):
    Promise<GenerateResult> {
    throwIfAborted(signal);
    const begin = now();
    const stops = typeof params.stop === "string" ? [params.stop] : params.stop ?? [];
    const filter = new StopFilter(stops);
    const run = this.#ready().generate(prompt, params, signal);
    let first = 0, last = begin, tokens = 0, end: GenerateEnd | undefined;
    for (;;) {
      const { value, done } = await run.next();
      if (done) {
        end = value;
        break;
      }
      last = now();
      if (!tokens++) first = last;
      const shown = filter.push(value);
      if (shown) emit(shown);
      if (filter.hit === null && !signal.aborted) continue;
      break;
    }
    end ??= await this.#ready().leave(run, tokens);
    throwIfAborted(signal);
    const rest = filter.hit === null ? filter.end() : "";
    if (rest) emit(rest);
    const n = end.tokens;
    if (!first) first = last = now();
    return {
      finish_reason: filter.hit !== null ? "stop" : end.finish,
      usage: {
        prompt_tokens: end.promptTokens, completion_tokens: n, total_tokens: end.promptTokens + n,
        extra: {
          time_to_first_token_s: first - begin, e2e_latency_s: now() - begin,
          prefill_tokens_per_s: rate(end.promptTokens - end.cachedTokens, first - begin),
          decode_tokens_per_s: rate(n - 1, last - first), cached_tokens: end.cachedTokens,
        },
      },
    };
  }

  async #dispose(): Promise<null> {
    this.#disposed = true;
    for (const c of this.#running.values()) c.abort();
    await this.#turn;
    const engine = this.#engine;
    this.#engine = null;
    engine?.close();
    await this.#source?.close();
    return null;
  }
}

function rate(n: number, seconds: number): number {
  return n > 0 && seconds > 0 ? n / seconds : 0;
}

/** openUrl is told the address of each part. */
function partsOf(s: SourceMessage, signal: AbortSignal, open: (url: string) => Promise<ByteSource>): PartsSource {
  switch (s.type) {
    case "url": return new PartsSource(s.url, (i) => open(partName(s.url, i)), signal);
    case "path": return new PartsSource(s.path, (i) => openPath(partName(s.path, i)), signal);
    case "blobs": return new PartsSource(s.name ?? nameOfBlob(s.blobs[0]), async (i) => {
      if (!s.blobs[i]) throw makeError("argument", `part ${i + 1} of the model was not given`);
      return new BlobSource(s.blobs[i], i ? undefined : s.name);
    }, signal);
    case "object": return new PartsSource(s.source.name, async (i) => {
      if (i) throw makeError("unsupported", `${s.source.name}: a split model comes by URL, path or Files`);
      return s.source;
    }, signal);
  }
}

function nameOfBlob(b: Blob | undefined): string {
  return (b as File | undefined)?.name ?? "blob";
}

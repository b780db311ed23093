// The engine's side: answers the messages of protocol.ts, one generation at a time. Runs in a worker
// or, when asked, beside the Model on the main thread.
import { AbortError, factsOf, makeError, throwIfAborted, toFritError } from "./errors.js";
import { openStored, openUrl, type ChunkedSource } from "./cache.js";
import { PortSource } from "./port.js";
import { BlobSource, PartsSource, UrlSource, mustMatch, openPath, type ByteSource } from "./source.js";
import { Engine, estimateSource, loadCore, type GenerateEnd } from "./engine.js";
import { Sha256, partName, type Core } from "../../core/core.js";
import { StopFilter } from "./stop.js";
import type { FromHost, GenerateResult, LoadMessage, Ops, PartMessage, Prompt, SourceMessage, ToHost } from "./protocol.js";
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
      case "verify": return this.#verify(m.arg, signal, (progress) => this.#post({ id: m.id, type: "progress", progress }));
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

  /** What was stored and is not what it should be was deleted: once more, then, from its server. */
  async #load(o: LoadMessage, signal: AbortSignal, report: (p: Progress) => void): Promise<ModelInfo> {
    const stored = { any: false };
    this.#disposed = false;
    try {
      return await this.#loadOnce(o, signal, report, stored);
    } catch (e) {
      if (!stored.any || toFritError(e).code !== "integrity") throw e;
      return this.#loadOnce(o, signal, report, stored).catch((again: unknown) => {
        throw toFritError(again).code === "network" ? e : again;
      });
    }
  }

  async #loadOnce(o: LoadMessage, signal: AbortSignal, report: (p: Progress) => void, stored: { any: boolean }):
    Promise<ModelInfo> {
    const fetched = new Map<number, ChunkedSource>();
    const missing = () => [...fetched.values()].reduce((n, s) => n + s.missing, 0);
    const sum = () => {
      const total = [...fetched.values()].reduce((n, s) => n + s.size, 0);
      return { done: total - missing(), total };
    };
    const core = await loadCore(o.wasm, o.gpu);
    let whole = false; // a server without ranges is sending the file before anything else
    const source = partsOf(o.source, signal, async (url, part) => {
      const s = await openUrl(url, { store: o.cache !== false, signal, onFetch: (p) => {
        whole = !fetched.size && p.done < p.total;
        report({ phase: "download", ...(whole ? p : sum()) });
      } });
      if (o.sha256?.[part]) s.digest(new Sha256(core));
      stored.any ||= s.hadStored;
      fetched.set(part, s);
      return s;
    });
    try {
      if (o.source.type !== "url") await checkParts(core, source, o, signal, report);
      const engine = await Engine.open(core, source, o, signal, (p) => {
        if (!(p.phase === "upload" && missing() > 0)) report(p);
      });
      this.#engine = engine;
      if (this.#disposed || signal.aborted) throw new AbortError();
      for (const [part, s] of fetched) {
        const expected = o.sha256?.[part];
        if (expected) await s.mustBe(expected, await s.hex(false, (p) => report({ phase: "verify", ...p }), signal));
      }
      await Promise.all([...fetched.values()].map((s) => s.flush()));
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

  async #verify(o: Ops["verify"]["takes"], signal: AbortSignal, report: (p: Progress) => void) {
    const s = await openStored(o.url), expected = o.sha256 ?? s.known;
    try {
      s.digest(new Sha256(await loadCore(o.wasm)));
      const sha256 = await s.hex(true, (p) => report({ phase: "verify", ...p }), signal);
      await s.mustBe(expected, sha256);
      return { sha256, compared: expected !== undefined };
    } finally {
      await s.close();
    }
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

/** `open` is told the address and number of each part. */
function partsOf(s: SourceMessage, signal: AbortSignal, open: (url: string, part: number) => Promise<ByteSource>):
  PartsSource {
  switch (s.type) {
    case "url": return new PartsSource(s.url, (i) => open(partName(s.url, i), i), signal);
    case "path": return new PartsSource(s.path, (i) => openPath(partName(s.path, i)), signal);
    case "parts": {
      const parts = s.parts.map(sourceOf);
      return new PartsSource(parts[0].name, async (i) => {
        if (!parts[i]) throw makeError("argument", `part ${i + 1} of the model was not given`);
        return parts[i];
      }, signal);
    }
  }
}

function sourceOf(m: PartMessage): ByteSource {
  if ("blob" in m) return new BlobSource(m.blob, m.name);
  return "port" in m ? new PortSource(m) : m.source;
}

/** Files at hand are read once for their SHA-256 before anything is made of them. */
async function checkParts(core: Core, source: PartsSource, o: LoadMessage, signal: AbortSignal,
  report: (p: Progress) => void): Promise<void> {
  const PIECE = 4 << 20; // bytes
  for (const [part, expected] of (o.sha256 ?? []).entries()) {
    if (!expected) continue;
    const hash = new Sha256(core), total = await source.size(part);
    for (let at = 0; at < total; at += PIECE) {
      throwIfAborted(signal);
      hash.add(await source.read(part, at, Math.min(PIECE, total - at), signal));
      report({ phase: "verify", done: Math.min(total, at + PIECE), total });
    }
    mustMatch(source.name(part), expected, hash.hex());
  }
}

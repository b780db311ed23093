// A loaded model, as the caller has it.
import { FritError, UnsupportedError, UsageError, makeError } from "./errors.js";
import type { Client } from "./client.js";
import type { GenerateResult, Prompt } from "./protocol.js";
import type {
  ChatCompletion, ChatCompletionChunk, ChatCompletionCreateParams, ChatCompletionCreateParamsNonStreaming,
  ChatCompletionCreateParamsStreaming, CompleteParams, CompleteResult, MemoryUse, ModelInfo, RequestOptions,
  SamplingParams,
} from "./types.js";

/** Chunks as they are made. Leaving the loop, or `controller.abort()`, stops the model. */
export interface ChatCompletionStream extends AsyncIterable<ChatCompletionChunk> {
  controller: AbortController;
}

export class Model {
  readonly info: ModelInfo;
  readonly chat: { completions: ChatCompletions };
  #client: Client;
  #gone: Promise<void> | null = null;

  /** @internal */
  constructor(client: Client, info: ModelInfo) {
    this.#client = client;
    this.info = info;
    this.chat = { completions: new ChatCompletions(client, info.name) };
  }

  /** Continues a text as it stands, without a chat template. */
  async complete(params: CompleteParams, o: RequestOptions & { onText?: (piece: string) => void } = {}):
    Promise<CompleteResult> {
    if (typeof params?.prompt !== "string") throw new UsageError("argument", "complete: prompt must be a string");
    let text = "";
    const prompt: Prompt = { type: "text", text: params.prompt, special: params.special ?? true };
    const done = await this.#client.call("generate", { prompt, params: samplingOf(params) }, {
      signal: o.signal, onText: (s) => { text += s; o.onText?.(s); },
    });
    return { text, ...done };
  }

  /** Ids of the text's tokens. With `special` (default true) texts of special tokens are those. */
  tokenize(text: string, o: { special?: boolean } = {}): Promise<Uint32Array> {
    return this.#client.call("tokenize", { text, special: o.special ?? true });
  }

  memory(): Promise<MemoryUse> {
    return this.#client.call("memory", null);
  }

  /** Frees all that the model has, GPU memory first; what is running is aborted. Calls after this fail. */
  dispose(): Promise<void> {
    this.#gone ??= this.#client.call("dispose", null).then(() => {}, (e: FritError) => {
      if (e.code !== "worker") throw e;
    }).finally(() => this.#client.end(makeError("disposed", "the model has been disposed of")));
    return this.#gone;
  }

  /** @internal For tests: the device is lost as if the driver had reset. */
  async loseDevice(): Promise<void> {
    await this.#client.call("lose", null);
  }
}

class ChatCompletions {
  #client: Client;
  #model: string;
  constructor(client: Client, model: string) {
    this.#client = client;
    this.#model = model;
  }

  create(params: ChatCompletionCreateParamsStreaming, o?: RequestOptions): Promise<ChatCompletionStream>;
  create(params: ChatCompletionCreateParamsNonStreaming, o?: RequestOptions): Promise<ChatCompletion>;
  create(params: ChatCompletionCreateParams, o?: RequestOptions): Promise<ChatCompletion | ChatCompletionStream>;
  async create(params: ChatCompletionCreateParams, o: RequestOptions = {}): Promise<ChatCompletion | ChatCompletionStream> {
    check(params);
    const arg = { prompt: { type: "chat" as const, messages: params.messages }, params: samplingOf(params) };
    const head = { id: `chatcmpl-${randomId()}`, created: Math.floor(Date.now() / 1000), model: this.#model };
    if (params.stream) return this.#stream(arg, head, params.stream_options?.include_usage ?? false, o.signal);
    let content = "";
    const { finish_reason, usage } = await this.#client.call("generate", arg, {
      signal: o.signal, onText: (s) => { content += s; },
    });
    const message = { role: "assistant" as const, content, refusal: null };
    return { ...head, object: "chat.completion", choices: [{ index: 0, message, finish_reason, logprobs: null }], usage };
  }

  #stream(arg: Parameters<Client["call"]>[1] & object, head: { id: string; created: number; model: string },
    withUsage: boolean, signal?: AbortSignal): ChatCompletionStream {
    const controller = new AbortController();
    const relay = () => controller.abort();
    if (signal?.aborted) controller.abort();
    else signal?.addEventListener("abort", relay, { once: true });
    const pieces: string[] = [];
    let wake = () => {}, result: GenerateResult | null = null, failed: Error | null = null;
    this.#client.call("generate", arg as never, {
      signal: controller.signal, onText: (s) => { pieces.push(s); wake(); },
    }).then((r) => { result = r as GenerateResult; }, (e) => { failed = e; }).finally(() => {
      signal?.removeEventListener("abort", relay);
      wake();
    });
    const chunk = (delta: { role?: "assistant"; content?: string }, finish_reason: GenerateResult["finish_reason"] | null):
      ChatCompletionChunk => ({
      ...head, object: "chat.completion.chunk", choices: [{ index: 0, delta, finish_reason, logprobs: null }],
      ...(withUsage && { usage: null }),
    });
    async function* chunks(): AsyncGenerator<ChatCompletionChunk> {
      try {
        yield chunk({ role: "assistant", content: "" }, null);
        for (;;) {
          while (pieces.length) yield chunk({ content: pieces.splice(0).join("") }, null);
          if (failed) throw failed;
          if (result) break;
          await new Promise<void>((r) => { wake = r; });
        }
        yield chunk({}, result!.finish_reason);
        if (withUsage) yield { ...head, object: "chat.completion.chunk", choices: [], usage: result!.usage };
      } finally {
        if (!result && !failed) controller.abort();
      }
    }
    const it = chunks();
    return { controller, [Symbol.asyncIterator]: () => it };
  }
}

function randomId(): string {
  return [...crypto.getRandomValues(new Uint8Array(12))].map((b) => b.toString(16).padStart(2, "0")).join("");
}

function inRange(p: SamplingParams, name: keyof SamplingParams, low: number, high: number): void {
  const v = p[name];
  if (v !== undefined && v !== null && !(typeof v === "number" && v >= low && v <= high))
    throw new UsageError("argument", `${name}: ${String(v)} is not a number from ${low} to ${high}`);
}

/** Checked, and nothing else that could not be sent to a worker. */
function samplingOf(p: SamplingParams): SamplingParams {
  inRange(p, "temperature", 0, 100);
  inRange(p, "top_p", 0, 1);
  inRange(p, "min_p", 0, 1);
  inRange(p, "top_k", 0, 2 ** 31);
  inRange(p, "repetition_penalty", 0.01, 100);
  inRange(p, "seed", -(2 ** 53), 2 ** 53);
  inRange(p, "max_tokens", 1, 2 ** 31);
  inRange(p, "max_completion_tokens", 1, 2 ** 31);
  const stops = typeof p.stop === "string" ? [p.stop] : p.stop ?? [];
  if (!Array.isArray(stops) || stops.some((s) => typeof s !== "string" || !s))
    throw new UsageError("argument", "stop: a string that is not empty, or an array of such");
  return {
    temperature: p.temperature ?? 0.7, top_p: p.top_p ?? 1, top_k: p.top_k ?? 0, min_p: p.min_p ?? 0,
    repetition_penalty: p.repetition_penalty ?? 1, stop: [...stops],
    seed: p.seed ?? Math.floor(Math.random() * 2 ** 32), max_tokens: p.max_tokens ?? p.max_completion_tokens ?? null,
  };
}

const UNSUPPORTED = [
  "tools", "tool_choice", "functions", "response_format", "logprobs", "logit_bias", "frequency_penalty",
  "presence_penalty", "audio", "modalities",
] as const;

function check(params: ChatCompletionCreateParams): void {
  if (!Array.isArray(params?.messages) || !params.messages.length)
    throw new UsageError("argument", "messages: an array of at least one message");
  for (const m of params.messages) {
    if (!["system", "user", "assistant"].includes(m?.role))
      throw new UsageError("argument", `messages: '${String(m?.role)}' is not system, user or assistant`);
    const parts = typeof m.content === "string" ? [] : m.content;
    if (!Array.isArray(parts) || parts.some((p) => p?.type !== "text" || typeof p.text !== "string"))
      throw new UnsupportedError("unsupported", "messages: content must be text");
  }
  if ((params.n ?? 1) !== 1) throw new UnsupportedError("unsupported", "n: one answer is made at a time");
  for (const name of UNSUPPORTED) {
    const v = (params as unknown as Record<string, unknown>)[name];
    if (v) throw new UnsupportedError("unsupported", `${name} is not supported`);
  }
}

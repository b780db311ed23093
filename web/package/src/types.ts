// The shapes of the API: what OpenAI's chat completions have, as far as a local model can give it,
// and frit's own additions (top_k, min_p, repetition_penalty, usage.extra).

export type Role = "system" | "user" | "assistant";
export interface TextPart { type: "text"; text: string }
export interface ChatMessage { role: Role; content: string | TextPart[] }

export interface SamplingParams {
  /** 0 is greedy. Default 0.7. */
  temperature?: number | null;
  /** Default 1 (off). */
  top_p?: number | null;
  /** Default 0 (off). */
  top_k?: number | null;
  /** Default 0 (off). */
  min_p?: number | null;
  /** Default 1 (off). */
  repetition_penalty?: number | null;
  /** The same seed and prompt give the same text on the same device. Default: another each time. */
  seed?: number | null;
  /** Default: to the end of the context. `max_completion_tokens` is the same. */
  max_tokens?: number | null;
  max_completion_tokens?: number | null;
  /** The text ends before any of these. */
  stop?: string | string[] | null;
}

export interface RequestOptions { signal?: AbortSignal }

interface ChatParams extends SamplingParams {
  messages: ChatMessage[];
  /** Taken and ignored: a Model is one model. */
  model?: string;
  n?: 1 | null;
}
export interface ChatCompletionCreateParamsNonStreaming extends ChatParams { stream?: false | null }
export interface ChatCompletionCreateParamsStreaming extends ChatParams {
  stream: true;
  stream_options?: { include_usage?: boolean } | null;
}
export type ChatCompletionCreateParams = ChatCompletionCreateParamsNonStreaming | ChatCompletionCreateParamsStreaming;

export type FinishReason = "stop" | "length";

export interface CompletionUsage {
  prompt_tokens: number;
  completion_tokens: number;
  total_tokens: number;
  extra: {
    /** From the request to the first token, and to the last. */
    time_to_first_token_s: number;
    e2e_latency_s: number;
    prefill_tokens_per_s: number;
    decode_tokens_per_s: number;
    /** Prompt tokens that were in the cache from the turn before. */
    cached_tokens: number;
  };
}

export interface ChatCompletion {
  id: string;
  object: "chat.completion";
  created: number;
  model: string;
  choices: {
    index: number;
    message: { role: "assistant"; content: string; refusal: null };
    finish_reason: FinishReason;
    logprobs: null;
  }[];
  usage: CompletionUsage;
}

export interface ChatCompletionChunk {
  id: string;
  object: "chat.completion.chunk";
  created: number;
  model: string;
  choices: {
    index: number;
    delta: { role?: "assistant"; content?: string };
    finish_reason: FinishReason | null;
    logprobs: null;
  }[];
  /** null but in the last chunk, with stream_options.include_usage. */
  usage?: CompletionUsage | null;
}

export interface CompleteParams extends SamplingParams {
  prompt: string;
  /** Texts of special tokens in the prompt stand for those tokens. Default true. */
  special?: boolean;
}
export interface CompleteResult { text: string; finish_reason: FinishReason; usage: CompletionUsage }

// ---- loading ----

/** `verify`: what is left of a SHA-256 to compute, when one was given. */
export type Phase = "download" | "upload" | "compile" | "warmup" | "verify" | "ready";
export interface Progress {
  phase: Phase;
  /** Bytes in download, upload and verify, kernels in compile, 0 of 0 elsewhere. */
  done: number;
  total: number;
}

export type Device = "auto" | "cpu" | "gpu";

export interface LoadOptions {
  /** auto: the GPU where there is a real one, else the CPU. Default auto. */
  device?: Device;
  /** Tokens of context. Default: the model's own, at most 8,192. */
  context?: number;
  /** f32: no rounding of activations and an f32 cache. Default auto. */
  precision?: "auto" | "f32";
  /** SHA-256 of the file in hex, of a split model one for each part: else the load fails by an IntegrityError. */
  sha256?: string | string[];
  onProgress?: (p: Progress) => void;
  signal?: AbortSignal;
  /** Run in a worker, so that the page stays responsive. Default: true where there are workers. */
  worker?: boolean | Worker;
  /** Keep a URL's file in the browser's storage. Default true. */
  cache?: boolean;
  /** Where frit.wasm is, when a build tool has moved it. */
  wasmUrl?: string | URL;
  /** In Node: the GPU object of the `webgpu` package. Main thread only. */
  gpu?: { requestAdapter(): Promise<unknown> };
  /** For tests: pretend that the device lacks these. */
  pretend?: { noF16?: boolean; noSubgroups?: boolean; maxBinding?: number };
}

/** Which device runs the model, and what it lacks. */
export interface DeviceInfo {
  kind: "gpu" | "cpu";
  name: string;
  vendor: string;
  architecture: string;
  software: boolean;
  features: string[];
  limits: Record<string, number>;
  /** What frit does otherwise because something is missing. */
  fallbacks: Fallback[];
}

export interface Fallback {
  code: "no-webgpu" | "no-adapter" | "software" | "no-f16" | "no-subgroups" | "no-dot4i8" | "small-bindings";
  /** A sentence. */
  text: string;
}

export interface ModelInfo {
  name: string;
  /** Bytes of the file. */
  size: number;
  architecture: string;
  context: number;
  device: DeviceInfo;
}

export interface MemoryUse {
  /** Bytes of GPU buffers, and of the wasm heap. */
  gpu: number;
  heap: number;
}

export interface Estimate {
  name: string;
  size: number;
  architecture: string;
  /** Which device a load would choose. */
  device: "gpu" | "cpu";
  /** Bytes of weights, of the KV cache at `context`, and of both and the rest together. */
  weights: number;
  kv: number;
  memory: number;
  context: number;
  /** Whether it can run here, and why not. */
  fits: boolean;
  why: string;
}

// What passes between a Model (on the page) and its Host (in a worker, or beside it).
import type { ErrorCode, ErrorFacts } from "./errors.js";
import type { ByteSource } from "./source.js";
import type {
  ChatMessage, CompletionUsage, Estimate, FinishReason, LoadOptions, MemoryUse, ModelInfo, Progress, SamplingParams,
} from "./types.js";

/** A source that can be sent to a worker; a ByteSource object cannot. */
export type SourceMessage =
  | { type: "url"; url: string }
  | { type: "path"; path: string }
  | { type: "blobs"; blobs: Blob[]; name?: string }
  | { type: "object"; source: ByteSource };

export interface LoadMessage extends Pick<LoadOptions, "device" | "context" | "precision" | "cache" | "gpu" | "pretend"> {
  source: SourceMessage;
  wasm: string;
}

export type Prompt =
  | { type: "chat"; messages: ChatMessage[] }
  | { type: "text"; text: string; special: boolean };

/** op -> what it takes and what it resolves to. `generate` also sends pieces of text. */
export interface Ops {
  load: { takes: LoadMessage; gives: ModelInfo };
  generate: { takes: { prompt: Prompt; params: SamplingParams }; gives: GenerateResult };
  tokenize: { takes: { text: string; special: boolean }; gives: Uint32Array };
  memory: { takes: null; gives: MemoryUse };
  estimate: { takes: Pick<LoadMessage, "source" | "wasm" | "context" | "device" | "gpu">; gives: Estimate };
  lose: { takes: null; gives: null };
  dispose: { takes: null; gives: null };
}
export interface GenerateResult { finish_reason: FinishReason; usage: CompletionUsage }

export type ToHost =
  | { [K in keyof Ops]: { id: number; op: K; arg: Ops[K]["takes"] } }[keyof Ops]
  | { id: number; op: "abort" };

export type FromHost =
  | { id: number; type: "progress"; progress: Progress }
  | { id: number; type: "text"; text: string }
  | { id: number; type: "done"; value: unknown }
  | { id: number; type: "error"; code: ErrorCode; message: string; facts?: ErrorFacts };

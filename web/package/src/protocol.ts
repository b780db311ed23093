// What passes between a Model (on the page) and its Host (in a worker, or beside it).
import type { ErrorCode, ErrorFacts } from "./errors.js";
import type { PortMessage } from "./port.js";
import type { ByteSource } from "./source.js";
import type {
  ChatMessage, CompletionUsage, Estimate, FinishReason, LoadOptions, MemoryUse, ModelInfo, Progress, SamplingParams,
} from "./types.js";

/** A part of a model: as such where nothing is sent, else by a port. */
export type PartMessage = { blob: Blob; name?: string } | { source: ByteSource } | PortMessage;
export type SourceMessage =
  | { type: "url"; url: string }
  | { type: "path"; path: string }
  | { type: "parts"; parts: PartMessage[] };

export interface LoadMessage extends Pick<LoadOptions, "device" | "context" | "precision" | "cache" | "gpu" | "pretend"> {
  source: SourceMessage;
  wasm: string;
  /** Of each part, lower-case hex; undefined: not checked. */
  sha256?: (string | undefined)[];
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
  /** A stored URL's file read whole; gives its SHA-256 and whether there was one to compare with. */
  verify: { takes: { url: string; wasm: string; sha256?: string }; gives: { sha256: string; compared: boolean } };
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

// The shapes that core.ts and model.ts take and give.
import type { AdapterFacts } from "./hw_browser.js";

/** What frit.wasm exports. @internal */
export interface Exports {
  memory: WebAssembly.Memory;
  _initialize(): void;
  [name: `frit_${string}`]: (...args: number[]) => number;
}

export type Phase = "header" | "open" | "compile" | "upload" | "warmup" | "ready";
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
export interface Usage {
  /** Tokens of the prompt, and those of them that had to be run. */
  promptTokens: number; promptRun: number;
  tokens: number;
  promptSeconds: number; seconds: number;
  submits: number; dispatches: number;
  end?: End;
}

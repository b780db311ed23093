// What can go wrong, as classes with a code. An error crosses from the worker as plain data and is
// made anew on the page's side with the same class.
import { FritError as CoreError } from "../../core/errors.js";

export type ErrorCode =
  | "aborted" // the caller's AbortSignal
  | "argument" // a parameter that cannot be
  | "unsupported" // a file, field or platform that frit does not handle
  | "format" // not a GGUF file, or a broken one
  | "truncated" // the file ends before its data
  | "limit" // the model or the prompt does not fit
  | "no-device" // no GPU where one was asked for
  | "device" // the GPU refused something
  | "device-lost"
  | "device-out-of-memory"
  | "out-of-memory"
  | "network" // a request failed or was answered by an error
  | "source-changed" // the file at the URL is no longer the one that was begun
  | "integrity" // the bytes are not those whose SHA-256 was asked for
  | "io" // a file could not be read
  | "storage" // the browser's storage refused
  | "disposed" // the model has been disposed of
  | "worker"; // the worker did not start, or died

/** What an error knows besides its sentence: plain data, so that it crosses from the worker. */
export interface ErrorFacts {
  /** Bytes that the model needs. */
  needed?: number;
  /** Bytes that there were for it: what the GPU gave before it refused, or all that the heap can hold. */
  limit?: number;
  /** SHA-256, in hex. */
  expected?: string;
  actual?: string;
}

export class FritError extends Error {
  readonly code: ErrorCode;
  constructor(code: ErrorCode, message: string) {
    super(message);
    this.code = code;
    this.name = new.target.name;
  }
}

/** The caller's AbortSignal fired. Its name is "AbortError", as the platform has it. */
export class AbortError extends FritError {
  constructor(message = "the caller stopped it") {
    super("aborted", message);
    this.name = "AbortError";
  }
}
/** argument, disposed. */
export class UsageError extends FritError {}
/** unsupported. */
export class UnsupportedError extends FritError {}
/** format, truncated, io. */
export class ModelFileError extends FritError {}
/** limit: the sentence names both numbers. Of memory they are here as bytes, too. */
export class LimitError extends FritError {
  declare readonly needed?: number;
  declare readonly limit?: number;
}
/** no-device, device, device-lost. */
export class DeviceError extends FritError {}
/** out-of-memory, device-out-of-memory: bytes needed, as estimated, and bytes that were to be had. */
export class OutOfMemoryError extends FritError {
  declare readonly needed?: number;
  declare readonly limit?: number;
}
/** network, source-changed. */
export class NetworkError extends FritError {}
/** integrity. What was stored of the file has been deleted. */
export class IntegrityError extends FritError {
  declare readonly expected: string;
  declare readonly actual: string;
}
/** storage. */
export class StorageError extends FritError {}
/** worker. */
export class WorkerError extends FritError {}

const CLASSES: Record<Exclude<ErrorCode, "aborted">, new (code: ErrorCode, message: string) => FritError> = {
  argument: UsageError, unsupported: UnsupportedError, disposed: UsageError,
  format: ModelFileError, truncated: ModelFileError, io: ModelFileError,
  limit: LimitError,
  "no-device": DeviceError, device: DeviceError, "device-lost": DeviceError,
  "out-of-memory": OutOfMemoryError, "device-out-of-memory": OutOfMemoryError,
  network: NetworkError, "source-changed": NetworkError,
  integrity: IntegrityError, storage: StorageError, worker: WorkerError,
};

export function makeError(code: ErrorCode, message: string, facts?: ErrorFacts): FritError {
  const e = code === "aborted" ? new AbortError(message) : new CLASSES[code](code, message);
  return Object.assign(e, facts);
}

/** @internal */
export function factsOf(e: FritError): ErrorFacts {
  const { needed, limit, expected, actual } = e as ErrorFacts;
  const facts = { needed, limit, expected, actual };
  return Object.fromEntries(Object.entries(facts).filter(([, v]) => v !== undefined));
}

/** @internal Anything thrown, as one of ours. */
export function toFritError(e: unknown, otherwise: ErrorCode = "device"): FritError {
  if (e instanceof FritError) return e;
  const { name, message } = e as Error;
  if (name === "AbortError") return new AbortError();
  if (e instanceof CoreError) {
    const { code } = e;
    return code === "cancelled" ? new AbortError() : makeError(code === "ok" ? otherwise : code, message, e.shortage);
  }
  if (name === "QuotaExceededError") return makeError("storage", `the browser's storage is full: ${message}`);
  return makeError(otherwise, message || String(e));
}

/** @internal */
export function throwIfAborted(signal?: AbortSignal): void {
  if (signal?.aborted) throw new AbortError();
}

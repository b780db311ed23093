// Errors as C gives them: a code to branch on and one sentence.

const CODES = [
  "ok", "out-of-memory", "io", "format", "truncated", "unsupported", "limit", "argument", "no-device",
  "device", "device-lost", "device-out-of-memory", "cancelled",
] as const;
export type ErrorCode = (typeof CODES)[number];

/** Bytes asked for, and bytes that were to be had. */
export interface Shortage { needed: number; limit: number }

export class FritError extends Error {
  readonly code: ErrorCode;
  /** Of errors about memory, where it is known. */
  readonly shortage?: Shortage;

  constructor(code: ErrorCode, message: string, options?: ErrorOptions & { shortage?: Shortage }) {
    super(message, options);
    this.name = "FritError";
    this.code = code;
    if (options?.shortage) this.shortage = options.shortage;
  }
}

/** From an `err` of src/base/err.h. */
export function errorOf(code: number, message: string): FritError {
  return new FritError(CODES[code] ?? "device", message);
}

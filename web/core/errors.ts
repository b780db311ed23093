// Errors as C gives them: a code to branch on and one sentence.

const CODES = [
  "ok", "out-of-memory", "io", "format", "truncated", "unsupported", "limit", "argument", "no-device",
  "device", "device-lost", "device-out-of-memory", "cancelled",
] as const;
export type ErrorCode = (typeof CODES)[number];

export class FritError extends Error {
  readonly code: ErrorCode;

  constructor(code: ErrorCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = "FritError";
    this.code = code;
  }
}

/** From an `err` of src/base/err.h. */
export function errorOf(code: number, message: string): FritError {
  return new FritError(CODES[code] ?? "device", message);
}

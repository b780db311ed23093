// A source of the caller's own, read from a worker: its functions stay on the caller's side, and a
// MessagePort carries what is asked and answered.
import { makeError, throwIfAborted, toFritError, type ErrorCode } from "./errors.js";
import type { ByteSource } from "./source.js";

type Ask = { id: number; op: "read"; offset: number; length: number } | { id: number; op: "abort" | "close" };
type Answer = { id: number; bytes?: Uint8Array<ArrayBuffer>; code?: ErrorCode; message?: string };

/** What of a source can be sent. */
export interface PortMessage { name: string; size: number; sha256?: string; port: MessagePort }

/** The caller's side. `close` closes the source, once. */
export class PortServer {
  readonly message: PortMessage;
  #source: ByteSource;
  #port: MessagePort;
  #reads = new Map<number, AbortController>();
  #closed: Promise<void> | null = null;

  constructor(source: ByteSource) {
    const { port1, port2 } = new MessageChannel();
    this.#source = source;
    this.#port = port1;
    this.message = { name: String(source.name ?? "source"), size: source.size, sha256: source.sha256, port: port2 };
    port1.onmessage = (e: MessageEvent<Ask>) => void this.#answer(e.data);
  }

  close(): Promise<void> {
    this.#closed ??= (async () => {
      for (const c of this.#reads.values()) c.abort();
      await this.#source.close?.();
    })();
    return this.#closed;
  }

  /** Nothing is answered after this. */
  end(): void {
    this.#port.close();
    void this.close().catch(() => {});
  }

  async #answer(m: Ask): Promise<void> {
    if (m.op === "abort") return this.#reads.get(m.id)?.abort();
    try {
      const bytes = m.op === "read" ? await this.#read(m.id, m.offset, m.length) : undefined;
      if (m.op === "close") await this.close();
      this.#port.postMessage({ id: m.id, bytes } satisfies Answer, bytes ? [bytes.buffer] : []);
    } catch (e) {
      const { code, message } = toFritError(e, "io");
      this.#port.postMessage({ id: m.id, code, message } satisfies Answer);
    }
  }

  /** A copy: the caller's buffer may be larger, or used again. */
  async #read(id: number, offset: number, length: number): Promise<Uint8Array<ArrayBuffer>> {
    const control = new AbortController();
    this.#reads.set(id, control);
    try {
      return (await this.#source.read(offset, length, control.signal)).slice();
    } finally {
      this.#reads.delete(id);
    }
  }
}

/** The worker's side. */
export class PortSource implements ByteSource {
  readonly name: string;
  readonly size: number;
  readonly sha256?: string;
  #port: MessagePort;
  #next = 1;
  #waiting = new Map<number, { resolve: (bytes: Uint8Array<ArrayBuffer>) => void; reject: (e: Error) => void }>();

  constructor(m: PortMessage) {
    this.name = m.name;
    this.size = m.size;
    this.sha256 = m.sha256;
    this.#port = m.port;
    m.port.onmessage = (e: MessageEvent<Answer>) => {
      const { id, bytes, code, message } = e.data, w = this.#waiting.get(id);
      this.#waiting.delete(id);
      if (code) w?.reject(makeError(code, message ?? ""));
      else w?.resolve(bytes ?? new Uint8Array(0));
    };
  }

  async read(offset: number, length: number, signal?: AbortSignal): Promise<Uint8Array<ArrayBuffer>> {
    throwIfAborted(signal);
    const id = this.#next++, abort = () => this.#port.postMessage({ id, op: "abort" } satisfies Ask);
    signal?.addEventListener("abort", abort, { once: true });
    try {
      return await this.#ask({ id, op: "read", offset, length });
    } finally {
      signal?.removeEventListener("abort", abort);
    }
  }

  async close(): Promise<void> {
    await this.#ask({ id: this.#next++, op: "close" });
    this.#port.close();
  }

  #ask(m: Ask): Promise<Uint8Array<ArrayBuffer>> {
    return new Promise((resolve, reject) => {
      this.#waiting.set(m.id, { resolve, reject });
      this.#port.postMessage(m);
    });
  }
}

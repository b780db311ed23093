// Where a model's bytes come from: a URL by ranges, a File or Blob, bytes in memory, a file in Node.
//
// A source is read by offset and length, in any order, several reads at once. It knows its size
// before the first read. Offsets are plain numbers: exact to 2^53. The engine sees the parts of a split
// model as one object (PartsSource).
import { partName, type Source } from "../../core/source.js";
import { makeError, throwIfAborted, toFritError } from "./errors.js";

export interface ByteSource {
  readonly name: string;
  readonly size: number;
  /** Exactly `length` bytes. */
  read(offset: number, length: number, signal?: AbortSignal): Promise<Uint8Array<ArrayBuffer>>;
  /** In hex; checked when the model is loaded. */
  readonly sha256?: string;
  /** Called when the model is disposed of. */
  close?(): Promise<void>;
}

/** An entry of a model list. `sha256` in hex; of a split model one for each part. */
export interface UrlEntry { url: string | URL; sha256?: string | string[] }

/**
 * What `load` takes. A string is a URL; in Node one without a scheme is a path. Of a split model
 * (NAME-00001-of-0000N.gguf) the first part's address, or all parts in order.
 */
export type ModelSource = string | URL | UrlEntry | Blob | ArrayBuffer | Uint8Array | ByteSource | (Blob | ByteSource)[];

/** @internal */
export function mustMatch(name: string, expected: string | undefined, actual: string, more = ""): void {
  if (expected !== undefined && expected !== actual)
    throw makeError("integrity", `${name}: its SHA-256 is ${actual}, not ${expected}${more}`, { expected, actual });
}

/** The parts of a model; those after the first are opened when the first has announced them. */
export class PartsSource implements Source {
  /** What a read failed with last: the core passes on its words only. */
  error: unknown = null;
  #first: string;
  #open: (part: number) => Promise<ByteSource>;
  #parts = new Map<number, Promise<ByteSource>>();
  #signal: AbortSignal | undefined;

  /** The signal ends reads; it is the one of the load. */
  constructor(first: string, open: (part: number) => Promise<ByteSource>, signal?: AbortSignal) {
    this.#first = first;
    this.#open = open;
    this.#signal = signal;
  }
  name(part: number): string {
    return partName(this.#first, part);
  }
  part(part: number): Promise<ByteSource> {
    let p = this.#parts.get(part);
    if (!p) this.#parts.set(part, (p = this.#open(part)));
    return p;
  }
  async size(part: number): Promise<number> {
    return (await this.#try(this.part(part))).size;
  }
  async read(part: number, offset: number, size: number, signal?: AbortSignal): Promise<Uint8Array<ArrayBuffer>> {
    const source = await this.#try(this.part(part));
    return this.#try(source.read(offset, size, signal ?? this.#signal).then((bytes) => {
      if (bytes.length === size) return bytes;
      throw makeError("io", `${source.name}: ${bytes.length} bytes came where ${size} were asked for at ${offset}`);
    }));
  }
  async close(): Promise<void> {
    const parts = await Promise.allSettled(this.#parts.values());
    for (const p of parts) if (p.status === "fulfilled") await p.value.close?.();
  }
  async #try<T>(p: Promise<T>): Promise<T> {
    try {
      return await p;
    } catch (e) {
      this.error = e;
      throw e;
    }
  }
}

/** What tells one version of a file at a URL from another. */
export interface Validators { size: number; etag: string | null; modified: string | null }

export class BlobSource implements ByteSource {
  readonly name: string;
  readonly size: number;
  constructor(private blob: Blob, name?: string) {
    this.name = name ?? (blob as File).name ?? "blob";
    this.size = blob.size;
  }
  async read(offset: number, length: number, signal?: AbortSignal): Promise<Uint8Array<ArrayBuffer>> {
    throwIfAborted(signal);
    checkRange(this, offset, length);
    try {
      return new Uint8Array(await this.blob.slice(offset, offset + length).arrayBuffer());
    } catch (e) {
      throw makeError("io", `${this.name}: ${(e as Error).message}`);
    }
  }
}

/** Ranges over HTTP; each answer is checked to be of the file that was begun. */
export class UrlSource implements ByteSource {
  readonly name: string;
  readonly size: number;
  private constructor(readonly url: string, readonly validators: Validators) {
    this.name = nameOf(url);
    this.size = validators.size;
  }

  /**
   * Asks for one byte. A server that knows no ranges sends the whole file: then that is kept as a Blob
   * (which browsers hold on disk when it is large) and `onBytes(done, total)` tells how far it is.
   */
  static async open(url: string, signal?: AbortSignal, onBytes?: (done: number, total: number) => void):
    Promise<UrlSource | WholeFile> {
    const res = await request(url, { headers: { Range: "bytes=0-0" }, signal: signal ?? null });
    if (res.status === 200) return wholeFile(url, res, onBytes);
    const total = /\/(\d+)$/.exec(res.headers.get("Content-Range") ?? "")?.[1];
    await res.body?.cancel();
    if (res.status !== 206) throw makeError("network", `${url}: the server answered ${res.status}`);
    if (!total) throw makeError("network", `${url}: the server hides the file's size (Content-Range)`);
    return new UrlSource(url, validatorsOf(res, Number(total)));
  }

  async read(offset: number, length: number, signal?: AbortSignal): Promise<Uint8Array<ArrayBuffer>> {
    checkRange(this, offset, length);
    if (length === 0) return new Uint8Array(0);
    const { etag } = this.validators;
    const headers: Record<string, string> = { Range: `bytes=${offset}-${offset + length - 1}` };
    if (etag && !etag.startsWith("W/") && sameOrigin(this.url)) headers["If-Range"] = etag;
    for (let attempt = 0; ; attempt++) {
      try {
        const res = await request(this.url, { headers, signal: signal ?? null });
        const now = res.headers.get("ETag");
        if (res.status !== 206 || (etag && now && now !== etag)) {
          await res.body?.cancel();
          throw res.status < 400 ? makeError("source-changed", `${this.url}: the file has changed on the server`)
            : makeError("network", `${this.url}: the server answered ${res.status}`);
        }
        const bytes = new Uint8Array(await res.arrayBuffer());
        if (bytes.length !== length)
          throw makeError("network", `${this.url}: ${bytes.length} bytes came where ${length} were asked for`);
        return bytes;
      } catch (e) {
        throwIfAborted(signal);
        const error = toFritError(e, "network");
        if (error.code !== "network" || attempt === 3) throw error;
        await new Promise((r) => setTimeout(r, 250 * 2 ** attempt));
      }
    }
  }
}

/** A file whose server knows no ranges, read to its end. */
export class WholeFile extends BlobSource {
  constructor(readonly url: string, blob: Blob, readonly validators: Validators) {
    super(blob, nameOf(url));
  }
}

async function request(url: string, init: RequestInit): Promise<Response> {
  let res;
  try {
    res = await fetch(url, { cache: "no-store", ...init });
  } catch (e) {
    if ((e as Error).name === "AbortError") throw toFritError(e);
    throw makeError("network", `${url}: ${(e as Error).message}`);
  }
  if (res.status >= 400) throw makeError("network", `${url}: the server answered ${res.status}`);
  return res;
}

async function wholeFile(url: string, res: Response, onBytes?: (done: number, total: number) => void):
  Promise<WholeFile> {
  const total = Number(res.headers.get("Content-Length") ?? 0);
  let done = 0;
  const counted = res.body!.pipeThrough(new TransformStream<Uint8Array, Uint8Array>({
    transform(chunk, to) {
      done += chunk.length;
      onBytes?.(done, Math.max(done, total));
      to.enqueue(chunk);
    },
  }));
  try {
    const blob = await new Response(counted).blob();
    return new WholeFile(url, blob, validatorsOf(res, blob.size));
  } catch (e) {
    throw toFritError(e, "network");
  }
}

function validatorsOf(res: Response, size: number): Validators {
  return { size, etag: res.headers.get("ETag"), modified: res.headers.get("Last-Modified") };
}

/** If-Range is not among the headers that another origin takes without a preflight. */
function sameOrigin(url: string): boolean {
  const here = (globalThis as { location?: Location }).location?.origin;
  return here === undefined || new URL(url).origin === here;
}

function checkRange(s: ByteSource, offset: number, length: number): void {
  if (offset < 0 || length < 0 || offset + length > s.size)
    throw makeError("truncated", `${s.name}: bytes ${offset} to ${offset + length} of a file of ${s.size}`);
}

export function nameOf(url: string): string {
  try {
    return decodeURIComponent(new URL(url).pathname.split("/").pop() || url);
  } catch {
    return url;
  }
}

/** The absolute URL that a string means, or null where it is a path in Node. */
export function asUrl(s: string | URL): string | null {
  const base = (globalThis as { location?: Location }).location?.href;
  if (s instanceof URL || /^[a-z][a-z0-9+.-]+:/i.test(s)) return new URL(s).href;
  return base ? new URL(s, base).href : null;
}

// ---- Node ----

interface NodeFile {
  stat(): Promise<{ size: number }>;
  read(b: Uint8Array, at: number, n: number, offset: number): Promise<{ bytesRead: number }>;
  close(): Promise<void>;
}
interface Fs { open(path: string | URL, flags: string): Promise<NodeFile> }
/** Node's own modules, asked for in a way that no bundler follows. */
export function nodeModule<T>(name: string): T | undefined {
  const p = (globalThis as { process?: { getBuiltinModule?: (n: string) => T } }).process;
  return p?.getBuiltinModule?.(name);
}

export async function openPath(path: string | URL): Promise<ByteSource> {
  const fs = nodeModule<Fs>("node:fs/promises");
  if (!fs) throw makeError("unsupported", `${path}: only Node (20.16 or later) opens files by path`);
  try {
    const file = await fs.open(path, "r");
    const { size } = await file.stat();
    const source: ByteSource = {
      name: String(path).split("/").pop()!, size, close: () => file.close(),
      async read(offset, length, signal) {
        throwIfAborted(signal);
        checkRange(source, offset, length);
        const out = new Uint8Array(length);
        for (let at = 0; at < length;) {
          const { bytesRead } = await file.read(out, at, length - at, offset + at);
          if (!bytesRead) throw makeError("truncated", `${path}: it has become shorter`);
          at += bytesRead;
        }
        return out;
      },
    };
    return source;
  } catch (e) {
    throw toFritError(e, "io");
  }
}

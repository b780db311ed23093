// Where a model's bytes come from. A source reads byte ranges of the parts of one model; offsets
// are exact up to 2^53.

export interface Source {
  /** What errors call part i (0-based). */
  name(part: number): string;
  size(part: number): Promise<number>;
  /** Exactly `size` bytes; rejects when there are fewer. */
  read(part: number, offset: number, size: number, signal?: AbortSignal): Promise<Uint8Array<ArrayBuffer>>;
}

/** The names of a split model's parts from the first one's: NAME-00001-of-0000N.gguf. */
export function partName(first: string, part: number): string {
  return part === 0 ? first
    : first.replace(/-\d{5}-of-(\d{5}\.gguf)/, `-${String(part + 1).padStart(5, "0")}-of-$1`);
}

/** A file behind a URL that answers range requests. */
export class UrlSource implements Source {
  #sizes = new Map<number, Promise<number>>();
  #etags = new Map<number, string>();
  readonly url: string;
  readonly init: RequestInit;

  constructor(url: string | URL, init: RequestInit = {}) {
    this.url = String(url);
    this.init = init;
  }

  name(part: number): string {
    return partName(this.url, part);
  }

  /** The server's mark of this version of the part, "" when it gives none; known after size(). */
  etag(part: number): string {
    return this.#etags.get(part) ?? "";
  }

  size(part: number): Promise<number> {
    let size = this.#sizes.get(part);
    if (!size) this.#sizes.set(part, (size = this.#askSize(part)));
    return size;
  }

  async #askSize(part: number): Promise<number> {
    const res = await this.#get(part, 0, 1);
    await res.body?.cancel();
    const total = /\/(\d+)$/.exec(res.headers.get("Content-Range") ?? "")?.[1];
    if (!total) throw new Error(`${this.name(part)}: the server does not say the file's size (Content-Range)`);
    this.#etags.set(part, res.headers.get("ETag") ?? "");
    return Number(total);
  }

  async #get(part: number, offset: number, size: number, signal?: AbortSignal): Promise<Response> {
    const headers = new Headers(this.init.headers);
    headers.set("Range", `bytes=${offset}-${offset + size - 1}`);
    const res = await fetch(this.name(part), { ...this.init, headers, signal });
    if (res.status === 206) return res;
    await res.body?.cancel();
    throw new Error(res.ok ? `${this.name(part)}: the server does not answer range requests`
      : `${this.name(part)}: HTTP ${res.status} ${res.statusText}`);
  }

  async read(part: number, offset: number, size: number, signal?: AbortSignal): Promise<Uint8Array<ArrayBuffer>> {
    const res = await this.#get(part, offset, size, signal);
    return exactly(new Uint8Array(await res.arrayBuffer()), size, this.name(part), offset);
  }
}

/** Files picked, dropped, or kept in OPFS (FileSystemFileHandle.getFile()): parts in order. */
export class BlobSource implements Source {
  readonly #blobs: Blob[];

  constructor(...blobs: Blob[]) {
    this.#blobs = blobs;
  }

  name(part: number): string {
    return (this.#blobs[part] as Partial<File> | undefined)?.name ?? `part ${part + 1}`;
  }

  async size(part: number): Promise<number> {
    return this.#blob(part).size;
  }

  #blob(part: number): Blob {
    const blob = this.#blobs[part];
    if (!blob) throw new Error(`part ${part + 1} of the model was not given`);
    return blob;
  }

  async read(part: number, offset: number, size: number): Promise<Uint8Array<ArrayBuffer>> {
    const bytes = await this.#blob(part).slice(offset, offset + size).arrayBuffer();
    return exactly(new Uint8Array(bytes), size, this.name(part), offset);
  }
}

function exactly(bytes: Uint8Array<ArrayBuffer>, size: number, name: string, offset: number): Uint8Array<ArrayBuffer> {
  if (bytes.length !== size) throw new Error(`${name}: ${bytes.length} of ${size} bytes at ${offset}`);
  return bytes;
}

interface Window { part: number; start: number; bytes: Promise<Uint8Array<ArrayBuffer>> }

/** Reads a source in windows, the next one ahead: small tensors share a request and the GPU does not
 * wait for a round trip. Keeps `keep` windows of `size` bytes. */
export class ReadAhead implements Source {
  readonly #source: Source;
  readonly #size: number;
  readonly #keep: number;
  #windows: Window[] = []; // the one used last comes last

  constructor(source: Source, size = 4 << 20, keep = 4) {
    this.#source = source;
    this.#size = size;
    this.#keep = keep;
  }

  name(part: number): string {
    return this.#source.name(part);
  }

  size(part: number): Promise<number> {
    return this.#source.size(part);
  }

  async #window(part: number, start: number, signal?: AbortSignal): Promise<Uint8Array<ArrayBuffer>> {
    let w = this.#windows.find((o) => o.part === part && o.start === start);
    if (w) {
      this.#windows.splice(this.#windows.indexOf(w), 1);
    } else {
      const total = await this.#source.size(part);
      const bytes = this.#source.read(part, start, Math.min(this.#size, total - start), signal);
      w = { part, start, bytes };
      const made = w;
      bytes.catch(() => { // not kept: the next read asks again
        this.#windows = this.#windows.filter((o) => o !== made);
      });
    }
    this.#windows.push(w);
    if (this.#windows.length > this.#keep) this.#windows.shift();
    return w.bytes;
  }

  async read(part: number, offset: number, size: number, signal?: AbortSignal): Promise<Uint8Array<ArrayBuffer>> {
    const out = new Uint8Array(size), total = await this.#source.size(part);
    if (offset + size > total) throw new Error(`${this.name(part)}: ${size} bytes at ${offset} lie beyond its end at ${total}`);
    for (let at = offset; at < offset + size;) {
      const start = Math.floor(at / this.#size) * this.#size;
      const bytes = await this.#window(part, start, signal);
      const chunk = bytes.subarray(at - start, Math.min(bytes.length, offset + size - start));
      out.set(chunk, at - offset);
      at += chunk.length;
    }
    const next = Math.floor((offset + size - 1) / this.#size) * this.#size + this.#size;
    if (next < total) this.#window(part, next, signal).catch(() => {});
    return out;
  }
}

// Models kept in the browser's origin-private file system, so that a second visit needs no network.
//
// A model is a folder named after its URL: meta.json and one file a chunk. A chunk file appears under
// its name only when whole, so a tab may be closed at any moment and the next visit goes on from the
// chunks that are there; two tabs that load the same model write the same chunks.
import type { Sha256 } from "../../core/core.js";
import { makeError, throwIfAborted, toFritError } from "./errors.js";
import { UrlSource, WholeFile, mustMatch, nameOf, type ByteSource, type Validators } from "./source.js";

export const CHUNK = 4 << 20; // bytes
const AHEAD = 3; // chunks asked for beyond the one that is read
const KEEP = 6; // chunks held in memory
const FOLDER = "frit-models";

export interface CachedModel {
  url: string;
  name: string;
  /** Bytes of the whole file, and of it what is stored. */
  size: number;
  stored: number;
  complete: boolean;
  /** Milliseconds since 1970. */
  created: number;
  /** Of the whole file, when it was computed: by a load with `sha256`, or by `verify`. */
  sha256: string | null;
}

interface Meta extends Validators { url: string; created: number; chunk: number; sha256?: string }

export interface FetchProgress { done: number; total: number }

async function root(create: boolean): Promise<FileSystemDirectoryHandle | null> {
  const storage = globalThis.navigator?.storage;
  if (!storage?.getDirectory) return null;
  try {
    return await (await storage.getDirectory()).getDirectoryHandle(FOLDER, { create });
  } catch {
    return null; // private windows of some browsers, or nothing stored yet
  }
}

async function keyOf(url: string): Promise<string> {
  const hash = new Uint8Array(await crypto.subtle.digest("SHA-256", new TextEncoder().encode(url)));
  return [...hash.subarray(0, 16)].map((b) => b.toString(16).padStart(2, "0")).join("");
}

async function readMeta(dir: FileSystemDirectoryHandle): Promise<Meta | null> {
  try {
    const meta = JSON.parse(await (await (await dir.getFileHandle("meta.json")).getFile()).text()) as Meta;
    return meta.chunk === CHUNK && typeof meta.size === "number" && typeof meta.url === "string" ? meta : null;
  } catch {
    return null;
  }
}

/** Whole or not at all where the browser has createWritable; else, in a worker, in one write. */
async function writeFile(dir: FileSystemDirectoryHandle, name: string, data: Uint8Array<ArrayBuffer> | string):
  Promise<void> {
  const bytes = typeof data === "string" ? new TextEncoder().encode(data) : data;
  const file = await dir.getFileHandle(name, { create: true });
  if ("createWritable" in file) {
    const out = await file.createWritable();
    try {
      await out.write(bytes);
    } catch (e) {
      await out.abort().catch(() => {});
      throw e;
    }
    return out.close();
  }
  const sync = (file as unknown as { createSyncAccessHandle(): Promise<SyncHandle> });
  const handle = await sync.createSyncAccessHandle();
  try {
    handle.write(bytes, { at: 0 });
    handle.truncate(bytes.length);
    handle.flush();
  } finally {
    handle.close();
  }
}
interface SyncHandle {
  write(b: Uint8Array, o: { at: number }): number; truncate(n: number): void; flush(): void; close(): void;
}

const chunkName = (i: number) => `${String(i).padStart(6, "0")}.bin`;
const chunkBytes = (size: number, i: number) => Math.min(CHUNK, size - i * CHUNK);

/** The chunks of one model that are stored: index -> true. A file of another length is none. */
async function storedChunks(dir: FileSystemDirectoryHandle, size: number): Promise<Set<number>> {
  const have = new Set<number>();
  for await (const [name, handle] of dir.entries()) {
    const i = /^(\d{6,})\.bin$/.exec(name)?.[1];
    if (i === undefined || handle.kind !== "file") continue;
    const file = await (handle as FileSystemFileHandle).getFile();
    if (file.size === chunkBytes(size, Number(i))) have.add(Number(i));
  }
  return have;
}

// ---- what a user sees ----

/** What was computed of a file is kept with it. */
async function remember(url: string, sha256: string): Promise<void> {
  const top = await root(false), dir = await top?.getDirectoryHandle(await keyOf(url)).catch(() => null);
  const meta = dir ? await readMeta(dir) : null;
  if (meta && meta.sha256 !== sha256)
    await writeFile(dir!, "meta.json", JSON.stringify({ ...meta, sha256 })).catch(() => {}); // computed again, then
}

async function list(): Promise<CachedModel[]> {
  const dir = await root(false);
  const out: CachedModel[] = [];
  if (!dir) return out;
  for await (const [, handle] of dir.entries()) {
    if (handle.kind !== "directory") continue;
    const folder = handle as FileSystemDirectoryHandle;
    const meta = await readMeta(folder);
    if (!meta) continue;
    let stored = 0;
    for (const i of await storedChunks(folder, meta.size)) stored += chunkBytes(meta.size, i);
    out.push({
      url: meta.url, name: nameOf(meta.url), size: meta.size, stored, complete: stored === meta.size,
      created: meta.created, sha256: meta.sha256 ?? null,
    });
  }
  return out.sort((a, b) => a.name.localeCompare(b.name));
}

async function remove(url: string): Promise<boolean> {
  const dir = await root(false);
  if (!dir) return false;
  try {
    await dir.removeEntry(await keyOf(url), { recursive: true });
    return true;
  } catch {
    return false;
  }
}

async function clear(): Promise<void> {
  const storage = globalThis.navigator?.storage;
  if (storage?.getDirectory)
    await (await storage.getDirectory()).removeEntry(FOLDER, { recursive: true }).catch(() => {});
}

/** @internal What index.ts gives out as `cache`, with `verify`. */
export const stored = {
  list,
  /** True when there was one. */
  delete: remove,
  clear,
  /** Asks the browser to keep what is stored when it runs short. */
  async persist(): Promise<boolean> {
    return (await globalThis.navigator?.storage?.persist?.()) ?? false;
  },
  /** Bytes this site uses and may use, as the browser estimates them. */
  async usage(): Promise<{ used: number; quota: number }> {
    const e = await globalThis.navigator?.storage?.estimate?.();
    return { used: e?.usage ?? 0, quota: e?.quota ?? 0 };
  },
};

// ---- the source behind load(url) ----

/**
 * A URL, read through chunks: stored ones from disk, others from the network with a few asked for
 * ahead, and stored as they come.
 */
export class ChunkedSource implements ByteSource {
  readonly name: string;
  readonly size: number;
  /** Called as bytes arrive from the network; `done` counts what was there before, too. */
  onFetch: (p: FetchProgress) => void = () => {};
  /** Set when the storage refused: loading goes on without it. */
  storageError: string | null = null;
  /** Bytes still to come from the network. */
  missing: number;
  #inner: ByteSource | null; // null: offline, all chunks stored
  #dir: FileSystemDirectoryHandle | null;
  #have: Set<number>;
  #hot = new Map<number, Promise<Uint8Array<ArrayBuffer>>>();
  #writes = new Set<Promise<void>>();
  #fetched = new Set<number>();
  #url: string;
  #sha256: string | undefined; // known of what is stored
  #digest: { hash: Sha256; next: number; feeding: Promise<void> | null; ending: boolean } | null = null;

  /** @internal `meta`: of what is stored, if anything is. */
  constructor(url: string, size: number, inner: ByteSource | null, dir: FileSystemDirectoryHandle | null,
    have: Set<number>, meta: Meta | null) {
    this.#url = url;
    this.name = nameOf(url);
    this.size = size;
    this.#inner = inner;
    this.#dir = dir;
    this.#have = have;
    this.missing = size;
    for (const i of have) this.missing -= chunkBytes(size, i);
    this.#sha256 = this.missing ? undefined : meta?.sha256;
    this.hadStored = have.size > 0;
  }

  /** Some of it was stored when it was opened. */
  readonly hadStored: boolean;

  /** SHA-256 that was computed when it was stored. */
  get known(): string | undefined {
    return this.#sha256;
  }

  /** Begins a digest: what comes from the network in order is added as it comes. */
  digest(hash: Sha256): void {
    this.#digest = { hash, next: 0, feeding: null, ending: false };
  }

  /** The digest of the whole file, in hex: known of old (unless `anew`), or what `digest` began and the
   * rest read for it. */
  async hex(anew: boolean, onDone: (p: FetchProgress) => void, signal?: AbortSignal): Promise<string> {
    if (this.#sha256 && !anew) return this.#sha256;
    const d = this.#digest;
    if (!d) throw makeError("argument", `${this.name}: no digest was begun`);
    d.ending = true; // nothing is added elsewhere from here on
    await d.feeding;
    for (const n = Math.ceil(this.size / CHUNK); d.next < n; d.next++) {
      d.hash.add(await this.#part(d.next, 0, chunkBytes(this.size, d.next), signal));
      onDone({ done: Math.min(this.size, (d.next + 1) * CHUNK), total: this.size });
    }
    this.#digest = null;
    this.#sha256 = d.hash.hex();
    return this.#sha256;
  }

  /** Compares; of a file that is not as it should be nothing stays stored. */
  async mustBe(expected: string | undefined, actual: string): Promise<void> {
    await this.flush();
    if (expected === undefined || expected === actual) {
      if (this.#dir) await remember(this.#url, actual);
      return;
    }
    const was = this.#dir !== null && (await remove(this.#url));
    mustMatch(this.#url, expected, actual, was ? "; the stored copy was deleted" : "");
  }

  #feed(): void {
    const d = this.#digest;
    if (!d || d.feeding || d.ending) return;
    const loop = async () => {
      for (let chunk; !d.ending && (chunk = this.#hot.get(d.next)); d.next++) {
        const bytes = await chunk.catch(() => null);
        if (!bytes || this.#digest !== d) return;
        d.hash.add(bytes);
      }
    };
    d.feeding = loop().finally(() => { d.feeding = null; });
  }

  async close(): Promise<void> {
    this.#digest?.hash.dispose();
    this.#digest = null;
  }

  async read(offset: number, length: number, signal?: AbortSignal): Promise<Uint8Array<ArrayBuffer>> {
    throwIfAborted(signal);
    if (offset < 0 || length < 0 || offset + length > this.size)
      throw makeError("truncated", `${this.name}: bytes ${offset} to ${offset + length} of a file of ${this.size}`);
    const out = new Uint8Array(length);
    for (let at = 0; at < length;) {
      const i = Math.floor((offset + at) / CHUNK), from = offset + at - i * CHUNK;
      const n = Math.min(length - at, chunkBytes(this.size, i) - from);
      out.set(await this.#part(i, from, n, signal), at);
      at += n;
    }
    return out;
  }

  /** Resolves when all that was fetched is stored. */
  async flush(): Promise<void> {
    while (this.#writes.size) await Promise.all(this.#writes);
  }

  async #part(i: number, from: number, n: number, signal?: AbortSignal): Promise<Uint8Array<ArrayBuffer>> {
    const hot = this.#hot.get(i);
    if (!hot && this.#have.has(i)) {
      try {
        const file = await (await this.#dir!.getFileHandle(chunkName(i))).getFile();
        return new Uint8Array(await file.slice(from, from + n).arrayBuffer());
      } catch (e) {
        if (!this.#inner) throw makeError("storage", `${this.name}: a stored part is gone: ${(e as Error).message}`);
        this.#have.delete(i); // deleted meanwhile: from the network, then
        this.#sha256 = undefined;
      }
    }
    const last = Math.ceil(this.size / CHUNK) - 1;
    for (let k = i + 1; k <= Math.min(i + AHEAD, last); k++)
      if (!this.#have.has(k) && !this.#hot.has(k)) this.#fetch(k, signal).catch(() => {});
    const bytes = await (this.#hot.get(i) ?? this.#fetch(i, signal));
    return bytes.subarray(from, from + n);
  }

  #fetch(i: number, signal?: AbortSignal): Promise<Uint8Array<ArrayBuffer>> {
    if (!this.#inner) return Promise.reject(makeError("network", `${this.name}: not stored, and there is no network`));
    const got = this.#inner.read(i * CHUNK, chunkBytes(this.size, i), signal);
    this.#hot.set(i, got);
    this.#feed();
    got.then((bytes) => {
      if (!this.#fetched.has(i)) this.missing -= bytes.length;
      this.#fetched.add(i);
      this.onFetch({ done: this.size - this.missing, total: this.size });
      this.#store(i, bytes);
      for (const old of this.#hot.keys()) {
        if (this.#hot.size <= KEEP) break;
        if (old < i - 1 || old > i + AHEAD) this.#hot.delete(old);
      }
    }, () => this.#hot.delete(i));
    return got;
  }

  #store(i: number, bytes: Uint8Array<ArrayBuffer>): void {
    if (!this.#dir || this.storageError) return;
    const write = writeFile(this.#dir, chunkName(i), bytes).then(
      () => void this.#have.add(i),
      (e) => { this.storageError = toFritError(e, "storage").message; },
    ).finally(() => this.#writes.delete(write));
    this.#writes.add(write);
  }
}

function sameFile(a: Validators, b: Validators): boolean {
  if (a.size !== b.size) return false;
  if (a.etag && b.etag) return a.etag === b.etag;
  return !a.modified || !b.modified || a.modified === b.modified;
}

/**
 * Opens a URL. With `store`, what is stored for it is used when the server still has the same file
 * (size and ETag, else date), or cannot be reached; else it is thrown away and fetched again.
 */
export async function openUrl(url: string, o: { store: boolean; signal?: AbortSignal;
  onFetch?: (p: FetchProgress) => void }): Promise<ChunkedSource> {
  const top = o.store ? await root(true) : null;
  let dir = top ? await top.getDirectoryHandle(await keyOf(url), { create: true }).catch(() => null) : null;
  const meta = dir ? await readMeta(dir) : null;
  let have = meta ? await storedChunks(dir!, meta.size) : new Set<number>();
  const whole = meta !== null && have.size === Math.ceil(meta.size / CHUNK);
  let inner: UrlSource | WholeFile;
  try {
    inner = await UrlSource.open(url, o.signal, (done, total) => o.onFetch?.({ done, total }));
  } catch (e) {
    throwIfAborted(o.signal);
    if (whole) return new ChunkedSource(url, meta.size, null, dir, have, meta);
    if (!meta && top) await top.removeEntry(await keyOf(url), { recursive: true }).catch(() => {});
    throw e;
  }
  if (dir && (!meta || !sameFile(meta, inner.validators))) {
    const key = await keyOf(url);
    have = new Set();
    try {
      await top!.removeEntry(key, { recursive: true });
      dir = await top!.getDirectoryHandle(key, { create: true });
      await writeFile(dir, "meta.json", JSON.stringify({ ...inner.validators, url, created: Date.now(), chunk: CHUNK }));
    } catch {
      dir = null; // no room even for this, or another tab has it open
    }
  }
  const source = new ChunkedSource(url, inner.size, inner, dir, have, have.size ? meta : null);
  if (o.onFetch) source.onFetch = o.onFetch;
  return source;
}

/** What is stored for a URL, without a look at the network. */
export async function openStored(url: string): Promise<ChunkedSource> {
  const top = await root(false), dir = await top?.getDirectoryHandle(await keyOf(url)).catch(() => null);
  const meta = dir ? await readMeta(dir) : null, have = meta ? await storedChunks(dir!, meta.size) : new Set<number>();
  if (!meta || have.size < Math.ceil(meta.size / CHUNK))
    throw makeError("argument", `${url}: it is not stored${meta ? " as a whole" : ""}`);
  return new ChunkedSource(url, meta.size, null, dir!, have, meta);
}

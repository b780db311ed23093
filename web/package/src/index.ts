// frit: chat models from GGUF files on WebGPU or the CPU. load() gives a Model; see README.md.
import { Client } from "./client.js";
import { AbortError, UsageError, makeError } from "./errors.js";
import { Model } from "./model.js";
import { asUrl, nodeModule, type ByteSource, type ModelSource, type UrlEntry } from "./source.js";
import { stored } from "./cache.js";
import type { PartMessage, SourceMessage } from "./protocol.js";
import type { Estimate, LoadOptions } from "./types.js";

export * from "./errors.js";
export * from "./types.js";
export type { CachedModel } from "./cache.js";
export { Model, type ChatCompletionStream } from "./model.js";
export type { ByteSource, ModelSource, UrlEntry } from "./source.js";

export const version = "0.1.0";

/**
 * Loads a model. Rejects with a FritError: `AbortError` by the signal, `LimitError` when it does not
 * fit, `IntegrityError` when it has another SHA-256, `NetworkError`, `ModelFileError`, `DeviceError`, ...
 */
export async function load(source: ModelSource, o: LoadOptions = {}): Promise<Model> {
  if (o.signal?.aborted) throw new AbortError();
  const given = givenOf(source), sha256 = digestsOf(o.sha256 ?? given.sha256);
  const client = makeClient(o);
  try {
    const { device, context, precision, pretend, gpu } = o, { message, transfer } = messageOf(given, client);
    const info = await client.call("load", {
      source: message, device, context, precision, pretend, cache: o.cache, sha256,
      wasm: wasmOf(o), ...(gpu && { gpu }),
    }, { signal: o.signal, onProgress: o.onProgress, transfer });
    return new Model(client, info);
  } catch (e) {
    await client.call("dispose", null).catch(() => {});
    client.end(makeError("disposed", "the model did not load"));
    throw e;
  }
}

/** What a model would need, from its header alone: a few megabytes are read, whatever its size. */
export async function estimate(source: ModelSource,
  o: Pick<LoadOptions, "device" | "context" | "signal" | "worker" | "wasmUrl" | "gpu"> = {}): Promise<Estimate> {
  if (o.signal?.aborted) throw new AbortError();
  const given = givenOf(source), client = makeClient(o);
  try {
    const { message, transfer } = messageOf(given, client);
    return await client.call("estimate", {
      source: message, context: o.context, device: o.device, wasm: wasmOf(o), ...(o.gpu && { gpu: o.gpu }),
    }, { signal: o.signal, transfer });
  } finally {
    client.end(makeError("disposed", "the estimate is made"));
  }
}

/** Models stored in this browser for this site. Empty, and doing nothing, where there is no such storage. */
export const cache = {
  ...stored,
  /**
   * Reads a stored model whole and compares its SHA-256: with `sha256`, else with the one that was computed
   * when it was stored or last verified. `compared` is false when there was none: then it is kept for the
   * next time. A file that is damaged is deleted, and the promise rejects with an IntegrityError.
   */
  async verify(url: string | URL, o: Pick<LoadOptions, "signal" | "worker" | "wasmUrl" | "onProgress"> & { sha256?: string } = {}):
    Promise<{ sha256: string; compared: boolean }> {
    const at = asUrl(url);
    if (!at) throw new UsageError("argument", `${url}: it is no URL`);
    const sha256 = digestsOf(o.sha256)?.[0], client = makeClient(o);
    try {
      return await client.call("verify", { url: at, sha256, wasm: wasmOf(o) }, { signal: o.signal, onProgress: o.onProgress });
    } finally {
      client.end(makeError("disposed", "it is verified"));
    }
  },
};

function wasmOf(o: LoadOptions): string {
  return String(o.wasmUrl ?? new URL("./frit.wasm", import.meta.url));
}

function makeClient(o: Pick<LoadOptions, "worker" | "gpu">): Client {
  if (o.worker === false || (o.worker === undefined && typeof Worker === "undefined")) return new Client(null, false);
  if (o.gpu) {
    if (o.worker) throw new UsageError("argument", "a gpu object cannot be sent to a worker: use worker: false");
    return new Client(null, false);
  }
  if (o.worker !== undefined && o.worker !== true) return new Client(o.worker, false);
  // In this form bundlers see the worker, and so does a browser without one.
  return new Client(new Worker(new URL("./worker.js", import.meta.url), { type: "module", name: "frit" }), true);
}

/** What the caller gave, sorted out. */
type Given = ({ type: "url"; url: string } | { type: "path"; path: string } |
  { type: "parts"; parts: (Blob | ByteSource)[]; name?: string }) & { sha256?: string | (string | undefined)[] };

const isSource = (s: unknown): s is ByteSource =>
  typeof (s as ByteSource)?.read === "function" && typeof (s as ByteSource).size === "number";

function givenOf(s: ModelSource): Given {
  if (typeof s === "string" || s instanceof URL) {
    const url = asUrl(s);
    if (url === null) return { type: "path", path: String(s) };
    if (url.startsWith("file:") && nodeModule("node:fs")) return { type: "path", path: decodeURIComponent(new URL(url).pathname) };
    return { type: "url", url };
  }
  if (s instanceof ArrayBuffer || ArrayBuffer.isView(s))
    return { type: "parts", parts: [new Blob([s as Uint8Array<ArrayBuffer>])], name: "bytes" };
  const parts = Array.isArray(s) ? s : [s];
  if (parts.length && parts.every((p) => p instanceof Blob || isSource(p)))
    return { type: "parts", parts: parts as (Blob | ByteSource)[], sha256: parts.map((p) => (p as ByteSource).sha256) };
  const entry = s as UrlEntry | null;
  if (typeof entry?.url === "string" || entry?.url instanceof URL) return { ...givenOf(entry.url), sha256: entry.sha256 };
  throw new UsageError("argument", "a source is a URL, a File or Blob, bytes, or an object with size and read()");
}

function messageOf(g: Given, client: Client): { message: SourceMessage; transfer: Transferable[] } {
  if (g.type === "url") return { message: { type: "url", url: g.url }, transfer: [] };
  if (g.type === "path") return { message: { type: "path", path: g.path }, transfer: [] };
  const parts = g.parts.map((p): PartMessage => (p instanceof Blob ? { blob: p, name: g.name } : client.part(p)));
  return { message: { type: "parts", parts }, transfer: parts.flatMap((p) => ("port" in p ? [p.port] : [])) };
}

function digestsOf(s: string | (string | undefined)[] | undefined): (string | undefined)[] | undefined {
  const list = Array.isArray(s) ? s : s === undefined ? [] : [s];
  for (const d of list) {
    if (d !== undefined && !/^[0-9a-f]{64}$/i.test(d))
      throw new UsageError("argument", `sha256: '${d}' is not 64 hexadecimal digits`);
  }
  return list.some((d) => d) ? list.map((d) => d?.toLowerCase()) : undefined;
}

// frit: chat models from GGUF files on WebGPU or the CPU. load() gives a Model; see README.md.
import { Client } from "./client.js";
import { AbortError, UsageError, makeError } from "./errors.js";
import { Model } from "./model.js";
import { asUrl, nodeModule, type ByteSource, type ModelSource } from "./source.js";
import type { SourceMessage } from "./protocol.js";
import type { Estimate, LoadOptions } from "./types.js";

export * from "./errors.js";
export * from "./types.js";
export { cache, type CachedModel } from "./cache.js";
export { Model, type ChatCompletionStream } from "./model.js";
export type { ByteSource, ModelSource } from "./source.js";

export const version = "0.1.0";

/**
 * Loads a model. Rejects with a FritError: `AbortError` by the signal, `LimitError` when it does not
 * fit, `NetworkError`, `ModelFileError`, `DeviceError`, ...
 */
export async function load(source: ModelSource, o: LoadOptions = {}): Promise<Model> {
  if (o.signal?.aborted) throw new AbortError();
  const message = messageOf(source);
  const client = makeClient(o, message.type === "object");
  try {
    const { device, context, precision, pretend, gpu } = o;
    const info = await client.call("load", {
      source: message, device, context, precision, pretend, cache: o.cache,
      wasm: wasmOf(o), ...(gpu && { gpu }),
    }, { signal: o.signal, onProgress: o.onProgress });
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
  const message = messageOf(source);
  const client = makeClient(o, message.type === "object");
  try {
    return await client.call("estimate", {
      source: message, context: o.context, device: o.device, wasm: wasmOf(o), ...(o.gpu && { gpu: o.gpu }),
    }, { signal: o.signal });
  } finally {
    client.end(makeError("disposed", "the estimate is made"));
  }
}

function wasmOf(o: LoadOptions): string {
  return String(o.wasmUrl ?? new URL("./frit.wasm", import.meta.url));
}

function makeClient(o: LoadOptions, local: boolean): Client {
  if (o.worker === false || (o.worker === undefined && typeof Worker === "undefined")) return new Client(null, false);
  if (local || o.gpu) {
    const what = o.gpu ? "a gpu object" : "a source with functions";
    if (o.worker) throw new UsageError("argument", `${what} cannot be sent to a worker: use worker: false`);
    return new Client(null, false);
  }
  if (o.worker !== undefined && o.worker !== true) return new Client(o.worker, false);
  // In this form bundlers see the worker, and so does a browser without one.
  return new Client(new Worker(new URL("./worker.js", import.meta.url), { type: "module", name: "frit" }), true);
}

function messageOf(s: ModelSource): SourceMessage {
  if (typeof s === "string" || s instanceof URL) {
    const url = asUrl(s);
    if (url === null) return { type: "path", path: String(s) };
    if (url.startsWith("file:") && nodeModule("node:fs")) return { type: "path", path: decodeURIComponent(new URL(url).pathname) };
    return { type: "url", url };
  }
  if (s instanceof Blob) return { type: "blobs", blobs: [s] };
  if (Array.isArray(s) && s.length && s.every((b) => b instanceof Blob)) return { type: "blobs", blobs: s };
  if (s instanceof ArrayBuffer || ArrayBuffer.isView(s))
    return { type: "blobs", blobs: [new Blob([s as Uint8Array<ArrayBuffer>])], name: "bytes" };
  if (typeof (s as ByteSource)?.read === "function" && typeof (s as ByteSource).size === "number") return { type: "object", source: s as ByteSource };
  throw new UsageError("argument", "a source is a URL, a File or Blob, bytes, or an object with size and read()");
}

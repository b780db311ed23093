// The npm package in Chromium: what needs a browser, a worker, its storage or its GPU. Synthetic models.
//
//     node web/test/package_browser.mjs [TEST...]
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import {
  closeSync, cpSync, existsSync, ftruncateSync, mkdtempSync, openSync, readFileSync, rmSync, symlinkSync, writeFileSync, writeSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { startServer } from "../../tools/web_server.mjs";
import { launchChromium } from "./browsers.mjs";
import { head, number, parse, shifted, split } from "./gguf_edit.mjs";

const path = (p) => fileURLToPath(new URL(`../../${p}`, import.meta.url));
const only = process.argv.slice(2), GIB = 2 ** 30;
const dir = mkdtempSync(join(tmpdir(), "frit-package-web."));
const file = (name) => join(dir, name);
cpSync(path("web/package/dist/package"), file("package"), { recursive: true });
cpSync(path("web/package/dist/core"), file("core"), { recursive: true });
writeFileSync(file("index.html"), `<!doctype html><link rel="icon" href="data:,"><input type="file" multiple>`);

execFileSync(path("build/native/frit"), ["synth", file("tiny.gguf"), "--arch", "tiny", "--type", "q4_0"], { stdio: "ignore" });
const demo = process.env.FRIT_MODEL ?? path(".cache/models/SmolLM2-135M-Instruct.Q4_1.gguf");
if (existsSync(demo)) symlinkSync(demo, file("demo.gguf"));
const tiny = new Uint8Array(readFileSync(file("tiny.gguf"))), sha256 = createHash("sha256").update(tiny).digest("hex");
const parts = split(tiny, 3).map((bytes, i) => {
  const name = `model-${String(i + 1).padStart(5, "0")}-of-00003.gguf`;
  writeFileSync(file(name), bytes);
  return { name, sha256: createHash("sha256").update(bytes).digest("hex") };
});
/** A file of `size` bytes that holds `pieces` ([offset, bytes]) and else zeros, which no disk keeps. */
function sparse(name, size, pieces) {
  const fd = openSync(file(name), "w");
  ftruncateSync(fd, size);
  for (const [at, bytes] of pieces) writeSync(fd, bytes, 0, bytes.length, at);
  closeSync(fd);
}
{
  const { head: h, data } = shifted(tiny, 5 * GIB), at = h.length + 5 * GIB;
  sparse("large.gguf", at + data.length, [[0, h], [at, data]]);
}
/** The tiny model with f32 feed-forward matrices `width` wide in each of `blocks` blocks: a head and zeros. */
function wide(name, width, blocks) {
  const f = parse(tiny), number32 = (n) => number(4, n);
  const blk = (i) => f.tensors.filter((t) => t.name.startsWith("blk.0.")).map((t) => ({ ...t, name: t.name.replace(".0.", `.${i}.`) }));
  const all = [...f.tensors.filter((t) => !/^blk/.test(t.name)), ...Array.from({ length: blocks }, (_, i) => blk(i)).flat()];
  let off = 0;
  const tensors = all.map((t) => {
    const ffn = /ffn_(gate|up|down)/.test(t.name), type = ffn ? 0 : t.type;
    const dims = !ffn ? t.dims : /down/.test(t.name) ? [width, t.dims[1]] : [t.dims[0], width];
    const size = dims.reduce((x, y) => x * y) * (type ? 18 / 32 : 4), here = off;
    off += Math.ceil(size / 32) * 32;
    return { ...t, dims, type, off: here };
  });
  const change = { "llama.feed_forward_length": width, "llama.block_count": blocks };
  const h = head({ tensors, keys: f.keys.map(([k, v]) => [k, change[k] ? number32(change[k]) : v]) });
  sparse(name, h.length + off, [[0, h]]);
}
wide("wide.gguf", 1 << 20, 6); // 4.5 GiB, activations over a buffer's limit

const served = [];
const server = await startServer({ folder: dir, log: ({ path: p, range: r }) => {
  if (p.endsWith(".gguf")) served.push({ path: p, bytes: r ? r.end - r.start + 1 : Infinity });
} });
const browser = await launchChromium();
const context = await browser.newContext();
const page = await context.newPage();
page.on("pageerror", (e) => console.log(`page: ${e.message}`));
await page.goto(`${server.url}/index.html`);
await page.evaluate(async () => {
  const frit = (window.frit = await import("/package/src/index.js"));
  window.text = async (m) => (await m.complete({ prompt: "a b", temperature: 0, max_tokens: 12 })).text;
  /** Loads, says something, disposes. */
  window.answer = async (source, o = {}) => {
    const m = await frit.load(source, { device: "cpu", ...o });
    try {
      return await window.text(m);
    } finally {
      await m.dispose();
    }
  };
  /** What a promise is rejected with, as plain data. */
  window.failure = async (promise) => {
    try {
      await promise;
    } catch (e) {
      return { class: e.constructor.name, name: e.name, code: e.code, message: e.message, ...e };
    }
    return null;
  };
  window.stored = async () => (await frit.cache.list()).map((m) => ({ ...m, name: m.name }));
});
const want = await page.evaluate(() => answer("/tiny.gguf", { cache: false }));

const tests = {
  async a_source_of_ones_own_in_the_worker() {
    const r = await page.evaluate(async () => {
      const bytes = new Uint8Array(await (await fetch("/tiny.gguf")).arrayBuffer());
      let closed = 0, reads = 0;
      const own = (more) => ({ name: "mine", size: bytes.length, close: async () => { closed++; }, ...more,
        async read(at, n, signal) { reads++; return more?.read ? more.read(at, n, signal) : bytes.subarray(at, at + n); } });
      const said = await answer(own());
      const cut = await failure(frit.load(own({ read: async () => { throw new Error("the line was cut"); } })));
      const short = await failure(frit.load(own({ read: async (at, n) => bytes.slice(at, at + n - 1) })));
      let aborted = false;
      const stop = new AbortController();
      const stopped = failure(frit.load(own({ read: (at, n, signal) => new Promise((_, no) => {
        signal.addEventListener("abort", () => { aborted = true; no(signal.reason); });
        setTimeout(() => stop.abort(), 50);
      }) }), { signal: stop.signal }));
      const e = await frit.estimate(own());
      return { said, reads, length: bytes.length, cut, short, stopped: await stopped, aborted, fits: e.fits, closed };
    });
    assert.equal(r.said, want);
    assert.ok(r.reads > 0 && r.length > 1000 && r.fits); // the page's own buffer was not taken away
    assert.deepEqual([r.cut.class, r.cut.code], ["ModelFileError", "io"]);
    assert.match(r.cut.message, /the line was cut/);
    assert.match(r.short.message, /bytes came where/);
    assert.equal(r.stopped.name, "AbortError");
    assert.ok(r.aborted);
    assert.equal(r.closed, 5);
    for (let i = 0; page.workers().length && i < 50; i++) await page.waitForTimeout(100);
    assert.equal(page.workers().length, 0); // each was ended
  },
  async the_worker_is_used_for_it() {
    await page.evaluate(async () => {
      const bytes = new Uint8Array(await (await fetch("/tiny.gguf")).arrayBuffer());
      window.model = await frit.load({ name: "mine", size: bytes.length, read: async (at, n) => bytes.slice(at, at + n) });
    });
    assert.equal(page.workers().length, 1);
    await page.evaluate(() => model.dispose());
  },
  async sha256_of_downloads() {
    const r = await page.evaluate(async (good) => {
      const out = {}, bad = good.replace(/^./, (c) => (c === "0" ? "1" : "0")), phases = [];
      await frit.cache.clear();
      out.plain = await answer("/tiny.gguf", { sha256: good, onProgress: (p) => phases.push(p.phase) });
      out.phases = [...new Set(phases)];
      out.list = await stored();
      out.wrong = await failure(frit.load({ url: "/tiny.gguf", sha256: bad }));
      out.listAfterWrong = await stored();
      out.blob = await failure(frit.load(await (await fetch("/tiny.gguf")).blob(), { sha256: bad }));
      out.own = await failure(frit.load({ name: "mine", size: 3, sha256: bad, read: async () => new Uint8Array(3) }));
      out.noCache = await failure(frit.load("/tiny.gguf", { sha256: bad, cache: false, worker: false }));
      out.silly = await failure(frit.load("/tiny.gguf", { sha256: "abc" }));
      return out;
    }, sha256);
    assert.equal(r.plain, want);
    assert.ok(r.phases.includes("download") && r.phases.at(-1) === "ready", r.phases.join());
    assert.equal(r.list[0].sha256, sha256);
    for (const e of [r.wrong, r.noCache, r.blob]) {
      assert.equal(e.class, "IntegrityError");
      assert.deepEqual([e.code, e.actual, e.expected?.length], ["integrity", sha256, 64]);
      assert.ok(e.message.includes(e.actual) && e.message.includes(e.expected));
    }
    assert.match(r.wrong.message, /stored copy was deleted/);
    assert.deepEqual(r.listAfterWrong, []);
    assert.equal(r.own.class, "IntegrityError");
    assert.equal(r.silly.class, "UsageError");
  },
  async a_damaged_stored_file() {
    const r = await page.evaluate(async (good) => {
      const damage = async () => { // one byte of the file's chunk
        const top = await (await navigator.storage.getDirectory()).getDirectoryHandle("frit-models");
        for await (const [, d] of top.entries()) {
          const h = await d.getFileHandle("000000.bin"), bytes = new Uint8Array(await (await h.getFile()).arrayBuffer());
          bytes[bytes.length - 5] ^= 16;
          const w = await h.createWritable();
          await w.write(bytes);
          await w.close();
        }
      };
      const out = {};
      await frit.cache.clear();
      await answer("/tiny.gguf");
      out.first = await frit.cache.verify("/tiny.gguf");
      out.second = await frit.cache.verify("/tiny.gguf");
      await damage();
      out.verify = await failure(frit.cache.verify("/tiny.gguf"));
      out.list = await stored();
      out.gone = await failure(frit.cache.verify("/tiny.gguf"));
      await answer("/tiny.gguf"); // stored, with no digest known
      await damage();
      out.again = await answer("/tiny.gguf", { sha256: good });
      out.mended = await frit.cache.verify("/tiny.gguf", { sha256: good });
      return out;
    }, sha256);
    assert.deepEqual(r.first, { sha256, compared: false });
    assert.deepEqual(r.second, { sha256, compared: true });
    assert.equal(r.verify.class, "IntegrityError");
    assert.deepEqual(r.list, []);
    assert.equal(r.gone.class, "UsageError");
    assert.equal(r.again, want); // fetched again
    assert.deepEqual(r.mended, { sha256, compared: true });
  },
  async several_parts() {
    const first = `/${parts[0].name}`, digests = parts.map((p) => p.sha256);
    const begin = served.length;
    const r = await page.evaluate(async ({ first, digests, names }) => {
      const out = {};
      await frit.cache.clear();
      out.url = await answer({ url: first, sha256: digests });
      out.list = await stored();
      const blobs = await Promise.all(names.map(async (n) => new File([await (await fetch(`/${n}`)).blob()], n)));
      out.files = await answer(blobs, { sha256: digests });
      out.own = await answer(blobs.map((b, i) => ({ name: b.name, size: b.size, sha256: digests[i],
        read: async (at, n) => new Uint8Array(await b.slice(at, at + n).arrayBuffer()) })));
      out.missing = await failure(frit.load(blobs.slice(0, 2)));
      out.order = await failure(frit.load([blobs[0], blobs[2], blobs[1]]));
      out.second = await failure(frit.load({ url: first, sha256: [digests[0], digests[0], digests[2]] }));
      out.estimate = await frit.estimate(first);
      return out;
    }, { first, digests, names: parts.map((p) => p.name) });
    for (const said of [r.url, r.files, r.own]) assert.equal(said, want);
    assert.deepEqual(r.list.map((m) => [m.name, m.complete, m.sha256]), parts.map((p) => [p.name, true, p.sha256]));
    assert.match(r.missing.message, /part 3 of the model was not given/);
    assert.equal(r.order.class, "ModelFileError");
    assert.equal(r.second.class, "IntegrityError");
    assert.match(r.second.message, /00002-of-00003/);
    assert.ok(r.estimate.fits && r.estimate.size === parts.reduce((n, p) => n + readFileSync(file(p.name)).length, 0));
    assert.ok(served.slice(begin).length > 3);
    await page.evaluate((f) => answer(f), first); // the part that was deleted comes again
    const then = served.length;
    assert.equal(await page.evaluate((f) => answer(f), first), want);
    assert.ok(served.slice(then).every((s) => s.bytes === 1), JSON.stringify(served.slice(then)));
  },
  async over_4_gb() {
    const begin = served.length;
    const r = await page.evaluate(async () => {
      const out = {};
      await frit.cache.clear();
      out.estimate = await frit.estimate("/large.gguf");
      out.url = await answer("/large.gguf");
      out.list = await stored();
      out.again = await answer("/large.gguf");
      return out;
    });
    assert.equal(r.url, want);
    assert.equal(r.again, want);
    assert.ok(r.estimate.fits && r.estimate.size > 5 * GIB);
    assert.ok(r.list[0].size > 5 * GIB && !r.list[0].complete);
    const bytes = served.slice(begin).reduce((n, s) => n + s.bytes, 0);
    assert.ok(bytes < 64 << 20, `${bytes} bytes were fetched`);
    await page.setInputFiles("input", [file("large.gguf")]);
    assert.equal(await page.evaluate(() => answer(document.querySelector("input").files[0])), want);
  },
  /** Up to the moment when all weights are on the GPU: a software one takes minutes for what comes then. */
  async a_real_model_passes_by_the_heap() {
    if (!existsSync(demo)) return "no demo model (make model)";
    const begin = served.length;
    const r = await page.evaluate(async (sha256) => {
      const { instantiate } = WebAssembly, stop = new AbortController(), phases = new Set();
      let memory, heap = 0, uploaded = 0, total = -1;
      WebAssembly.instantiate = async (...a) => {
        const made = await instantiate(...a);
        memory = made.exports.memory;
        return made;
      };
      await frit.cache.clear();
      const error = await failure(frit.load("/demo.gguf", { device: "gpu", context: 512, worker: false, sha256, signal: stop.signal,
        onProgress: (p) => {
          phases.add(p.phase);
          heap = Math.max(heap, memory?.buffer.byteLength ?? 0);
          if (p.phase === "download") [uploaded, total] = [p.done, p.total];
          if (p.phase === "warmup") stop.abort();
        } }));
      WebAssembly.instantiate = instantiate;
      const [entry] = await stored();
      await frit.cache.clear();
      return { error, heap, uploaded, total, entry, phases: [...phases] };
    }, createHash("sha256").update(readFileSync(demo)).digest("hex"));
    assert.equal(r.error?.name, "AbortError", r.error?.message);
    assert.ok(r.uploaded === r.total && r.entry.complete, JSON.stringify(r));
    assert.ok(r.heap > 1 << 20 && r.heap < 64 << 20, `${r.heap} bytes of heap`);
    const bytes = served.slice(begin).reduce((n, s) => n + s.bytes, 0);
    assert.ok(bytes < r.entry.size + 64, `${bytes} bytes were fetched of ${r.entry.size}`);
    console.log(`     ${r.phases.join(", ")}; heap ${(r.heap / 2 ** 20).toFixed(1)} MiB`);
  },
  async what_cannot_fit_is_refused_before_loading() {
    const begin = served.length;
    const r = await page.evaluate(async () => ({
      cpu: await frit.estimate("/wide.gguf", { device: "cpu" }),
      gpu: await frit.estimate("/wide.gguf", { device: "gpu" }),
      loadCpu: await failure(frit.load("/wide.gguf", { device: "cpu", cache: false })),
      loadGpu: await failure(frit.load("/wide.gguf", { device: "gpu", cache: false })),
    }));
    assert.ok(!r.cpu.fits && r.cpu.memory > 4 * GIB && /wasm heap/.test(r.cpu.why), r.cpu.why);
    assert.ok(!r.gpu.fits && r.gpu.device === "gpu" && /over this device's limit of \d+/.test(r.gpu.why), r.gpu.why);
    assert.deepEqual([r.loadCpu.class, r.loadCpu.code], ["LimitError", "limit"]);
    assert.equal(r.loadCpu.needed, r.cpu.memory);
    assert.ok(r.loadCpu.limit > 3 * GIB && r.loadCpu.limit < r.loadCpu.needed, r.loadCpu.message);
    assert.equal(r.loadGpu.class, "LimitError");
    const bytes = served.slice(begin).reduce((n, s) => n + s.bytes, 0);
    assert.ok(bytes < 64 << 20, `${bytes} bytes were fetched`);
  },
  async gpu_out_of_memory() {
    const r = await page.evaluate(async () => {
      const alive = new Set(), { createBuffer, pushErrorScope, popErrorScope } = GPUDevice.prototype, scopes = [];
      const destroy = GPUBuffer.prototype.destroy, end = GPUDevice.prototype.destroy;
      let n = 0, at = Infinity, throws = false;
      GPUDevice.prototype.createBuffer = function (d) {
        if (throws && n + 1 === at) { n++; throw new RangeError("no room"); }
        const b = createBuffer.call(this, d);
        alive.add(b);
        b.device = this;
        return b;
      };
      GPUBuffer.prototype.destroy = function () { alive.delete(this); destroy.call(this); };
      GPUDevice.prototype.destroy = function () { for (const b of alive) if (b.device === this) alive.delete(b); end.call(this); };
      GPUDevice.prototype.pushErrorScope = function (filter) { scopes.push(filter); pushErrorScope.call(this, filter); };
      GPUDevice.prototype.popErrorScope = async function () {
        const mine = scopes.pop() === "out-of-memory" && ++n === at;
        const e = await popErrorScope.call(this);
        return mine ? new GPUOutOfMemoryError("forced") : e;
      };
      const out = { failures: [], left: [] };
      const go = async () => {
        n = 0;
        out.failures.push(await failure(frit.load("/tiny.gguf", { device: "gpu", worker: false, cache: false })));
        out.left.push(alive.size);
      };
      for (at of [1, 9]) await go();
      throws = true;
      at = 3;
      await go();
      at = Infinity;
      const m = await frit.load("/tiny.gguf", { device: "gpu", worker: false, cache: false, precision: "f32" });
      out.gpu = await text(m);
      out.held = (await m.memory()).gpu;
      await m.dispose();
      out.left.push(alive.size);
      out.cpu = await answer("/tiny.gguf", { cache: false, precision: "f32" });
      out.estimate = await frit.estimate("/tiny.gguf", { device: "gpu" });
      Object.assign(GPUDevice.prototype, { createBuffer, pushErrorScope, popErrorScope, destroy: end });
      GPUBuffer.prototype.destroy = destroy;
      return out;
    });
    for (const e of r.failures) {
      assert.deepEqual([e.class, e.code], ["OutOfMemoryError", "device-out-of-memory"], e.message);
      assert.ok(e.needed >= r.estimate.memory && e.limit >= 0 && e.limit < e.needed, JSON.stringify(e));
      assert.match(e.message, /buffer '.+': \d+ bytes.*needs about \d+ MiB/);
    }
    assert.ok(r.failures[0].limit === 0 && r.failures[1].limit > 0, JSON.stringify(r.failures));
    assert.deepEqual(r.left, [0, 0, 0, 0]);
    assert.equal(r.gpu, r.cpu);
    assert.ok(r.held > 0);
  },
  async gpu_out_of_memory_in_the_worker() {
    const r = await page.evaluate(async () => {
      const code = `const { popErrorScope } = GPUDevice.prototype; let n = 0;
        GPUDevice.prototype.popErrorScope = async function () {
          const e = await popErrorScope.call(this);
          return ++n === 5 ? new GPUOutOfMemoryError("forced") : e;
        };
        await import("${location.origin}/package/src/worker.js"); postMessage("up");`;
      const worker = new Worker(URL.createObjectURL(new Blob([code], { type: "text/javascript" })), { type: "module" });
      await new Promise((up) => { worker.onmessage = up; });
      const first = await failure(frit.load("/tiny.gguf", { device: "gpu", worker, cache: false }));
      const m = await frit.load("/tiny.gguf", { device: "cpu", worker, cache: false }); // the same worker goes on
      const said = await text(m);
      await m.dispose();
      worker.terminate();
      return { first, said };
    });
    assert.equal(r.first.class, "OutOfMemoryError");
    assert.ok(r.first.needed > r.first.limit, JSON.stringify(r.first));
    assert.equal(r.said, want);
  },
};

let passed = 0, failed = 0, skipped = 0;
for (const [name, run] of Object.entries(tests)) {
  if (only.length && !only.includes(name)) continue;
  const begin = Date.now();
  try {
    const why = await run();
    if (why) {
      skipped++;
      console.log(`SKIP package_web.${name}: ${why}`);
      continue;
    }
    passed++;
    console.log(`ok   package_web.${name} (${Math.round((Date.now() - begin) / 100) / 10} s)`);
  } catch (e) {
    failed++;
    console.log(`package_web.${name}: ${e.stack}\nFAIL package_web.${name}`);
  }
}
await browser.close();
await server.close();
rmSync(dir, { recursive: true });
console.log(`${passed} passed, ${failed} failed, ${skipped} skipped`);
process.exitCode = failed ? 1 : 0;

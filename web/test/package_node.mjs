// The npm package in Node, on the CPU, with a synthetic model: the API's shapes, sources, errors.
//
//     node web/test/package_node.mjs
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { startServer } from "../../tools/web_server.mjs";
import { AbortError, FritError, NetworkError, estimate, load } from "../package/dist/package/src/index.js";
import { StopFilter } from "../package/dist/package/src/stop.js";

const frit = fileURLToPath(new URL("../../build/native/frit", import.meta.url));
const dir = mkdtempSync(join(tmpdir(), "frit-package."));
process.on("exit", () => rmSync(dir, { recursive: true, force: true }));
const tiny = join(dir, "tiny.gguf");
execFileSync(frit, ["synth", tiny, "--arch", "tiny", "--type", "q4_0"], { stdio: "ignore" });
const ask = [{ role: "user", content: "hello" }];
let passed = 0, failed = 0;

async function test(name, f) {
  try {
    await f();
    passed++;
  } catch (e) {
    failed++;
    console.log(`FAIL package.${name}: ${e.stack}`);
  }
}
const code = (c) => (e) => e instanceof FritError && e.code === c && e.message.length > 0;

await test("stop_strings", () => {
  const run = (stops, ...pieces) => {
    const f = new StopFilter(stops);
    return [pieces.map((p) => f.push(p)).join("|") + "|" + (f.hit === null ? f.end() : ""), f.hit];
  };
  assert.deepEqual(run(["END"], "a", "bE", "N", "Dc"), ["a|b|||", "END"]);
  assert.deepEqual(run(["END"], "aEN", "x", "E"), ["a|ENx||E", null]);
  assert.deepEqual(run(["bc", "abc"], "xabc"), ["x|", "abc"]); // the one that begins first
  assert.deepEqual(run([], "abc"), ["abc|", null]);
});

const phases = [];
const model = await load(tiny, { onProgress: (p) => phases.push(p) });
await test("load", () => {
  assert.equal(model.info.name, "tiny");
  assert.equal(model.info.device.kind, "cpu");
  assert.equal(model.info.device.fallbacks[0].code, "no-webgpu");
  assert.equal(phases.at(-1).phase, "ready");
  const order = ["download", "upload", "compile", "warmup", "ready"];
  assert.ok(phases.every((p) => order.includes(p.phase) && p.done <= p.total));
});
await test("chat", async () => {
  const params = { messages: ask, temperature: 0, max_tokens: 12 };
  const a = await model.chat.completions.create(params);
  assert.equal(a.object, "chat.completion");
  assert.equal(a.choices[0].message.role, "assistant");
  assert.equal(a.usage.total_tokens, a.usage.prompt_tokens + a.usage.completion_tokens);
  const b = await model.chat.completions.create({ ...params, stream: true, stream_options: { include_usage: true } });
  let text = "", chunks = [];
  for await (const c of b) {
    text += c.choices[0]?.delta.content ?? "";
    chunks.push(c);
  }
  assert.equal(text, a.choices[0].message.content);
  assert.equal(chunks[0].choices[0].delta.role, "assistant");
  assert.equal(chunks.at(-2).choices[0].finish_reason, a.choices[0].finish_reason);
  assert.equal(chunks.at(-1).usage.completion_tokens, a.usage.completion_tokens);
  assert.ok(chunks.at(-1).usage.extra.cached_tokens > 0);
  assert.ok(chunks.every((c) => c.object === "chat.completion.chunk" && c.id === chunks[0].id));
});
await test("complete", async () => {
  const whole = await model.complete({ prompt: "a b", temperature: 0, max_tokens: 20 });
  assert.ok(whole.text.length > 3);
  assert.equal(whole.finish_reason, "length");
  assert.equal(whole.usage.completion_tokens, 20);
  const at = Math.min(3, whole.text.length - 2), stop = whole.text.slice(at, at + 2);
  const cut = await model.complete({ prompt: "a b", temperature: 0, max_tokens: 20, stop: [stop] });
  assert.equal(cut.text, whole.text.slice(0, whole.text.indexOf(stop)));
  assert.equal(cut.finish_reason, "stop");
  const again = await model.complete({ prompt: "a b", temperature: 0, max_tokens: 20 });
  assert.equal(again.text, whole.text); // the one that was left has left nothing behind
});
await test("seed", async () => {
  const once = (seed) => model.complete({ prompt: "a", temperature: 1.5, max_tokens: 16, seed }).then((r) => r.text);
  assert.equal(await once(7), await once(7));
  assert.notEqual(await once(7), await once(8));
});
await test("queue", async () => {
  const both = await Promise.all([1, 2].map(() => model.complete({ prompt: "x", temperature: 0, max_tokens: 4 })));
  assert.equal(both[0].text, both[1].text);
});
await test("abort", async () => {
  const control = new AbortController();
  const run = model.complete({ prompt: "x", temperature: 0 }, { signal: control.signal, onText: () => control.abort() });
  await assert.rejects(run, (e) => e instanceof AbortError && e.name === "AbortError");
  const stream = await model.chat.completions.create({ messages: ask, temperature: 0, stream: true });
  for await (const c of stream) if (c.choices[0].delta.content) break;
  assert.ok(stream.controller.signal.aborted);
  await assert.rejects(load(tiny, { signal: AbortSignal.abort() }), AbortError);
  assert.equal((await model.complete({ prompt: "x", temperature: 0, max_tokens: 2 })).usage.completion_tokens, 2);
});
await test("refusals", async () => {
  const make = (p) => model.chat.completions.create({ messages: ask, ...p });
  await assert.rejects(make({ messages: [] }), code("argument"));
  await assert.rejects(make({ temperature: "hot" }), code("argument"));
  await assert.rejects(make({ top_p: 2 }), code("argument"));
  await assert.rejects(make({ stop: [""] }), code("argument"));
  await assert.rejects(make({ tools: [{}] }), code("unsupported"));
  await assert.rejects(make({ n: 2 }), code("unsupported"));
  await assert.rejects(make({ messages: [{ role: "user", content: "long ".repeat(2000) }] }), code("limit"));
  await assert.rejects(load(5), code("argument"));
});
await test("tokenize", async () => {
  const ids = await model.tokenize("hello");
  assert.ok(ids instanceof Uint32Array && ids.length > 0);
});
await test("sources", async () => {
  const bytes = readFileSync(tiny), text = (m) => m.complete({ prompt: "a b", temperature: 0, max_tokens: 8 }).then((r) => r.text);
  const want = await text(model);
  const object = { name: "mine", size: bytes.length, read: async (o, n) => new Uint8Array(bytes.subarray(o, o + n)) };
  for (const s of [new Blob([bytes]), [new Blob([bytes])], new Uint8Array(bytes), object, new URL(`file://${tiny}`)]) {
    const m = await load(s);
    assert.equal(await text(m), want);
    await m.dispose();
  }
});
await test("urls", async () => {
  const server = await startServer({ folder: dir });
  const m = await load(`${server.url}/tiny.gguf`);
  await m.dispose();
  const e = await estimate(`${server.url}/tiny.gguf`);
  assert.ok(e.fits && e.weights > 0 && e.memory > e.weights && e.name === "tiny");
  await assert.rejects(load(`${server.url}/none.gguf`), (x) => x instanceof NetworkError && /404/.test(x.message));
  await server.close();
  await assert.rejects(load(`${server.url}/tiny.gguf`), NetworkError);
});
await test("no_ranges", async () => {
  const bytes = readFileSync(tiny);
  const server = createServer((_, res) => res.writeHead(200, { "Content-Length": bytes.length }).end(bytes));
  await new Promise((r) => server.listen(0, "127.0.0.1", r));
  const seen = [];
  const m = await load(`http://127.0.0.1:${server.address().port}/tiny.gguf`, { onProgress: (p) => seen.push(p.phase) });
  assert.ok(seen.includes("download"));
  await m.dispose();
  server.closeAllConnections();
  await new Promise((r) => server.close(r));
});
await test("bad_files", async () => {
  await assert.rejects(load(new Blob(["not a model at all, whatever it says"])), code("unsupported"));
  const half = join(dir, "half.gguf");
  writeFileSync(half, readFileSync(tiny).subarray(0, 30000));
  await assert.rejects(load(half), code("truncated"));
  await assert.rejects(load(join(dir, "none.gguf")), code("io"));
  await assert.rejects(load(tiny, { device: "gpu" }), code("no-device"));
  await assert.rejects(load(tiny, { context: 1 << 20 }), FritError);
});
await test("dispose", async () => {
  const running = model.complete({ prompt: "x", temperature: 0 });
  await Promise.all([assert.rejects(running, AbortError), model.dispose(), model.dispose()]);
  await assert.rejects(model.complete({ prompt: "x" }), code("disposed"));
  await assert.rejects(model.tokenize("x"), code("disposed"));
});

console.log(`${passed} passed, ${failed} failed, 0 skipped`);
process.exitCode = failed ? 1 : 0;

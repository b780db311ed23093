// A real model end to end, in a browser or Node, by range requests from a loopback server: the answer
// equals the native CPU's, and on a GPU the module's heap stays small while the weights pass by it.
//
//     node web/test/smoke.mjs node|chromium|firefox|webkit cpu|gpu [tiny]
//
// tiny: a synthetic model of a few layers, for where the demo model would take minutes.
import { execFileSync } from "node:child_process";
import { existsSync, readFileSync, statSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { startServer } from "../../tools/web_server.mjs";

const path = (p) => fileURLToPath(new URL(`../../${p}`, import.meta.url));
const DEMO = ".cache/models/SmolLM2-135M-Instruct.Q4_1.gguf";
const PROMPT = "The capital of France is", HEAP = 64 << 20;
const [where, device, small] = process.argv.slice(2);
// The synthetic model would say one token for ever without a penalty.
const TOKENS = small ? 24 : 8, PENALTY = small ? 1.5 : 1, MODEL = small ? "build/wasm/tiny.gguf" : DEMO;
const name = `smoke.${where}_${device}${small ? "_tiny" : ""}`;
let failures = 0;
const check = (ok, text) => {
  if (!ok) console.log(`${name}: ${text}`);
  failures += !ok;
};

async function inBrowser(o) {
  const { openBrowser } = await import("./browsers.mjs");
  const page = await openBrowser(where, console.log);
  try {
    await page.goto(`${o.server}/web/test/smoke.html`);
    return await page.evaluate((a) => window.run(a), o);
  } finally {
    await page.close();
  }
}

async function inNode(o) {
  const { smoke } = await import("./smoke_run.mjs");
  const wasm = new WebAssembly.Module(readFileSync(path("build/wasm/frit.wasm")));
  return smoke({ ...o, core: path("build/wasm/core/core.js"), wasm });
}

function expected() {
  const out = execFileSync(path("build/native/frit"), ["complete", path(MODEL), "-p", PROMPT, "-n", String(TOKENS), "--temp", "0",
    "--penalty", String(PENALTY), "--device", "cpu", "--precision", "f32", "--ignore-eos", "--context", "256", "--json", "-q"], { encoding: "utf8" });
  return JSON.parse(out);
}

if (small) execFileSync(path("build/native/frit"), ["synth", path(MODEL), "--arch=tiny", "--type=q4_0", "--seed=5"]);
if (!existsSync(path(MODEL))) {
  console.log(`SKIP ${name}: no demo model (make model)\n0 passed, 0 failed, 1 skipped`);
  process.exit(0);
}
let bytes = 0, requests = 0;
const server = await startServer({ log: ({ path: p, range }) => {
  if (!p.endsWith(".gguf")) return;
  requests++;
  bytes += range ? range.end - range.start + 1 : statSync(path(p)).size;
} });
try {
  const o = { server: server.url, model: `${server.url}/${MODEL}`, device, prompt: PROMPT, tokens: TOKENS, penalty: PENALTY,
    options: { f32: true, context: 256, batch: 16 } };
  const want = expected(), got = await (where === "node" ? inNode(o) : inBrowser(o));
  const size = statSync(path(MODEL)).size;
  check(got.ids.join() === want.tokens.join(), `ids ${got.ids} (${got.text}), the native CPU has ${want.tokens} (${want.text})`);
  check(got.text === want.text, `text "${got.text}", not "${want.text}"`);
  check(got.decoded === got.text, `the ids decode to "${got.decoded}"`);
  check(got.info.fileBytes === size, `file of ${got.info.fileBytes} bytes`);
  check(got.usage.end === "length" && got.usage.tokens === TOKENS, `ended with ${JSON.stringify(got.usage)}`);
  check(device === "cpu" || got.heap < HEAP, `the heap took ${got.heap} bytes, over ${HEAP}`);
  check(got.estimate.weights > size / 4 && got.memory.bytes >= got.estimate.weights, `estimate ${JSON.stringify(got.estimate)}, then ${JSON.stringify(got.memory)}`);
  check(bytes < 1.3 * size + (4 << 20), `${bytes} bytes fetched of a file of ${size}`);
  console.log(`  ${got.device.name}: load ${got.loadMs} ms ${JSON.stringify(got.phases)}, heap ${got.heap >> 20} MiB, device ` +
    `${got.memory.bytes >> 20} MiB, ${requests} requests, ${(got.usage.tokens / got.usage.seconds).toFixed(1)} tokens/s`);
} catch (e) {
  check(false, e.stack);
} finally {
  await server.close();
}
console.log(`${failures ? "FAIL" : "ok  "} ${name}\n${failures ? 0 : 1} passed, ${failures ? 1 : 0} failed, 0 skipped`);
process.exitCode = failures ? 1 : 0;

// How fast the CPU path of the module is, on its one thread, in Node or in a worker of a browser. The
// answer is compared with the native CPU's before the clock starts.
//
//     node web/test/speed.mjs node|chromium [f32] [REPS]
//
// Prints the medians and extremes of REPS (5) runs: a prompt of 128 tokens, then 64 tokens more.
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { startServer } from "../../tools/web_server.mjs";

const path = (p) => fileURLToPath(new URL(`../../${p}`, import.meta.url));
const MODEL = ".cache/models/SmolLM2-135M-Instruct.Q4_1.gguf", PROMPT = "The capital of France is", CHECKED = 16;
const [where, ...rest] = process.argv.slice(2);
const f32 = rest[0] === "f32", reps = Number(rest.at(f32 ? 1 : 0) ?? 5);

async function inBrowser(o) {
  const { openBrowser } = await import("./browsers.mjs");
  const page = await openBrowser(where, console.log);
  try {
    await page.goto(`${o.server}/web/test/tests.html`);
    return await page.evaluate((arg) => new Promise((resolve, reject) => {
      const worker = new Worker("/web/test/speed_run.mjs", { type: "module" });
      worker.onmessage = ({ data }) => data.error ? reject(new Error(data.error)) : resolve(data);
      worker.onerror = (e) => reject(new Error(e.message));
      worker.postMessage(arg);
    }), o);
  } finally {
    await page.close();
  }
}

async function inNode(o) {
  const { speed } = await import("./speed_run.mjs");
  const wasm = new WebAssembly.Module(readFileSync(path("build/wasm/frit.wasm")));
  return speed({ ...o, core: path("build/wasm/core/core.js"), wasm });
}

const server = await startServer();
try {
  const got = await (where === "node" ? inNode : inBrowser)({
    server: server.url, model: `${server.url}/${MODEL}`, prompt: PROMPT, checked: CHECKED, f32, reps, n: [128, 64],
    core: "/build/wasm/core/core.js", wasm: "/build/wasm/frit.wasm",
  });
  const want = JSON.parse(execFileSync(path("build/native/frit"), ["complete", path(MODEL), "-p", PROMPT, "-n", String(CHECKED),
    "--device", "cpu", "--precision", "f32", "--ignore-eos", "--context", "512", "--json", "-q"], { encoding: "utf8" }));
  if (got.ids.join() !== want.tokens.join()) throw new Error(`in f32 the ids are ${got.ids}, the native CPU has ${want.tokens}`);
  console.log(`${where}, precision ${f32 ? "f32" : "auto"}, ${reps} runs; ${CHECKED} tokens in f32 equal the native CPU's`);
  for (const [name, list] of [["pp128", got.prompt], ["tg64 ", got.decode]])
    for (const clock of Object.keys(list[0])) {
      const v = list.map((r) => r[clock]).sort((a, b) => a - b), show = (x) => x.toFixed(1).padStart(7);
      console.log(`${name} ${show(v[v.length >> 1])} tokens/s of ${clock} time (${show(v[0])} to ${show(v.at(-1))})`);
    }
} finally {
  await server.close();
}

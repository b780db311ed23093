// The cases of web/core in Node or a browser, on a small synthetic model.
//
//     node web/test/core_tests.mjs node|chromium|firefox|webkit cpu|gpu [part of a case's name]
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { startServer } from "../../tools/web_server.mjs";

const path = (p) => fileURLToPath(new URL(`../../${p}`, import.meta.url));
const [where, device, filter] = process.argv.slice(2);
const MODEL = "build/wasm/tiny.gguf";
execFileSync(path("build/native/frit"), ["synth", path(MODEL), "--arch=tiny", "--type=q4_0", "--seed=5"], { stdio: "ignore" });

async function inNode(t) {
  const { runCases } = await import("./core_cases.mjs");
  const wasm = new WebAssembly.Module(readFileSync(path("build/wasm/frit.wasm")));
  return runCases({ ...t, core: await import("../../build/wasm/core/core.js"), wasm }, console.log);
}

async function inBrowser(t) {
  const { openBrowser } = await import("./browsers.mjs");
  const page = await openBrowser(where, console.log);
  try {
    await page.goto(`${server.url}/web/test/core.html`);
    return await page.evaluate((a) => window.run(a), t);
  } finally {
    await page.close();
  }
}

const server = await startServer();
try {
  const t = { model: `${server.url}/${MODEL}`, device, filter };
  process.exitCode = (await (where === "node" ? inNode(t) : inBrowser(t))) ? 1 : 0;
} finally {
  await server.close();
}

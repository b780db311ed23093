// The C tests as wasm, in Node or a browser.
//
//     node web/test/c_tests.mjs node|chromium|firefox|webkit [frit-tests' arguments]
import { readFileSync } from "node:fs";
import { startServer } from "../../tools/web_server.mjs";
import { runTests, testMemory } from "./wasi.mjs";

async function inNode(args, server) {
  const all = new Uint8Array(await (await fetch(`${server.url}/test-data`)).arrayBuffer());
  const end = all.indexOf(10), files = new Map();
  let at = end + 1;
  for (const [path, size] of Object.entries(JSON.parse(new TextDecoder().decode(all.subarray(0, end))))) {
    files.set(path, all.slice(at, at + size));
    at += size;
  }
  const never = new Int32Array(new SharedArrayBuffer(4));
  const module = new WebAssembly.Module(readFileSync(new URL("../../build/wasm/frit-tests.wasm", import.meta.url)));
  return runTests({
    module, memory: testMemory(), args: ["frit-tests", ...args], files, print: console.log,
    frit: new Proxy({}, { get: (_, name) => () => { throw new Error(`${name}: no GPU here`); } }),
    env: { FRIT_TEST_DATA: "/data", FRIT_TEST_TMP: "/tmp" },
    wait: (ms) => Atomics.wait(never, 0, 0, ms),
  });
}

async function inBrowser(name, args, server) {
  const { openBrowser } = await import("./browsers.mjs");
  const page = await openBrowser(name, console.log);
  try {
    await page.goto(`${server.url}/web/test/tests.html`);
    return await page.evaluate((a) => window.run(a), args);
  } finally {
    await page.close();
  }
}

const [where, ...args] = process.argv.slice(2);
const server = await startServer();
try {
  process.exitCode = where === "node" ? await inNode(args, server) : await inBrowser(where, args, server);
} finally {
  await server.close();
}

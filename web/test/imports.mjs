// What the module asks of its surroundings, exactly, and what a page downloads besides weights.
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

const path = (p) => fileURLToPath(new URL(`../../${p}`, import.meta.url));
const FRIT = [
  "gpu_buf_free", "gpu_buf_new", "gpu_buf_write", "gpu_caps", "gpu_close", "gpu_done", "gpu_error", "gpu_kernel_free",
  "gpu_kernel_new", "gpu_kernel_ready", "gpu_lose", "gpu_open", "gpu_poll", "gpu_program_free", "gpu_program_new",
  "gpu_read", "gpu_submit", "gpu_times", "log", "source_fetch", "source_fetched",
];
const WASI = ["clock_time_get", "fd_close", "fd_seek", "fd_write"];
let failed = 0;
const result = (name, ok, why) => {
  failed += !ok;
  console.log(ok ? `ok   web.${name}` : `web.${name}: ${why}\nFAIL web.${name}`);
};

const module = new WebAssembly.Module(readFileSync(path("build/wasm/frit.wasm")));
const got = WebAssembly.Module.imports(module).map((i) => `${i.module}.${i.name}`).sort();
const want = [...FRIT.map((n) => `frit.${n}`), ...WASI.map((n) => `wasi_snapshot_preview1.${n}`)].sort();
const odd = [...got.filter((n) => !want.includes(n)).map((n) => `+${n}`), ...want.filter((n) => !got.includes(n)).map((n) => `-${n}`)];
result("imports", odd.length === 0, `not as expected: ${odd.join(" ")}`);
try {
  console.log(execFileSync("node", [path("tools/wasm_size.mjs")], { encoding: "utf8" }).trimEnd().replace(/^/gm, "  "));
  result("size", true);
} catch (e) {
  result("size", false, e.stdout);
}
console.log(`${2 - failed} passed, ${failed} failed, 0 skipped`);
process.exitCode = failed ? 1 : 0;

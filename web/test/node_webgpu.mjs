// The npm package in Node on the `webgpu` package's Dawn, with a synthetic model: the README's example
// answers as the native CPU does, also when the device is lost in mid-answer. The driver is that of
// VK_DRIVER_FILES; a process that does not end by itself is cut by the stage's limit.
//
//     node web/test/node_webgpu.mjs
import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

const path = (p) => fileURLToPath(new URL(`../../${p}`, import.meta.url));
const dir = mkdtempSync(join(tmpdir(), "frit-node-webgpu."));
const frit = (...args) => execFileSync(path("build/native/frit"), args, { encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] });
let passed = 0, failed = 0;
const check = (ok, text, more = "") => {
  if (ok) passed++;
  else failed++;
  console.log(`${ok ? "ok  " : "FAIL"} node_webgpu: ${text}${more ? ` (${more})` : ""}`);
};

const PROMPT = "a b", TOKENS = 14, PENALTY = 1.5, file = join(dir, "model.gguf");
frit("synth", file, "--arch", "tiny", "--type", "q4_0", "--seed", "5");
const want = JSON.parse(frit("complete", file, "-p", PROMPT, "-n", String(TOKENS), "--temp", "0", "--penalty", String(PENALTY), "--device", "cpu",
  "--precision", "f32", "--ignore-eos", "--json", "-q")).text;
mkdirSync(join(dir, "node_modules"));
symlinkSync(path("web/package"), join(dir, "node_modules/frit"));
symlinkSync(path("web/node_modules/webgpu"), join(dir, "node_modules/webgpu"));
const blocks = [...readFileSync(path("web/package/README.md"), "utf8").matchAll(/```js\n([\s\S]*?)```/g)].map((m) => m[1]);
const example = blocks.find((b) => b.includes(`from "webgpu"`));
// "auto" leaves software adapters alone, and exactness is asked for since answers are compared.
const call = `load(${JSON.stringify(file)}, { device: "gpu", precision: "f32", context: 256, `;
writeFileSync(join(dir, "example.mjs"), `${example.replace(`load("model.gguf", { `, () => call)}\nexport { create, load, model };\n`);

try {
  const { create, load, model } = await import(pathToFileURL(join(dir, "example.mjs")).href);
  check(model.info.device.kind === "gpu", "the README's example opens the GPU", model.info.device.name);
  const answer = async (m, onText) =>
    (await m.complete({ prompt: PROMPT, temperature: 0, repetition_penalty: PENALTY, max_tokens: TOKENS }, { onText })).text;
  const got = await answer(model);
  check(got === want, "the answer is the native CPU's", `"${got}", native "${want}"`);
  let pieces = 0;
  const lost = await answer(model, () => { if (++pieces === 4) void model.loseDevice(); });
  check(pieces >= 4 && lost === want, "a device lost in mid-answer: the answer goes on", `"${lost}" in ${pieces} pieces`);
  const { gpu } = await model.memory();
  check(gpu > 0, "memory of the GPU is told", `${gpu} bytes`);
  await model.dispose();
  Object.defineProperty(globalThis, "navigator", { value: { gpu: create([]) }, configurable: true });
  const cpu = await load(file);
  check(cpu.info.device.kind === "cpu" && cpu.info.device.fallbacks[0].code === "software", "navigator.gpu is found, and auto leaves software adapters",
    JSON.stringify(cpu.info.device.fallbacks));
  await cpu.dispose();
  delete globalThis.navigator; // Dawn's objects must go before the process does
} catch (e) {
  check(false, "runs to its end", e.stack);
}
rmSync(dir, { recursive: true });
console.log(`${passed} passed, ${failed} failed, 0 skipped`);
process.exitCode = failed ? 1 : 0;

// The site in Chromium, from build/site: loading, chat, device panel, storage, offline, and that nothing
// blocks the main thread. With a synthetic model on SwiftShader and SmolLM2 on the CPU.
//
//     node web/test/site.mjs [--shots FOLDER] [--quick] [TEST...]
import { execFileSync } from "node:child_process";
import { cpSync, existsSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, utimesSync } from "node:fs";
import { cpus, loadavg, tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { startServer } from "../../tools/web_server.mjs";
import { launchChromium } from "./browsers.mjs";

const path = (p) => fileURLToPath(new URL(`../../${p}`, import.meta.url));
const args = process.argv.slice(2), quick = args.includes("--quick");
const shots = args.includes("--shots") ? args[args.indexOf("--shots") + 1] : null;
const LONG = 50; // ms; what a task on the main thread may take
const frit = path("build/native/frit"), smol = "SmolLM2-135M-Instruct.Q4_1.gguf";

const dir = mkdtempSync(join(tmpdir(), "frit-site.")), folder = join(dir, "site");
process.on("exit", () => rmSync(dir, { recursive: true, force: true }));
cpSync(path("build/site"), folder, { recursive: true, filter: (f) => !f.endsWith(".gguf") });
mkdirSync(join(folder, "models"), { recursive: true });
if (existsSync(path(`build/site/models/${smol}`))) symlinkSync(path(`build/site/models/${smol}`), join(folder, "models", smol));
const tiny = join(folder, "models/tiny.gguf");
execFileSync(frit, ["synth", tiny, "--arch", "tiny", "--type", "q4_0"], { stdio: "ignore" });
mkdirSync(join(folder, "package"));
cpSync(path("web/package/dist"), join(folder, "package"), { recursive: true });

const served = []; // {path, bytes} of models
const serve = (port) => startServer({ folder, port, log: ({ path: p, range: r }) => {
  if (p.endsWith(".gguf")) served.push({ path: p, bytes: r ? r.end - r.start + 1 : Infinity });
} });
let server = await serve(0);
const port = Number(new URL(server.url).port);
const fetched = () => served.reduce((n, s) => n + s.bytes, 0);

let passed = 0, failed = 0, skipped = 0;
const check = (ok, text, more = "") => {
  if (ok) passed++;
  else failed++;
  console.log(`${ok ? "ok  " : "FAIL"} site.${text}${ok && !more ? "" : ` (${more})`}`);
};

const browser = await launchChromium();
const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, locale: "en-GB" });
await context.addInitScript(() => {
  window.longTasks = [];
  new PerformanceObserver((l) => { for (const e of l.getEntries()) window.longTasks.push(Math.round(e.duration)); })
    .observe({ type: "longtask", buffered: true });
});
const foreign = [], errors = [], long = [], busy = [];
context.on("request", (r) => {
  if (!r.url().startsWith(server.url) && !/^(data|blob):/.test(r.url())) foreign.push(r.url());
});

async function open() {
  const page = await context.newPage();
  page.on("pageerror", (e) => errors.push(e.message));
  page.on("console", (m) => m.type() === "error" && errors.push(m.text()));
  await page.goto(`${server.url}/`);
  await page.waitForSelector("#pick option", { state: "attached" });
  return page;
}
async function close(page, what) {
  long.push(...(await page.evaluate(() => window.longTasks)).map((ms) => ({ what, ms })));
  await page.close();
}
/**
 * Tasks of the page's main thread while f runs, by the clock and in CPU time of their own. On a machine where
 * others wait for the cores, as here with a software GPU in the same browser, a task of a few milliseconds is
 * put aside in its middle for as long as the others please: by the clock it is long, and no fault of the page.
 * So a task is at fault by its own CPU time; by the clock too when the machine was calm.
 */
async function traced(page, what, f) {
  const calm = loadavg()[0] < cpus().length / 2, before = await page.evaluate(() => window.longTasks.length);
  await browser.startTracing(page, { categories: ["toplevel"] });
  try {
    return await f();
  } finally {
    const { traceEvents } = JSON.parse((await browser.stopTracing()).toString());
    const main = new Set(traceEvents.filter((e) => e.name === "thread_name" && e.args.name === "CrRendererMain").map((e) => `${e.pid}.${e.tid}`));
    const tasks = traceEvents.filter((e) => e.ph === "X" && e.tdur && main.has(`${e.pid}.${e.tid}`));
    const most = (of) => Math.round(Math.max(0, ...tasks.map(of)) / 100) / 10;
    const seen = (await page.evaluate(() => window.longTasks)).slice(before); // by the page's own observer
    busy.push({ what, calm, tasks: tasks.length, cpu: most((e) => e.tdur), clock: most((e) => e.dur), observed: seen,
      slow: tasks.filter((e) => e.tdur > LONG * 1000 || (calm && e.dur > LONG * 1000)).length });
  }
}
const section = (page, name) => page.click(`summary:has(h2:text-is("${name}"))`);
async function pick(page, { url, device }) {
  await page.selectOption("#pick", url ? "url" : "0");
  if (url) await page.fill("#url", url);
  await page.selectOption("#device", device);
}
async function loaded(page, timeout = 120000) {
  await page.waitForFunction(() => /^Loaded|.*\berror\b/.test(document.querySelector(".note").textContent) ||
    document.querySelector(".note.error"), null, { timeout });
  const text = await page.textContent(".note");
  if (!text.startsWith("Loaded")) throw new Error(text);
}
async function ask(page, text) {
  await page.fill("#message", text);
  await page.press("#message", "Enter");
  await page.waitForSelector(".message.assistant", { state: "attached" });
}
const answered = (page, timeout = 180000) =>
  page.waitForFunction(() => !document.querySelector(".busy") && document.querySelector(".message.assistant"), null, { timeout });
const answer = (page) => page.textContent(".message.assistant:last-of-type .text");
const shot = async (page, name) => { if (shots) await page.screenshot({ path: join(shots, `${name}.png`) }); };

const tests = {
  async tiny_on_webgpu() {
    const page = await open();
    await pick(page, { url: "models/tiny.gguf", device: "gpu" });
    await traced(page, "loading", async () => {
      await page.click("button:text-is('Load')");
      await loaded(page);
    });
    await section(page, "Settings");
    await page.fill("#temperature", "0"); // a random answer of such a model may be empty
    await page.fill("#max_tokens", "24");
    await traced(page, "generating", async () => {
      await ask(page, "hello");
      await answered(page);
    });
    const first = await answer(page);
    check(first.length > 0 && /tok\/s.*first token.*\d tokens/.test(await page.textContent(".facts")), "answer", await page.textContent(".foot"));
    check(/GPU \d/.test(await page.textContent(".memory")), "memory in use", await page.textContent(".memory"));
    await page.click(".retry");
    await page.waitForTimeout(100);
    await answered(page);
    check(await page.locator(".message.assistant").count() === 1, "retry replaces the answer");
    await section(page, "Device");
    const device = await page.textContent(".device");
    check(/SwiftShader/i.test(device) && /No 16-bit floats/.test(device) && /maxBufferSize/.test(device), "device panel", device.slice(0, 200));
    await section(page, "Stored models");
    check(/tiny\.gguf/.test(await page.textContent(".stored")), "stored models lists it");
    await page.selectOption("header select[aria-label='Language']", "es");
    check(/Dispositivo/.test(await page.textContent(".panel")) && await page.getAttribute("#message", "placeholder") === "Escribe un mensaje" &&
      await page.getAttribute("html", "lang") === "es" && /Sin números de 16 bits/.test(await page.textContent(".device")), "Spanish");
    await page.selectOption("header select", { label: "English" }).catch(() => page.selectOption("header select >> nth=1", "en"));
    await page.click("button:text-is('Unload')");
    await page.waitForFunction(() => document.querySelector(".memory").textContent === "");
    check(await page.isDisabled(".composer button[type=submit]"), "unload");
    await close(page, "tiny");
  },
  async second_visit() {
    const before = served.length, page = await open();
    await pick(page, { url: "models/tiny.gguf", device: "cpu" });
    await page.click("button:text-is('Load')");
    await loaded(page);
    check(served.slice(before).every((s) => s.bytes === 1), "second visit asks the server for one byte", JSON.stringify(served.slice(before)));
    utimesSync(tiny, new Date(), new Date(Date.now() - 5000)); // another ETag
    const then = served.length;
    await page.click("button:text-is('Load')");
    await page.waitForTimeout(200);
    await loaded(page);
    check(served.slice(then).some((s) => s.bytes > 1000), "a file that changed is fetched again");
    await section(page, "Stored models");
    await page.click(".stored li .acts button:last-child");
    await page.waitForFunction(() => !/tiny/.test(document.querySelector(".stored").textContent));
    check(true, "delete");
    await close(page, "second visit");
  },
  async keyboard_and_errors() {
    const page = await open();
    await pick(page, { url: "models/none.gguf", device: "cpu" });
    await page.focus("button:text-is('Load')");
    await page.keyboard.press("Enter");
    await page.waitForSelector(".note.error");
    check(/404/.test(await page.textContent(".note")), "an error says what happened", await page.textContent(".note"));
    const nameless = await page.evaluate(() => [...document.querySelectorAll("button, input, select, textarea, a, summary")]
      .filter((e) => !e.closest("[hidden]") && !(e.getAttribute("aria-label") || e.labels?.length || e.textContent.trim())).map((e) => e.outerHTML));
    check(!nameless.length, "every control has a name", nameless.join());
    await page.setViewportSize({ width: 390, height: 844 });
    const wide = await page.evaluate(() => [document.documentElement, document.body, document.querySelector("header"), document.querySelector(".panel")]
      .filter((e) => e.scrollWidth > e.clientWidth + 1).map((e) => e.tagName));
    check(!wide.length, "nothing is wider than a phone", wide.join());
    await page.setViewportSize({ width: 1280, height: 800 });
    await page.click("button:text-is('Check')");
    await page.selectOption("#pick", "url");
    await page.fill("#url", "models/tiny.gguf");
    await page.click("button:text-is('Check')");
    await page.waitForFunction(() => /Fits/.test(document.querySelector(".note").textContent), null, { timeout: 30000 });
    check(true, "estimate", await page.textContent(".note"));
    errors.length = 0; // the browser itself reports the 404
    await close(page, "errors");
  },
  async device_lost_and_dispose() {
    const page = await context.newPage();
    await page.goto(`${server.url}/icon.svg`);
    await page.goto(`${server.url}/models.json`);
    const r = await page.evaluate(async () => {
      const alive = new Map(), make = GPUDevice.prototype.createBuffer, drop = GPUBuffer.prototype.destroy, end = GPUDevice.prototype.destroy;
      GPUDevice.prototype.createBuffer = function (d) { const b = make.call(this, d); alive.set(b, { device: this, size: d.size }); return b; };
      GPUBuffer.prototype.destroy = function () { alive.delete(this); return drop.call(this); };
      GPUDevice.prototype.destroy = function () { for (const [b, o] of alive) if (o.device === this) alive.delete(b); return end.call(this); };
      const { load } = await import(new URL("/package/package/src/index.js", location.href).href);
      const phases = [], text = async (m, onText) => (await m.complete({ prompt: "a b", temperature: 0, max_tokens: 16 }, { onText })).text;
      const model = await load("/models/tiny.gguf", { device: "gpu", worker: false, cache: false, onProgress: (p) => phases.push(p.phase) });
      const held = [...alive.values()].reduce((n, o) => n + o.size, 0), said = (await model.memory()).gpu;
      const want = await text(model);
      let pieces = 0;
      const got = await text(model, () => { if (++pieces === 5) void model.loseDevice(); });
      await model.dispose();
      const out = { phases: [...new Set(phases)], held, said, want, got, left: alive.size };
      const plain = await load("/models/tiny.gguf", { device: "gpu", pretend: { noSubgroups: true }, cache: false, precision: "f32" });
      out.plain = await text(plain);
      out.codes = plain.info.device.fallbacks.map((f) => f.code).join();
      await plain.dispose();
      const cpu = await load("/models/tiny.gguf", { device: "cpu", cache: false, precision: "f32" });
      out.cpu = await text(cpu);
      await cpu.dispose();
      return out;
    });
    check(["upload", "compile", "ready"].every((p) => r.phases.includes(p)), "phases", r.phases.join());
    check(r.got === r.want && r.got.length > 10, "a device lost in mid-answer: the answer goes on", `${r.want.length} and ${r.got.length} characters`);
    check(r.held >= r.said && r.said > 0 && r.left === 0, "dispose frees all GPU memory", `held ${r.held}, counted ${r.said}, buffers left ${r.left}`);
    check(r.plain === r.cpu && /no-f16,no-subgroups/.test(r.codes), "without f16 and subgroups: the CPU's answer", r.codes);
    await page.close();
  },
  async smollm2() {
    if (!existsSync(join(folder, "models", smol))) return void (skipped++, console.log("SKIP site.smollm2: no demo model (make model)"));
    let page = await open();
    const size = 98362432, before = fetched();
    await pick(page, { device: "cpu" });
    await page.click("button:text-is('Load')");
    await page.waitForFunction(() => /Downloading/.test(document.querySelector("#phase").textContent) &&
      document.querySelector("progress").value > 0.3, null, { timeout: 60000, polling: 20 });
    await close(page, "loading"); // a tab closed in the middle
    const part = fetched() - before;
    page = await open();
    await section(page, "Stored models");
    await page.waitForFunction(() => /partly stored/.test(document.querySelector(".stored").textContent), null, { timeout: 5000 });
    const kept = await page.textContent(".stored li .muted"), stored = parseFloat(kept) * 2 ** 20;
    check(part < size && stored > 0, "a closed tab leaves a part", kept);
    const then = fetched();
    await pick(page, { device: "cpu" });
    await page.selectOption("#precision", "f32");
    await traced(page, "loading SmolLM2", async () => {
      await page.click("button:text-is('Load')");
      await loaded(page);
    });
    const rest = fetched() - then;
    check(rest < size - stored + 2 ** 20, "the next visit goes on from it", `${rest} of ${size} bytes fetched`);
    check(/checked/.test(await page.textContent(".stored li")), "the download's SHA-256 was checked");
    await page.click(".stored li .acts button:first-child");
    await page.waitForFunction(() => /SHA-256 is as it should/.test(document.querySelector(".stored .note").textContent), null, { timeout: 60000 });
    check(true, "a stored model is checked again");
    await section(page, "Settings");
    await page.fill("#temperature", "0");
    await page.fill("#repetition_penalty", "1");
    await page.fill("#max_tokens", "20");
    const prompt = "What is the capital of France?";
    await traced(page, "SmolLM2's answer", async () => {
      await ask(page, prompt);
      await answered(page);
    });
    const want = execFileSync(frit, ["chat", path(`build/site/models/${smol}`), "-p", prompt, "--max", "20",
      "--temp", "0", "--penalty", "1", "--device", "cpu", "--precision", "f32", "-q"],
      { encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] }).trim();
    check((await answer(page)).trim() === want, "SmolLM2 answers as the native CPU does", `"${(await answer(page)).trim()}", native "${want}"`);
    await page.fill("#max_tokens", "200");
    await ask(page, "Write a long story about a dog.");
    await page.waitForFunction(() => document.querySelector(".message.assistant:last-of-type .text").textContent.length > 8, null, { timeout: 60000 });
    await page.press("#message", "Escape");
    await answered(page, 20000);
    check(/stopped/.test(await page.textContent(".message.assistant:last-of-type .facts")), "Escape stops");
    await close(page, "SmolLM2");
  },
  /** For the documents. */
  async pictures() {
    if (!shots) return;
    const page = await open();
    await pick(page, { device: "cpu" });
    await page.selectOption("#precision", "auto");
    await page.click("button:text-is('Load')");
    await loaded(page);
    await section(page, "Device");
    await section(page, "Stored models");
    await ask(page, "Give me three uses of sand, as a list.");
    await answered(page);
    await page.evaluate(() => document.activeElement.blur());
    await shot(page, "site-desktop");
    await page.setViewportSize({ width: 390, height: 844 });
    await page.emulateMedia({ colorScheme: "dark" });
    await page.$eval(".log", (e) => { e.scrollTop = 0; });
    await page.waitForTimeout(300);
    await shot(page, "site-phone");
    await page.close();
  },
  async offline() {
    const smolHere = !quick && existsSync(join(folder, "models", smol));
    let page = await open();
    await page.evaluate(() => navigator.serviceWorker.ready.then(() => true));
    if (!smolHere) {
      await pick(page, { url: "models/tiny.gguf", device: "cpu" });
      await page.click("button:text-is('Load')");
      await loaded(page);
    }
    await page.close();
    await server.close();
    page = await open();
    await pick(page, smolHere ? { device: "cpu" } : { url: "models/tiny.gguf", device: "cpu" });
    await page.click("button:text-is('Load')");
    await loaded(page);
    await section(page, "Settings");
    await page.fill("#temperature", "0");
    await ask(page, "Hello");
    await page.waitForFunction(() => document.querySelector(".message.assistant .text").textContent.length > 0, null, { timeout: 60000 });
    check(true, "page and model without a network");
    await page.close();
    server = await serve(port);
    errors.length = 0; // the browser reports each request that found nobody
  },
};

const only = args.filter((a) => a in tests);
for (const [name, run] of Object.entries(tests)) {
  if ((quick && (name === "smollm2" || name === "pictures")) || (only.length && !only.includes(name))) continue;
  const begin = Date.now();
  try {
    await run();
  } catch (e) {
    check(false, name, e.stack.slice(0, 600));
    for (const p of context.pages()) {
      if (shots) await p.screenshot({ path: join(shots, `failed-${name}.png`) }).catch(() => {});
      await p.close();
    }
  }
  console.log(`     ${name}: ${Math.round((Date.now() - begin) / 1000)} s`);
}
check(!foreign.length, "no request to another origin", foreign.join());
check(!errors.length, "no errors on the console", errors.join("; ").slice(0, 500));
if (busy.length) check(busy.every((b) => b.tasks > 10 && !b.slow), `no task of the main thread is over ${LONG} ms`, busy.map((b) =>
  `${b.what}: ${b.tasks} tasks, ${b.cpu} ms of CPU and ${b.clock} ms by the clock at most${b.calm ? ", calm" : ""}`).join("; "));
const seen = long.filter((t) => t.ms > LONG).map((t) => `${t.what} ${t.ms} ms`).join(", ");
console.log(`     long tasks that the pages observed by the clock, on this machine as busy as it is: ${seen || "none"}`);
await browser.close();
await server.close();
console.log(`${passed} passed, ${failed} failed, ${skipped} skipped`);
process.exitCode = failed ? 1 : 0;

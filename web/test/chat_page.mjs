// A short chat in the site's page (build/site) through nothing but the page's own document, so that any
// browser can run it: SmolLM2 is loaded, its greedy answer is the native CPU's, Escape stops, and on the
// second visit the model comes from the browser's storage.
//
//     node web/test/chat_page.mjs chromium|firefox|webkit cpu|gpu
import { execFileSync } from "node:child_process";
import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { startServer } from "../../tools/web_server.mjs";
import { openBrowser } from "./browsers.mjs";

const path = (p) => fileURLToPath(new URL(`../../${p}`, import.meta.url));
const [where, device] = process.argv.slice(2);
const model = path("build/site/models/SmolLM2-135M-Instruct.Q4_1.gguf"), PROMPT = "What is the capital of France?", TOKENS = 20;
let passed = 0, failed = 0;
const check = (ok, text, more = "") => {
  if (ok) passed++;
  else failed++;
  console.log(`${ok ? "ok  " : "FAIL"} chat_page.${where}_${device}: ${text}${more ? ` (${more})` : ""}`);
};

/** Runs in the page. Resolves with the answer and what the page says around it. */
async function chat({ device, prompt, tokens, long }) {
  const $ = (s) => document.querySelector(s), text = (s) => [...document.querySelectorAll(s)].at(-1)?.textContent ?? "";
  const until = async (what, f, seconds = 300) => {
    for (const end = performance.now() + 1000 * seconds; !f(); await new Promise((r) => setTimeout(r, 20)))
      if (performance.now() > end) throw new Error(`${what} did not come in ${seconds} s; the page says: ${document.body.innerText}`);
  };
  const set = (s, value, event) => {
    $(s).value = value;
    $(s).dispatchEvent(new Event(event, { bubbles: true }));
  };
  const key = (k) => $("#message").dispatchEvent(new KeyboardEvent("keydown", { key: k, bubbles: true, cancelable: true }));
  const ask = async (words) => {
    set("#message", words, "input");
    key("Enter");
    await until("an answer's begin", () => $(".message.assistant.busy"));
  };
  await until("the page", () => $("#pick option"), 60);
  const note = $(".note"); // of the model's panel, the first
  set("#device", device, "change");
  if (device === "cpu") set("#precision", "f32", "change"); // the native answer is the exact one
  const begin = performance.now();
  [...document.querySelectorAll("button")].find((b) => b.textContent === "Load").click();
  await until("the model", () => /^Loaded/.test(note.textContent) || note.matches(".error"));
  const out = { note: note.textContent, loadMs: Math.round(performance.now() - begin),
    storage: !!navigator.storage?.getDirectory };
  if (note.matches(".error")) return out;
  for (const [k, v] of [["temperature", 0], ["repetition_penalty", 1], ["max_tokens", tokens]]) set(`#${k}`, v, "input");
  await ask(prompt);
  await until("the answer's end", () => !$(".busy"));
  out.answer = text(".message.assistant .text").trim();
  out.facts = text(".facts");
  await until("the memory in use", () => text(".memory"));
  out.memory = text(".memory");
  out.device = text(".device");
  if (!long) return out;
  set("#max_tokens", 400, "input");
  await ask(long);
  await until("a long answer's begin", () => text(".message.assistant .text").length > 8);
  key("Escape");
  await until("the answer's end", () => !$(".busy"));
  out.stopped = text(".facts");
  return out;
}

if (!existsSync(model)) {
  console.log("SKIP chat_page: no demo model in build/site (make site)\n0 passed, 0 failed, 1 skipped");
  process.exit(0);
}
const want = execFileSync(path("build/native/frit"), ["chat", model, "-p", PROMPT, "--max", String(TOKENS), "--temp", "0",
  "--penalty", "1", "--device", "cpu", "--precision", "f32", "-q"], { encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] }).trim();
let bytes = 0;
const errors = [];
const server = await startServer({ folder: path("build/site"), log: ({ path: p, range }) => {
  if (p.endsWith(".gguf")) bytes += range ? range.end - range.start + 1 : Infinity;
} });
const page = await openBrowser(where, (line) => {
  if (line.startsWith("FAIL")) errors.push(line);
  else console.log(`  page: ${line}`);
});
try {
  await page.goto(`${server.url}/`);
  const one = await page.evaluate(chat, { device, prompt: PROMPT, tokens: TOKENS, long: "Write a long story about a dog." });
  check(one.note.startsWith("Loaded"), "loads", `${one.note}, ${one.loadMs} ms`);
  check(one.answer === want, "SmolLM2 answers as the native CPU does", `"${one.answer}", native "${want}"`);
  check(/tok\/s.*first token.*\d tokens/.test(one.facts), "figures", one.facts);
  check(/GPU \d/.test(one.memory) === (device === "gpu"), "memory", one.memory);
  check(/stopped/.test(one.stopped), "Escape stops", one.stopped);
  console.log(`  ${one.device.slice(0, 400)}`);
  const first = bytes;
  await page.goto(`${server.url}/`);
  const two = await page.evaluate(chat, { device, prompt: PROMPT, tokens: TOKENS });
  check(two.answer === want, "the same on the second visit", two.note);
  // WebKitGTK has no file system for pages.
  check(two.storage ? bytes - first < 1000 : where === "webkit" && bytes - first === first,
    two.storage ? "which takes the model from storage" : "which fetches the model again, for want of storage", `${first} and ${bytes - first} bytes fetched, ${two.loadMs} ms`);
} catch (e) {
  check(false, "runs to its end", e.stack);
} finally {
  await page.close();
  await server.close();
}
check(!errors.length, "no error in the page", errors.join("; "));
console.log(`${passed} passed, ${failed} failed, 0 skipped`);
process.exitCode = failed ? 1 : 0;

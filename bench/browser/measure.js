// What every engine's page measures, in the same way. A page gives measure() an engine:
//
//   { name, version, load(options, phase) -> Promise<model> }
//     options  { device: "gpu" | "cpu", threads, dtype, model }; phase(name, done, total) is called as loading goes
//   model: { device, generate(prompt, maxTokens, onText) -> Promise<{ text, tokens, promptTokens }>, dispose() }
//     generate is greedy, continues the prompt as it stands (special tokens by their texts) and calls onText with
//     pieces as they are made; device describes what runs the model
//
// A fresh profile's visit loads, makes a first token and reloads the page; the second visit does the same from
// whatever the engine has stored, verifies the text and measures speed. Then the result is POSTed to /done and kept
// in window.result. Times are milliseconds since the visit's navigation began, unless named otherwise.
//
// Query: device=gpu|cpu, reps=5, tokens=128, prompt=512 (about so many tokens), threads=0 (the engine's own),
// verify=40 (tokens of each verified answer at most), dtype, model=PATH, limit=SECONDS (no repetition begins after
// that), reload=0 (one visit only).

import { DEMO, STORY, VERIFIED, longPrompt } from "./prompts.js";

const query = new URLSearchParams(location.search);
const number = (name, otherwise) => Number(query.get(name) ?? otherwise);
const now = () => performance.now();

function spread(values) {
  const v = [...values].sort((a, b) => a - b), half = v.length >> 1;
  if (!v.length) return null;
  return { median: v.length % 2 ? v[half] : (v[half - 1] + v[half]) / 2, min: v[0], max: v.at(-1), n: v.length };
}

/** Runs the model once; first: when its first text came. */
async function timed(model, prompt, tokens) {
  const start = now();
  let first = 0, last = 0, pieces = 0;
  const r = await model.generate(prompt, tokens, (s) => {
    if (!s) return;
    last = now();
    first ||= last;
    pieces++;
  });
  return { ...r, start, wall: now() - start, first, last, pieces };
}

/** Loads and makes one token. phases: when each began. */
async function visit(engine, options) {
  const phases = {}, script = now();
  const model = await engine.load(options, (name) => {
    if (!(name in phases)) show(`${engine.name}: ${name}`);
    phases[name] ??= Math.round(now());
  });
  const ready = now();
  show(`${engine.name}: first token`);
  const one = await timed(model, DEMO, 1);
  return { model, times: {
    script: Math.round(script), ready: Math.round(ready), first_token: Math.round(one.first || one.start + one.wall), phases,
  } };
}

/** With fewer tokens than the expected text has, its beginning. */
function isText(text, expected, verify) {
  return text === expected || (verify < 40 && text.length > 3 && expected.startsWith(text));
}

async function speed(model, o, report) {
  const promptRates = [], decodeRates = [], endRates = [], ones = [], until = now() + o.limit * 1000;
  const out = {};
  // Once unmeasured: pipelines and buffers of these shapes are made.
  await timed(model, longPrompt(o.prompt, 25), 1);
  await timed(model, STORY, Math.min(o.tokens, 8));
  for (let i = 0; i < o.reps && (i === 0 || now() < until); i++) {
    report(`repetition ${i + 1} of ${o.reps}`);
    const p = await timed(model, longPrompt(o.prompt, i), 1);
    promptRates.push(p.promptTokens / (p.wall / 1000));
    const one = await timed(model, STORY, 1);
    ones.push(one.wall);
    const d = await timed(model, STORY, o.tokens);
    // Whatever comes in bursts: the tokens after the first cost what the longer call took more.
    decodeRates.push((d.tokens - 1) / ((d.wall - one.wall) / 1000));
    endRates.push(d.tokens / (d.wall / 1000));
    Object.assign(out, { prompt_tokens: p.promptTokens, decode_tokens: d.tokens, story: d.text });
  }
  return { ...out, prompt_per_s: spread(promptRates), decode_per_s: spread(decodeRates), end_to_end_per_s: spread(endRates),
    short_prompt_one_token_ms: spread(ones) };
}

async function adapterFacts() {
  const adapter = await navigator.gpu?.requestAdapter().catch(() => null);
  if (!adapter) return null;
  const { vendor, architecture, device, description } = adapter.info;
  return { vendor, architecture, device, description, f16: adapter.features.has("shader-f16"),
    subgroups: adapter.features.has("subgroups"), fallback: adapter.info.isFallbackAdapter ?? null };
}

const long = [];
new PerformanceObserver((l) => long.push(...l.getEntries().map((e) => e.duration))).observe({ type: "longtask", buffered: true });
const longTasks = () => ({ n: long.length, max_ms: Math.round(Math.max(0, ...long)), sum_ms: Math.round(long.reduce((a, b) => a + b, 0)) });

/** On the page, and to the server: what was going on when no answer came. */
function show(text) {
  document.body.textContent = text;
  fetch("/progress", { method: "POST", body: text }).catch(() => {});
}

async function send(result) {
  window.result = result;
  document.body.textContent = JSON.stringify(result, null, 2);
  await fetch("/done", { method: "POST", body: JSON.stringify(result) });
}

async function run(engine) {
  const o = {
    device: query.get("device") ?? "gpu", threads: number("threads", 0), dtype: query.get("dtype") ?? "",
    model: query.get("model") ?? "", reps: number("reps", 5), tokens: number("tokens", 128), prompt: number("prompt", 512),
    limit: number("limit", 1e6), verify: number("verify", 40), reload: number("reload", 1),
  };
  const before = JSON.parse(sessionStorage.getItem("bench") ?? "null");
  show(`${engine.name}: ${before ? "second" : "first"} visit, loading`);
  const { model, times } = await visit(engine, o);
  times.long_tasks = longTasks();
  if (o.reload && !before) {
    await model.dispose();
    sessionStorage.setItem("bench", JSON.stringify(times));
    location.reload();
    return;
  }
  const texts = [];
  for (const [prompt, tokens] of VERIFIED) {
    show(`${engine.name}: verifying`);
    texts.push((await timed(model, prompt, Math.min(tokens, o.verify))).text);
  }
  const expected = await fetch("expected.json").then((r) => r.json());
  const result = {
    engine: engine.name, version: engine.version, options: o, user_agent: navigator.userAgent, cores: navigator.hardwareConcurrency,
    isolated: crossOriginIsolated, adapter: await adapterFacts(), device: model.device, first_visit: before ?? times,
    second_visit: before ? times : null, texts,
    equals_native: Object.keys(expected).filter((name) => texts.every((t, i) => isText(t, expected[name][i], o.verify))),
  };
  if (engine.verified && !result.equals_native.length)
    return send({ ...result, error: `the answers are not the native CPU's: ${JSON.stringify(texts)} and not ${JSON.stringify(expected)}` });
  result.speed = await speed(model, o, (s) => show(`${engine.name}: ${s}`));
  result.long_tasks = longTasks();
  await model.dispose();
  await send(result);
}

/** The page's whole program. */
export async function measure(engine) {
  try {
    await run(engine);
  } catch (e) {
    await send({ engine: engine.name, version: engine.version, query: location.search, error: e?.message ?? String(e), stack: e?.stack });
  }
}

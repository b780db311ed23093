// Times a model on the CPU through web/core; runs in a worker or in Node.

/** Seconds, and in Node seconds of processor time: on a busy machine the better measure. */
function clocks() {
  const cpu = globalThis.process?.cpuUsage?.();
  return { wall: performance.now() / 1e3, ...(cpu && { cpu: (cpu.user + cpu.system) / 1e6 }) };
}

/** Greedy: the answer's ids in f32 (`checked` of them), and tokens a second of `reps` runs by each
 * clock. */
export async function speed(o) {
  const { Core, UrlSource } = await import(o.core);
  const core = await Core.load(o.wasm);
  const open = (f32) => core.openModel(new UrlSource(o.model), { device: "cpu", f32, context: 512, batch: 32 });
  const exact = await open(true), ids = [];
  for await (const { id } of exact.complete(o.prompt, { maxTokens: o.checked })) ids.push(id);
  exact.dispose();
  const model = await open(o.f32), [np, nd] = o.n, prompt = [], decode = [];
  for (let i = 0; i <= o.reps; i++) { // the first run is a warm-up
    const text = Array.from({ length: np }, (_, j) => 1000 + 7 * j + i), t = [clocks()];
    let n = 0;
    for await (const _ of model.continue(text, { maxTokens: nd })) if (n++ === 0) t.push(clocks());
    t.push(clocks());
    if (model.usage.promptRun !== np || n !== nd) throw new Error(`ran ${JSON.stringify(model.usage)}`);
    if (i === 0) continue;
    const rates = (count, a, b) => Object.fromEntries(Object.keys(a).map((k) => [k, count / (b[k] - a[k])]));
    prompt.push(rates(np, t[0], t[1]));
    decode.push(rates(nd - 1, t[1], t[2]));
  }
  model.dispose();
  return { ids, prompt, decode };
}

if (typeof WorkerGlobalScope !== "undefined" && self instanceof WorkerGlobalScope)
  self.onmessage = ({ data }) => speed(data).then(postMessage, (e) => postMessage({ error: e.stack }));

// Loads a model through web/core and answers greedily; runs in a page, a worker or Node.

/** o: core (module), wasm, model (URL), device, prompt, tokens, penalty, options. Returns what was seen. */
export async function smoke(o) {
  const { Core, UrlSource } = await import(o.core);
  const core = await Core.load(o.wasm, { log: (level, text) => level === "warn" && console.log(`log: ${text}`) });
  const source = new UrlSource(o.model), phases = {};
  const options = { device: o.device, ...o.options };
  const estimate = await core.estimate(source, options);
  const t0 = performance.now();
  const model = await core.openModel(source, options, ({ phase, done, total }) => {
    if (phases[phase] === undefined) console.log(`  ${phase} at ${Math.round(performance.now() - t0)} ms (${done} of ${total})`);
    phases[phase] ??= Math.round(performance.now() - t0);
  });
  const loadHeap = core.heapBytes, ids = [];
  let text = "";
  const pieces = model.complete(o.prompt, { maxTokens: o.tokens, repetitionPenalty: o.penalty });
  let next;
  while (!(next = await pieces.next()).done) {
    ids.push(next.value.id);
    text += next.value.text;
  }
  const result = {
    ids, text, usage: next.value, phases, loadHeap, heap: core.heapBytes, estimate: estimate.need,
    info: model.info, device: model.device, memory: model.memory, decoded: model.decode(ids),
    loadMs: Math.round(performance.now() - t0),
  };
  model.dispose();
  result.left = core.hw.pending;
  return result;
}

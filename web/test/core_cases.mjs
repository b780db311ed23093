// Cases of web/core, the same in a page and in Node: each throws when something is not as it should.
import { shifted as moved } from "./gguf_edit.mjs";

const GIB = 2 ** 30;
const tiny = (t) => new t.core.UrlSource(t.model);
const options = (t, more = {}) => ({ device: t.device, f32: true, context: 256, batch: 16, ...more });

function equal(a, b, what) {
  const x = JSON.stringify(a), y = JSON.stringify(b);
  if (x !== y) throw new Error(`${what}: ${x}, not ${y}`);
}

async function fails(promise, code, part) {
  try {
    await promise;
  } catch (e) {
    if (e.code === code && e.message.includes(part)) return e;
    throw new Error(`failed with ${e.code ?? e.name} "${e.message}", wanted ${code} with "${part}"`);
  }
  throw new Error(`did not fail; wanted ${code}`);
}

async function collect(pieces, each = () => {}) {
  const ids = [];
  let r;
  while (!(r = await pieces.next()).done) {
    ids.push(r.value.id);
    await each(ids.length);
  }
  return { ids, usage: r.value };
}

async function withModel(t, fn, more, source = tiny(t)) {
  const model = await t.c.openModel(source, options(t, more));
  try {
    return await fn(model);
  } finally {
    model.dispose();
  }
}

// Greedy, with a penalty: such a small model would say one token for ever.
const PROMPT = "abc abc", N = 12, GREEDY = { maxTokens: N, repetitionPenalty: 1.5 };
const answer = (t, more, source) =>
  withModel(t, async (m) => (await collect(m.complete(PROMPT, GREEDY))).ids, more, source);

/** The model with its tensors' data `shift` bytes further on: a file over 4 GB, mostly a hole. */
async function shifted(t, shift) {
  const { head, data } = moved(new Uint8Array(await (await fetch(t.model)).arrayBuffer()), shift);
  const from = head.length + shift; // of the data
  return {
    name: () => "shifted.gguf", size: async () => from + data.length,
    async read(part, off, size) {
      const out = new Uint8Array(size);
      const put = (bytes, at) => { // what of bytes, which lie at `at` in the file, was asked for
        const begin = Math.max(off, at), end = Math.min(off + size, at + bytes.length);
        if (begin < end) out.set(bytes.subarray(begin - at, end - at), begin - off);
      };
      put(head, 0);
      put(data, from);
      return out;
    },
  };
}

export const cases = {
  async blob_like_url(t) {
    const blob = await (await fetch(t.model)).blob();
    equal(await answer(t, {}, new t.core.BlobSource(blob)), await answer(t), "ids");
  },
  async beyond_4_gib(t) {
    equal(await answer(t, {}, await shifted(t, 5 * GIB)), await answer(t), "ids");
  },
  async sha256_in_pieces(t) {
    const bytes = Uint8Array.from({ length: 200_003 }, (_, i) => Math.imul(i, 2654435761) >>> 24);
    for (const n of [0, 1, 55, 56, 63, 64, 65, 119, 120, 128, 65536, 200_003]) {
      const part = bytes.subarray(0, n), cuts = [0, n >> 1, Math.min(n, (n >> 1) + 7), n];
      const h = new t.core.Sha256(t.c);
      for (let i = 1; i < cuts.length; i++) h.add(part.subarray(cuts[i - 1], cuts[i]));
      const want = new Uint8Array(await crypto.subtle.digest("SHA-256", part));
      equal(h.hex(), [...want].map((b) => b.toString(16).padStart(2, "0")).join(""), `digest of ${n} bytes`);
    }
  },
  async levels_agree(t) {
    equal(await answer(t, { level: "none" }), await answer(t, { level: "role" }), "ids");
  },
  async words_that_are_no_model(t) {
    const bad = (bytes) => t.c.openModel(new t.core.BlobSource(new Blob([bytes])), options(t));
    await fails(bad("GIF89a, and more"), "unsupported", "not a GGUF file");
    const all = await (await fetch(t.model)).arrayBuffer();
    await fails(bad(all.slice(0, all.byteLength - 100)), "truncated", "ends at");
    await fails(t.c.openModel(new t.core.UrlSource(`${t.model}.none`), options(t)), "io", "404");
    await fails(t.c.openModel(tiny(t), options(t, { context: 1 << 20 })), "argument", "more than the model's own");
  },
  async a_source_that_fails_midway(t) {
    const s = await shifted(t, 16 << 20);
    const broken = {
      ...s, read: (part, off, size) => (off >= 16 << 20 ? Promise.reject(new Error("the line was cut")) : s.read(part, off, size)),
    };
    await fails(t.c.openModel(broken, options(t)), "io", "the line was cut");
  },
  async load_is_aborted(t) {
    const stop = new AbortController();
    const loading = t.c.openModel(tiny(t), options(t), ({ phase }) => phase !== "header" && stop.abort(), stop.signal);
    try {
      await loading;
    } catch (e) {
      return equal(e.name, "AbortError", "error");
    }
    throw new Error("was not aborted");
  },
  async generation_is_stopped(t) {
    await withModel(t, async (m) => {
      const stop = new AbortController();
      const a = await collect(m.complete(PROMPT, { ...GREEDY, maxTokens: 0, signal: stop.signal }), (n) => n === 5 && stop.abort());
      equal(a.usage.end, "cancelled", "end");
      for await (const _ of m.complete(PROMPT, {})) break; // leaving the loop stops it too
      const whole = await collect(m.complete(PROMPT, GREEDY));
      equal(whole.ids.slice(0, 5), a.ids.slice(0, 5), "ids after two stops");
      const first = m.complete(PROMPT);
      await first.next();
      await fails(m.complete(PROMPT).next(), "argument", "busy");
      await first.return();
    });
  },
  async tokens_and_text(t) {
    await withModel(t, async (m) => {
      const text = "abc, ñandú 漢字 🙂";
      equal(m.decode(m.encode(text, { add: false })), text, "text there and back");
      equal(m.info.architecture, "llama", "architecture");
      equal(m.device.kind, t.device, "device");
    });
  },
  async a_conversation_reuses_its_turns(t) {
    await withModel(t, async (m) => {
      const messages = [{ role: "user", content: "abc" }];
      const one = await collect(m.chat(messages, { maxTokens: 6 }));
      messages.push({ role: "assistant", content: m.decode(one.ids) }, { role: "user", content: "def" });
      const two = await collect(m.chat(messages, { maxTokens: 6 }));
      if (!(two.usage.promptTokens > one.usage.promptTokens && two.usage.promptRun < two.usage.promptTokens))
        throw new Error(`nothing was reused: ${JSON.stringify(two.usage)}`);
      equal((await collect(m.chat(messages, { maxTokens: 6 }))).ids, two.ids, "the same turn again");
    });
  },
  async estimate_before_loading(t) {
    const e = await t.c.estimate(tiny(t), options(t));
    await withModel(t, async (m) => {
      // A file that came whole with its header is used in place on the CPU.
      const least = e.need.kv + (t.device === "gpu" ? e.need.weights : 0);
      if (!(m.memory.bytes >= least && m.memory.bytes < 4 * e.need.total + (8 << 20)))
        throw new Error(`${JSON.stringify(e.need)}, then ${JSON.stringify(m.memory)}`);
    });
  },
  async heap_comes_back(t) {
    await answer(t);
    const before = t.c.heapBytes;
    for (let i = 0; i < 5; i++) await answer(t);
    equal(t.c.heapBytes, before, "heap after five more models");
  },
  async no_webgpu(t) {
    const c = await t.core.Core.load(t.wasm, { gpu: null });
    await fails(c.openModel(tiny(t), options(t, { device: "gpu" })), "no-device", "no WebGPU");
    const m = await c.openModel(tiny(t), options(t, { device: "auto" }));
    equal(m.device.kind, "cpu", "device");
    const { ids } = await collect(m.complete(PROMPT, GREEDY));
    m.dispose();
    equal(ids, await answer(t), "ids on the CPU");
  },
};

/** A software GPU takes half a minute for each model: what needs a GPU, and the little that differs. */
export const gpuCases = {
  generation_is_stopped: cases.generation_is_stopped,
  estimate_before_loading: cases.estimate_before_loading,
  async fall_backs_agree(t) {
    const want = await answer({ ...t, device: "cpu" });
    equal(await answer(t), want, "ids");
    // The last splits the token embeddings: 11,520 bytes.
    for (const more of [{ noF16: true, noSubgroups: true }, { limitBinding: 128 << 20 }, { limitBinding: 10752, context: 64, batch: 8 }])
      equal(await answer(t, more), want, JSON.stringify(more));
  },
  async lost_in_mid_generation(t) {
    const want = await answer({ ...t, device: "cpu" });
    const m = await t.c.openModel(tiny(t), options(t));
    await fails(collect(m.complete(PROMPT, GREEDY), (n) => n === 4 && t.c.hw.device().destroy()), "device-lost", "lost");
    const kept = m.tokens;
    m.dispose();
    await withModel(t, async (again) => {
      const prompt = again.encode(PROMPT).length, left = N - (kept.length - prompt);
      const rest = await collect(again.continue(kept, { ...GREEDY, maxTokens: left }));
      equal([...kept.slice(prompt), ...rest.ids], want, "ids before and after");
    });
  },
};

/** t: core (module's exports), wasm, model (URL), device. Prints a line a case; resolves with counts. */
export async function runCases(t, print) {
  const all = Object.entries(t.device === "gpu" ? gpuCases : cases).filter(([name]) => name.includes(t.filter ?? ""));
  const c = await t.core.Core.load(t.wasm, { log: () => {} });
  let failed = 0;
  for (const [name, fn] of all) {
    try {
      await fn({ ...t, c });
      print(`ok   core.${name}`);
    } catch (e) {
      failed++;
      print(`core.${name}: ${e.message}\n${e.stack}\nFAIL core.${name}`);
    }
  }
  print(`${all.length - failed} passed, ${failed} failed, 0 skipped`);
  return failed;
}

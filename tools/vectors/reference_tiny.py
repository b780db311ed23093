#!/usr/bin/env python3
"""Makes tests/data/reference/tiny-*.gguf and tiny.bin: random models with the options of the llama
architecture that the demo model does not use, and llama.cpp's logits for them.

    LLAMA_LIB=.../libllama.so reference_tiny.py

Needs numpy and gguf. How to get libllama.so: reference.py. Each model is computed twice, by llama.cpp
and by the few lines of numpy below, which must agree; llama.cpp refuses heads that are rotated in
part, so there numpy alone is the reference. Each option must move the logits by far more than a test
allows, else the model is refused here: a reader that ignores it has to fail.

tiny.bin, little-endian; text and array as in reference.py:
  u32 magic 0x31544546 ("FET1"), u32 models
  model: text file name, array of u32 ids, 3 rows: u32 n, array of f32 logits after the first n ids"""
import os
import struct

import gguf
import numpy as np

from reference import array, text
from reference_llama import Llama

HERE = os.path.dirname(os.path.abspath(__file__))
DATA = os.path.join(HERE, "../../tests/data/reference")
MAGIC, VOCAB, EMBD, FF, LAYERS, IDS, ROWS = 0x31544546, 64, 32, 32, 2, 40, (17, 18, 40)
A = "llama."

PLAIN = dict(heads=4, kv=2, dim=8, rot=8, base=10000.0, ctx=128, kind=None, factor=None, orig=None,
             untied=False, bias=False, factors=None, old_key=False)
LLAMA3 = [1.0, 1.0, 1.5, 2.25, 3.5, 6.0, 8.0, 8.0]
MODELS = {
    "bias": dict(untied=True, bias=True, heads=2, kv=1, dim=16, rot=16),  # GQA, separate output, biases everywhere
    "linear": dict(kind="linear", factor=4.0),
    "linear-old": dict(factor=2.5, old_key=True, kv=4),    # rope.scale_linear of 2023's files
    "yarn": dict(kind="yarn", factor=4.0, orig=512, ctx=2048, base=100.0, heads=2, kv=1, dim=16, rot=16),
    "yarn-below": dict(kind="yarn", factor=0.5, orig=512, ctx=256, base=100.0, kv=1, dim=8, rot=8),
    "llama3": dict(factors=LLAMA3, base=100.0, heads=2, kv=2, dim=16, rot=16),
    "key-length": dict(heads=4, kv=1, dim=24, rot=24),     # heads wider than n_embd / n_head
    "partial": dict(dim=16, heads=2, kv=1, rot=8),
}


def weights(o, seed):
    rng = np.random.default_rng(seed)
    out = {}

    def add(name, rows, cols, scale):
        shape = (rows, cols) if cols else (rows,)
        out[name] = (rng.standard_normal(shape) * scale).astype(np.float32)

    def linear(stem, rows, cols, scale):
        add(stem + ".weight", rows, cols, scale / cols ** 0.5)
        if o["bias"]:
            add(stem + ".bias", rows, 0, 0.5)

    def norm(name):
        out[name] = (1 + 0.2 * rng.standard_normal(EMBD)).astype(np.float32)

    add("token_embd.weight", VOCAB, EMBD, 1)
    if o["untied"]:
        add("output.weight", VOCAB, EMBD, 1)
    if o["factors"]:
        out["rope_freqs.weight"] = np.array(o["factors"], np.float32)
    norm("output_norm.weight")
    for il in range(LAYERS):
        b = f"blk.{il}."
        norm(b + "attn_norm.weight")
        norm(b + "ffn_norm.weight")
        linear(b + "attn_q", o["heads"] * o["dim"], EMBD, 2)  # sharp attention: rotation matters
        linear(b + "attn_k", o["kv"] * o["dim"], EMBD, 2)
        linear(b + "attn_v", o["kv"] * o["dim"], EMBD, 1)
        linear(b + "attn_output", EMBD, o["heads"] * o["dim"], 2)
        linear(b + "ffn_gate", FF, EMBD, 1)
        linear(b + "ffn_up", FF, EMBD, 1)
        linear(b + "ffn_down", EMBD, FF, 1)
    return out


def write(path, o, w):
    g = gguf.GGUFWriter(path, "llama")
    g.add_context_length(o["ctx"])
    g.add_embedding_length(EMBD)
    g.add_block_count(LAYERS)
    g.add_feed_forward_length(FF)
    g.add_head_count(o["heads"])
    g.add_head_count_kv(o["kv"])
    g.add_layer_norm_rms_eps(1e-5)
    if o["dim"] != EMBD // o["heads"]:
        g.add_key_length(o["dim"])
        g.add_value_length(o["dim"])
    g.add_rope_dimension_count(o["rot"])
    if o["base"] != 10000:
        g.add_rope_freq_base(o["base"])
    if o["kind"]:
        g.add_string(A + "rope.scaling.type", o["kind"])
    if o["factor"]:
        g.add_float32(A + ("rope.scale_linear" if o["old_key"] else "rope.scaling.factor"), o["factor"])
    if o["orig"]:
        g.add_uint32(A + "rope.scaling.original_context_length", o["orig"])
    g.add_tokenizer_model("gpt2")
    g.add_tokenizer_pre("default")
    g.add_token_list([chr(0x21 + i) for i in range(VOCAB)])
    g.add_token_types([1] * VOCAB)
    g.add_token_merges(["a b"])
    g.add_bos_token_id(0)
    g.add_eos_token_id(1)
    for name, t in w.items():
        g.add_tensor(name, t)
    g.write_header_to_file()
    g.write_kv_data_to_file()
    g.write_tensors_to_file()
    g.close()


# ---- the same in numpy, in f64 ----

def rope(o, n):
    """cos and sin [n, rot/2]. YaRN: Peng et al. 2023, eq. 17 to 22, magnitude included."""
    i = np.arange(o["rot"] // 2)
    f = o["base"] ** (-2.0 * i / o["rot"]) / np.array(o["factors"] or np.ones(len(i)))
    scale, mag = 1 / (o["factor"] or 1), 1.0
    if o["kind"] == "yarn":
        def turns(r):
            return o["rot"] * np.log(o["orig"] / (r * 2 * np.pi)) / (2 * np.log(o["base"]))
        low, high = max(0, np.floor(turns(32))), min(o["rot"] - 1, np.ceil(turns(1)))
        keep = 1 - np.clip((i - low) / max(0.001, high - low), 0, 1)
        f = f * scale * (1 - keep) + f * keep
        mag = 1 + 0.1 * np.log(max(1, o["factor"]))
    else:
        f = f * scale
    angle = np.arange(n)[:, None] * f
    return np.cos(angle) * mag, np.sin(angle) * mag


def rotate(o, x, cs):
    cos, sin = (t[:, None, :] for t in cs)
    out = x.copy()
    a, b = x[..., 0:o["rot"]:2], x[..., 1:o["rot"]:2]
    out[..., 0:o["rot"]:2] = a * cos - b * sin
    out[..., 1:o["rot"]:2] = a * sin + b * cos
    return out


def forward(o, w, ids):
    w = {k: v.astype(np.float64) for k, v in w.items()}
    n, h, kv, d = len(ids), o["heads"], o["kv"], o["dim"]
    cs = rope(o, n)

    def linear(x, stem):
        return x @ w[stem + ".weight"].T + w.get(stem + ".bias", 0)

    def norm(x, name):
        return x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-5) * w[name + ".weight"]

    x = w["token_embd.weight"][ids]
    for il in range(LAYERS):
        b = f"blk.{il}."
        y = norm(x, b + "attn_norm")
        q = rotate(o, linear(y, b + "attn_q").reshape(n, h, d), cs)
        k = rotate(o, linear(y, b + "attn_k").reshape(n, kv, d), cs).repeat(h // kv, axis=1)
        v = linear(y, b + "attn_v").reshape(n, kv, d).repeat(h // kv, axis=1)
        s = np.einsum("ihd,jhd->hij", q, k) / d ** 0.5
        s = np.where(np.tril(np.ones((n, n), bool)), s, -np.inf)
        p = np.exp(s - s.max(-1, keepdims=True))
        p /= p.sum(-1, keepdims=True)
        x = x + linear(np.einsum("hij,jhd->ihd", p, v).reshape(n, h * d), b + "attn_output")
        y = norm(x, b + "ffn_norm")
        g = linear(y, b + "ffn_gate")
        x = x + linear(g / (1 + np.exp(-g)) * linear(y, b + "ffn_up"), b + "ffn_down")
    out = w.get("output.weight", w["token_embd.weight"])
    return norm(x, "output_norm") @ out.T


def without(o, name):
    """The same model read by a reader that ignores the option."""
    plain = {"linear": "factor", "linear-old": "factor", "llama3": "factors"}.get(name)
    if plain:
        return dict(o, **{plain: None})
    if name == "yarn":
        return dict(o, kind="linear")
    if name == "yarn-below":
        return dict(o, factor=1.0)
    return dict(o, rot=o["dim"]) if name == "partial" else None


def main():
    vectors = [struct.pack("<II", MAGIC, len(MODELS))]
    for seed, (name, options) in enumerate(MODELS.items()):
        o = dict(PLAIN, **options)
        w = weights(o, seed)
        path = os.path.join(DATA, f"tiny-{name}.gguf")
        write(path, o, w)
        ids = np.random.default_rng(1000 + seed).integers(2, VOCAB, IDS).tolist()
        want = forward(o, w, ids)
        seen = f"std {want.std():.3f}"
        if o["rot"] == o["dim"]:
            m = Llama(path, 64)
            z = m.feed(ids, "all")
            m.close()
            off = np.abs(z - want).max()
            seen += f", numpy off by {off:.1e}"
            assert off < 1e-4 * want.std(), (name, seen)
        else:
            z = want
        other = without(o, name)
        if other:
            moved = np.abs(forward(other, w, ids)[np.array(ROWS) - 1] - want[np.array(ROWS) - 1])
            seen += f", without the option off by {moved.mean(axis=1).min():.2e}"
            assert moved.mean(axis=1).min() > 0.05 * want.std(), (name, seen)
        print(name, os.path.getsize(path), seen, flush=True)
        vectors += [text(f"tiny-{name}.gguf"), array(ids, "<u4")]
        for n in ROWS:
            vectors += [struct.pack("<I", n), array(z[n - 1], "<f4")]
    with open(os.path.join(DATA, "tiny.bin"), "wb") as f:
        f.write(b"".join(vectors))


if __name__ == "__main__":
    main()

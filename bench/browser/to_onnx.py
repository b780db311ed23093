#!/usr/bin/env python3
"""to_onnx.py MODEL.gguf OUTDIR [--dtype q4|q4f16|q8 ...]: a llama-architecture GGUF file as the folder that transformers.js
loads (config.json, tokenizer.json, onnx/model_q4.onnx), so that it runs the same weights as frit.

The graph is what ONNX Runtime has fused kernels for: GroupQueryAttention with the rotary embedding in it,
SkipSimplifiedLayerNormalization, MatMulNBits. Matrices are 4 bits in blocks of 32 with a scale and a zero point each:
the values of the GGUF file, quantised anew, for a Q4_1 block's offset is no whole number of steps. A Q8_0 embedding, which
is the output matrix too, stays as it is, bit for bit. q4f16 computes in 16-bit floats. q8 is the form for WebAssembly, where
MatMulNBits has no fast kernel: signed bytes with one scale a row, activations rounded as they come (DynamicQuantizeMatMul).
Then greedy answers of onnxruntime on the CPU are printed. Needs onnx, onnxruntime, gguf, tokenizers (PyPI)."""
import argparse
import json
import pathlib

import numpy as np
import onnx
from gguf import GGUFReader, GGMLQuantizationType
from gguf.quants import dequantize
from onnx import TensorProto as T, helper as h, numpy_helper

BLOCK = 32
MS = "com.microsoft"
SUFFIX = {"q4": "q4", "q4f16": "q4f16", "q8": "quantized"}  # transformers.js's names


class Gguf:
    def __init__(self, path):
        self.reader = GGUFReader(path)
        self.tensors = {t.name: t for t in self.reader.tensors}

    def value(self, key):
        return self.reader.fields[key].contents()

    def matrix(self, name):
        t = self.tensors[name]
        return dequantize(t.data, t.tensor_type).reshape([int(d) for d in reversed(t.shape)]).astype(np.float32)

    def q8(self, name):
        """Bytes (128 stands for 0) and scales of a Q8_0 tensor, as they are in the file."""
        t = self.tensors[name]
        if t.tensor_type != GGMLQuantizationType.Q8_0:
            raise SystemExit(f"{name}: {t.tensor_type.name} is not Q8_0")
        rows = int(t.shape[1])
        blocks = t.data.reshape(rows, -1, 34)
        scales = blocks[:, :, :2].copy().view(np.float16).reshape(rows, -1).astype(np.float32)
        return (blocks[:, :, 2:].view(np.int8).astype(np.int16) + 128).astype(np.uint8), scales


def quantize4(w):
    """[rows, columns] -> packed values [rows, blocks, 16] and zero points [rows, blocks / 2] (the first in the low
    half), scales [rows, blocks]. Of a few scales a block the one with the least squared error."""
    b = w.reshape(w.shape[0], -1, BLOCK)
    high, low = np.maximum(b.max(-1, keepdims=True), 0), np.minimum(b.min(-1, keepdims=True), 0)
    best = np.full_like(high, np.inf)
    scale, zero, q = np.ones_like(high), np.zeros_like(high), np.zeros_like(b)
    for steps in (15, 14.5, 14, 13.5):
        s = np.where(high == low, 1, (high - low) / steps)
        z = np.clip(np.rint(-low / s), 0, 15)
        n = np.clip(np.rint(b / s + z), 0, 15)
        error = (((n - z) * s - b) ** 2).sum(-1, keepdims=True)
        better = error < best
        best, scale, zero, q = (np.where(better, new, old) for new, old in ((error, best), (s, scale), (z, zero), (n, q)))
    pack = lambda v: v[..., 0::2].astype(np.uint8) | v[..., 1::2].astype(np.uint8) << 4
    return pack(q), pack(zero[..., 0]), scale[..., 0]


def quantize8(w):
    """[rows, columns] -> signed bytes of the same shape, one scale a row."""
    scale = np.maximum(np.abs(w).max(-1, keepdims=True), 1e-12) / 127
    return np.rint(w / scale).astype(np.int8), scale[:, 0].astype(np.float32)


def halves_apart(w, heads):
    """GGUF holds the rows of a rotated head in pairs; the graph's rotation wants the two halves apart."""
    rows, columns = w.shape
    return w.reshape(heads, rows // heads // 2, 2, columns).swapaxes(1, 2).reshape(rows, columns)


class Graph:
    def __init__(self, dtype):
        self.float = T.FLOAT16 if dtype == "q4f16" else T.FLOAT
        self.np_float = np.float16 if dtype == "q4f16" else np.float32
        self.q8 = dtype == "q8"
        self.nodes, self.initializers = [], []

    def node(self, op, inputs, outputs, domain="", **attributes):
        self.nodes.append(h.make_node(op, inputs, outputs, name=f"{op}/{outputs[0]}", domain=domain, **attributes))
        return outputs[0]

    def const(self, name, array):
        self.initializers.append(numpy_helper.from_array(np.ascontiguousarray(array), name))
        return name

    def floats(self, name, array):
        return self.const(name, array.astype(self.np_float))

    def matmul(self, x, name, w):
        if self.q8:
            q, scales = quantize8(w)
            return self.node("DynamicQuantizeMatMul", [x, self.const(name + ".q", q.T), self.floats(name + ".scales", scales)], [name], MS)
        packed, zero, scales = quantize4(w)
        inputs = [x, self.const(name + ".q", packed), self.floats(name + ".scales", scales), self.const(name + ".zero", zero)]
        return self.node("MatMulNBits", inputs, [name], MS, K=w.shape[1], N=w.shape[0], bits=4, block_size=BLOCK, accuracy_level=4)

    def embedding(self, g, name, ids):
        """The rows of `ids`; output() multiplies by the same matrix."""
        if self.q8:
            q, scales = quantize8(g.matrix(name))
            self.table = self.const("embedding.q", q), self.floats("embedding.scales", scales)
            rows = self.node("Cast", [self.node("Gather", [self.table[0], ids], ["embedding.rows"])], ["embedding.floats"], to=self.float)
            one = self.const("axis_last", np.array([-1], np.int64))
            scale = self.node("Unsqueeze", [self.node("Gather", [self.table[1], ids], ["embedding.scale"]), one], ["embedding.scale_column"])
            return self.node("Mul", [rows, scale], ["embedded"])
        q, scales = g.q8(name)
        self.table = self.const("embedding.q", q), self.floats("embedding.scales", scales)
        flat = self.node("Reshape", [self.table[0], self.const("flat", np.array([q.shape[0], -1], np.int64))], ["embedding.flat"])
        return self.node("GatherBlockQuantized", [flat, ids, self.table[1]], ["embedded"], MS, bits=8, block_size=BLOCK,
                         gather_axis=0, quantize_axis=1)

    def output(self, x, width, vocabulary):
        if self.q8:
            return self.node("DynamicQuantizeMatMul", [x, self.node("Transpose", [self.table[0]], ["embedding.turned"], perm=[1, 0]),
                                                       self.table[1]], ["logits"], MS)
        out = self.node("MatMulNBits", [x, *self.table], ["logits" if self.float == T.FLOAT else "logits_16"], MS, K=width,
                        N=vocabulary, bits=8, block_size=BLOCK, accuracy_level=4)
        return out if self.float == T.FLOAT else self.node("Cast", [out], ["logits"], to=T.FLOAT)


def build(g, dtype):
    arch = g.value("general.architecture")
    v = lambda key: g.value(f"{arch}.{key}")
    heads, kv_heads, layers, width = v("attention.head_count"), v("attention.head_count_kv"), v("block_count"), v("embedding_length")
    size, eps, context, vocabulary = width // heads, v("attention.layer_norm_rms_epsilon"), v("context_length"), v("vocab_size")
    m = Graph(dtype)
    angles = np.outer(np.arange(context), v("rope.freq_base") ** (-np.arange(0, size, 2) / size))
    cos, sin = m.floats("cos", np.cos(angles)), m.floats("sin", np.sin(angles))
    one = m.const("one", np.array(1, np.int64))
    # What GroupQueryAttention wants to know of the mask.
    lengths = m.node("ReduceSum", ["attention_mask", m.const("axis", np.array([1], np.int64))], ["lengths"], keepdims=0)
    past = m.node("Cast", [m.node("Sub", [lengths, one], ["lengths_less_1"])], ["seqlens_k"], to=T.INT32)
    total = m.node("Gather", [m.node("Shape", ["attention_mask"], ["mask_shape"]), one], ["total_64"], axis=0)
    total = m.node("Cast", [total], ["total"], to=T.INT32)

    skip = m.embedding(g, "token_embd.weight", "input_ids")
    x = m.node("SimplifiedLayerNormalization", [skip, m.floats("0.norm1", g.matrix("blk.0.attn_norm.weight"))], ["0.normed1"],
               axis=-1, epsilon=eps, stash_type=1)
    for i in range(layers):
        w = lambda name: g.matrix(f"blk.{i}.{name}.weight")
        qkv = np.concatenate([halves_apart(w("attn_q"), heads), halves_apart(w("attn_k"), kv_heads), w("attn_v")])
        x = m.matmul(x, f"{i}.qkv", qkv)
        m.node("GroupQueryAttention", [x, "", "", f"past_key_values.{i}.key", f"past_key_values.{i}.value", past, total, cos, sin],
               [f"{i}.attended", f"present.{i}.key", f"present.{i}.value"], MS, num_heads=heads, kv_num_heads=kv_heads,
               do_rotary=1, rotary_interleaved=0, scale=size ** -0.5)
        x = m.matmul(f"{i}.attended", f"{i}.attn_output", w("attn_output"))
        m.node("SkipSimplifiedLayerNormalization", [skip, x, m.floats(f"{i}.norm2", w("ffn_norm"))],
               [f"{i}.normed2", "", "", f"{i}.skip"], MS, epsilon=eps)
        gate, up = (m.matmul(f"{i}.normed2", f"{i}.{n}", w(f"ffn_{n}")) for n in ("gate", "up"))
        x = m.node("Mul", [gate, m.node("Sigmoid", [gate], [f"{i}.sigmoid"])], [f"{i}.silu"])
        x = m.matmul(m.node("Mul", [x, up], [f"{i}.product"]), f"{i}.down", w("ffn_down"))
        last = i + 1 == layers
        norm = g.matrix("output_norm.weight" if last else f"blk.{i + 1}.attn_norm.weight")
        outputs = ["normed"] if last else [f"{i + 1}.normed1", "", "", f"{i}.skip2"]
        x = m.node("SkipSimplifiedLayerNormalization", [f"{i}.skip", x, m.floats(f"{i}.norm3", norm)], outputs, MS, epsilon=eps)
        skip = f"{i}.skip2"
    # The last rows only; 0 keeps all.
    start = m.node("Reshape", [m.node("Neg", ["num_logits_to_keep"], ["minus"]), m.const("flat_1", np.array([1], np.int64))], ["start"])
    x = m.node("Slice", [x, start, m.const("end", np.array([2**31 - 1], np.int64)), m.const("axis_1", np.array([1], np.int64))], ["kept"])
    m.output(x, width, vocabulary)

    info = h.make_tensor_value_info
    cache = lambda kind, length: [info(f"{kind}.{i}.{n}", m.float, ["batch_size", kv_heads, length, size])
                                  for i in range(layers) for n in ("key", "value")]
    inputs = [info("input_ids", T.INT64, ["batch_size", "sequence_length"]), info("attention_mask", T.INT64, ["batch_size", "total_sequence_length"]),
              info("num_logits_to_keep", T.INT64, []), *cache("past_key_values", "past_sequence_length")]
    outputs = [info("logits", T.FLOAT, ["batch_size", "kept_sequence", vocabulary]), *cache("present", "total_sequence_length")]
    graph = h.make_graph(m.nodes, "model", inputs, outputs, m.initializers)
    return h.make_model(graph, opset_imports=[h.make_opsetid("", 18), h.make_opsetid(MS, 1)], ir_version=10, producer_name="to_onnx")


def tokenizer(g):
    """A byte-level BPE of llama.cpp's kind `smollm`: digits alone, then GPT-2's rule."""
    if (g.value("tokenizer.ggml.model"), g.value("tokenizer.ggml.pre")) != ("gpt2", "smollm"):
        raise SystemExit("only tokenizers of the kind smollm are written")
    tokens, kinds = g.value("tokenizer.ggml.tokens"), g.value("tokenizer.ggml.token_type")
    flags = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
    level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    return {
        "version": "1.0", "truncation": None, "padding": None, "normalizer": None, "post_processor": None, "decoder": level,
        "added_tokens": [{"id": i, "content": t, **flags} for i, (t, k) in enumerate(zip(tokens, kinds)) if k == 3],
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": [{"type": "Digits", "individual_digits": True}, level]},
        "model": {"type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None, "end_of_word_suffix": None,
                  "fuse_unk": False, "byte_fallback": False, "ignore_merges": False, "vocab": {t: i for i, t in enumerate(tokens)},
                  "merges": [m.split(" ") for m in g.value("tokenizer.ggml.merges")]},
    }


def write_texts(g, out):
    v = lambda key: g.value("llama." + key)
    ids = {"bos_token_id": g.value("tokenizer.ggml.bos_token_id"), "eos_token_id": g.value("tokenizer.ggml.eos_token_id"),
           "pad_token_id": g.value("tokenizer.ggml.padding_token_id")}
    tokens = g.value("tokenizer.ggml.tokens")
    heads = v("attention.head_count")
    config = {
        "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_act": "silu", "hidden_size": v("embedding_length"),
        "intermediate_size": v("feed_forward_length"), "num_hidden_layers": v("block_count"), "num_attention_heads": heads,
        "num_key_value_heads": v("attention.head_count_kv"), "head_dim": v("embedding_length") // heads,
        "max_position_embeddings": v("context_length"), "rms_norm_eps": v("attention.layer_norm_rms_epsilon"),
        "rope_theta": v("rope.freq_base"), "vocab_size": v("vocab_size"), "tie_word_embeddings": True, **ids,
        "transformers.js_config": {"kv_cache_dtype": {"q4f16": "float16", "fp16": "float16"}},
    }
    texts = {
        "config.json": config, "generation_config.json": ids, "tokenizer.json": tokenizer(g),
        "tokenizer_config.json": {
            "tokenizer_class": "GPT2Tokenizer", "model_max_length": v("context_length"), "add_prefix_space": False,
            "clean_up_tokenization_spaces": False, "chat_template": g.value("tokenizer.chat_template"),
            **{k.removesuffix("_id"): tokens[i] for k, i in ids.items()}},
    }
    for name, value in texts.items():
        (out / name).write_text(json.dumps(value, ensure_ascii=False))


def greedy(path, out, prompt, n):
    import onnxruntime as ort
    from tokenizers import Tokenizer
    session, tok = ort.InferenceSession(path, providers=["CPUExecutionProvider"]), Tokenizer.from_file(str(out / "tokenizer.json"))
    ids, made = tok.encode(prompt).ids, []
    caches = [i for i in session.get_inputs() if i.name.startswith("past")]
    past = {i.name: np.zeros((1, i.shape[1], 0, i.shape[3]), np.float16 if "16" in i.type else np.float32) for i in caches}
    feed, total = ids, 0
    while len(made) < n:
        total += len(feed)
        got = session.run(None, {"input_ids": np.array([feed]), "attention_mask": np.ones((1, total), np.int64),
                                 "num_logits_to_keep": np.array(1), **past})
        made.append(int(got[0][0, -1].argmax()))
        if tok.id_to_token(made[-1]) == "<|im_end|>":
            break
        past, feed = dict(zip(past, got[1:])), made[-1:]
    return len(ids), tok.decode(made)


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("model")
    ap.add_argument("out", type=pathlib.Path)
    ap.add_argument("--dtype", action="append", choices=list(SUFFIX))
    a = ap.parse_args()
    g = Gguf(a.model)
    (a.out / "onnx").mkdir(parents=True, exist_ok=True)
    write_texts(g, a.out)
    system = "<|im_start|>system\nYou are a helpful AI assistant named SmolLM, trained by Hugging Face<|im_end|>\n"
    template = system + "<|im_start|>user\n{}<|im_end|>\n<|im_start|>assistant\n"
    for dtype in a.dtype or ["q4", "q8"]:
        path = str(a.out / f"onnx/model_{SUFFIX[dtype]}.onnx")
        onnx.save(build(g, dtype), path)
        print(path, pathlib.Path(path).stat().st_size)
        for question in ("What is the capital of France?", "Tell me a long story about a lighthouse keeper and the sea."):
            print(greedy(path, a.out, template.format(question), 40))


main()

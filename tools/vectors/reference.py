#!/usr/bin/env python3
"""Makes tests/data/reference/demo.bin: what llama.cpp computes from the demo model.

    LLAMA_LIB=.../libllama.so reference.py SMOLLM2-Q4_1.gguf SMOLLM2-F32.gguf

How to get both: `pip download --no-deps --no-binary :all: llama-cpp-python==0.3.36`, unpack, and in
its vendor/llama.cpp: `cmake -B build -DBUILD_SHARED_LIBS=ON -DGGML_NATIVE=OFF -DGGML_AVX2=ON
-DGGML_FMA=ON -DGGML_F16C=ON && cmake --build build --target llama llama-quantize`; then
`build/bin/llama-quantize --allow-requantize SMOLLM2-Q4_1.gguf SMOLLM2-F32.gguf F32`. (A wheel of
llama-cpp-python holds libllama.so too.) Needs numpy.

The reference is the F32 file with an f32 KV cache and no flash attention: on quantised weights
llama.cpp's CPU path rounds activations to 8 bits. What its defaults give on the quantised file is kept
beside it, as the bar for our own default.

demo.bin, little-endian; text: u32 length, bytes; array: u32 length, elements:
  u32 magic 0x31524546 ("FER1"), u32 prompts, u32 texts
  prompt: text name, text prompt, array of u32 ids,
          array of u32: 64 greedy ids, array of f32: gap of the two largest logits before each,
          f32 mean |logit difference| of llama.cpp's defaults on the quantised file, all entries,
          array of u32: the 32 largest of the last prompt token, array of f32: their logits,
          array of f32: its logits 0, 16, 32, ...
  text:   text name, text, array of u32 ids, f32 nll of the F32 file, f32 nll of the defaults on the
          quantised file (mean over all tokens but the first, one window)"""
import os
import struct
import sys

import numpy as np

from reference_llama import Llama
from reference_texts import PROMPTS, TEXTS

HERE = os.path.dirname(os.path.abspath(__file__))
OUT = os.path.join(HERE, "../../tests/data/reference/demo.bin")
MAGIC, STEPS, TOP, STRIDE, CTX = 0x31524546, 64, 32, 16, 2048


def text(s):
    b = s.encode()
    return struct.pack("<I", len(b)) + b


def array(a, dtype):
    a = np.asarray(a, dtype)
    return struct.pack("<I", len(a)) + a.tobytes()


def continuation(m, z):
    ids, gaps = [], []
    for step in range(STEPS):
        second, first = np.partition(z, -2)[-2:]
        ids.append(int(z.argmax()))
        gaps.append(first - second)
        if step + 1 < STEPS:
            z = m.feed(ids[-1:])
    return ids, gaps


def prompt_vector(exact, quick, name, prompt):
    ids = exact.encode(prompt.encode(), True, True)
    exact.reset()
    quick.reset()
    z = exact.feed(ids)
    rough = float(np.abs(quick.feed(ids).astype(np.float64) - z).mean())
    cont, gaps = continuation(exact, z)
    top = np.argsort(-z, kind="stable")[:TOP]
    print(f"{name}: {len(ids)} ids, smallest gap {min(gaps):.4f}, defaults differ by {rough:.4f}: "
          f"{exact_text(exact, cont)!r}", flush=True)
    return b"".join([text(name), text(prompt), array(ids, "<u4"), array(cont, "<u4"),
                     array(gaps, "<f4"), struct.pack("<f", rough), array(top, "<u4"),
                     array(z[top], "<f4"), array(z[::STRIDE], "<f4")])


def exact_text(m, ids):
    return b"".join(m.piece(i, True) for i in ids).decode(errors="replace")


def text_vector(exact, quick, name, s):
    ids = exact.encode(s.encode(), True, True)
    a, b = exact.nll(ids), quick.nll(ids)
    print(f"{name}: {len(ids)} ids, nll {a:.5f}, of the defaults {b:.5f}", flush=True)
    return b"".join([text(name), text(s), array(ids, "<u4"), struct.pack("<ff", a, b)])


def main():
    quantised, f32 = sys.argv[1:3]
    exact, quick = Llama(f32, CTX), Llama(quantised, CTX, exact=False)
    out = [struct.pack("<III", MAGIC, len(PROMPTS), len(TEXTS))]
    out += [prompt_vector(exact, quick, *p) for p in PROMPTS]
    out += [text_vector(exact, quick, *t) for t in TEXTS]
    with open(OUT, "wb") as f:
        f.write(b"".join(out))


if __name__ == "__main__":
    main()

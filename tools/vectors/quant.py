#!/usr/bin/env python3
"""Writes tests/data/quant/{dequant,quantize}.bin from the gguf package's own (de)quantisers.

Both files are records, little-endian: u32 GGUF type, u32 elements, u32 bytes of blocks, then the
blocks and the f32 values. dequant.bin: values are what the blocks mean; random bits, with scales that
include zeros, negatives, subnormal and the largest halfs (no infinities or NaNs). quantize.bin: blocks
are what the values become. Usage: quant.py tests/data/quant (needs numpy and gguf)."""
import struct
import sys

import numpy as np
from gguf import quants
from gguf.constants import GGML_QUANT_SIZES, GGMLQuantizationType as T

rng = np.random.default_rng(20240613)

# Where the half-precision scales of a block are.
HALFS = {
    T.Q4_0: [0], T.Q4_1: [0, 2], T.Q5_0: [0], T.Q5_1: [0, 2], T.Q8_0: [0],
    T.Q2_K: [80, 82], T.Q3_K: [108], T.Q4_K: [0, 2], T.Q5_K: [0, 2], T.Q6_K: [208],
}
EXTREME = np.array([0x0000, 0x8000, 0x0001, 0x8001, 0x03FF, 0x0400, 0x7BFF, 0xFBFF], np.uint16)


def halfs(n):
    """Ordinary magnitudes, either sign."""
    return (rng.normal(size=n) * 0.05).astype(np.float16).view(np.uint16)


def blocks_of(t):
    n, size = GGML_QUANT_SIZES[t]
    count = 8 if n == 256 else 32
    b = rng.integers(0, 256, size=(count, size), dtype=np.uint8)
    for off in HALFS[t]:
        h = halfs(count)
        h[rng.permutation(count)[: len(EXTREME) // 2 if n == 256 else len(EXTREME)]] = (
            rng.permutation(EXTREME)[:4] if n == 256 else EXTREME)
        b[:, off:off + 2] = h.view(np.uint8).reshape(-1, 2)
    return b


def record(f, t, data, values):
    values = np.ascontiguousarray(values, np.float32)
    f.write(struct.pack("<III", int(t), values.size, len(data)))
    f.write(data)
    f.write(values.tobytes())


def main(out):
    with open(f"{out}/dequant.bin", "wb") as f:
        for t in HALFS:
            b = blocks_of(t)
            record(f, t, b.tobytes(), quants.dequantize(b, t))
        h = rng.integers(0, 1 << 16, size=512, dtype=np.uint16)
        h = h[(h & 0x7C00) != 0x7C00]
        h = np.concatenate([h, EXTREME])
        record(f, T.F16, h.tobytes(), h.view(np.float16).astype(np.float32))
        record(f, T.BF16, h.tobytes(), quants.dequantize(h.view(np.uint8).reshape(1, -1), T.BF16))
    x = np.concatenate([
        rng.normal(size=512) * 0.02, rng.normal(size=256) * 30, rng.uniform(0, 1, size=64),
        -rng.uniform(1, 2, size=64), np.zeros(32), np.full(32, -0.75), np.linspace(-1, 1, 64),
    ]).astype(np.float32)
    with open(f"{out}/quantize.bin", "wb") as f:
        for t in (T.F16, T.BF16, T.Q4_0, T.Q4_1, T.Q5_0, T.Q5_1, T.Q8_0):
            record(f, t, quants.quantize(x.reshape(1, -1), t).tobytes(), x)


main(sys.argv[1])

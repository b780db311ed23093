#!/usr/bin/env python3
"""Writes tests/data/kernels/ops.bin: inputs and outputs of ops in double precision, by numpy, to test
the C twins against something that shares no code with them.

The file is blocks of a u32 count and that many f32 or u32 words, little-endian, in the order of the
calls of put() below; tests/test_kernel_twins.c reads them in that order.
Usage: kernels.py tests/data/kernels/ops.bin (needs numpy)."""
import sys

import numpy as np

rng = np.random.default_rng(7)
blocks = []


def put(a, t=np.float32):
    a = np.ascontiguousarray(a).astype(t)
    blocks.append(np.uint32(a.size).tobytes() + a.tobytes())


def floats(*shape):
    return rng.normal(size=shape).astype(np.float32).astype(np.float64)


# rmsnorm: x [3, 65], g [65], eps 1e-5
x, g = floats(3, 65), floats(65)
put(x), put(g)
put(g * x / np.sqrt((x**2).mean(axis=1, keepdims=True) + 1e-5))

# silu(a) * b
a, b = floats(50) * 5, floats(50)
put(a), put(b), put(a / (1 + np.exp(-a)) * b)

# rope: x [4, 3 heads, 16], rot 12, positions 5.., theta 10000; as complex numbers
x = floats(4, 3, 16)
angle = np.outer(np.arange(9), 10000.0 ** (-np.arange(6) / 6))
put(x), put(np.stack([np.cos(angle), np.sin(angle)], axis=-1))
turn = np.exp(1j * angle[5:9])[:, None, :]
z = (x[..., 0:12:2] + 1j * x[..., 1:12:2]) * turn
y = x.copy()
y[..., 0:12:2], y[..., 1:12:2] = z.real, z.imag
put(y)
z = (x[..., 0:6] + 1j * x[..., 6:12]) * turn
y = x.copy()
y[..., 0:6], y[..., 6:12] = z.real, z.imag
put(y)

# attention: q [3, 4 heads, 8], k and v [10, 2 heads, 8], position 7 on, scale 1
q, k, v = floats(3, 4, 8), floats(10, 2, 8), floats(10, 2, 8)
put(q), put(k), put(v)
y = np.zeros_like(q)
for m in range(3):
    for h in range(4):
        s = k[: 8 + m, h // 2] @ q[m, h]
        p = np.exp(s - s.max())
        y[m, h] = p / p.sum() @ v[: 8 + m, h // 2]
put(y)

# nll of the token 3 of logits [2, 20]
l = floats(2, 20) * 4
put(l), put(np.log(np.exp(l).sum(axis=1)) - l[:, 3])


# sampling: logits [400], then rows of (top_k, seed, draw), of (temp, top_p, min_p), and the id
def hash32(v):
    s = (v * 747796405 + 2891336453) % 2**32
    w = ((s >> ((s >> 28) + 4)) ^ s) * 277803737 % 2**32
    return (w >> 22) ^ w


def draw_u(seed, draw):
    return (hash32((hash32(seed ^ 0x9E3779B9) + draw) % 2**32) >> 8) / 2**24


def sample(logits, top_k, temp, top_p, min_p, u):
    """The chosen id, or None where u is too near a boundary to tell."""
    ids = np.lexsort((np.arange(logits.size), -logits))[:top_k]
    p = np.exp(logits[ids] - logits[ids[0]])
    p /= p.sum()
    if top_p < 1:
        sums = np.cumsum(p)
        if np.abs(sums - top_p).min() < 1e-5:
            return None
        ids = ids[: 1 + np.searchsorted(sums, top_p)]
    p = np.exp(logits[ids] - logits[ids[0]])
    if np.abs(p - min_p).min() < 1e-6 and min_p > 0:
        return None
    ids = ids[p >= min_p]
    p = np.exp((logits[ids] - logits[ids[0]]) / temp)
    sums = np.cumsum(p / p.sum())
    return None if np.abs(sums - u).min() < 1e-5 else ids[np.searchsorted(sums, u)]


logits = floats(400) * 3
logits[[20, 30, 40]] = logits.max()  # ties
put(logits)
whole, real, want = [], [], []
while len(want) < 200:
    i = len(want)
    temp, top_p, min_p = [np.float32(w) for w in (rng.uniform(0.2, 3), rng.choice([1, 0.9, 0.5]),
                                                  rng.choice([0, 0.05, 0.3]))]
    top_k, seed, draw = int(rng.choice([1, 2, 40, 256])), int(rng.integers(2**32)), i
    chosen = sample(logits, top_k, float(temp), float(top_p), float(min_p), draw_u(seed, draw))
    if chosen is not None:
        whole.append((top_k, seed, draw)), real.append((temp, top_p, min_p)), want.append(chosen)
put(np.array(whole, np.uint64), np.uint32), put(real), put(want, np.uint32)

with open(sys.argv[1], "wb") as f:
    f.write(b"".join(blocks))

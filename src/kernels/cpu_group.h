/* Quantised weights by groups of 32 elements: a code c (unsigned byte) of each element and, for
 * each half of the group, d and m with weight = d * c + m. Q8_0's codes are signed bytes and its m
 * is 0. The layouts are defined in quant.c. */
#ifndef FRIT_KERNELS_CPU_GROUP_H
#define FRIT_KERNELS_CPU_GROUP_H

#include "kernels/cpu_vec.h"

typedef struct group {
  u8x16 c[2];
  float d[2], m[2];
} group;

/* The types with groups: X(id, name). */
#define CPU_GROUP_TYPES(X)                                                                         \
  X(DT_Q4_0, q4_0)                                                                                 \
  X(DT_Q4_1, q4_1)                                                                                 \
  X(DT_Q5_0, q5_0)                                                                                 \
  X(DT_Q5_1, q5_1)                                                                                 \
  X(DT_Q8_0, q8_0)                                                                                 \
  X(DT_Q2_K, q2_k) X(DT_Q3_K, q3_k) X(DT_Q4_K, q4_k) X(DT_Q5_K, q5_k) X(DT_Q6_K, q6_k)

INLINE bool group_has(dtype t) { return t >= DT_Q4_0 && t <= DT_Q6_K; }
/* The halves differ in scale. */
INLINE bool group_halves(dtype t) { return t == DT_Q2_K || t == DT_Q3_K || t == DT_Q6_K; }
INLINE bool group_signed(dtype t) { return t == DT_Q8_0; }
/* Greatest code of an unsigned type with one scale a group. */
INLINE int group_top(dtype t) { return t == DT_Q4_0 || t == DT_Q4_1 || t == DT_Q4_K ? 15 : 31; }

/* 16 where bit j of `bits` is set, in byte j. */
INLINE u8x16 fifth_bits(uint32_t bits) {
  typedef uint64_t u64x2 __attribute__((vector_size(16)));
  const u8x16 mask = {1, 2, 4, 8, 16, 32, 64, 128, 1, 2, 4, 8, 16, 32, 64, 128};
  u64x2 b = {(bits & 255) * 0x0101010101010101u, (bits >> 8 & 255) * 0x0101010101010101u};
  return (u8x16)(((u8x16)b & mask) != 0) & 16;
}

/* Q4_K, Q5_K: 6-bit scale and minimum i of 8. */
INLINE void k_scales(const uint8_t *s, uint32_t i, int *scale, int *min) {
  if (i < 4) {
    *scale = s[i] & 63;
    *min = s[i + 4] & 63;
  } else {
    *scale = (s[i + 4] & 15) | s[i - 4] >> 6 << 4;
    *min = s[i + 4] >> 4 | s[i] >> 6 << 4;
  }
}

INLINE void group_scales(group *g, float d, float m) {
  g->d[0] = g->d[1] = d;
  g->m[0] = g->m[1] = m;
}

INLINE void group_simple(dtype t, const uint8_t *b, group *g) {
  float d = half_at(b);
  if (t == DT_Q8_0) {
    g->c[0] = load_16(b + 2);
    g->c[1] = load_16(b + 18);
    group_scales(g, d, 0);
    return;
  }
  bool min = t == DT_Q4_1 || t == DT_Q5_1, five = t == DT_Q5_0 || t == DT_Q5_1;
  const uint8_t *q = b + 2 + (min ? 2 : 0);
  u8x16 nibbles = load_16(q + (five ? 4 : 0));
  g->c[0] = nibbles & 15;
  g->c[1] = u8_shr(nibbles, 4);
  if (five) {
    uint32_t high = load_u32(q);
    g->c[0] |= fifth_bits(high);
    g->c[1] |= fifth_bits(high >> 16);
  }
  group_scales(g, d, min ? half_at(b + 2) : d * (five ? -16.0f : -8.0f));
}

/* Q4_K, Q5_K: group i of 8 of a block. */
INLINE void group_45_k(dtype t, const uint8_t *b, uint32_t i, group *g) {
  int scale, min;
  k_scales(b + 4, i, &scale, &min);
  const uint8_t *q = b + (t == DT_Q5_K ? 48 : 16) + i / 2 * 32;
  for (uint32_t h = 0; h < 2; h++) {
    u8x16 c = load_16(q + 16 * h);
    g->c[h] = i % 2 ? u8_shr(c, 4) : c & 15;
    if (t == DT_Q5_K) g->c[h] |= u8_shl(u8_shr(load_16(b + 16 + 16 * h), i) & 1, 4);
  }
  group_scales(g, half_at(b) * (float)scale, -(half_at(b + 2) * (float)min));
}

INLINE void group_2_k(const uint8_t *b, uint32_t i, group *g) {
  float d = half_at(b + 80), dmin = half_at(b + 82);
  for (uint32_t h = 0; h < 2; h++) {
    uint8_t s = b[2 * i + h];
    g->c[h] = u8_shr(load_16(b + 16 + i / 4 * 32 + 16 * h), i % 4 * 2) & 3;
    g->d[h] = d * (float)(s & 15);
    g->m[h] = -(dmin * (float)(s >> 4));
  }
}

INLINE void group_3_k(const uint8_t *b, uint32_t i, group *g) {
  float d = half_at(b + 108);
  for (uint32_t h = 0; h < 2; h++) {
    uint32_t j = 2 * i + h;
    int s = (b[96 + j % 8] >> (j / 8 * 4) & 15) | (b[104 + j % 4] >> (j / 4 * 2) & 3) << 4;
    g->c[h] = (u8_shr(load_16(b + 32 + i / 4 * 32 + 16 * h), i % 4 * 2) & 3) |
              u8_shl(u8_shr(load_16(b + 16 * h), i) & 1, 2);
    g->d[h] = d * (float)(s - 32);
    g->m[h] = -4.0f * g->d[h];
  }
}

INLINE void group_6_k(const uint8_t *b, uint32_t i, group *g) {
  float d = half_at(b + 208);
  for (uint32_t h = 0; h < 2; h++) {
    u8x16 low = load_16(b + i / 4 * 64 + i % 2 * 32 + 16 * h);
    low = i % 4 / 2 ? u8_shr(low, 4) : low & 15;
    u8x16 high = u8_shr(load_16(b + 128 + i / 4 * 32 + 16 * h), i % 4 * 2) & 3;
    g->c[h] = low | u8_shl(high, 4);
    g->d[h] = d * (float)(int8_t)b[192 + 2 * i + h];
    g->m[h] = -32.0f * g->d[h];
  }
}

/* Group i of a row. The type is a constant where this is inlined. */
INLINE void group_get(dtype t, const uint8_t *row, uint32_t i, group *g) {
  switch (t) {
  case DT_Q4_0: group_simple(t, row + 18 * (size_t)i, g); return;
  case DT_Q4_1: group_simple(t, row + 20 * (size_t)i, g); return;
  case DT_Q5_0: group_simple(t, row + 22 * (size_t)i, g); return;
  case DT_Q5_1: group_simple(t, row + 24 * (size_t)i, g); return;
  case DT_Q8_0: group_simple(t, row + 34 * (size_t)i, g); return;
  case DT_Q2_K: group_2_k(row + 84 * (size_t)(i / 8), i % 8, g); return;
  case DT_Q3_K: group_3_k(row + 110 * (size_t)(i / 8), i % 8, g); return;
  case DT_Q4_K: group_45_k(t, row + 144 * (size_t)(i / 8), i % 8, g); return;
  case DT_Q5_K: group_45_k(t, row + 176 * (size_t)(i / 8), i % 8, g); return;
  default: group_6_k(row + 210 * (size_t)(i / 8), i % 8, g); return;
  }
}

/* The codes as floats: 16 / VW vectors for each half. */
INLINE void group_floats(dtype t, const group *g, vf w[32 / VW]) {
  for (int h = 0; h < 2; h++) {
    if (group_signed(t)) v_from_s8(g->c[h], w + h * (16 / VW));
    else v_from_u8(g->c[h], w + h * (16 / VW));
  }
}

/* Weights of a row of n elements as floats; n is a multiple of the block. */
INLINE void group_row(dtype t, const uint8_t *row, uint32_t n, float *out) {
  for (uint32_t i = 0; i < n / 32; i++, out += 32) {
    group g;
    vf w[32 / VW];
    group_get(t, row, i, &g);
    group_floats(t, &g, w);
    UNROLL for (int j = 0; j < 32 / VW; j++) {
      int h = j / (16 / VW);
      v_store(out + j * VW, v_fma(w[j], v_set(g.d[h]), v_set(g.m[h])));
    }
  }
}

#define X(id, name)                                                                                \
  static void row_##name(const uint8_t *row, uint32_t n, float *out) { group_row(id, row, n, out); }
CPU_GROUP_TYPES(X)
#undef X

INLINE void plain_row(dtype t, const uint8_t *row, uint32_t n, float *out) {
  uint32_t i = 0;
  for (; i + VW <= n; i += VW) v_store(out + i, v_load_as(t, row, i));
  for (; i < n; i++) out[i] = load_as(t, row, i);
}
static void row_f32(const uint8_t *row, uint32_t n, float *out) { memcpy(out, row, 4 * (size_t)n); }
static void row_f16(const uint8_t *row, uint32_t n, float *out) { plain_row(DT_F16, row, n, out); }
static void row_bf16(const uint8_t *row, uint32_t n, float *out) {
  plain_row(DT_BF16, row, n, out);
}

/* A row of any weight type as floats. */
typedef void (*row_fn)(const uint8_t *row, uint32_t n, float *out);
static const row_fn row_fns[DT_COUNT_] = {
#define X(id, name) [id] = row_##name,
    CPU_GROUP_TYPES(X)
#undef X
        [DT_F32] = row_f32,
    [DT_F16] = row_f16, [DT_BF16] = row_bf16};

/* Rounds x to signed bytes by groups of 32: q = nearest(x / d), d = max |x| / 127 (ggml's q8_1, the
 * scale in f32); sum is that of the q. Of a group with a NaN d is NaN: so is what it is part of. */
INLINE float round_group(const float *x, int8_t *q, int32_t *sum) {
  vf v[32 / VW];
  vi top = {0}; /* of the bits of |x|: they rise with it, and those of NaN are above all */
  UNROLL for (int j = 0; j < 32 / VW; j++) {
    v[j] = v_load(x + j * VW);
    top = vi_max(top, (vi)v_abs(v[j]));
  }
  float d = bits_f32((uint32_t)vi_hmax(top)) / 127.0f, id = d > 0 ? 1 / d : 0;
  int32_t codes[32], s = 0;
  UNROLL for (int j = 0; j < 32 / VW; j++) {
    vi n = (vi)v_fma(v[j], v_set(id), v_set(12582912.0f)) - vi_set(0x4B400000);
    memcpy(codes + j * VW, &n, sizeof n);
  }
  for (int j = 0; j < 32; j++) {
    q[j] = (int8_t)codes[j]; /* of NaN: anything */
    s += q[j];
  }
  *sum = s;
  return d;
}

#endif

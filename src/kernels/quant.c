/* The definition of each block format: where the bits of element e lie and what they mean.
 *
 * In the K types (256 elements), element e has a code of 2 to 6 bits and belongs to an inner block
 * of 16 or 32 elements with its own small integer scale (and minimum); d and dmin scale these. */
#include "kernels/quant.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "base/math.h"

static float half_at(const uint8_t *p) { return f16_to_f32(load_u16(p)); }

/* Stores x as a half and returns what was stored. */
static float put_half(uint8_t *p, float x) {
  uint16_t h = f32_to_f16(x);
  memcpy(p, &h, sizeof h);
  return f16_to_f32(h);
}

static float inverse(float x) { return x == 0 ? 0 : 1 / x; }

/* Clamped before the conversion, which is undefined out of range; NaN gives lo. */
static int to_int(double x, int lo, int hi) { return x >= hi ? hi : x > lo ? (int)x : lo; }
static int nearest(float x, int lo, int hi) { return to_int((double)roundf(x), lo, hi); }

/* ---- blocks of 32: code of element e is in the low nibbles for e < 16, in the high ones beyond */

static unsigned nibble(const uint8_t *q, int e) { return q[e % 16] >> (e / 16 * 4) & 15u; }
static void put_nibble(uint8_t *q, int e, int v) {
  q[e % 16] = (uint8_t)(q[e % 16] | (v & 15) << (e / 16 * 4));
}

/* d, 16 bytes of nibbles: d * (q - 8) */
static void q4_0_get(const uint8_t *b, float *y) {
  for (int e = 0; e < 32; e++) y[e] = half_at(b) * (float)((int)nibble(b + 2, e) - 8);
}
/* d, m, nibbles: d * q + m */
static void q4_1_get(const uint8_t *b, float *y) {
  for (int e = 0; e < 32; e++) y[e] = half_at(b) * (float)nibble(b + 4, e) + half_at(b + 2);
}
/* d, fifth bits (bit e of a u32), nibbles: d * (q - 16) */
static void q5_0_get(const uint8_t *b, float *y) {
  uint32_t high = load_u32(b + 2);
  for (int e = 0; e < 32; e++)
    y[e] = half_at(b) * (float)((int)(nibble(b + 6, e) | (high >> e & 1) << 4) - 16);
}
/* d, m, fifth bits, nibbles: d * q + m */
static void q5_1_get(const uint8_t *b, float *y) {
  uint32_t high = load_u32(b + 4);
  for (int e = 0; e < 32; e++)
    y[e] = half_at(b) * (float)(nibble(b + 8, e) | (high >> e & 1) << 4) + half_at(b + 2);
}
/* d, 32 signed bytes: d * q */
static void q8_0_get(const uint8_t *b, float *y) {
  for (int e = 0; e < 32; e++) y[e] = half_at(b) * (float)(int8_t)b[2 + e];
}

/* The value of the largest magnitude, with its sign; the first of equals. (Without `size`, clang 19
 * for wasm leaves one fabsf out and the first element is passed over when it is negative.) */
static float extreme(const float *x, int n) {
  float best = 0, size = 0;
  for (int e = 0; e < n; e++) {
    float here = fabsf(x[e]);
    best = here > size ? x[e] : best;
    size = here > size ? here : size;
  }
  return best;
}

static void put_high(uint8_t *b, uint32_t high) { memcpy(b, &high, sizeof high); }

/* The extreme value gets the code 0 exactly, which is one further from the middle than the last. */
static void q4_0_put(const float *x, uint8_t *b) {
  float d = extreme(x, 32) / -8, id = inverse(d);
  put_half(b, d);
  for (int e = 0; e < 32; e++) put_nibble(b + 2, e, to_int((double)x[e] * (double)id + 8.5, 0, 15));
}
static void q5_0_put(const float *x, uint8_t *b) {
  float d = extreme(x, 32) / -16, id = inverse(d);
  uint32_t high = 0;
  put_half(b, d);
  for (int e = 0; e < 32; e++) {
    int q = to_int((double)x[e] * (double)id + 16.5, 0, 31);
    put_nibble(b + 6, e, q);
    high |= (uint32_t)(q >> 4) << e;
  }
  put_high(b + 2, high);
}

/* Codes 0..top over [min, max]; d and m at b, nibbles at `q`; returns the fifth bits. */
static uint32_t affine_put(const float *x, int top, uint8_t *b, uint8_t *q) {
  float min = x[0], max = x[0];
  uint32_t high = 0;
  for (int e = 1; e < 32; e++) {
    min = x[e] < min ? x[e] : min;
    max = x[e] > max ? x[e] : max;
  }
  float d = (max - min) / (float)top, id = inverse(d);
  put_half(b, d);
  put_half(b + 2, min);
  for (int e = 0; e < 32; e++) {
    float scaled = (x[e] - min) * id;
    int v = to_int((double)(scaled + 0.5f), 0, top);
    put_nibble(q, e, v);
    high |= (uint32_t)(v >> 4) << e;
  }
  return high;
}
static void q4_1_put(const float *x, uint8_t *b) { affine_put(x, 15, b, b + 4); }
static void q5_1_put(const float *x, uint8_t *b) { put_high(b + 4, affine_put(x, 31, b, b + 8)); }

static void q8_0_put(const float *x, uint8_t *b) {
  float d = fabsf(extreme(x, 32)) / 127, id = inverse(d);
  put_half(b, d);
  for (int e = 0; e < 32; e++) b[2 + e] = (uint8_t)nearest(x[e] * id, -127, 127);
}

/* ---- K types: positions ---- */

typedef struct bits {
  int byte, shift;
} bits;

static int get(const uint8_t *p, bits at, int mask) { return p[at.byte] >> at.shift & mask; }
static void put(uint8_t *p, bits at, int v) { p[at.byte] = (uint8_t)(p[at.byte] | v << at.shift); }

/* Two bits in 64 bytes: each 32 bytes hold 128 elements, in four layers of 32. */
static bits two(int e) { return (bits){e / 128 * 32 + e % 32, e % 128 / 32 * 2}; }
/* Four bits in 128 bytes: each 32 bytes hold 64 elements, low nibbles first (Q4_K, Q5_K). */
static bits four(int e) { return (bits){e / 64 * 32 + e % 32, e % 64 / 32 * 4}; }
/* One bit in 32 bytes: layer e / 32 (Q3_K, Q5_K). */
static bits one(int e) { return (bits){e % 32, e / 32}; }
/* Four bits in 128 bytes: each 64 bytes hold 128 elements, low nibbles first (Q6_K). */
static bits four_wide(int e) { return (bits){e / 128 * 64 + e % 64, e % 128 / 64 * 4}; }

/* Q3_K: sixteen 6-bit scales in 12 bytes; low nibbles in the first 8, high pairs in the last 4. */
static bits q3_scale_low(int i) { return (bits){i % 8, i / 8 * 4}; }
static bits q3_scale_high(int i) { return (bits){8 + i % 4, i / 4 * 2}; }

/* Q4_K, Q5_K: eight 6-bit scales and minimums in 12 bytes. Those of 0..3 are the low six bits of
 * bytes 0..3 and 4..7; those of 4..7 have their low nibbles in bytes 8..11 and their high pairs
 * above the first four's. `min` is 0 for the scale, 4 for the minimum. */
static int k_scale(const uint8_t *s, int i, int min) {
  if (i < 4) return s[i + min] & 63;
  return (min ? s[i + 4] >> 4 : s[i + 4] & 15) | s[i - 4 + min] >> 6 << 4;
}
static void put_k_scale(uint8_t *s, int i, int min, int v) {
  if (i < 4) {
    put(s, (bits){i + min, 0}, v);
  } else {
    put(s, (bits){i + 4, min}, v & 15);
    put(s, (bits){i - 4 + min, 6}, v >> 4);
  }
}

/* ---- K types: values ---- */

enum { QK = 256 };

/* scales[16] (low nibble scale, high nibble minimum), codes[64], d, dmin */
static void q2_k_get(const uint8_t *b, float *y) {
  float d = half_at(b + 80), dmin = half_at(b + 82);
  for (int e = 0; e < QK; e++) {
    int s = b[e / 16];
    y[e] = d * (float)(s & 15) * (float)get(b + 16, two(e), 3) - dmin * (float)(s >> 4);
  }
}
/* high bits[32], codes[64], scales[12], d; the high bit set means: not 4 less */
static void q3_k_get(const uint8_t *b, float *y) {
  float d = half_at(b + 108);
  for (int e = 0; e < QK; e++) {
    int s = get(b + 96, q3_scale_low(e / 16), 15) | get(b + 96, q3_scale_high(e / 16), 3) << 4;
    int q = (get(b + 32, two(e), 3) | get(b, one(e), 1) << 2) - 4;
    y[e] = d * (float)(s - 32) * (float)q;
  }
}
/* d, dmin, scales[12], codes[128] */
static void q4_k_get(const uint8_t *b, float *y) {
  float d = half_at(b), dmin = half_at(b + 2);
  for (int e = 0; e < QK; e++)
    y[e] = d * (float)k_scale(b + 4, e / 32, 0) * (float)get(b + 16, four(e), 15) -
           dmin * (float)k_scale(b + 4, e / 32, 4);
}
/* d, dmin, scales[12], high bits[32], codes[128] */
static void q5_k_get(const uint8_t *b, float *y) {
  float d = half_at(b), dmin = half_at(b + 2);
  for (int e = 0; e < QK; e++) {
    int q = get(b + 48, four(e), 15) | get(b + 16, one(e), 1) << 4;
    y[e] =
        d * (float)k_scale(b + 4, e / 32, 0) * (float)q - dmin * (float)k_scale(b + 4, e / 32, 4);
  }
}
/* low nibbles[128], high pairs[64], signed scales[16], d */
static void q6_k_get(const uint8_t *b, float *y) {
  float d = half_at(b + 208);
  for (int e = 0; e < QK; e++) {
    int q = (get(b, four_wide(e), 15) | get(b + 128, two(e), 3) << 4) - 32;
    y[e] = d * (float)(int8_t)b[192 + e / 16] * (float)q;
  }
}

/* Types with minimums. Inner blocks of `n`: x ~ scale * q - min, q in 0..top, min >= 0. Scales and
 * minimums become integers 0..limit times d and dmin, which are stored at `half`. */
static void affine_scales(const float *x, int n, int top, int limit, uint8_t *half, float *d,
                          float *dmin, int *scale, int *min) {
  float s[16], m[16], s_max = 0, m_max = 0;
  for (int i = 0; i < QK / n; i++) {
    float lo = 0, hi = 0;
    for (int e = i * n; e < (i + 1) * n; e++) {
      lo = x[e] < lo ? x[e] : lo;
      hi = x[e] > hi ? x[e] : hi;
    }
    s[i] = (hi - lo) / (float)top;
    m[i] = -lo;
    s_max = s[i] > s_max ? s[i] : s_max;
    m_max = m[i] > m_max ? m[i] : m_max;
  }
  *d = put_half(half, s_max / (float)limit);
  *dmin = put_half(half + 2, m_max / (float)limit);
  for (int i = 0; i < QK / n; i++) {
    scale[i] = nearest(s[i] * inverse(*d), 0, limit);
    min[i] = nearest(m[i] * inverse(*dmin), 0, limit);
  }
}

static int affine_code(float x, float scale, float min, int top) {
  return nearest((x + min) * inverse(scale), 0, top);
}

static void q2_k_put(const float *x, uint8_t *b) {
  float d, dmin;
  int s[16], m[16];
  affine_scales(x, 16, 3, 15, b + 80, &d, &dmin, s, m);
  for (int i = 0; i < 16; i++) b[i] = (uint8_t)(s[i] | m[i] << 4);
  for (int e = 0; e < QK; e++) {
    int i = e / 16;
    put(b + 16, two(e), affine_code(x[e], d * (float)s[i], dmin * (float)m[i], 3));
  }
}

/* Q4_K and Q5_K; high is NULL for the former. */
static void q45_k_put(const float *x, uint8_t *b, int top, uint8_t *high, uint8_t *low) {
  float d, dmin;
  int s[8], m[8];
  affine_scales(x, 32, top, 63, b, &d, &dmin, s, m);
  for (int i = 0; i < 8; i++) {
    put_k_scale(b + 4, i, 0, s[i]);
    put_k_scale(b + 4, i, 4, m[i]);
  }
  for (int e = 0; e < QK; e++) {
    int i = e / 32;
    int q = affine_code(x[e], d * (float)s[i], dmin * (float)m[i], top);
    put(low, four(e), q & 15);
    if (high) put(high, one(e), q >> 4);
  }
}
static void q4_k_put(const float *x, uint8_t *b) { q45_k_put(x, b, 15, NULL, b + 16); }
static void q5_k_put(const float *x, uint8_t *b) { q45_k_put(x, b, 31, b + 16, b + 48); }

/* Types without minimums. Inner blocks of 16: x ~ scale * q, q in -half..half-1; the extreme value
 * gets the code -half. Scales become integers -limit..limit times the result. */
static float signed_scales(const float *x, int half, int limit, uint8_t *at, int *scale) {
  float s[16];
  for (int i = 0; i < 16; i++) s[i] = extreme(x + 16 * i, 16) / (float)-half;
  float d = put_half(at, fabsf(extreme(s, 16)) / (float)limit);
  for (int i = 0; i < 16; i++) scale[i] = nearest(s[i] * inverse(d), -limit, limit);
  return d;
}

static void q3_k_put(const float *x, uint8_t *b) {
  int s[16];
  float d = signed_scales(x, 4, 31, b + 108, s);
  for (int i = 0; i < 16; i++) {
    put(b + 96, q3_scale_low(i), (s[i] + 32) & 15);
    put(b + 96, q3_scale_high(i), (s[i] + 32) >> 4);
  }
  for (int e = 0; e < QK; e++) {
    int i = e / 16;
    int q = nearest(x[e] * inverse(d * (float)s[i]), -4, 3) + 4;
    put(b + 32, two(e), q & 3);
    put(b, one(e), q >> 2);
  }
}

static void q6_k_put(const float *x, uint8_t *b) {
  int s[16];
  float d = signed_scales(x, 32, 127, b + 208, s);
  for (int i = 0; i < 16; i++) b[192 + i] = (uint8_t)s[i];
  for (int e = 0; e < QK; e++) {
    int i = e / 16;
    int q = nearest(x[e] * inverse(d * (float)s[i]), -32, 31) + 32;
    put(b, four_wide(e), q & 15);
    put(b + 128, two(e), q >> 4);
  }
}

/* ---- plain types and the table ---- */

static void f32_get(const uint8_t *b, float *y) { *y = load_f32(b); }
static void f16_get(const uint8_t *b, float *y) { *y = half_at(b); }
static void bf16_get(const uint8_t *b, float *y) { *y = bf16_to_f32(load_u16(b)); }
static void f32_put(const float *x, uint8_t *b) { memcpy(b, x, sizeof *x); }
static void f16_put(const float *x, uint8_t *b) { put_half(b, *x); }
static void bf16_put(const float *x, uint8_t *b) {
  uint16_t h = f32_to_bf16(*x);
  memcpy(b, &h, sizeof h);
}

/* One block each way; `put` finds the bytes cleared. */
static const struct {
  void (*get)(const uint8_t *, float *);
  void (*put)(const float *, uint8_t *);
} formats[DT_COUNT_] = {[DT_F32] = {f32_get, f32_put},    [DT_F16] = {f16_get, f16_put},
                        [DT_BF16] = {bf16_get, bf16_put}, [DT_Q4_0] = {q4_0_get, q4_0_put},
                        [DT_Q4_1] = {q4_1_get, q4_1_put}, [DT_Q5_0] = {q5_0_get, q5_0_put},
                        [DT_Q5_1] = {q5_1_get, q5_1_put}, [DT_Q8_0] = {q8_0_get, q8_0_put},
                        [DT_Q2_K] = {q2_k_get, q2_k_put}, [DT_Q3_K] = {q3_k_get, q3_k_put},
                        [DT_Q4_K] = {q4_k_get, q4_k_put}, [DT_Q5_K] = {q5_k_get, q5_k_put},
                        [DT_Q6_K] = {q6_k_get, q6_k_put}};

bool quant_has(dtype t) { return t < DT_COUNT_ && formats[t].get; }

void quant_dequant_row(dtype t, const void *src, float *dst, uint64_t n) {
  assert(quant_has(t) && n % dtype_get(t)->n == 0);
  const dtype_info *info = dtype_get(t);
  const uint8_t *b = src;
  for (uint64_t i = 0; i < n; i += info->n, b += info->bytes) formats[t].get(b, dst + i);
}

void quant_quantize_row(dtype t, const float *src, void *dst, uint64_t n) {
  assert(quant_has(t) && n % dtype_get(t)->n == 0);
  const dtype_info *info = dtype_get(t);
  uint8_t *b = dst;
  memset(b, 0, (size_t)dtype_row_bytes(t, n));
  for (uint64_t i = 0; i < n; i += info->n, b += info->bytes) formats[t].put(src + i, b);
}

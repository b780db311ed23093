/* What twins share: rows of weights in the file's layout, elements of KV caches, and the inner
 * formulas that role kernels repeat. Sums are in double throughout. Header only; internal. */
#ifndef FRIT_KERNELS_TWIN_H
#define FRIT_KERNELS_TWIN_H

#include <math.h>

#include "base/math.h"
#include "kernels/kernel_impl.h"
#include "kernels/quant.h"

/* Rows that an op of room for m does: the head of a longer chunk has one. */
static inline uint32_t twin_rows(const step_params *step, uint32_t m) {
  return min_u32(step->n_tok, m);
}

/* Row `row` of a stack of rows of k elements. */
static inline const uint8_t *twin_row(dtype t, const void *w, uint64_t row, uint32_t k) {
  return (const uint8_t *)w + row * dtype_row_bytes(t, k);
}

/* sum_k W[row,k] x[k], the products of f32 values exact in double. */
static inline double twin_dot(dtype t, const void *w, uint64_t row, const float *x, uint32_t k) {
  const uint8_t *p = twin_row(t, w, row, k);
  float part[256];
  double sum = 0;
  for (uint32_t i = 0; i < k; i += 256) {
    uint32_t n = min_u32(256, k - i);
    quant_dequant_row(t, p + dtype_row_bytes(t, i), part, n);
    for (uint32_t j = 0; j < n; j++) sum += (double)part[j] * (double)x[i + j];
  }
  return sum;
}

/* Element i of a cache in f32 or f16. */
static inline float twin_kv_get(dtype t, const void *cache, uint64_t i) {
  return t == DT_F16 ? f16_to_f32(((const uint16_t *)cache)[i]) : ((const float *)cache)[i];
}
static inline void twin_kv_put(dtype t, void *cache, uint64_t i, float v) {
  if (t == DT_F16) ((uint16_t *)cache)[i] = f32_to_f16(v);
  else ((float *)cache)[i] = v;
}

/* h[i] = g[i] x[i] / sqrt(mean(x^2) + eps) */
static inline void twin_rmsnorm(const float *x, const float *g, uint32_t n, float eps, float *h) {
  double sum = 0;
  for (uint32_t i = 0; i < n; i++) sum += (double)x[i] * (double)x[i];
  float scale = 1.0f / sqrtf((float)(sum / n) + eps);
  for (uint32_t i = 0; i < n; i++) h[i] = g[i] * x[i] * scale;
}

/* Element i of a head of d after rotation of its first `rot` elements; cs is the (cos, sin) row of
 * the position. neox: pairs (i, i + rot/2), else (2i, 2i+1). */
static inline float twin_rope(const float *head, uint32_t i, uint32_t rot, uint32_t neox,
                              const float *cs) {
  if (i >= rot) return head[i];
  uint32_t half = rot / 2, pair = neox ? i % half : i / 2;
  uint32_t a = neox ? pair : 2 * pair, b = neox ? pair + half : 2 * pair + 1;
  float cosine = cs[2 * pair], sine = cs[2 * pair + 1];
  return i == a ? head[a] * cosine - head[b] * sine : head[a] * sine + head[b] * cosine;
}

static inline float twin_silu(float a) { return a / (1.0f + expf(-a)); }

/* lib/order_key.wgsl: rises with the number, -0 below 0; the greatest for a NaN of either sign. */
static inline uint32_t twin_key(float f) {
  uint32_t u = f32_bits(f);
  if ((u & 0x7FFFFFFFu) > 0x7F800000u) return UINT32_MAX;
  return u >> 31 ? ~u : u | 0x80000000u;
}
/* What a sampler yields where the greatest key is `top`: the id, or none (UINT32_MAX) where a logit
 * is NaN or +infinity. */
static inline uint32_t twin_id(uint32_t top, uint32_t id) {
  return top >= 0xFF800000u ? UINT32_MAX : id;
}
/* Of logits [begin, end): the first of the greatest, and its key. */
static inline uint32_t twin_best(const float *logits, uint32_t begin, uint32_t end, uint32_t *top) {
  uint32_t best = begin;
  *top = twin_key(logits[begin]);
  for (uint32_t i = begin + 1; i < end; i++) {
    if (logits[i] < logits[best]) continue; /* false of a NaN */
    uint32_t key = twin_key(logits[i]);
    if (key <= *top) continue;
    best = i;
    *top = key;
  }
  return best;
}

/* Shape of an op with a thread for each of n elements, in workgroups of 256. */
static inline kernel_shape shape_elements(uint64_t n) {
  kernel_shape s = {.workgroup = {256, 1, 1}, .cpu_single = n < 16384};
  kernel_grid(div_up(n, 256), s.groups);
  return s;
}

#endif

/* The small kernels: RMSNORM, SILU_MUL, ADD, EMBED, KV_APPEND, ROPE. Threads share the tokens, or
 * the elements where each stands alone. */
#ifndef FRIT_KERNELS_CPU_ROWS_H
#define FRIT_KERNELS_CPU_ROWS_H

#include <math.h>

#include "kernels/cpu_group.h"
#include "kernels/kernel.h"

static void rmsnorm_form(const hw_cpu_call *c) {
  const kernel_spec *s = kernel_spec_of(c);
  const uint32_t n = s->dim[0];
  const float *g = c->buf[1];
  const step_params *step = c->buf[3];
  uint32_t begin, end;
  kernel_share(c, min_u32(step->n_tok, s->dim[1]), 1, &begin, &end); /* M is 1 in heads of chunks */
  for (uint32_t m = begin; m < end; m++) {
    const float *x = (const float *)c->buf[0] + (size_t)m * n;
    float *y = (float *)c->buf[2] + (size_t)m * n;
    vf acc[2] = {{0}};
    float sum = 0;
    uint32_t i = 0;
    for (; i + 2 * VW <= n; i += 2 * VW) {
      vf a = v_load(x + i), b = v_load(x + i + VW);
      acc[0] = v_fma(a, a, acc[0]);
      acc[1] = v_fma(b, b, acc[1]);
    }
    for (; i < n; i++) sum += x[i] * x[i];
    sum += v_sum(acc[0] + acc[1]);
    float scale = 1.0f / sqrtf(sum / (float)n + s->f[0]);
    for (i = 0; i + VW <= n; i += VW) v_store(y + i, v_load(g + i) * v_load(x + i) * scale);
    for (; i < n; i++) y[i] = g[i] * x[i] * scale;
  }
}

/* This thread's elements of [min(n_tok, M), N]; dims are N, M. */
static void element_share(const hw_cpu_call *c, const step_params *step, size_t *begin,
                          size_t *end) {
  const uint32_t *d = kernel_spec_of(c)->dim;
  size_t n = (size_t)min_u32(step->n_tok, d[1]) * d[0], units = (n + 63) / 64;
  *begin = units * c->thread / c->n_threads * 64;
  *end = units * (c->thread + 1) / c->n_threads * 64;
  if (*end > n) *end = n;
}

/* VW elements, or `n` of them. */
INLINE vf v_some(const float *p, size_t n) {
  float a[VW] = {0};
  memcpy(a, p, n * sizeof *p);
  return v_load(a);
}
INLINE vf silu_mul(vf a, vf b) { return a / (v_exp(-a) + 1.0f) * b; }

static void silu_mul_form(const hw_cpu_call *c) {
  const float *a = c->buf[0], *b = c->buf[1];
  float *y = c->buf[2];
  size_t i, end;
  element_share(c, c->buf[3], &i, &end);
  for (; i + VW <= end; i += VW) v_store(y + i, silu_mul(v_load(a + i), v_load(b + i)));
  if (i < end) {
    vf v = silu_mul(v_some(a + i, end - i), v_some(b + i, end - i));
    memcpy(y + i, &v, (end - i) * sizeof *y);
  }
}

static void add_form(const hw_cpu_call *c) {
  const float *a = c->buf[0], *b = c->buf[1];
  float *y = c->buf[2];
  size_t i, end;
  element_share(c, c->buf[3], &i, &end);
  for (; i + VW <= end; i += VW) v_store(y + i, v_load(a + i) + v_load(b + i));
  for (; i < end; i++) y[i] = a[i] + b[i];
}

static void embed_form(const hw_cpu_call *c) {
  const kernel_spec *s = kernel_spec_of(c);
  const uint32_t n = s->dim[0], *ids = c->buf[1];
  const step_params *step = c->buf[3];
  const size_t row_bytes = (size_t)dtype_row_bytes(s->type[0], n);
  uint32_t begin, end;
  kernel_share(c, step->n_tok, 1, &begin, &end);
  for (uint32_t m = begin; m < end; m++) {
    uint32_t row = ids[m] - s->dim[3];
    if (row >= s->dim[1]) continue; /* another part's row */
    row_fns[s->type[0]]((const uint8_t *)c->buf[0] + row * row_bytes, n,
                        (float *)c->buf[2] + (size_t)m * n);
  }
}

/* Halves of n floats, to nearest even. */
static void put_halves(const float *x, size_t n, uint16_t *out) {
  size_t i = 0;
#if CPU_X86
  for (; i + 8 <= n; i += 8)
    _mm_storeu_si128((__m128i *)(out + i),
                     _mm256_cvtps_ph(_mm256_loadu_ps(x + i), _MM_FROUND_TO_NEAREST_INT));
#endif
  for (; i < n; i++) out[i] = f32_to_f16(x[i]);
}

static void kv_append_form(const hw_cpu_call *c) {
  const kernel_spec *s = kernel_spec_of(c);
  const size_t n = s->dim[0];
  const step_params *step = c->buf[2];
  uint32_t begin, end;
  kernel_share(c, step->n_tok, 1, &begin, &end);
  const float *x = (const float *)c->buf[0] + begin * n;
  const size_t first = (size_t)(step->pos + begin) * n, count = (end - begin) * n;
  if (s->type[0] == DT_F16) put_halves(x, count, (uint16_t *)c->buf[1] + first);
  else memcpy((float *)c->buf[1] + first, x, count * sizeof *x);
}

/* One head: pairs (a, b) at distance `half` (neox) or side by side, rotated by cs[pair]. */
static void rope_head(const float *x, const float *cs, uint32_t rot, bool neox, float *y) {
  const uint32_t half = rot / 2, step = neox ? 1 : 2, other = neox ? half : 1;
  for (uint32_t i = 0; i < half; i++) {
    float a = x[i * step], b = x[i * step + other], cosine = cs[2 * i], sine = cs[2 * i + 1];
    y[i * step] = a * cosine - b * sine;
    y[i * step + other] = a * sine + b * cosine;
  }
}

static void rope_form(const hw_cpu_call *c) {
  const kernel_spec *s = kernel_spec_of(c);
  const uint32_t h = s->dim[0], d = s->dim[1], rot = s->dim[2];
  const step_params *step = c->buf[3];
  uint32_t begin, end;
  kernel_share(c, step->n_tok, 1, &begin, &end);
  for (uint32_t m = begin; m < end; m++) {
    const float *cs = (const float *)c->buf[1] + ((size_t)step->pos + m) * rot;
    for (uint32_t j = 0; j < h; j++) {
      const float *x = (const float *)c->buf[0] + ((size_t)m * h + j) * d;
      float *y = (float *)c->buf[2] + ((size_t)m * h + j) * d;
      rope_head(x, cs, rot, s->dim[3] != 0, y);
      memcpy(y + rot, x + rot, (d - rot) * sizeof *y);
    }
  }
}

#endif

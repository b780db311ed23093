/* Twin of attn_split.wgsl. */
#include <float.h>

#include "kernels/twin.h"

/* One head over cache rows [begin, end): out is [D + 2], see the catalog. */
static void split(const hw_cpu_call *c, uint32_t head, uint32_t begin, uint32_t end, float *out) {
  const kernel_spec *s = kernel_spec_of(c);
  const uint32_t d = s->dim[2], g = s->dim[1], group = head / (s->dim[0] / g);
  const float *q = (const float *)c->buf[0] + head * d;
  float max = -FLT_MAX, sum = 0;
  for (uint32_t i = 0; i < d; i++) out[i] = 0;
  for (uint32_t j = begin; j < end; j++) {
    const uint64_t row = ((uint64_t)j * g + group) * d;
    double dot = 0;
    for (uint32_t i = 0; i < d; i++)
      dot += (double)q[i] * (double)twin_kv_get(s->type[0], c->buf[1], row + i);
    const float score = (float)dot * s->f[0], old = max;
    max = fmaxf(max, score);
    const float keep = expf(old - max), p = expf(score - max);
    sum = sum * keep + p;
    for (uint32_t i = 0; i < d; i++)
      out[i] = out[i] * keep + p * twin_kv_get(s->type[0], c->buf[2], row + i);
  }
  out[d] = max;
  out[d + 1] = sum;
}

void attn_split_twin(const hw_cpu_call *c) {
  const kernel_spec *s = kernel_spec_of(c);
  const uint32_t h = s->dim[0], d = s->dim[2], n = s->dim[3];
  const step_params *step = c->buf[4];
  const uint32_t len = step->pos + 1, share = div_up32(len, n);
  float *part = c->buf[3];
  for (uint32_t i = 0; i < h; i++) {
    for (uint32_t j = 0; j < n; j++, part += d + 2)
      split(c, i, min_u32(j * share, len), min_u32((j + 1) * share, len), part);
  }
}

/* HEADS: query heads that one workgroup computes from the same keys and values, KEYS: cache rows
 * that it takes at a time, LANES: threads a key. KEYS * LANES is a multiple of the threads. One
 * head a workgroup leaves more of them: on an NVIDIA H200 (driver 580) 3 % of a 1B model's decode
 * at depth 512; the keys that heads share come from its cache. */
enum { MAX_HEADS = 1, KEYS = 32 };

/* Bytes and flops depend on the context: those of one full chunk of every split are given. */
void attn_split_shape(const kernel_spec *s, kernel_shape *out) {
  const uint32_t h = s->dim[0], g = s->dim[1], d = s->dim[2], n = s->dim[3], group = h / g;
  uint32_t heads = min_u32(MAX_HEADS, group);
  while (group % heads) heads--;
  const uint32_t lanes = d / 4 % 8 ? 4 : 8, threads = kernel_threads(s, 128, d / 4);
  *out = (kernel_shape){
      .workgroup = {threads, 1, 1},
      .groups = {h / heads, n, 1},
      .workgroup_mem = 4 * (heads * (d + KEYS * (lanes + 3) + 1) + 4 * threads + 4 * threads / d),
      .bytes = 2ull * KEYS * n * g * d * dtype_get(s->type[0])->bytes + 4ull * h * d * (n + 1),
      .flops = 4ull * KEYS * n * h * d,
      .tile = {heads, KEYS, threads, lanes},
  };
  if (d % 16 || d > 256) out->refuse = "D must be a multiple of 16, at most 256";
}

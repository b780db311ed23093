/* Twin of sample.wgsl: the definition of the sampler.
 *
 * Candidates: the top_k greatest logits, equal ones by lower id, in falling order; l[0] the
 * greatest. top-p: of p[i] = exp(l[i] - l[0]), the shortest prefix whose sum is at least top_p of
 * the whole. min-p: of these, the ones with p[i] >= min_p (p[0] is 1). Then q[i] = exp((l[i] -
 * l[0]) / temp), and the draw u in [0,1) takes the first i whose running sum of q exceeds u times
 * the whole. The order is that of llama.cpp's default chain. Where a logit is NaN or +infinity
 * there is no draw: UINT32_MAX. */
#include "kernels/twin.h"

enum { MAX_K = 256 };

typedef struct candidates {
  uint32_t n;
  uint32_t id[MAX_K];
  float l[MAX_K];
} candidates;

/* Keeps the k best seen so far in falling order; a later id must be strictly greater to pass. */
static void insert(candidates *c, uint32_t k, uint32_t id, float l) {
  if (c->n == k && twin_key(l) <= twin_key(c->l[k - 1])) return;
  uint32_t i = c->n < k ? c->n++ : k - 1;
  for (; i && twin_key(c->l[i - 1]) < twin_key(l); i--) {
    c->l[i] = c->l[i - 1];
    c->id[i] = c->id[i - 1];
  }
  c->l[i] = l;
  c->id[i] = id;
}

static uint32_t top_p(const candidates *c, float p) {
  if (p >= 1) return c->n;
  float sum = 0, part = 0;
  for (uint32_t i = 0; i < c->n; i++) sum += expf(c->l[i] - c->l[0]);
  for (uint32_t i = 0; i < c->n; i++) {
    part += expf(c->l[i] - c->l[0]);
    if (part >= p * sum) return i + 1;
  }
  return c->n;
}

static uint32_t min_p(const candidates *c, uint32_t n, float p) {
  while (n > 1 && !(expf(c->l[n - 1] - c->l[0]) >= p)) n--;
  return n;
}

void sample_twin(const hw_cpu_call *c) {
  const uint32_t n = kernel_spec_of(c)->dim[0];
  const float *logits = c->buf[0]; /* [N] */
  const step_params *step = c->buf[2];
  const uint32_t k = max_u32(1, min_u32(step->top_k, MAX_K));
  candidates top = {0};
  for (uint32_t i = 0; i < n; i++) insert(&top, k, i, logits[i]);
  const uint32_t kept = min_p(&top, top_p(&top, step->top_p), step->min_p);
  float sum = 0, part = 0;
  for (uint32_t i = 0; i < kept; i++) sum += expf((top.l[i] - top.l[0]) / step->temp);
  const float goal = rng_f32(step->seed, step->draw) * sum;
  uint32_t i = 0;
  for (; i + 1 < kept; i++) {
    part += expf((top.l[i] - top.l[0]) / step->temp);
    if (part > goal) break;
  }
  *(uint32_t *)c->buf[1] = twin_id(twin_key(top.l[0]), top.id[i]);
}

void sample_shape(const kernel_spec *s, kernel_shape *out) {
  *out = (kernel_shape){.workgroup = {256, 1, 1},
                        .groups = {1, 1, 1},
                        .workgroup_mem = 8 * 1024 + 4 * 256 + 16,
                        .bytes = 4ull * s->dim[0],
                        .flops = 8ull * s->dim[0],
                        .cpu_single = true};
}

/* Twin of attention.wgsl. Scores and sums in double; needs no memory: the softmax is taken with a
 * running maximum, two elements of cache at a time. */
#include "kernels/twin.h"

typedef struct head {
  dtype t;
  const float *q;      /* [D] */
  const void *k, *v;   /* [context, G D] */
  uint64_t off, width; /* of this head in a cache row; elements of a row */
  uint32_t d, rows;
  double scale;
} head;

static double score(const head *a, uint32_t row) {
  double sum = 0;
  for (uint32_t i = 0; i < a->d; i++)
    sum += (double)a->q[i] * (double)twin_kv_get(a->t, a->k, row * a->width + a->off + i);
  return sum * a->scale;
}

/* y[i] = sum_r softmax(score)[r] v[r,i] */
static void one_head(const head *a, float *y) {
  double max = -INFINITY;
  for (uint32_t r = 0; r < a->rows; r++) max = fmax(max, score(a, r));
  enum { PART = 64 };
  for (uint32_t first = 0; first < a->d; first += PART) {
    uint32_t n = min_u32(PART, a->d - first);
    double acc[PART] = {0}, sum = 0;
    for (uint32_t r = 0; r < a->rows; r++) {
      double p = exp(score(a, r) - max);
      sum += p;
      for (uint32_t i = 0; i < n; i++)
        acc[i] += p * (double)twin_kv_get(a->t, a->v, r * a->width + a->off + first + i);
    }
    for (uint32_t i = 0; i < n; i++) y[first + i] = (float)(acc[i] / sum);
  }
}

void attention_twin(const hw_cpu_call *c) {
  const kernel_spec *s = kernel_spec_of(c);
  const uint32_t h = s->dim[0], g = s->dim[1], d = s->dim[2];
  const float *q = c->buf[0]; /* [M, H D] */
  float *y = c->buf[3];       /* [M, H D] */
  const step_params *step = c->buf[4];
  for (uint32_t m = 0; m < step->n_tok; m++) {
    for (uint32_t j = 0; j < h; j++, q += d, y += d) {
      head a = {.t = s->type[0],
                .q = q,
                .k = c->buf[1],
                .v = c->buf[2],
                .off = (uint64_t)(j / (h / g)) * d,
                .width = (uint64_t)g * d,
                .d = d,
                .rows = step->pos + m + 1,
                .scale = (double)s->f[0]};
      one_head(&a, y);
    }
  }
}

/* A workgroup a (head, row). Bytes and flops: of the chunk's own rows; the cache before it depends
 * on the position. */
void attention_shape(const kernel_spec *s, kernel_shape *out) {
  const uint64_t h = s->dim[0], g = s->dim[1], d = s->dim[2], m = s->dim[3];
  const uint32_t threads = kernel_threads(s, 128, s->dim[2] / 4);
  *out = (kernel_shape){.workgroup = {threads, 1, 1},
                        .groups = {(uint32_t)h, (uint32_t)m, 1},
                        .workgroup_mem = (uint32_t)(4 * d + 24 * threads),
                        .tile = {threads}};
  out->bytes = 8 * m * h * d + 2 * m * g * d * dtype_get(s->type[0])->bytes;
  out->flops = 2 * m * (m + 1) * h * d;
}

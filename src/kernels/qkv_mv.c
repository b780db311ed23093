/* Twin of qkv_mv.wgsl. */
#include <assert.h>

#include "kernels/mv_shape.h"
#include "kernels/twin.h"
#include "kernels/twin_chain.h"

/* The rows of the stack q, k, v that both the tensor and one part of the stack hold. */
typedef struct span {
  uint32_t begin, end; /* in the stack */
  uint32_t base;       /* of the part */
} span;
static span meet(const uint32_t *d, uint32_t base, uint32_t n) {
  return (span){max_u32(d[4], base), min_u32(d[4] + d[0], base + n), base};
}

static void store(dtype kv, void *cache, uint64_t at, const float *x, uint32_t n) {
  for (uint32_t i = 0; i < n; i++) twin_kv_put(kv, cache, at + i, x[i]);
}

void qkv_mv_twin(const hw_cpu_call *c) {
  const kernel_spec *s = kernel_spec_of(c);
  const uint32_t *d = s->dim; /* N K ROW0 NTOT OFF NQ NK D ROT NEOX */
  const uint32_t off = d[4], nq = d[5], nk = d[6];
  const step_params *step = c->buf[7];
  void *const *b = c->buf;                                  /* w x g cs q kc vc step */
  float *h = c->scratch, *y = h + d[1], *turned = y + d[0]; /* [K], [N], [N] */
  assert(off % d[7] == 0 && d[0] % d[7] == 0);
  twin_norm(c, d[1], s->f[0], b[1], b[2], h, b[7]);
  twin_matvec(c, (twin_mv){d[0], d[1], d[2], d[3], d[0], 0, s->type[0]}, b[0], h, y, b[7]);
  const span part[3] = {meet(d, 0, nq), meet(d, nq, nk), meet(d, nq + nk, nk)};
  for (int i = 0; i < 3; i++) {
    const span p = part[i];
    if (p.begin >= p.end) continue;
    float *from = y + (p.begin - off);
    const uint32_t n = p.end - p.begin, at = p.begin - p.base;
    kernel_spec rope = {.op = KERNEL_ROPE, .dim = {n / d[7], d[7], d[8], d[9], 1}};
    if (i < 2) twin_call(c, &rope, (void *[]){from, b[3], i ? turned : (float *)b[4] + at, b[7]});
    if (i > 0)
      store(s->type[1], b[4 + i], (uint64_t)step->pos * nk + at, i == 1 ? turned : from, n);
  }
}

void qkv_mv_shape(const kernel_spec *s, kernel_shape *out) {
  const uint32_t *d = s->dim;
  mv_shape(s, d[0], 1, 4, d[1], out);
  out->cpu_scratch = 4ull * d[1] + 8ull * d[0];
  if (d[7] % 4 || d[8] % 4) out->refuse = "D and ROT must be multiples of 4";
  if (d[4] % d[7] || d[0] % d[7]) out->refuse = "the tensor's rows must be whole heads";
}

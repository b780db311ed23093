/* Twin of ffn_mv.wgsl. */
#include "kernels/mv_shape.h"
#include "kernels/twin_chain.h"

void ffn_mv_twin(const hw_cpu_call *c) {
  const kernel_spec *s = kernel_spec_of(c);
  const uint32_t n = s->dim[0], k = s->dim[1];
  float *h = c->scratch, *gate = h + k, *up = gate + n; /* [K], [N], [N] */
  twin_norm(c, k, s->f[0], c->buf[1], c->buf[2], h, c->buf[4]);
  twin_matvec(c, (twin_mv){n, k, 0, 2 * n, n, 0, s->type[0]}, c->buf[0], h, gate, c->buf[4]);
  twin_matvec(c, (twin_mv){n, k, n, 2 * n, n, 0, s->type[0]}, c->buf[0], h, up, c->buf[4]);
  kernel_spec silu = {.op = KERNEL_SILU_MUL, .dim = {n, 1}};
  twin_call(c, &silu, (void *[]){gate, up, c->buf[3], c->buf[4]});
}

void ffn_mv_shape(const kernel_spec *s, kernel_shape *out) {
  mv_shape(s, s->dim[0], 2, 2, s->dim[1], out);
  out->cpu_scratch = 4ull * s->dim[1] + 8ull * s->dim[0];
}

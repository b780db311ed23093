/* Twin of norm_mv.wgsl. */
#include "kernels/mv_shape.h"
#include "kernels/twin_chain.h"

void norm_mv_twin(const hw_cpu_call *c) {
  const kernel_spec *s = kernel_spec_of(c);
  const uint32_t *d = s->dim; /* N K ROW0 NTOT YN Y0 */
  float *h = c->scratch;      /* [K] */
  twin_norm(c, d[1], s->f[0], c->buf[1], c->buf[2], h, c->buf[4]);
  twin_matvec(c, (twin_mv){d[0], d[1], d[2], d[3], d[4], d[5], s->type[0]}, c->buf[0], h, c->buf[3],
              c->buf[4]);
}

void norm_mv_shape(const kernel_spec *s, kernel_shape *out) {
  mv_shape(s, s->dim[0], 1, 1, s->dim[1], out);
  out->cpu_scratch = 4ull * s->dim[1];
}

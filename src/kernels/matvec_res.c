/* Twin of matvec_res.wgsl. */
#include "kernels/mv_shape.h"
#include "kernels/twin_chain.h"

void matvec_res_twin(const hw_cpu_call *c) {
  const kernel_spec *s = kernel_spec_of(c);
  const uint32_t *d = s->dim; /* N K ROW0 NTOT */
  float *p = c->scratch;      /* W x: [N] */
  twin_matvec(c, (twin_mv){d[0], d[1], d[2], d[3], d[0], 0, s->type[0]}, c->buf[0], c->buf[1], p,
              c->buf[4]);
  kernel_spec add = {.op = KERNEL_ADD, .dim = {d[0], 1}};
  twin_call(c, &add, (void *[]){c->buf[2], p, c->buf[3], c->buf[4]});
}

void matvec_res_shape(const kernel_spec *s, kernel_shape *out) {
  mv_shape(s, s->dim[0], 1, 1, s->dim[1], out);
  out->cpu_scratch = 4ull * s->dim[0];
}

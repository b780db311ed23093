/* Twin of matvec.wgsl. */
#include "kernels/mv_shape.h"
#include "kernels/twin.h"

void matvec_twin(const hw_cpu_call *c) {
  const kernel_spec *s = kernel_spec_of(c);
  const uint32_t n = s->dim[0], k = s->dim[1], row0 = s->dim[2], y0 = s->dim[5];
  const float *x = c->buf[1]; /* [K] */
  float *y = c->buf[2];       /* [YN], this op's part from Y0 */
  for (uint32_t i = 0; i < n; i++)
    y[y0 + i] = (float)twin_dot(s->type[0], c->buf[0], (uint64_t)row0 + i, x, k);
}

void matvec_shape(const kernel_spec *s, kernel_shape *out) {
  mv_shape(s, s->dim[0], 1, 1, s->dim[1], out);
}

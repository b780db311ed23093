/* Twin of add.wgsl. */
#include "kernels/twin.h"

void add_twin(const hw_cpu_call *c) {
  const kernel_spec *s = kernel_spec_of(c);
  const float *a = c->buf[0], *b = c->buf[1]; /* [M, N] */
  float *y = c->buf[2];
  const step_params *step = c->buf[3];
  for (uint64_t i = 0; i < (uint64_t)twin_rows(step, s->dim[1]) * s->dim[0]; i++)
    y[i] = a[i] + b[i];
}

void add_shape(const kernel_spec *s, kernel_shape *out) {
  const uint64_t n = s->dim[0], m = s->dim[1];
  *out = shape_elements(n * m);
  out->bytes = 12 * n * m;
  out->flops = n * m;
}

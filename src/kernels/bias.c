/* Twin of bias.wgsl. */
#include "kernels/twin.h"

void bias_twin(const hw_cpu_call *c) {
  const kernel_spec *s = kernel_spec_of(c);
  const uint32_t n = s->dim[0];
  const float *x = c->buf[0], *b = c->buf[1]; /* [M, N], [N] */
  float *y = c->buf[2];
  const step_params *step = c->buf[3];
  for (uint64_t i = 0; i < (uint64_t)twin_rows(step, s->dim[1]) * n; i++) y[i] = x[i] + b[i % n];
}

void bias_shape(const kernel_spec *s, kernel_shape *out) {
  const uint64_t n = s->dim[0], m = s->dim[1];
  *out = shape_elements(n * m);
  out->bytes = 4 * n * (2 * m + 1);
  out->flops = n * m;
}

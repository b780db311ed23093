/* Twin of matmul.wgsl. */
#include "kernels/gemm_shape.h"
#include "kernels/twin.h"

void matmul_twin(const hw_cpu_call *c) {
  const kernel_spec *s = kernel_spec_of(c);
  const uint32_t n = s->dim[0], k = s->dim[1], row0 = s->dim[3], yn = s->dim[5], y0 = s->dim[6];
  const float *x = c->buf[1]; /* [M, K] */
  float *y = c->buf[2];       /* [M, YN] */
  const step_params *step = c->buf[3];
  for (uint32_t m = 0; m < step->n_tok; m++, x += k, y += yn) {
    for (uint32_t i = 0; i < n; i++)
      y[y0 + i] = (float)twin_dot(s->type[0], c->buf[0], (uint64_t)row0 + i, x, k);
  }
}

void matmul_shape(const kernel_spec *s, kernel_shape *out) {
  gemm_shape(s, s->dim[0], s->dim[1], s->dim[2], out);
}

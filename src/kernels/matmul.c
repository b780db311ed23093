/* Twin of matmul.wgsl; owns the workgroups of every kernel on lib/mm.wgsl. */
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

/* As the consts of lib/mm.wgsl: tiles of 64 columns by 64 rows, by 32 where there would be few. */
kernel_shape kernel_mm_shape(uint32_t n, uint32_t m) {
  const uint32_t rows = div_up32(n, 64) * div_up32(m, 64) < 128 ? 32 : 64;
  return (kernel_shape){.workgroup = {256, 1, 1},
                        .groups = {div_up32(n, 64), div_up32(m, rows), 1},
                        .workgroup_mem = 128 * (64 + rows)};
}

void matmul_shape(const kernel_spec *s, kernel_shape *out) {
  const uint32_t n = s->dim[0], k = s->dim[1], m = s->dim[2];
  *out = kernel_mm_shape(n, m);
  out->bytes = n * dtype_row_bytes(s->type[0], k) + 4ull * m * ((uint64_t)n + k);
  out->flops = 2ull * n * k * m;
}

/* Twin of matvec.wgsl; owns the workgroups of every kernel on lib/mv.wgsl. */
#include "kernels/twin.h"

void matvec_twin(const hw_cpu_call *c) {
  const kernel_spec *s = kernel_spec_of(c);
  const uint32_t n = s->dim[0], k = s->dim[1], row0 = s->dim[2], y0 = s->dim[5];
  const float *x = c->buf[1]; /* [K] */
  float *y = c->buf[2];       /* [YN], this op's part from Y0 */
  for (uint32_t i = 0; i < n; i++)
    y[y0 + i] = (float)twin_dot(s->type[0], c->buf[0], (uint64_t)row0 + i, x, k);
}

/* As the consts of lib/stage.wgsl and lib/mv.wgsl: threads a row by K, rows a thread by N. */
kernel_shape kernel_mv_shape(uint32_t n, uint32_t k) {
  const uint32_t threads = k >= 1024 ? 32 : k >= 512 ? 16 : 8, rows = n >= 16384 ? 4 : 1;
  const uint32_t blocks = min_u32(k / 32, 64);
  kernel_shape s = {.workgroup = {256, 1, 1},
                    .workgroup_mem = 128 * (blocks | 1) + 4 * blocks + 4 * 256};
  kernel_grid(div_up(n, 256 / threads * rows), s.groups);
  return s;
}

void matvec_shape(const kernel_spec *s, kernel_shape *out) {
  const uint32_t n = s->dim[0], k = s->dim[1];
  *out = kernel_mv_shape(n, k);
  out->bytes = n * dtype_row_bytes(s->type[0], k) + 4ull * (n + k);
  out->flops = 2ull * n * k;
}

/* Twin of rmsnorm.wgsl. */
#include "kernels/twin.h"

void rmsnorm_twin(const hw_cpu_call *c) {
  const kernel_spec *s = kernel_spec_of(c);
  const uint32_t n = s->dim[0]; /* [M, N] */
  const float *x = c->buf[0], *g = c->buf[1];
  float *y = c->buf[2];
  const step_params *step = c->buf[3];
  for (uint32_t m = 0; m < twin_rows(step, s->dim[1]); m++, x += n, y += n)
    twin_rmsnorm(x, g, n, s->f[0], y);
}

void rmsnorm_shape(const kernel_spec *s, kernel_shape *out) {
  const uint32_t n = s->dim[0], m = s->dim[1], threads = kernel_threads(s, 256, 1);
  *out = (kernel_shape){.workgroup = {threads, 1, 1},
                        .groups = {m, 1, 1},
                        .workgroup_mem = 4 * threads,
                        .bytes = 4ull * n * (2 * m + 1),
                        .flops = 4ull * n * m,
                        .cpu_single = m == 1,
                        .tile = {threads}};
}

/* Twin of silu_mul_pair.wgsl. */
#include "kernels/twin_chain.h"

/* Row by row: silu_mul's operands are contiguous. */
void silu_mul_pair_twin(const hw_cpu_call *c) {
  const kernel_spec *s = kernel_spec_of(c);
  const uint32_t n = s->dim[0];
  const step_params *step = c->buf[2];
  float *gu = c->buf[0], *y = c->buf[1]; /* [M, 2N], [M, N] */
  kernel_spec silu = {.op = KERNEL_SILU_MUL, .dim = {n, 1}};
  step_params one = *step;
  one.n_tok = 1;
  for (uint32_t m = 0; m < step->n_tok; m++, gu += 2 * n, y += n)
    twin_call(c, &silu, (void *[]){gu, gu + n, y, &one});
}

void silu_mul_pair_shape(const kernel_spec *s, kernel_shape *out) {
  const uint64_t nm = (uint64_t)s->dim[0] * s->dim[1];
  *out = (kernel_shape){.workgroup = {256, 1, 1}, .bytes = 12 * nm, .flops = 5 * nm};
  kernel_grid((nm + 255) / 256, out->groups);
}

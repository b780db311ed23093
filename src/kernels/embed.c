/* Twin of embed.wgsl. */
#include "kernels/twin.h"

void embed_twin(const hw_cpu_call *c) {
  const kernel_spec *s = kernel_spec_of(c);
  const uint32_t n = s->dim[0], rows = s->dim[1], first = s->dim[3];
  const uint32_t *ids = c->buf[1]; /* [M] */
  float *y = c->buf[2];            /* [M, N] */
  const step_params *step = c->buf[3];
  for (uint32_t m = 0; m < step->n_tok; m++) {
    uint32_t row = ids[m] - first;
    if (row >= rows) continue; /* another part's row */
    quant_dequant_row(s->type[0], twin_row(s->type[0], c->buf[0], row, n), y + (uint64_t)m * n, n);
  }
}

/* A thread a block of 32. */
void embed_shape(const kernel_spec *s, kernel_shape *out) {
  const uint32_t n = s->dim[0], m = s->dim[2];
  *out = (kernel_shape){.workgroup = {64, 1, 1},
                        .cpu_single = true,
                        .bytes = m * (dtype_row_bytes(s->type[0], n) + 4ull * n + 4)};
  kernel_grid(div_up((uint64_t)(n / 32) * m, 64), out->groups);
}

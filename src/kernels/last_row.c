/* Twin of last_row.wgsl. */
#include <string.h>

#include "kernels/twin.h"

void last_row_twin(const hw_cpu_call *c) {
  const uint32_t n = kernel_spec_of(c)->dim[0];
  const float *x = c->buf[0]; /* [M, N] */
  const step_params *step = c->buf[2];
  memcpy(c->buf[1], x + (uint64_t)(step->n_tok - 1) * n, 4ull * n);
}

void last_row_shape(const kernel_spec *s, kernel_shape *out) {
  *out = shape_elements(s->dim[0]);
  out->cpu_single = true;
  out->bytes = 8ull * s->dim[0];
}

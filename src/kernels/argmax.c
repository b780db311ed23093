/* Twin of argmax.wgsl. */
#include "kernels/twin.h"

void argmax_twin(const hw_cpu_call *c) {
  const uint32_t n = kernel_spec_of(c)->dim[0];
  const float *logits = c->buf[0]; /* [N] */
  uint32_t top, best = twin_best(logits, 0, n, &top);
  *(uint32_t *)c->buf[1] = twin_id(top, best);
}

void argmax_shape(const kernel_spec *s, kernel_shape *out) {
  *out = (kernel_shape){.workgroup = {256, 1, 1},
                        .groups = {1, 1, 1},
                        .workgroup_mem = 2048,
                        .bytes = 4ull * s->dim[0],
                        .flops = s->dim[0],
                        .cpu_single = true};
}

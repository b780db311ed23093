/* Twin of argmax_join.wgsl. */
#include "kernels/twin.h"

void argmax_join_twin(const hw_cpu_call *c) {
  const uint32_t parts = kernel_spec_of(c)->dim[0];
  const uint32_t *part = c->buf[0]; /* [P, 2] */
  uint32_t best = 0;
  for (uint32_t p = 1; p < parts; p++) {
    uint32_t a = part[2 * p], b = part[2 * best];
    if (a > b || (a == b && part[2 * p + 1] < part[2 * best + 1])) best = p;
  }
  *(uint32_t *)c->buf[1] = twin_id(part[2 * best], part[2 * best + 1]);
}

void argmax_join_shape(const kernel_spec *s, kernel_shape *out) {
  *out = (kernel_shape){.workgroup = {256, 1, 1},
                        .groups = {1, 1, 1},
                        .workgroup_mem = 2048,
                        .bytes = 8ull * s->dim[0] + 4,
                        .flops = s->dim[0],
                        .cpu_single = true};
}

/* Twin of argmax_part.wgsl. */
#include "base/math.h"
#include "kernels/twin.h"

/* A share that begins past the end holds the last logit, as threads without one do in the text. */
void argmax_part_twin(const hw_cpu_call *c) {
  const kernel_spec *s = kernel_spec_of(c);
  const uint32_t n = s->dim[0], parts = s->dim[1], share = div_up32(n, parts);
  const float *logits = c->buf[0]; /* [N] */
  uint32_t *part = c->buf[1];      /* [P, 2] */
  for (uint32_t p = 0; p < parts; p++) {
    uint32_t begin = min_u32(p * share, n - 1), end = min_u32(p * share + share, n);
    part[2 * p + 1] = twin_best(logits, begin, end, &part[2 * p]);
  }
}

void argmax_part_shape(const kernel_spec *s, kernel_shape *out) {
  *out = (kernel_shape){.workgroup = {256, 1, 1},
                        .groups = {s->dim[1], 1, 1},
                        .workgroup_mem = 2048,
                        .bytes = 4ull * s->dim[0] + 8ull * s->dim[1],
                        .flops = s->dim[0],
                        .cpu_single = true};
}

/* Twin of remember.wgsl. */
#include "kernels/twin.h"

void remember_twin(const hw_cpu_call *c) {
  const uint32_t ring = kernel_spec_of(c)->dim[0];
  const uint32_t *ids = c->buf[0];
  uint32_t *recent = c->buf[1]; /* [RING] */
  const step_params *step = c->buf[2];
  recent[(step->pos + step->n_tok) % ring] = ids[0];
}

void remember_shape(const kernel_spec *s, kernel_shape *out) {
  (void)s;
  *out =
      (kernel_shape){.workgroup = {1, 1, 1}, .groups = {1, 1, 1}, .bytes = 8, .cpu_single = true};
}

/* Twin of penalize.wgsl. */
#include "kernels/twin.h"

/* The i-th newest id, i from 0, at position end - 1 - i. */
static uint32_t recent_id(const uint32_t *recent, uint32_t ring, uint32_t end, uint32_t i) {
  return recent[(end - 1 - i) % ring];
}

void penalize_twin(const hw_cpu_call *c) {
  const kernel_spec *s = kernel_spec_of(c);
  const uint32_t n = s->dim[0], ring = s->dim[1];
  const uint32_t *recent = c->buf[0]; /* [RING] */
  float *logits = c->buf[1];          /* [N] */
  const step_params *step = c->buf[2];
  const uint32_t end = step->pos + step->n_tok, count = min_u32(min_u32(step->n_recent, ring), end);
  for (uint32_t i = 0; i < count; i++) {
    uint32_t id = recent_id(recent, ring, end, i), j = 0;
    while (j < i && recent_id(recent, ring, end, j) != id) j++;
    if (j < i || id >= n) continue;
    logits[id] = logits[id] > 0 ? logits[id] / step->penalty : logits[id] * step->penalty;
  }
}

void penalize_shape(const kernel_spec *s, kernel_shape *out) {
  *out = (kernel_shape){.workgroup = {64, 1, 1},
                        .groups = {1, 1, 1},
                        .bytes = 12ull * s->dim[1],
                        .flops = s->dim[1],
                        .cpu_single = true};
}

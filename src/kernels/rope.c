/* Twin of rope.wgsl. */
#include "kernels/twin.h"

void rope_twin(const hw_cpu_call *c) {
  const kernel_spec *s = kernel_spec_of(c);
  const uint32_t h = s->dim[0], d = s->dim[1], rot = s->dim[2], neox = s->dim[3];
  const float *x = c->buf[0];  /* [M, H D] */
  const float *cs = c->buf[1]; /* [context, ROT/2] (cos, sin) */
  float *y = c->buf[2];
  const step_params *step = c->buf[3];
  for (uint32_t m = 0; m < step->n_tok; m++) {
    const float *row = cs + ((uint64_t)step->pos + m) * rot;
    for (uint32_t j = 0; j < h; j++, x += d, y += d) {
      for (uint32_t i = 0; i < d; i++) y[i] = twin_rope(x, i, rot, neox, row);
    }
  }
}

void rope_shape(const kernel_spec *s, kernel_shape *out) {
  const uint64_t n = (uint64_t)s->dim[0] * s->dim[1], m = s->dim[4];
  *out = shape_elements(n * m);
  out->bytes = 4 * m * (2 * n + s->dim[2]);
  out->flops = 3 * n * m;
}

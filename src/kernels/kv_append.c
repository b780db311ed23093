/* Twin of kv_append.wgsl. */
#include "kernels/twin.h"

void kv_append_twin(const hw_cpu_call *c) {
  const kernel_spec *s = kernel_spec_of(c);
  const uint32_t n = s->dim[0];
  const float *x = c->buf[0]; /* [M, N] */
  void *cache = c->buf[1];    /* [context, N] */
  const step_params *step = c->buf[2];
  const uint64_t first = (uint64_t)step->pos * n;
  for (uint64_t i = 0; i < (uint64_t)step->n_tok * n; i++)
    twin_kv_put(s->type[0], cache, first + i, x[i]);
}

/* A thread two elements. */
void kv_append_shape(const kernel_spec *s, kernel_shape *out) {
  const uint64_t n = s->dim[0], m = s->dim[1], bytes = dtype_get(s->type[0])->bytes;
  *out = shape_elements(n * m / 2);
  out->bytes = n * m * (4 + bytes);
}

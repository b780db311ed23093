/* Twin of nll.wgsl. */
#include <math.h>

#include "kernels/kernel_impl.h"

void nll_twin(const hw_cpu_call *c) {
  const kernel_spec *s = kernel_spec_of(c);
  const uint32_t n = s->dim[0];
  const float *logits = c->buf[0];  /* [M, N] */
  const uint32_t *next = c->buf[1]; /* [M] */
  float *nll = c->buf[2];           /* [M] */
  const step_params *step = c->buf[3];
  for (uint32_t m = 0; m < step->n_tok; m++, logits += n) {
    float max = logits[0];
    for (uint32_t i = 1; i < n; i++) max = fmaxf(max, logits[i]);
    double sum = 0;
    for (uint32_t i = 0; i < n; i++) sum += exp((double)logits[i] - (double)max);
    nll[m] = next[m] < n ? (float)(log(sum) + (double)max - (double)logits[next[m]]) : 0;
  }
}

void nll_shape(const kernel_spec *s, kernel_shape *out) {
  const uint32_t n = s->dim[0], m = s->dim[1];
  *out = (kernel_shape){.workgroup = {256, 1, 1},
                        .groups = {m, 1, 1},
                        .workgroup_mem = 1024,
                        .bytes = 4ull * n * m,
                        .flops = 4ull * n * m};
}

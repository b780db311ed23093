/* Twin of attn_combine.wgsl. */
#include <float.h>
#include <math.h>

#include "kernels/kernel_impl.h"

void attn_combine_twin(const hw_cpu_call *c) {
  const kernel_spec *s = kernel_spec_of(c);
  const uint32_t h = s->dim[0], d = s->dim[1], n = s->dim[2];
  const float *part = c->buf[0]; /* [H, S, D + 2] */
  float *y = c->buf[1];
  for (uint32_t i = 0; i < h; i++, part += n * (d + 2), y += d) {
    float max = -FLT_MAX;
    double sum = 0;
    for (uint32_t j = 0; j < n; j++) max = fmaxf(max, part[j * (d + 2) + d]);
    for (uint32_t j = 0; j < n; j++)
      sum += (double)(part[j * (d + 2) + d + 1] * expf(part[j * (d + 2) + d] - max));
    for (uint32_t e = 0; e < d; e++) {
      double v = 0;
      for (uint32_t j = 0; j < n; j++)
        v += (double)(part[j * (d + 2) + e] * expf(part[j * (d + 2) + d] - max));
      y[e] = (float)(v / sum);
    }
  }
}

void attn_combine_shape(const kernel_spec *s, kernel_shape *out) {
  const uint64_t h = s->dim[0], d = s->dim[1], n = s->dim[2];
  *out = (kernel_shape){.workgroup = {64, 1, 1},
                        .groups = {(uint32_t)(h * ((d + 63) / 64)), 1, 1},
                        .bytes = 4 * h * (n * (d + 2) + d),
                        .flops = 2 * h * d * n,
                        .cpu_single = true};
}

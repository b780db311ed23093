/* Twin of attn_flash.wgsl: attention itself. */
#include "base/math.h"
#include "kernels/twin_chain.h"

void attn_flash_twin(const hw_cpu_call *c) {
  kernel_spec s = *kernel_spec_of(c);
  s.op = KERNEL_ATTENTION;
  twin_call(c, &s, c->buf);
}

/* BQ queries against BK keys at a time: what fits 16 KiB of workgroup memory. */
void attn_flash_shape(const kernel_spec *s, kernel_shape *out) {
  const uint64_t h = s->dim[0], g = s->dim[1], d = s->dim[2], m = s->dim[3];
  const uint32_t bq = d <= 96 ? 16 : 8,
                 bk = d <= 64    ? 32
                      : d <= 128 ? 16
                                 : 4,
                 threads = kernel_threads(s, 128, max_u32(max_u32(bq, bk), (uint32_t)d / 4));
  *out = (kernel_shape){
      .workgroup = {threads, 1, 1},
      .groups = {(uint32_t)((m + bq - 1) / bq), (uint32_t)h, 1},
      .workgroup_mem = (uint32_t)(16 * (bq + bk) * (d / 4 | 1)) + 4 * (bq * (bk + 2) + threads),
      .bytes = 4 * m * d * (2 * h) + 2 * m * d * g * dtype_get(s->type[0])->bytes,
      .flops = 2 * m * m * h * d,
      .tile = {bq, bk, threads, 0},
  };
  if (d % 16 || d > 256) out->refuse = "D must be a multiple of 16, at most 256";
}

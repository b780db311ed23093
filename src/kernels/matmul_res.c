/* Twin of matmul_res.wgsl. */
#include "kernels/gemm_shape.h"
#include "kernels/twin_chain.h"

void matmul_res_twin(const hw_cpu_call *c) {
  const kernel_spec *s = kernel_spec_of(c);
  const uint32_t *d = s->dim; /* N K M ROW0 NTOT */
  float *p = c->scratch;      /* x W^T: [M, N] */
  kernel_spec mul = {
      .op = KERNEL_MATMUL, .dim = {d[0], d[1], d[2], d[3], d[4], d[0], 0}, .type = {s->type[0]}};
  twin_call(c, &mul, (void *[]){c->buf[0], c->buf[1], p, c->buf[4]});
  kernel_spec add = {.op = KERNEL_ADD, .dim = {d[0], d[2]}};
  twin_call(c, &add, (void *[]){c->buf[2], p, c->buf[3], c->buf[4]});
}

void matmul_res_shape(const kernel_spec *s, kernel_shape *out) {
  gemm_shape(s, s->dim[0], s->dim[1], s->dim[2], out);
  out->bytes += 4ull * s->dim[0] * s->dim[2];
  out->cpu_scratch = 4ull * s->dim[0] * s->dim[2];
}

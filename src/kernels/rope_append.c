/* Twin of rope_append.wgsl. */
#include "kernels/twin_chain.h"

/* Row by row, as each row has a position of its own. */
void rope_append_twin(const hw_cpu_call *c) {
  const kernel_spec *s = kernel_spec_of(c);
  const uint32_t h = s->dim[0], g = s->dim[1], d = s->dim[2], rot = s->dim[3], neox = s->dim[4];
  const step_params *step = c->buf[5];
  float *qkv = c->buf[0], *q = c->buf[2], *k = c->scratch; /* k: [G D] */
  kernel_spec rope_q = {.op = KERNEL_ROPE, .dim = {h, d, rot, neox, 1}};
  kernel_spec rope_k = {.op = KERNEL_ROPE, .dim = {g, d, rot, neox, 1}};
  kernel_spec append = {.op = KERNEL_KV_APPEND, .dim = {g * d, 1}, .type = {s->type[0]}};
  for (uint32_t m = 0; m < step->n_tok; m++, qkv += (h + 2 * g) * d, q += h * d) {
    step_params one = *step;
    one.pos += m;
    one.n_tok = 1;
    twin_call(c, &rope_q, (void *[]){qkv, c->buf[1], q, &one});
    twin_call(c, &rope_k, (void *[]){qkv + h * d, c->buf[1], k, &one});
    twin_call(c, &append, (void *[]){k, c->buf[3], &one});
    twin_call(c, &append, (void *[]){qkv + (h + g) * d, c->buf[4], &one});
  }
}

/* A thread four values of a row: two rotated pairs, or four plain values. */
void rope_append_shape(const kernel_spec *s, kernel_shape *out) {
  const uint64_t h = s->dim[0], g = s->dim[1], d = s->dim[2], m = s->dim[5];
  const uint64_t kv = dtype_get(s->type[0])->bytes;
  *out = (kernel_shape){.workgroup = {64, 1, 1},
                        .bytes = m * d * (8 * h + 2 * g * (4 + kv)),
                        .groups = {(uint32_t)(((h + 2 * g) * d / 4 + 63) / 64), (uint32_t)m, 1},
                        .flops = 3 * m * d * (h + g),
                        .cpu_scratch = 4 * g * d};
  if (d % 4 || s->dim[3] % 4) out->refuse = "D and ROT must be multiples of 4";
}

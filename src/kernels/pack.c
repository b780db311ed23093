/* Twin of pack.wgsl; owns the sizes of the packed layouts (pack.h). */
#include "kernels/pack.h"

#include <assert.h>
#include <string.h>

#include "base/math.h"
#include "kernels/kernel_impl.h"

/* How a block is laid out: `words` u32 in the first plane, then one u32 in each of `planes`. */
typedef struct layout {
  uint32_t n;     /* elements a block */
  uint32_t bytes; /* of the block in the file */
  uint32_t words, planes;
} layout;

static const layout layouts[DT_COUNT_] = {
    [DT_F32] = {32, 128, 32, 0},   [DT_F16] = {32, 64, 16, 0},    [DT_BF16] = {32, 64, 16, 0},
    [DT_Q4_0] = {32, 18, 4, 1},    [DT_Q4_1] = {32, 20, 4, 1},    [DT_Q5_0] = {32, 22, 4, 2},
    [DT_Q5_1] = {32, 24, 4, 2},    [DT_Q8_0] = {32, 34, 8, 1},    [DT_Q2_K] = {256, 84, 24, 0},
    [DT_Q3_K] = {256, 110, 28, 0}, [DT_Q4_K] = {256, 144, 36, 0}, [DT_Q5_K] = {256, 176, 44, 0},
    [DT_Q6_K] = {256, 210, 56, 0}};

static uint64_t plane_words(const layout *l, uint64_t nb) {
  return nb * l->words; /* a multiple of 4, as l->words is */
}

uint64_t pack_bytes(dtype t, uint64_t k, uint64_t rows) {
  const layout *l = &layouts[t];
  assert(l->n && k % l->n == 0);
  uint64_t nb = k / l->n * rows;
  return 4 * (plane_words(l, nb) + l->planes * round_up(nb, 4));
}

static uint32_t word_at(const uint8_t *block, uint32_t bytes, uint32_t off) {
  uint8_t w[4] = {0};
  if (off < bytes) memcpy(w, block + off, min_u32(4, bytes - off));
  return load_u32(w);
}

/* (d, m) of a type without a minimum. */
static uint32_t scale_and(const uint8_t *block, float times) {
  float m = f16_to_f32(load_u16(block)) * times;
  return load_u16(block) | (uint32_t)f32_to_f16(m) << 16;
}

/* Word w of the packed block. */
static uint32_t pack_word(dtype t, const uint8_t *p, uint32_t w) {
  const layout *l = &layouts[t];
  switch (t) {
  case DT_Q4_0: return w < 4 ? load_u32(p + 2 + 4 * w) : scale_and(p, -8);
  case DT_Q4_1: return load_u32(w < 4 ? p + 4 + 4 * w : p);
  case DT_Q5_0: return w == 4 ? scale_and(p, -16) : load_u32(w < 4 ? p + 6 + 4 * w : p + 2);
  case DT_Q5_1: return load_u32(w < 4 ? p + 8 + 4 * w : w == 4 ? p : p + 4);
  case DT_Q8_0: return w < 8 ? load_u32(p + 2 + 4 * w) : load_u16(p);
  default: return word_at(p, l->bytes, 4 * w);
  }
}

void pack_rows(dtype t, uint64_t k, uint64_t rows, uint64_t row0, uint64_t total, const void *src,
               void *dst) {
  const layout *l = &layouts[t];
  assert(l->n && k % l->n == 0);
  uint64_t nb = k / l->n * rows, first = k / l->n * row0, all = k / l->n * total;
  uint32_t *out = dst;
  for (uint64_t i = 0; i < nb; i++) {
    const uint8_t *block = (const uint8_t *)src + i * l->bytes;
    uint64_t b = first + i;
    for (uint32_t w = 0; w < l->words; w++) out[b * l->words + w] = pack_word(t, block, w);
    for (uint32_t p = 0; p < l->planes; p++)
      out[plane_words(l, all) + p * round_up(all, 4) + b] = pack_word(t, block, l->words + p);
  }
}

void pack_twin(const hw_cpu_call *c) {
  const kernel_spec *s = kernel_spec_of(c);
  const step_params *step = c->buf[2];
  pack_rows(s->type[0], s->dim[0], step->n_tok, step->pos, s->dim[2], c->buf[0], c->buf[1]);
}

void pack_shape(const kernel_spec *s, kernel_shape *out) {
  const layout *l = &layouts[s->type[0]];
  uint64_t nb = (uint64_t)(s->dim[0] / l->n) * s->dim[1];
  *out = (kernel_shape){.workgroup = {256, 1, 1},
                        .bytes = nb * (l->bytes + 4 * (l->words + l->planes))};
  kernel_grid(div_up(nb * (l->words + l->planes), 256), out->groups);
}

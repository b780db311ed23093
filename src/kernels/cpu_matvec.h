/* MATVEC: y[Y0 + n] = sum_k W[ROW0 + n, k] x[k]. Threads share the rows; each makes the
 * sums of groups of x that it needs for itself: K is small beside N.
 *
 * Exact: codes become floats in registers; d and m are applied a group at a time, m to the group's
 * sum of x. Four rows at once share x. */
#ifndef FRIT_KERNELS_CPU_MATVEC_H
#define FRIT_KERNELS_CPU_MATVEC_H

#include "kernels/cpu_group.h"
#include "kernels/kernel.h"

typedef struct matvec {
  const uint8_t *w; /* row 0 of the tensor */
  size_t row_bytes;
  uint32_t k, begin, end; /* this thread's rows */
  const float *x;
  float *y;
  const float *sums; /* [K / 16]: of x */
} matvec;

typedef void (*matvec_fn)(const matvec *a);

/* Adds the products of group i of each of `rows` rows to acc (a vector each) and min. */
INLINE void exact_group(dtype t, const matvec *a, const uint8_t *w, uint32_t rows, uint32_t i,
                        vf *acc, float *min) {
  enum { HALF = 16 / VW };
  vf x[2 * HALF];
  UNROLL for (int j = 0; j < 2 * HALF; j++) x[j] = v_load(a->x + 32 * (size_t)i + j * VW);
  const float *sums = a->sums + 2 * (size_t)i;
  UNROLL for (uint32_t r = 0; r < rows; r++) {
    group g;
    vf c[2 * HALF];
    group_get(t, w + r * a->row_bytes, i, &g);
    group_floats(t, &g, c);
    vf s[2] = {c[0] * x[0], c[HALF] * x[HALF]};
    UNROLL for (int j = 1; j < HALF; j++) {
      s[0] = v_fma(c[j], x[j], s[0]);
      s[1] = v_fma(c[HALF + j], x[HALF + j], s[1]);
    }
    if (group_halves(t)) {
      acc[r] = v_fma(v_set(g.d[0]), s[0], acc[r]);
      acc[r] = v_fma(v_set(g.d[1]), s[1], acc[r]);
      min[r] += g.m[0] * sums[0] + g.m[1] * sums[1];
    } else {
      acc[r] = v_fma(v_set(g.d[0]), s[0] + s[1], acc[r]);
      if (!group_signed(t)) min[r] += g.m[0] * (sums[0] + sums[1]);
    }
  }
}

INLINE void exact_rows(dtype t, const matvec *a, uint32_t n, uint32_t rows) {
  const uint8_t *w = a->w + n * a->row_bytes;
  vf acc[4] = {{0}};
  float min[4] = {0};
  for (uint32_t i = 0; i < a->k / 32; i++) exact_group(t, a, w, rows, i, acc, min);
  UNROLL for (uint32_t r = 0; r < rows; r++) a->y[n + r] = v_sum(acc[r]) + min[r];
}

INLINE void plain_rows(dtype t, const matvec *a, uint32_t n, uint32_t rows) {
  const uint8_t *w = a->w + n * a->row_bytes;
  vf acc[4] = {{0}};
  uint32_t i = 0;
  for (; i + VW <= a->k; i += VW) {
    vf x = v_load(a->x + i);
    UNROLL for (uint32_t r = 0; r < rows; r++) acc[r] =
        v_fma(v_load_as(t, w + r * a->row_bytes, i), x, acc[r]);
  }
  UNROLL for (uint32_t r = 0; r < rows; r++) {
    float s = v_sum(acc[r]);
    for (uint32_t j = i; j < a->k; j++) s += load_as(t, w + r * a->row_bytes, j) * a->x[j];
    a->y[n + r] = s;
  }
}

#define BY_FOUR(name, t)                                                                           \
  uint32_t n = a->begin;                                                                           \
  for (; n + 4 <= a->end; n += 4) name(t, a, n, 4);                                                \
  for (; n < a->end; n++) name(t, a, n, 1)

#define X(id, name)                                                                                \
  static void matvec_##name(const matvec *a) { BY_FOUR(exact_rows, id); }
CPU_GROUP_TYPES(X)
#undef X
static void matvec_f32(const matvec *a) { BY_FOUR(plain_rows, DT_F32); }
static void matvec_f16(const matvec *a) { BY_FOUR(plain_rows, DT_F16); }
static void matvec_bf16(const matvec *a) { BY_FOUR(plain_rows, DT_BF16); }

static const matvec_fn matvec_fns[DT_COUNT_] = {
#define X(id, name) [id] = matvec_##name,
    CPU_GROUP_TYPES(X)
#undef X
        [DT_F32] = matvec_f32,
    [DT_F16] = matvec_f16, [DT_BF16] = matvec_bf16};

static void matvec_call(const hw_cpu_call *c, matvec *a, dtype *t) {
  const kernel_spec *s = kernel_spec_of(c);
  *t = s->type[0];
  size_t row_bytes = (size_t)dtype_row_bytes(*t, s->dim[1]);
  *a = (matvec){.w = (const uint8_t *)c->buf[0] + s->dim[2] * row_bytes,
                .row_bytes = row_bytes,
                .k = s->dim[1],
                .x = c->buf[1],
                .y = (float *)c->buf[2] + s->dim[5]};
  kernel_share(c, s->dim[0], 4, &a->begin, &a->end);
}

static void matvec_exact(const hw_cpu_call *c) {
  matvec a;
  dtype t;
  matvec_call(c, &a, &t);
  if (group_has(t)) {
    float *sums = c->own;
    for (uint32_t i = 0; i < a.k / 16; i++) {
      vf s = v_load(a.x + 16 * i);
      UNROLL for (int j = 1; j < 16 / VW; j++) s += v_load(a.x + 16 * i + j * VW);
      sums[i] = v_sum(s);
    }
    a.sums = sums;
  }
  matvec_fns[t](&a);
}

#endif

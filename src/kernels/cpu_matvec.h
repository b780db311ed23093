/* MATVEC: y[Y0 + n] = sum_k W[ROW0 + n, k] x[k]. Threads share the rows; each makes what it needs
 * of x (sums of groups, or x rounded to 8 bits) for itself: K is small beside N.
 *
 * Exact: codes become floats in registers; d and m are applied a group at a time, m to the group's
 * sum of x. Rounding: integer dot products of codes and rounded x. Four rows at once share x. */
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
  const float *sums;      /* exact [K / 16]: of x */
  const int8_t *q;        /* rounding: x [K], and [K / 32]: */
  const float *scales;    /* (scale, scale times the sum of q) */
  const int32_t *offsets; /* where the integer sums of dot_32 start */
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

#if CPU_LEVEL > 0

/* How much less than 0 the code 0 means, in types without a minimum, as dot_32 sees the codes. */
INLINE int32_t code_zero(dtype t) {
  if (t == DT_Q4_0) return 8;
  if (t == DT_Q5_0) return 16;
  return t == DT_Q8_0 && CPU_VNNI ? 128 : 0;
}

/* Sums of four products of 32 codes and 32 rounded x, in 8 lanes, each started at `offset`: an
 * eighth of -code_zero times the sum of x. */
INLINE __m256i dot_32(dtype t, __m256i c, __m256i x, int32_t offset) {
  __m256i start = code_zero(t) ? _mm256_set1_epi32(offset) : _mm256_setzero_si256();
#if CPU_VNNI
  if (group_signed(t)) c = _mm256_xor_si256(c, _mm256_set1_epi8(-128));
#if CPU_LEVEL == 4
  return _mm256_dpbusd_epi32(start, c, x);
#else
  return _mm256_dpbusd_avx_epi32(start, c, x);
#endif
#else
  __m256i p = group_signed(t) ? _mm256_maddubs_epi16(_mm256_sign_epi8(c, c), _mm256_sign_epi8(x, c))
                              : _mm256_maddubs_epi16(c, x);
  p = _mm256_madd_epi16(p, _mm256_set1_epi16(1));
  return code_zero(t) ? _mm256_add_epi32(p, start) : p;
#endif
}

INLINE bool group_min(dtype t) {
  return t == DT_Q4_1 || t == DT_Q5_1 || t == DT_Q4_K || t == DT_Q5_K;
}

/* (d, m) of group i, the other lanes unused. In the types of 32 elements both are halves at the
 * start of the block: one load and one conversion (what follows a lone d are codes). */
INLINE __m128 group_pair(dtype t, const uint8_t *row, uint32_t i, const group *g) {
  if (t > DT_Q8_0) return _mm_setr_ps(g->d[0], g->m[0], 0, 0);
  const size_t bytes = t == DT_Q4_0   ? 18
                       : t == DT_Q4_1 ? 20
                       : t == DT_Q5_0 ? 22
                       : t == DT_Q5_1 ? 24
                                      : 34;
  return _mm_cvtph_ps(_mm_cvtsi32_si128((int)load_u32(row + i * bytes)));
}

INLINE void rounding_rows(dtype t, const matvec *a, uint32_t n, uint32_t rows) {
  const uint8_t *w = a->w + n * a->row_bytes;
  __m256 acc[4] = {{0}};
  __m128 min[4] = {{0}};
  for (uint32_t i = 0; i < a->k / 32; i++) {
    __m256i x = _mm256_loadu_si256((const __m256i *)(a->q + 32 * (size_t)i));
    __m128 scale = _mm_castpd_ps(_mm_load_sd((const double *)(const void *)(a->scales + 2 * i)));
    UNROLL for (uint32_t r = 0; r < rows; r++) {
      const uint8_t *row = w + r * a->row_bytes;
      group g;
      group_get(t, row, i, &g);
      __m256i c = _mm256_set_m128i((__m128i)g.c[1], (__m128i)g.c[0]);
      __m256 p = _mm256_cvtepi32_ps(dot_32(t, c, x, a->offsets[i]));
      __m128 pair = _mm_mul_ps(group_pair(t, row, i, &g), scale);
      acc[r] = _mm256_fmadd_ps(p, _mm256_broadcastss_ps(pair), acc[r]);
      if (group_min(t)) min[r] = _mm_add_ps(min[r], pair);
    }
  }
  UNROLL for (uint32_t r = 0; r < rows; r++) {
    __m128 s = _mm_add_ps(_mm256_castps256_ps128(acc[r]), _mm256_extractf128_ps(acc[r], 1));
    s = _mm_add_ps(s, _mm_movehl_ps(s, s));
    s = _mm_add_ss(s, _mm_movehdup_ps(s));
    if (group_min(t)) s = _mm_add_ss(s, _mm_movehdup_ps(min[r]));
    a->y[n + r] = _mm_cvtss_f32(s);
  }
}

/* Types with one scale a group; the others stay exact. */
#define X(id, name)                                                                                \
  static void matvec_rounding_##name(const matvec *a) { BY_FOUR(rounding_rows, id); }
X(DT_Q4_0, q4_0)
X(DT_Q4_1, q4_1)
X(DT_Q5_0, q5_0)
X(DT_Q5_1, q5_1)
X(DT_Q8_0, q8_0)
X(DT_Q4_K, q4_k)
X(DT_Q5_K, q5_k)
#undef X

/* clang-format off: it never settles on these lines */
static const matvec_fn matvec_rounding_fns[DT_COUNT_] = {
#define X(id, name) [id] = matvec_rounding_##name,
    X(DT_Q4_0, q4_0) X(DT_Q4_1, q4_1) X(DT_Q5_0, q5_0) X(DT_Q5_1, q5_1) X(DT_Q8_0, q8_0)
        X(DT_Q4_K, q4_k) X(DT_Q5_K, q5_k)
#undef X
};
/* clang-format on */

static void matvec_rounding(const hw_cpu_call *c) {
  matvec a;
  dtype t;
  matvec_call(c, &a, &t);
  if (!matvec_rounding_fns[t]) {
    matvec_exact(c);
    return;
  }
  const uint32_t n = a.k / 32;
  const int32_t zero = code_zero(t) / 8;
  int8_t *q = c->own;
  float *scales = (float *)(void *)(q + a.k);
  int32_t *offsets = (int32_t *)(void *)(scales + 2 * n);
  for (uint32_t i = 0; i < n; i++) {
    int32_t sum;
    float d = round_group(a.x + 32 * i, q + 32 * i, &sum);
    scales[2 * i] = d;
    scales[2 * i + 1] = d * (float)sum;
    offsets[i] = -zero * sum;
  }
  a.scales = scales;
  a.offsets = offsets;
  a.q = q;
  matvec_rounding_fns[t](&a);
}

#else
static void matvec_rounding(const hw_cpu_call *c) { matvec_exact(c); }
#endif
#undef BY_FOUR

#endif

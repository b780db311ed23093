/* MATVEC with x rounded to 8 bits by groups of 32 (round_group): integer dot products of codes and
 * rounded x, four rows at once. Types with one scale a group; the others, and level 0, stay exact.
 */
#ifndef FRIT_KERNELS_CPU_MATVEC_Q_H
#define FRIT_KERNELS_CPU_MATVEC_Q_H

#include "kernels/cpu_matvec.h"

#if CPU_LEVEL > 0

#define ROUNDING_TYPES(X)                                                                          \
  X(DT_Q4_0, q4_0)                                                                                 \
  X(DT_Q4_1, q4_1)                                                                                 \
  X(DT_Q5_0, q5_0) X(DT_Q5_1, q5_1) X(DT_Q8_0, q8_0) X(DT_Q4_K, q4_k) X(DT_Q5_K, q5_k)

/* Rounded x as the level multiplies it. simd128 has no products of bytes. */
#if CPU_WASM
typedef int16_t x_code;
#else
typedef int8_t x_code;
#endif

/* VNNI takes codes as unsigned bytes. */
#define CPU_UNSIGNED CPU_VNNI

typedef struct matvec_q {
  matvec a;
  const x_code *q;        /* x [K], and [K / 32]: */
  const float *scales;    /* (scale, scale times the sum of q) */
  const int32_t *offsets; /* where the integer sums start, in each of their START lanes */
} matvec_q;

/* How much less than 0 the code 0 means, in types without a minimum, as dot_32 sees the codes. */
INLINE int32_t code_zero(dtype t) {
  if (t == DT_Q4_0) return 8;
  if (t == DT_Q5_0) return 16;
  return t == DT_Q8_0 && CPU_UNSIGNED ? 128 : 0;
}

INLINE bool group_min(dtype t) {
  return t == DT_Q4_1 || t == DT_Q5_1 || t == DT_Q4_K || t == DT_Q5_K;
}

/* (d, m) of group i of a type of 32 elements: both are halves at the start of the block (what
 * follows a lone d are codes). */
INLINE uint32_t group_halves_at(dtype t, const uint8_t *row, uint32_t i) {
  const size_t bytes = t == DT_Q4_0   ? 18
                       : t == DT_Q4_1 ? 20
                       : t == DT_Q5_0 ? 22
                       : t == DT_Q5_1 ? 24
                                      : 34;
  return load_u32(row + i * bytes);
}

#if CPU_X86

enum { START = 8 };

/* Sums of four products of 32 codes and 32 rounded x, in 8 lanes, each started at `offset`: an
 * eighth of -code_zero times the sum of x. */
INLINE __m256i dot_32(dtype t, __m256i c, __m256i x, int32_t offset) {
  __m256i start = code_zero(t) ? _mm256_set1_epi32(offset) : _mm256_setzero_si256();
#if CPU_VNNI
  if (group_signed(t)) c = _mm256_xor_si256(c, _mm256_set1_epi8(-128));
#if CPU_512
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

/* (d, m) of group i, the other lanes unused. */
INLINE __m128 group_pair(dtype t, const uint8_t *row, uint32_t i, const group *g) {
  if (t > DT_Q8_0) return _mm_setr_ps(g->d[0], g->m[0], 0, 0);
  return _mm_cvtph_ps(_mm_cvtsi32_si128((int)group_halves_at(t, row, i)));
}

INLINE void rounding_rows(dtype t, const matvec_q *m, uint32_t n, uint32_t rows) {
  const matvec *a = &m->a;
  const uint8_t *w = a->w + n * a->row_bytes;
  __m256 acc[4] = {{0}};
  __m128 min[4] = {{0}};
  for (uint32_t i = 0; i < a->k / 32; i++) {
    __m256i x = _mm256_loadu_si256((const __m256i *)(m->q + 32 * (size_t)i));
    __m128 scale = _mm_castpd_ps(_mm_load_sd((const double *)(const void *)(m->scales + 2 * i)));
    UNROLL for (uint32_t r = 0; r < rows; r++) {
      const uint8_t *row = w + r * a->row_bytes;
      group g;
      group_get(t, row, i, &g);
      __m256i c = _mm256_set_m128i((__m128i)g.c[1], (__m128i)g.c[0]);
      __m256 p = _mm256_cvtepi32_ps(dot_32(t, c, x, m->offsets[i]));
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

INLINE void rounding_share(dtype t, const matvec_q *m) {
  uint32_t n = m->a.begin;
  for (; n + 4 <= m->a.end; n += 4) rounding_rows(t, m, n, 4);
  for (; n < m->a.end; n++) rounding_rows(t, m, n, 1);
}

#else /* vectors of 128 bits */

enum { START = 1 };

/* The products of 32 codes and 32 rounded x, in four partial sums. */
INLINE vi dot_32(dtype t, const u8x16 c[2], const x_code *x) {
#if CPU_WASM
  vi s = {0};
  UNROLL for (int h = 0; h < 2; h++) {
    i16x8 even = (i16x8)c[h] << 8 >> 8, odd = (i16x8)c[h] >> 8;
    if (!group_signed(t)) {
      even = (i16x8)c[h] & 255;
      odd = (i16x8)((u16x8)c[h] >> 8);
    }
    s += (vi)wasm_i32x4_dot_i16x8((v128_t)even, wasm_v128_load(x + 16 * h));
    s += (vi)wasm_i32x4_dot_i16x8((v128_t)odd, wasm_v128_load(x + 16 * h + 8));
  }
  return s;
#else
  (void)t;
  int8x16_t c0 = (int8x16_t)c[0], c1 = (int8x16_t)c[1], x0 = vld1q_s8(x), x1 = vld1q_s8(x + 16);
#if CPU_NEON_DOT
  return (vi)vdotq_s32(vdotq_s32(vdupq_n_s32(0), c0, x0), c1, x1);
#else /* a lane has 16 bits for 4 products of codes <= 31, or 2 of any */
  int16x8_t p = vmlal_high_s8(vmull_s8(vget_low_s8(c0), vget_low_s8(x0)), c0, x0);
  if (group_signed(t)) {
    int16x8_t q = vmlal_high_s8(vmull_s8(vget_low_s8(c1), vget_low_s8(x1)), c1, x1);
    return (vi)vpadalq_s16(vpaddlq_s16(p), q);
  }
  return (vi)vpaddlq_s16(vmlal_high_s8(vmlal_s8(p, vget_low_s8(c1), vget_low_s8(x1)), c1, x1));
#endif
#endif
}

/* Lane r: the sum of s[r]. */
INLINE vi sums_4(const vi s[4]) {
#if CPU_NEON
  return (vi)vpaddq_s32(vpaddq_s32((int32x4_t)s[0], (int32x4_t)s[1]),
                        vpaddq_s32((int32x4_t)s[2], (int32x4_t)s[3]));
#else
  vi a = __builtin_shufflevector(s[0], s[1], 0, 4, 1, 5) +
         __builtin_shufflevector(s[0], s[1], 2, 6, 3, 7);
  vi b = __builtin_shufflevector(s[2], s[3], 0, 4, 1, 5) +
         __builtin_shufflevector(s[2], s[3], 2, 6, 3, 7);
  return __builtin_shufflevector(a, b, 0, 1, 4, 5) + __builtin_shufflevector(a, b, 2, 3, 6, 7);
#endif
}

/* Lane r: d and m of group i of row r. */
INLINE void scales_4(dtype t, const uint8_t *const w[4], uint32_t i, const group g[4], vf *d,
                     vf *m) {
  if (t > DT_Q8_0) {
    *d = (vf){g[0].d[0], g[1].d[0], g[2].d[0], g[3].d[0]};
    *m = (vf){g[0].m[0], g[1].m[0], g[2].m[0], g[3].m[0]};
    return;
  }
  vi h;
  UNROLL for (int r = 0; r < 4; r++) h[r] = (int32_t)group_halves_at(t, w[r], i);
  *d = v_from_halves(h & 0xFFFF);
  *m = v_from_halves(h >> 16 & 0xFFFF);
}

/* The last of `rows` stands for those that are missing to four. */
INLINE void rounding_rows(dtype t, const matvec_q *mq, uint32_t n, uint32_t rows) {
  const matvec *a = &mq->a;
  const uint8_t *w[4];
  for (uint32_t r = 0; r < 4; r++) w[r] = a->w + (n + min_u32(r, rows - 1)) * a->row_bytes;
  vf acc = {0};
  for (uint32_t i = 0; i < a->k / 32; i++) {
    const float *scale = mq->scales + 2 * (size_t)i;
    group g[4];
    vi s[4];
    vf d, m;
    UNROLL for (int r = 0; r < 4; r++) {
      group_get(t, w[r], i, &g[r]);
      s[r] = dot_32(t, g[r].c, mq->q + 32 * (size_t)i);
    }
    scales_4(t, w, i, g, &d, &m);
    vi sums = sums_4(s);
    if (code_zero(t)) sums += vi_set(mq->offsets[i]);
    acc = v_fma(v_from_int(sums), d * v_set(scale[0]), acc);
    if (group_min(t)) acc = v_fma(m, v_set(scale[1]), acc);
  }
  memcpy(a->y + n, &acc, rows * sizeof *a->y);
}

INLINE void rounding_share(dtype t, const matvec_q *m) {
  for (uint32_t n = m->a.begin; n < m->a.end; n += 4)
    rounding_rows(t, m, n, min_u32(4, m->a.end - n));
}

#endif

typedef void (*matvec_q_fn)(const matvec_q *m);

#define X(id, name)                                                                                \
  static void matvec_rounding_##name(const matvec_q *m) { rounding_share(id, m); }
ROUNDING_TYPES(X)
#undef X

static const matvec_q_fn matvec_rounding_fns[DT_COUNT_] = {
#define X(id, name) [id] = matvec_rounding_##name,
    ROUNDING_TYPES(X)
#undef X
};

/* 32 codes in the order in which dot_32 reads them: for simd128, which makes 16 bits of codes by
 * masks and shifts of pairs, the even ones of 16 before the odd ones. */
INLINE void put_codes(const int8_t q[32], x_code *out) {
#if CPU_WASM
  for (int j = 0; j < 32; j++) out[j / 16 * 16 + j % 2 * 8 + j % 16 / 2] = q[j];
#else
  memcpy(out, q, 32);
#endif
}

static void matvec_rounding(const hw_cpu_call *c) {
  matvec_q m = {0};
  dtype t;
  matvec_call(c, &m.a, &t);
  if (!matvec_rounding_fns[t]) {
    matvec_exact(c);
    return;
  }
  const uint32_t n = m.a.k / 32;
  const int32_t zero = code_zero(t) / START;
  x_code *q = c->own;
  float *scales = (float *)(void *)(q + m.a.k);
  int32_t *offsets = (int32_t *)(void *)(scales + 2 * n);
  for (uint32_t i = 0; i < n; i++) {
    int8_t codes[32];
    int32_t sum;
    float d = round_group(m.a.x + 32 * i, codes, &sum);
    put_codes(codes, q + 32 * i);
    scales[2 * i] = d;
    scales[2 * i + 1] = d * (float)sum;
    offsets[i] = -zero * sum;
  }
  m.scales = scales;
  m.offsets = offsets;
  m.q = q;
  matvec_rounding_fns[t](&m);
}

#else
static void matvec_rounding(const hw_cpu_call *c) { matvec_exact(c); }
#endif

#endif

/* MATMUL with x rounded to 8 bits: as cpu_matmul.h, the strips being codes and the tiles integer
 * sums of a group of 32, which then are scaled and added in floats. */
#ifndef FRIT_KERNELS_CPU_MATMUL_Q_H
#define FRIT_KERNELS_CPU_MATMUL_Q_H

#include "kernels/cpu_matmul.h"
#include "kernels/cpu_matvec_q.h"

#if CPU_LEVEL > 0

/* Codes as the level multiplies them, and how many of one token stand side by side in a lane. */
#if CPU_WASM
typedef int16_t w_code;
#else
typedef uint8_t w_code;
#endif
enum { SIDE = 4 / sizeof(w_code) };

/* Sums have room for products of any codes, not only of those <= 31. */
#define CPU_ROOMY (CPU_VNNI || CPU_NEON_DOT || CPU_WASM)

/* Codes of a strip: [rows][K], then d and m, [rows][K / 32] each. */
typedef struct strip_q {
  w_code *c;
  float *d, *m;
} strip_q;

INLINE void codes_row(dtype t, const uint8_t *row, uint32_t groups, w_code *c, float *d, float *m) {
  const bool biased = group_signed(t) && CPU_UNSIGNED;
  for (uint32_t i = 0; i < groups; i++) {
    group g;
    group_get(t, row, i, &g);
    for (int h = 0; h < 2; h++) {
#if CPU_WASM
      v128_t b = (v128_t)g.c[h];
      w_code *to = c + 32 * i + 16 * h;
      wasm_v128_store(to, group_signed(t) ? wasm_i16x8_extend_low_i8x16(b)
                                          : wasm_u16x8_extend_low_u8x16(b));
      wasm_v128_store(to + 8, group_signed(t) ? wasm_i16x8_extend_high_i8x16(b)
                                              : wasm_u16x8_extend_high_u8x16(b));
#else
      if (biased) g.c[h] ^= 128;
      memcpy(c + 32 * i + 16 * h, &g.c[h], 16);
#endif
    }
    d[i] = g.d[0];
    m[i] = biased ? -128.0f * g.d[0] : g.m[0];
  }
}

/* The packed x of a panel: codes [K / SIDE][tokens][SIDE], scales [K / 32][tokens], scale times
 * sum. */
typedef struct panel_q {
  x_code *q;
  float *d, *sum;
} panel_q;

static panel_q panel_at(const matmul *a, void *scratch, uint32_t p) {
  size_t groups = a->k / 32, one = PANEL * (a->k * sizeof(x_code) + 8 * groups);
  x_code *q = (x_code *)(void *)((char *)scratch + p * one);
  float *d = (float *)(void *)(q + PANEL * a->k);
  return (panel_q){q, d, d + PANEL * groups};
}

static void pack_panel_q(const matmul *a, uint32_t p, panel_q out) {
  uint32_t tokens = panel_tokens(a, p), width = panel_vectors(a, p) * VW;
  for (uint32_t t = 0; t < width; t++) {
    const float *x = a->x + (size_t)(p * PANEL + t) * a->k;
    for (uint32_t i = 0; i < a->k / 32; i++) {
      int8_t q[32] = {0};
      int32_t sum = 0;
      float d = t < tokens ? round_group(x + 32 * i, q, &sum) : 0;
      for (size_t j = 0; j < 32; j++)
        out.q[((32 * i + j) / SIDE * width + t) * SIDE + j % SIDE] = q[j];
      out.d[i * width + t] = d;
      out.sum[i * width + t] = d * (float)sum;
    }
  }
}

/* Integer sums under way: lane l has those of token l. Without a dot product into 32 bits they are
 * kept in 16 bits, in pairs; of NEON's, the low half of the tokens and the high one stand apart. */
#if CPU_NEON && !CPU_NEON_DOT
typedef struct tile_sum {
  int16x8_t low, high;
} tile_sum;
#define TILE_NONE ((tile_sum){vdupq_n_s16(0), vdupq_n_s16(0)})
#else
typedef vi tile_sum;
#define TILE_NONE ((vi){0})
#endif

/* acc + the products of SIDE codes w, in each lane the same, and the x of each lane. */
INLINE tile_sum tile_dot(tile_sum acc, vi w, vi x) {
#if CPU_LEVEL == 4
  return (vi)_mm512_dpbusd_epi32((__m512i)acc, (__m512i)w, (__m512i)x);
#elif CPU_LEVEL == 2
  return (vi)_mm256_dpbusd_avx_epi32((__m256i)acc, (__m256i)w, (__m256i)x);
#elif CPU_LEVEL == 3
  return (vi)_mm512_add_epi16((__m512i)acc, _mm512_maddubs_epi16((__m512i)w, (__m512i)x));
#elif CPU_LEVEL == 1
  return (vi)_mm256_add_epi16((__m256i)acc, _mm256_maddubs_epi16((__m256i)w, (__m256i)x));
#elif CPU_WASM
  return acc + (vi)wasm_i32x4_dot_i16x8((v128_t)w, (v128_t)x);
#elif CPU_NEON_DOT
  return (vi)vdotq_s32((int32x4_t)acc, (int8x16_t)w, (int8x16_t)x);
#else
  int8x16_t a = (int8x16_t)w, b = (int8x16_t)x;
  return (tile_sum){vmlal_s8(acc.low, vget_low_s8(a), vget_low_s8(b)),
                    vmlal_high_s8(acc.high, a, b)};
#endif
}
INLINE vi tile_total(tile_sum acc) {
#if CPU_ROOMY
  return acc;
#elif CPU_LEVEL == 3
  return (vi)_mm512_madd_epi16((__m512i)acc, _mm512_set1_epi16(1));
#elif CPU_LEVEL == 1
  return (vi)_mm256_madd_epi16((__m256i)acc, _mm256_set1_epi16(1));
#else
  return (vi)vpaddq_s32(vpaddlq_s16(acc.low), vpaddlq_s16(acc.high));
#endif
}

/* The integer sums of group g for NQ rows. x86's sums of 16 bits have room for pairs of 8 products
 * of codes <= 15, or of 4 of codes <= 31, times 127; NEON's, not in pairs yet, for 8 of the
 * latter. */
INLINE void group_tile(bool small, uint32_t nv, const w_code *c, size_t c_row, const x_code *x,
                       vi s[NQ][NV]) {
  enum { DOTS = 32 / SIDE };
  // NOLINTNEXTLINE(misc-redundant-expression): both are 0 at some levels
  const int parts = CPU_ROOMY || CPU_NEON || small ? 1 : 2;
  for (int part = 0; part < parts; part++) {
    tile_sum t[NQ][NV];
    UNROLL for (uint32_t i = 0; i < NQ; i++) UNROLL for (uint32_t v = 0; v < nv; v++) t[i][v] =
        TILE_NONE;
    UNROLL for (int j = 0; j < DOTS / parts; j++) {
      vi b[NV];
      UNROLL for (uint32_t v = 0; v < nv; v++) b[v] = vi_load(x + (j * nv + v) * SIDE * VW);
      UNROLL for (uint32_t i = 0; i < NQ; i++) {
        vi w = vi_set((int32_t)load_u32(c + i * c_row + SIDE * j));
        UNROLL for (uint32_t v = 0; v < nv; v++) t[i][v] = tile_dot(t[i][v], w, b[v]);
      }
    }
    UNROLL for (uint32_t i = 0; i < NQ; i++) UNROLL for (uint32_t v = 0; v < nv; v++) s[i][v] =
        part ? s[i][v] + tile_total(t[i][v]) : tile_total(t[i][v]);
    c += 16;
    x += 16 * nv * VW;
  }
}

INLINE void tile_q(bool small, uint32_t nv, const matmul *a, strip_q w, panel_q x, float *out) {
  const uint32_t groups = a->k / 32;
  vf acc[NQ][NV] = {{{0}}};
  for (uint32_t g = 0; g < groups; g++) {
    vi s[NQ][NV];
    group_tile(small, nv, w.c + 32 * g, a->k, x.q + (size_t)g * 32 * nv * VW, s);
    UNROLL for (uint32_t i = 0; i < NQ; i++) {
      vf d = v_set(w.d[i * groups + g]), m = v_set(w.m[i * groups + g]);
      UNROLL for (uint32_t v = 0; v < nv; v++) {
        size_t at = ((size_t)g * nv + v) * VW;
        acc[i][v] = v_fma(v_from_int(s[i][v]) * d, v_load(x.d + at), acc[i][v]);
        acc[i][v] = v_fma(m, v_load(x.sum + at), acc[i][v]);
      }
    }
  }
  UNROLL for (uint32_t i = 0; i < NQ; i++) UNROLL for (uint32_t v = 0; v < nv; v++)
      v_store(out + i * PANEL + v * VW, acc[i][v]);
}

INLINE void tiles_q(bool small, const matmul *a, uint32_t nv, strip_q w, panel_q x, float *out) {
  if (nv == 1) tile_q(small, 1, a, w, x, out);
  else if (NV == 2 || nv == 2) tile_q(small, 2, a, w, x, out);
  else tile_q(small, NV, a, w, x, out);
}
static void tiles_q_small(const matmul *a, uint32_t nv, strip_q w, panel_q x, float *out) {
  tiles_q(true, a, nv, w, x, out);
}
static void tiles_q_large(const matmul *a, uint32_t nv, strip_q w, panel_q x, float *out) {
  tiles_q(false, a, nv, w, x, out);
}

typedef void (*codes_fn)(const uint8_t *row, uint32_t groups, w_code *c, float *d, float *m);
#define X(id, name)                                                                                \
  static void codes_##name(const uint8_t *row, uint32_t groups, w_code *c, float *d, float *m) {   \
    codes_row(id, row, groups, c, d, m);                                                           \
  }
ROUNDING_TYPES(X)
#undef X
static const codes_fn codes_fns[DT_COUNT_] = {
#define X(id, name) [id] = codes_##name,
    ROUNDING_TYPES(X)
#undef X
};

static void matmul_rounding(const hw_cpu_call *c) {
  const matmul a = matmul_call(c);
  dtype t = a.s->type[0];
  if (!codes_fns[t] || (!CPU_ROOMY && t == DT_Q8_0)) {
    matmul_exact(c);
    return;
  }
  uint32_t begin, end;
  const uint32_t groups = a.k / 32;
  kernel_share(c, a.panels, 1, &begin, &end);
  for (uint32_t p = begin; p < end; p++) pack_panel_q(&a, p, panel_at(&a, c->scratch, p));
  hw_cpu_barrier(c);
  kernel_share(c, a.n, NQ, &begin, &end);
  float *d = c->own, *m = d + STRIP * groups;
  strip_q strip = {(w_code *)(void *)(m + STRIP * groups), d, m};
  for (uint32_t n = begin; n < end; n += STRIP) {
    uint32_t rows = min_u32(STRIP, end - n);
    for (uint32_t r = 0; r < rows; r++)
      codes_fns[t](a.w + (n + r) * a.row_bytes, groups, strip.c + (size_t)r * a.k, d + r * groups,
                   m + r * groups);
    for (uint32_t p = 0; p < a.panels; p++) {
      float out[STRIP * PANEL];
      panel_q x = panel_at(&a, c->scratch, p);
      for (uint32_t r = 0; r < rows; r += NQ) {
        strip_q w = {strip.c + (size_t)r * a.k, d + r * groups, m + r * groups};
        (group_top(t) == 15 ? tiles_q_small : tiles_q_large)(&a, panel_vectors(&a, p), w, x,
                                                             out + r * PANEL);
      }
      put_tile(&a, n, rows, p, out);
    }
  }
}

#else
static void matmul_rounding(const hw_cpu_call *c) { matmul_exact(c); }
#endif

#endif

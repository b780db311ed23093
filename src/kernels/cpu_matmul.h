/* MATMUL: y[m, Y0 + n] = sum_k W[ROW0 + n, k] x[m, k] for the step's tokens.
 *
 * Vectors run over tokens. The threads pack x together: panels of NV vectors of tokens, [k][tokens]
 * (the last panel as narrow as it can be). Then each takes its share of the rows of W, makes a
 * strip of rows into floats (or 8-bit codes) that stays in its cache, and multiplies it with every
 * panel: a tile of rows x tokens is kept in registers, each weight broadcast to the vectors. */
#ifndef FRIT_KERNELS_CPU_MATMUL_H
#define FRIT_KERNELS_CPU_MATMUL_H

#include "kernels/cpu_matvec.h"

/* Rows of a tile (floats), of a tile (codes), of a strip; vectors of a panel. */
#if CPU_LEVEL >= 3
enum { NR = 8, NQ = 4, NV = 3 };
#else
enum { NR = 4, NQ = 4, NV = 3 };
#endif
enum { STRIP = 16, PANEL = NV * VW };

/* acc[i][v] += sum_k w[i * w_row + k * w_k] x[k * x_row + v * VW ...], i < rows, v < nv. */
INLINE void tile(uint32_t rows, uint32_t nv, const float *w, size_t w_row, size_t w_k,
                 const float *x, size_t x_row, uint32_t n, vf acc[NR][NV]) {
  vf s[NR][NV];
  UNROLL for (uint32_t i = 0; i < rows; i++) UNROLL for (uint32_t v = 0; v < nv; v++) s[i][v] =
      acc[i][v];
  for (uint32_t k = 0; k < n; k++, w += w_k, x += x_row) {
    vf b[NV];
    UNROLL for (uint32_t v = 0; v < nv; v++) b[v] = v_load(x + v * VW);
    UNROLL for (uint32_t i = 0; i < rows; i++) {
      vf a = v_set(w[i * w_row]);
      UNROLL for (uint32_t v = 0; v < nv; v++) s[i][v] = v_fma(a, b[v], s[i][v]);
    }
  }
  UNROLL for (uint32_t i = 0; i < rows; i++) UNROLL for (uint32_t v = 0; v < nv; v++) acc[i][v] =
      s[i][v];
}

/* out[i][0 .. nv VW) = the products of any number of rows; `add` starts from what is there. */
INLINE void tiles_nv(uint32_t nv, uint32_t rows, const float *w, size_t w_row, size_t w_k,
                     const float *x, size_t x_row, uint32_t n, float *out, size_t out_row,
                     bool add) {
  for (uint32_t i = 0; i < rows;) {
    uint32_t some = rows - i >= NR ? NR : 1;
    vf acc[NR][NV];
    for (uint32_t r = 0; r < some; r++)
      for (uint32_t v = 0; v < nv; v++)
        acc[r][v] = add ? v_load(out + (i + r) * out_row + v * VW) : (vf){0};
    if (some == NR) tile(NR, nv, w + i * w_row, w_row, w_k, x, x_row, n, acc);
    else tile(1, nv, w + i * w_row, w_row, w_k, x, x_row, n, acc);
    for (uint32_t r = 0; r < some; r++)
      for (uint32_t v = 0; v < nv; v++) v_store(out + (i + r) * out_row + v * VW, acc[r][v]);
    i += some;
  }
}
static void tiles(uint32_t nv, uint32_t rows, const float *w, size_t w_row, size_t w_k,
                  const float *x, size_t x_row, uint32_t n, float *out, size_t out_row, bool add) {
  if (nv == 1) tiles_nv(1, rows, w, w_row, w_k, x, x_row, n, out, out_row, add);
  else if (nv == 2) tiles_nv(2, rows, w, w_row, w_k, x, x_row, n, out, out_row, add);
  else tiles_nv(3, rows, w, w_row, w_k, x, x_row, n, out, out_row, add);
}

/* dst[j * dst_row + i] = src[i * src_row + j], i < rows, j < cols. */
static void transpose(const float *src, size_t src_row, uint32_t rows, uint32_t cols, float *dst,
                      size_t dst_row) {
  uint32_t i = 0;
  for (; i + 4 <= rows; i += 4) {
    uint32_t j = 0;
    for (; j + 4 <= cols; j += 4)
      transpose_4x4(src + i * src_row + j, src_row, dst + j * dst_row + i, dst_row);
    for (; j < cols; j++)
      for (uint32_t r = 0; r < 4; r++) dst[j * dst_row + i + r] = src[(i + r) * src_row + j];
  }
  for (; i < rows; i++)
    for (uint32_t j = 0; j < cols; j++) dst[j * dst_row + i] = src[i * src_row + j];
}

typedef struct matmul {
  const kernel_spec *s;
  const uint8_t *w;
  size_t row_bytes;
  uint32_t n, k, tokens, panels;
  const float *x;
  float *y;
  size_t y_row;
} matmul;

static matmul matmul_call(const hw_cpu_call *c) {
  const kernel_spec *s = kernel_spec_of(c);
  const step_params *step = c->buf[3];
  size_t row_bytes = (size_t)dtype_row_bytes(s->type[0], s->dim[1]);
  uint32_t tokens = step->n_tok < s->dim[2] ? step->n_tok : s->dim[2];
  return (matmul){.s = s,
                  .w = (const uint8_t *)c->buf[0] + s->dim[3] * row_bytes,
                  .row_bytes = row_bytes,
                  .n = s->dim[0],
                  .k = s->dim[1],
                  .tokens = tokens,
                  .panels = (tokens + PANEL - 1) / PANEL,
                  .x = c->buf[1],
                  .y = (float *)c->buf[2] + s->dim[6],
                  .y_row = s->dim[5]};
}

/* Tokens of panel p, and vectors that hold them. */
static uint32_t panel_tokens(const matmul *a, uint32_t p) {
  return min_u32(PANEL, a->tokens - p * PANEL);
}
static uint32_t panel_vectors(const matmul *a, uint32_t p) {
  return (panel_tokens(a, p) + VW - 1) / VW;
}

static void put_tile(const matmul *a, uint32_t n0, uint32_t rows, uint32_t p, const float *out) {
  transpose(out, PANEL, rows, panel_tokens(a, p), a->y + p * PANEL * a->y_row + n0, a->y_row);
}

static void pack_panel(const matmul *a, uint32_t p, float *dst) {
  uint32_t tokens = panel_tokens(a, p), width = panel_vectors(a, p) * VW;
  transpose(a->x + (size_t)p * PANEL * a->k, a->k, tokens, a->k, dst, width);
  for (uint32_t t = tokens; t < width; t++)
    for (uint32_t k = 0; k < a->k; k++) dst[(size_t)k * width + t] = 0;
}

static void matmul_exact(const hw_cpu_call *c) {
  const matmul a = matmul_call(c);
  float *packed = c->scratch, *strip = c->own;
  uint32_t begin, end;
  kernel_share(c, a.panels, 1, &begin, &end);
  for (uint32_t p = begin; p < end; p++) pack_panel(&a, p, packed + (size_t)p * PANEL * a.k);
  hw_cpu_barrier(c);
  kernel_share(c, a.n, NR, &begin, &end);
  for (uint32_t n = begin; n < end; n += STRIP) {
    uint32_t rows = min_u32(STRIP, end - n);
    for (uint32_t r = 0; r < rows; r++)
      row_fns[a.s->type[0]](a.w + (n + r) * a.row_bytes, a.k, strip + (size_t)r * a.k);
    for (uint32_t p = 0; p < a.panels; p++) {
      float out[STRIP * PANEL];
      uint32_t nv = panel_vectors(&a, p);
      tiles(nv, rows, strip, a.k, 1, packed + (size_t)p * PANEL * a.k, nv * VW, a.k, out, PANEL,
            false);
      put_tile(&a, n, rows, p, out);
    }
  }
}

#if CPU_LEVEL > 0

/* Codes of a strip: [rows][K] bytes, then d and m, [rows][K / 32] each. */
typedef struct strip_q {
  uint8_t *c;
  float *d, *m;
} strip_q;

INLINE void codes_row(dtype t, const uint8_t *row, uint32_t groups, uint8_t *c, float *d,
                      float *m) {
  for (uint32_t i = 0; i < groups; i++) {
    group g;
    group_get(t, row, i, &g);
    for (int h = 0; h < 2; h++) {
      if (group_signed(t)) g.c[h] ^= 128;
      memcpy(c + 32 * i + 16 * h, &g.c[h], 16);
    }
    d[i] = g.d[0];
    m[i] = group_signed(t) ? -128.0f * g.d[0] : g.m[0];
  }
}

/* The packed x of a panel: bytes [K / 4][tokens][4], scales [K / 32][tokens], scale times sum. */
typedef struct panel_q {
  int8_t *q;
  float *d, *sum;
} panel_q;

static panel_q panel_at(const matmul *a, void *scratch, uint32_t p) {
  size_t groups = a->k / 32, one = PANEL * (a->k + 8 * groups);
  int8_t *q = (int8_t *)scratch + p * one;
  float *d = (float *)(q + PANEL * a->k);
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
      for (size_t j = 0; j < 8; j++) memcpy(out.q + ((8 * i + j) * width + t) * 4, q + 4 * j, 4);
      out.d[i * width + t] = d;
      out.sum[i * width + t] = d * (float)sum;
    }
  }
}

/* Lane l of the result: sum over a group of w[4j..4j+3] . x[j][l][0..3]. */
INLINE vi group_tile_dot(vi acc, vi w, vi x) {
#if CPU_LEVEL == 4
  return (vi)_mm512_dpbusd_epi32((__m512i)acc, (__m512i)w, (__m512i)x);
#elif CPU_LEVEL == 2
  return (vi)_mm256_dpbusd_avx_epi32((__m256i)acc, (__m256i)w, (__m256i)x);
#elif CPU_LEVEL == 3
  return (vi)_mm512_add_epi16((__m512i)acc, _mm512_maddubs_epi16((__m512i)w, (__m512i)x));
#else
  return (vi)_mm256_add_epi16((__m256i)acc, _mm256_maddubs_epi16((__m256i)w, (__m256i)x));
#endif
}
INLINE vi widen_pairs(vi acc) {
#if CPU_VNNI
  return acc;
#elif CPU_LEVEL == 3
  return (vi)_mm512_madd_epi16((__m512i)acc, _mm512_set1_epi16(1));
#else
  return (vi)_mm256_madd_epi16((__m256i)acc, _mm256_set1_epi16(1));
#endif
}

/* The integer sums of group g for NQ rows. Without VNNI sums of pairs are kept in 16 bits: 8
 * products of codes <= 15, or 4 of codes <= 31, times 127 fit twice over. */
INLINE void group_tile(bool small, uint32_t nv, const uint8_t *c, size_t c_row, const int8_t *x,
                       vi s[NQ][NV]) {
  const int parts = CPU_VNNI || small ? 1 : 2;
  for (int part = 0; part < parts; part++) {
    vi t[NQ][NV] = {{{0}}};
    UNROLL for (int j = 0; j < 8 / parts; j++) {
      vi b[NV];
      UNROLL for (uint32_t v = 0; v < nv; v++) b[v] = vi_load(x + (j * nv + v) * 4 * VW);
      UNROLL for (uint32_t i = 0; i < NQ; i++) {
        vi w = vi_set((int32_t)load_u32(c + i * c_row + 4 * j));
        UNROLL for (uint32_t v = 0; v < nv; v++) t[i][v] = group_tile_dot(t[i][v], w, b[v]);
      }
    }
    UNROLL for (uint32_t i = 0; i < NQ; i++) UNROLL for (uint32_t v = 0; v < nv; v++) s[i][v] =
        part ? s[i][v] + widen_pairs(t[i][v]) : widen_pairs(t[i][v]);
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
  else if (nv == 2) tile_q(small, 2, a, w, x, out);
  else tile_q(small, 3, a, w, x, out);
}
static void tiles_q_small(const matmul *a, uint32_t nv, strip_q w, panel_q x, float *out) {
  tiles_q(true, a, nv, w, x, out);
}
static void tiles_q_large(const matmul *a, uint32_t nv, strip_q w, panel_q x, float *out) {
  tiles_q(false, a, nv, w, x, out);
}

typedef void (*codes_fn)(const uint8_t *row, uint32_t groups, uint8_t *c, float *d, float *m);
#define ROUNDING_TYPES(X)                                                                          \
  X(DT_Q4_0, q4_0)                                                                                 \
  X(DT_Q4_1, q4_1)                                                                                 \
  X(DT_Q5_0, q5_0) X(DT_Q5_1, q5_1) X(DT_Q8_0, q8_0) X(DT_Q4_K, q4_k) X(DT_Q5_K, q5_k)
#define X(id, name)                                                                                \
  static void codes_##name(const uint8_t *row, uint32_t groups, uint8_t *c, float *d, float *m) {  \
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
  if (!codes_fns[t] || (!CPU_VNNI && t == DT_Q8_0)) {
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
  strip_q strip = {(uint8_t *)(m + STRIP * groups), d, m};
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

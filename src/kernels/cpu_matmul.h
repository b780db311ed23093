/* MATMUL: y[m, Y0 + n] = sum_k W[ROW0 + n, k] x[m, k] for the step's tokens.
 *
 * Vectors run over tokens. The threads pack x together: panels of NV vectors of tokens, [k][tokens]
 * (the last panel as narrow as it can be). Then each takes its share of the rows of W, makes a
 * strip of rows into floats (or 8-bit codes) that stays in its cache, and multiplies it with every
 * panel: a tile of rows x tokens is kept in registers, each weight broadcast to the vectors. */
#ifndef FRIT_KERNELS_CPU_MATMUL_H
#define FRIT_KERNELS_CPU_MATMUL_H

#include "kernels/cpu_matvec.h"

/* Rows of a tile (floats), of a tile (codes), of a strip; vectors of a panel. As many as registers
 * hold: of simd128 a browser has 16, and keeps one or two to itself. */
#if CPU_512
enum { NR = 8, NQ = 4, NV = 3 };
#elif CPU_WASM
enum { NR = 4, NQ = 4, NV = 2 };
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
  else if (NV == 2 || nv == 2) tiles_nv(2, rows, w, w_row, w_k, x, x_row, n, out, out_row, add);
  else tiles_nv(NV, rows, w, w_row, w_k, x, x_row, n, out, out_row, add);
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

#endif

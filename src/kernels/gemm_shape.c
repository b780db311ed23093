/* The tunables of the matrix products. */
#include "kernels/gemm_shape.h"

#include "base/math.h"

/* Tiles of BM tokens by BN rows, TM by 4 values a thread; the first that gives MIN_GROUPS
 * workgroups is taken, else the last. BM and BN: multiples of 8; (BM / TM) * (BN / 4) threads, at
 * most 256. */
typedef struct gemm_tile {
  uint32_t bm, bn, tm;
} gemm_tile;
static const gemm_tile tiles[] = {{64, 64, 4}, {32, 64, 4}, {32, 32, 4}};
static const gemm_tile few = {16, 32, 16}; /* 8 threads: see kernel_spec.wg */
enum { N_TILES = sizeof tiles / sizeof tiles[0], MIN_GROUPS = 132 };

void gemm_shape(const kernel_spec *s, uint32_t n, uint32_t k, uint32_t m, kernel_shape *out) {
  int i = 0;
  while (i + 1 < N_TILES && div_up(n, tiles[i].bn) * div_up(m, tiles[i].bm) < MIN_GROUPS) i++;
  const gemm_tile t = s->wg ? few : tiles[i];
  *out = (kernel_shape){
      .workgroup = {t.bm / t.tm * (t.bn / 4), 1, 1},
      .groups = {div_up32(n, t.bn), div_up32(m, t.bm), 1},
      .workgroup_mem = 4 * 32 * (t.bm + t.bn),
      .bytes = n * dtype_row_bytes(s->type[0], k) + 4ull * m * k + 4ull * m * n,
      .flops = 2ull * n * k * m,
      .tile = {t.bm, t.bn, t.tm, 0},
  };
}

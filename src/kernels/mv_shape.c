/* The tunables of the matrix-vector roles. */
#include "kernels/mv_shape.h"

#include "base/math.h"

/* groups: workgroups wanted before they grow, enough to fill a large GPU (an H200 has 132 cores);
 * lanes: threads a row, or a subgroup if that is wider. */
enum { MIN_ROWS = 4 };
typedef struct mv_tune {
  uint32_t groups, max_rows, lanes, threads;
} mv_tune;

void mv_shape(const kernel_spec *s, uint32_t outs, uint32_t per, uint32_t unit, uint32_t k,
              kernel_shape *out) {
  const mv_tune u = s->wg ? (mv_tune){.groups = 8, .max_rows = 64, .lanes = 4, .threads = s->wg}
                          : (mv_tune){.groups = 132, .max_rows = 32, .lanes = 32, .threads = 256};
  const uint32_t lanes = max_u32(s->sg, u.lanes), n = outs * per;
  /* rows a workgroup: as many as leave enough workgroups, for each stages all of x */
  uint32_t rows = u.max_rows;
  while (rows > max_u32(MIN_ROWS, unit) && n / rows < u.groups) rows /= 2;
  const uint32_t per_thread = min_u32(rows, div_up32(rows * lanes, u.threads)),
                 threads = rows / per_thread * lanes;
  const uint32_t xb = min_u32(k / 32, 64); /* as lib/stage.wgsl */
  const uint32_t parts = s->sg ? lanes / s->sg : lanes;
  *out = (kernel_shape){
      .workgroup = {threads, 1, 1},
      .groups = {div_up32(n, rows), 1, 1},
      .workgroup_mem =
          128 * (xb | 1) + 4 * xb + 4 * rows * (parts | 1) + 4 * threads / max_u32(s->sg, 1),
      .bytes = n * dtype_row_bytes(s->type[0], k) + 8ull * k + 8ull * outs,
      .flops = 2ull * n * k,
      .tile = {rows, per_thread, lanes, s->wg ? 1 : 2},
  };
}

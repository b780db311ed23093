/* The tunables of the matrix-vector roles. */
#include "kernels/mv_shape.h"

#include "base/math.h"

/* MIN_GROUPS: workgroups wanted before they grow, enough to fill a large GPU (an H200 has 132
 * cores); LANES: threads a row, or a subgroup if that is wider. */
enum { MIN_GROUPS = 132, MIN_ROWS = 4, MAX_ROWS = 32, LANES = 32, MAX_THREADS = 256 };

void mv_shape(const kernel_spec *s, uint32_t outs, uint32_t per, uint32_t unit, uint32_t k,
              kernel_shape *out) {
  const uint32_t lanes = max_u32(s->sg, LANES), n = outs * per;
  /* rows a workgroup: as many as leave enough workgroups, for each stages all of x */
  uint32_t rows = MAX_ROWS;
  while (rows > max_u32(MIN_ROWS, unit) && n / rows < MIN_GROUPS) rows /= 2;
  const uint32_t per_thread = div_up32(rows * lanes, MAX_THREADS),
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
      .tile = {rows, per_thread, lanes, 0},
  };
}

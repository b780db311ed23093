/* The tunables of the matrix-vector roles. */
#include "kernels/mv_shape.h"

#include "base/math.h"

/* MIN_GROUPS: fill a large GPU (132 cores) twice; BLOCKS: of 32 x values that a lane reads from
 * each staged chunk of x (LANES * BLOCKS * 128 bytes of workgroup memory). */
enum { MIN_GROUPS = 200, BLOCKS = 2, MAX_THREADS = 256 };

void mv_shape(const kernel_spec *s, uint32_t outs, uint32_t per, uint32_t unit, uint32_t k,
              kernel_shape *out) {
  const uint32_t lanes = max_u32(s->sg, 32), n = outs * per;
  /* rows a workgroup: as many as leave enough workgroups, for each stages all of x */
  uint32_t rows = 32;
  while (rows > 4 && n / rows < MIN_GROUPS) rows /= 2;
  rows = max_u32(rows, unit);
  uint32_t per_thread = max_u32(rows > 4 ? per : 1, div_up32(rows * lanes, MAX_THREADS));
  const uint32_t threads = rows / per_thread * lanes;
  const uint32_t blocks = min_u32(BLOCKS, div_up32(k / 32, lanes)),
                 parts = lanes / max_u32(s->sg, 1);
  *out = (kernel_shape){
      .workgroup = {threads, 1, 1},
      .groups = {div_up32(n, rows), 1, 1},
      .workgroup_mem =
          16 * 8 * (lanes * blocks + 1) + 4 * rows * (parts ? parts + 1 : 1) + 4 * threads,
      .bytes = n * dtype_row_bytes(s->type[0], k) + 8ull * k + 8ull * outs,
      .flops = 2ull * n * k,
      .tile = {rows, per_thread, lanes, blocks},
  };
}

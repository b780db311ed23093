// y[Y0+n] = sum_k W[ROW0+n,k] x[k]      x: [K]; y: [YN]; W: rows ROW0 .. ROW0+N of a stack [NTOT, K]
// Grid: kernel_mv_shape; a workgroup MV_ROWS rows. K a multiple of 32.
#include "lib/step.wgsl"
@group(0) @binding(0) var<storage, read> w: array<vec4<u32>>;
@group(0) @binding(1) var<storage, read> x: array<vec4f>;
@group(0) @binding(2) var<storage, read_write> y: array<f32>;
@group(0) @binding(3) var<uniform> step: Step;
#include "lib/w_{W}.wgsl"
#include "lib/mv.wgsl"

@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) wid: vec3u, @builtin(num_workgroups) num: vec3u,
        @builtin(local_invocation_index) t: u32) {
  let row = mv_row(wid, num, t);
  for (var kb = 0u; kb < K / 32u; kb += XB) {
    for (var i = t; i < xs_blocks(kb) * 8u; i += 256u) { xs_put(i, x[kb * 8u + i]); }
    xs_ready(t);
    mv_add(row, ROW0, kb, t);
    workgroupBarrier();
  }
  for (var i = 0u; i < MV_R; i++) {
    let v = mv_sum(mv_acc[i], t);
    let n = row + i * MV_STEP;
    if (mv_first(t) && n < N) { y[Y0 + n] = v; }
  }
}

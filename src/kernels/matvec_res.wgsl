// y[n] = r[n] + sum_k W[ROW0+n,k] x[k]      W: [NTOT, K] packed; x: [K]; r, y: [N]
// Grid: mv_shape, a workgroup T0 rows. Replaces matvec, add. K a multiple of 32 (256 for K types).
#include "lib/step.wgsl"
@group(0) @binding(0) var<storage, read> w: array<vec4<u32>>;
@group(0) @binding(1) var<storage, read> x: array<vec4f>;
@group(0) @binding(2) var<storage, read> r: array<f32>;
@group(0) @binding(3) var<storage, read_write> y: array<f32>;
@group(0) @binding(4) var<uniform> step: Step;
#include "lib/w_{W}.wgsl"
#include "lib/mv.wgsl"
#include "lib/mv_x.wgsl"

fn mv_row(wg: u32, i: u32) -> u32 { return ROW0 + min(wg * MV_ROWS + i, N - 1u); }

@compute @workgroup_size(MV_WG)
fn main(@builtin(workgroup_id) wid: vec3u, @builtin(local_invocation_index) t: u32) {
  mv(wid.x, t);
  workgroupBarrier();
  for (var i = t; i < MV_ROWS; i += MV_WG) {
    let n = wid.x * MV_ROWS + i;
    if (n < N) { y[n] = r[n] + mv_sum(i); }
  }
}

// y[Y0+n] = sum_k W[ROW0+n,k] h[k], h = rmsnorm(x) g      W: [NTOT, K] packed; x, g: [K]; y: [YN]
// Grid: mv_shape, a workgroup T0 rows. Replaces rmsnorm, matvec. K a multiple of 32 (256 for K types).
#include "lib/step.wgsl"
@group(0) @binding(0) var<storage, read> w: array<vec4<u32>>;
@group(0) @binding(1) var<storage, read> x: array<vec4f>;
@group(0) @binding(2) var<storage, read> g: array<vec4f>;
@group(0) @binding(3) var<storage, read_write> y: array<f32>;
@group(0) @binding(4) var<uniform> step: Step;
#include "lib/w_{W}.wgsl"
#include "lib/mv.wgsl"
#include "lib/mv_norm.wgsl"

fn mv_row(wg: u32, r: u32) -> u32 { return ROW0 + min(wg * MV_ROWS + r, N - 1u); }

@compute @workgroup_size(MV_WG)
fn main(@builtin(workgroup_id) wid: vec3u, @builtin(local_invocation_index) t: u32) {
  mv(wid.x, t);
  mv_norm(t);
  workgroupBarrier();
  let scale = mv_scale();
  for (var i = t; i < MV_ROWS; i += MV_WG) {
    let n = wid.x * MV_ROWS + i;
    if (n < N) { y[Y0 + n] = mv_sum(i) * scale; }
  }
}

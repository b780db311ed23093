// y[n] = silu(W[n] h) (W[N+n] h), h = rmsnorm(x) g      W: [2N, K] packed, gate above up; x, g: [K]; y: [N]
// Grid: mv_shape, a workgroup T0 / 2 outputs: its rows 2i and 2i+1 are the gate and the up row of
// output i. Replaces rmsnorm, 2 matvec, silu_mul. K a multiple of 32 (256 for K types).
#include "lib/step.wgsl"
@group(0) @binding(0) var<storage, read> w: array<vec4<u32>>;
@group(0) @binding(1) var<storage, read> x: array<vec4f>;
@group(0) @binding(2) var<storage, read> g: array<vec4f>;
@group(0) @binding(3) var<storage, read_write> y: array<f32>;
@group(0) @binding(4) var<uniform> step: Step;
const NTOT = 2u * N;
#include "lib/w_{W}.wgsl"
#include "lib/mv.wgsl"
#include "lib/mv_norm.wgsl"

fn mv_row(wg: u32, r: u32) -> u32 {
  return min(wg * (MV_ROWS / 2u) + r / 2u, N - 1u) + (r & 1u) * N;
}

@compute @workgroup_size(MV_WG)
fn main(@builtin(workgroup_id) wid: vec3u, @builtin(local_invocation_index) t: u32) {
  mv(wid.x, t);
  mv_norm(t);
  workgroupBarrier();
  let scale = mv_scale();
  for (var i = t; i < MV_ROWS / 2u; i += MV_WG) {
    let n = wid.x * (MV_ROWS / 2u) + i;
    if (n < N) {
      let gate = mv_sum(2u * i) * scale;
      y[n] = gate / (1.0 + exp(-gate)) * mv_sum(2u * i + 1u) * scale;
    }
  }
}

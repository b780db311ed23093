// y[m,n] = r[m,n] + sum_k W[ROW0+n,k] x[m,k]      W: [NTOT, K] packed; x: [M, K]; r, y: [M, N]
// Grid: gemm_shape, a workgroup a tile of T0 tokens by T1 rows. Replaces matmul, add. K a multiple of
// 32 (256 for K types).
#include "lib/step.wgsl"
@group(0) @binding(0) var<storage, read> w: array<vec4<u32>>;
@group(0) @binding(1) var<storage, read> x: array<vec4f>;
@group(0) @binding(2) var<storage, read> r: array<f32>;
@group(0) @binding(3) var<storage, read_write> y: array<f32>;
@group(0) @binding(4) var<uniform> step: Step;
#include "lib/w_{W}.wgsl"
#include "lib/gemm.wgsl"

fn gemm_out(m: u32, n: u32, v: f32) { y[m * N + n] = r[m * N + n] + v; }

@compute @workgroup_size(GEMM_WG)
fn main(@builtin(workgroup_id) wid: vec3u, @builtin(local_invocation_index) t: u32) {
  if (wid.y * GEMM_BM >= step.n_tok) { return; }
  gemm(wid, t);
}

// y[m,n] = g[n] x[m,n] / sqrt(mean_n(x[m,n]^2) + EPS)      x, y: [M, N]; g: [N]
// Grid: a workgroup of T0 threads (a power of two) a row. Any N.
#include "lib/step.wgsl"
@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read> g: array<f32>;
@group(0) @binding(2) var<storage, read_write> y: array<f32>;
@group(0) @binding(3) var<uniform> step: Step;

const WG = T0;
#include "lib/reduce.wgsl"

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) wid: vec3u, @builtin(local_invocation_index) t: u32) {
  let m = wid.x;
  if (m >= step.n_tok) { return; }
  var s = 0.0;
  for (var n = t; n < N; n += WG) { s += x[m * N + n] * x[m * N + n]; }
  let scale = inverseSqrt(reduce_add(s, t) / f32(N) + EPS);
  for (var n = t; n < N; n += WG) { y[m * N + n] = g[n] * x[m * N + n] * scale; }
}

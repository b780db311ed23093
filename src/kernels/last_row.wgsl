// y[0,n] = x[step.n_tok - 1, n]      x: [M, N]; y: [N]
// Grid: a thread an element.
#include "lib/step.wgsl"
@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;
@group(0) @binding(2) var<uniform> step: Step;

@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) wid: vec3u, @builtin(num_workgroups) num: vec3u,
        @builtin(local_invocation_index) t: u32) {
  let n = (wid.x + wid.y * num.x) * 256u + t;
  if (n < N) { y[n] = x[(step.n_tok - 1u) * N + n]; }
}

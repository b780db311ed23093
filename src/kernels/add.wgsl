// y = a + b      a, b, y: [M, N]
// Grid: a thread an element.
#include "lib/step.wgsl"
@group(0) @binding(0) var<storage, read> a: array<f32>;
@group(0) @binding(1) var<storage, read> b: array<f32>;
@group(0) @binding(2) var<storage, read_write> y: array<f32>;
@group(0) @binding(3) var<uniform> step: Step;

@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) wid: vec3u, @builtin(num_workgroups) num: vec3u,
        @builtin(local_invocation_index) t: u32) {
  let i = (wid.x + wid.y * num.x) * 256u + t;
  if (i < min(step.n_tok, M) * N) { y[i] = a[i] + b[i]; }
}

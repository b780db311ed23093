// y[m,n] = silu(gu[m,n]) gu[m,N+n], silu(a) = a / (1 + exp(-a))      gu: [M, 2N]; y: [M, N]
// Grid: a thread an element, in workgroups of 256 spilling to y. Replaces silu_mul.
#include "lib/step.wgsl"
@group(0) @binding(0) var<storage, read> gu: array<f32>;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;
@group(0) @binding(2) var<uniform> step: Step;

@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) wid: vec3u, @builtin(num_workgroups) num: vec3u,
        @builtin(local_invocation_index) t: u32) {
  let i = (wid.x + wid.y * num.x) * 256u + t;
  if (i >= step.n_tok * N) { return; }
  let a = gu[i + i / N * N];
  y[i] = a / (1.0 + exp(-a)) * gu[i + i / N * N + N];
}

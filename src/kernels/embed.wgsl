// y[m,:] = W[ids[m] - R0,:] where R0 <= ids[m] < R0 + NTOT; other rows are another part's.
// W: [NTOT, N]; ids: [M]; y: [M, N]
// Grid: a thread a block of 32. N a multiple of 32.
#include "lib/step.wgsl"
@group(0) @binding(0) var<storage, read> w: array<vec4<u32>>;
@group(0) @binding(1) var<storage, read> ids: array<u32>;
@group(0) @binding(2) var<storage, read_write> y: array<vec4f>;
@group(0) @binding(3) var<uniform> step: Step;
const K = N;
#include "lib/w_{W}.wgsl"

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) wid: vec3u, @builtin(num_workgroups) num: vec3u,
        @builtin(local_invocation_index) t: u32) {
  let i = (wid.x + wid.y * num.x) * 64u + t;
  let m = i / (N / 32u);
  if (m >= step.n_tok) { return; }
  let row = ids[m] - R0;
  if (row >= NTOT) { return; }
  let v = W_block(row * (N / 32u) + i % (N / 32u));
  for (var j = 0u; j < 8u; j++) { y[i * 8u + j] = v[j]; }
}

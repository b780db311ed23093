// cache[step.pos + m, n] = x[m,n]      x: [M, N]; cache: [context, N] in f32 or f16
// Grid: a thread two elements. N even.
#include "lib/step.wgsl"
#include "lib/kv_{KV}.wgsl"
@group(0) @binding(0) var<storage, read> x: array<vec2f>;
@group(0) @binding(1) var<storage, read_write> cache: array<KV2>;
@group(0) @binding(2) var<uniform> step: Step;

@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) wid: vec3u, @builtin(num_workgroups) num: vec3u,
        @builtin(local_invocation_index) t: u32) {
  let i = (wid.x + wid.y * num.x) * 256u + t;
  if (i < step.n_tok * (N / 2u)) { cache[step.pos * (N / 2u) + i] = kv_pack2(x[i]); }
}

// q[m,:] = rope(qkv[m, :H D]); caches: kc[step.pos+m,:] = rope(qkv[m, H D : (H+G) D]), vc[..] = the rest
// qkv: [M, (H+2G) D]; cs: [context, ROT/2] (cos, sin); q: [M, H D]; kc, vc: [context, G D]
// Grid: (quads of a row / 64, M); a thread a quad of lib/rope_quad.wgsl. D, ROT multiples of 4.
// Replaces 2 rope, 2 kv_append.
#include "lib/step.wgsl"
#include "lib/kv_{KV}.wgsl"
@group(0) @binding(0) var<storage, read> qkv: array<f32>;
@group(0) @binding(1) var<storage, read> cs: array<vec2f>;
@group(0) @binding(2) var<storage, read_write> q: array<vec2f>;
@group(0) @binding(3) var<storage, read_write> kc: array<KV2>;
@group(0) @binding(4) var<storage, read_write> vc: array<KV2>;
@group(0) @binding(5) var<uniform> step: Step;
const NQ = H * D;
const NK = G * D;
#include "lib/rope_quad.wgsl"

fn at(m: u32, s: u32, j: u32) -> f32 { return qkv[m * (NQ + 2u * NK) + quad_row(s, j)]; }

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3u) {
  let m = id.y;
  let s = 4u * id.x;
  if (m >= step.n_tok || s >= NQ + 2u * NK) { return; }
  quad_store(s, vec4f(at(m, s, 0u), at(m, s, 1u), at(m, s, 2u), at(m, s, 3u)), m, step.pos + m);
}

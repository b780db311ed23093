// rows OFF .. OFF+N of the stack q, k, v = W[ROW0 ..] h, h = rmsnorm(x) g; q and k rotated by the angles
// of step.pos, k and v stored at row step.pos of the caches.
// W: [NTOT, K] packed; x, g: [K]; cs: [context, ROT/2] (cos, sin); q: [NQ]; kc, vc: [context, NK]
// Grid: mv_shape, a workgroup T0 rows: whole quads of lib/rope_quad.wgsl. OFF and N multiples of D.
// Replaces rmsnorm, 3 matvec, 2 rope, 2 kv_append. K a multiple of 32 (256 for K types).
#include "lib/step.wgsl"
#include "lib/kv_{KV}.wgsl"
@group(0) @binding(0) var<storage, read> w: array<vec4<u32>>;
@group(0) @binding(1) var<storage, read> x: array<vec4f>;
@group(0) @binding(2) var<storage, read> g: array<vec4f>;
@group(0) @binding(3) var<storage, read> cs: array<vec2f>;
@group(0) @binding(4) var<storage, read_write> q: array<vec2f>;
@group(0) @binding(5) var<storage, read_write> kc: array<KV2>;
@group(0) @binding(6) var<storage, read_write> vc: array<KV2>;
@group(0) @binding(7) var<uniform> step: Step;
#include "lib/w_{W}.wgsl"
#include "lib/mv.wgsl"
#include "lib/mv_norm.wgsl"
#include "lib/rope_quad.wgsl"

fn mv_row(wg: u32, r: u32) -> u32 {
  let s = OFF + min(wg * MV_ROWS + r, N - 1u);
  return ROW0 + quad_row(s & ~3u, s & 3u) - OFF;
}

@compute @workgroup_size(MV_WG)
fn main(@builtin(workgroup_id) wid: vec3u, @builtin(local_invocation_index) t: u32) {
  mv(wid.x, t);
  mv_norm(t);
  workgroupBarrier();
  let scale = mv_scale();
  for (var i = 4u * t; i < MV_ROWS; i += 4u * MV_WG) {
    let n = wid.x * MV_ROWS + i;
    if (n < N) {
      let v = vec4f(mv_sum(i), mv_sum(i + 1u), mv_sum(i + 2u), mv_sum(i + 3u));
      quad_store(OFF + n, v * scale, 0u, step.pos);
    }
  }
}

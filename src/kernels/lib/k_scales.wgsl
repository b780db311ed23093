// The header of q4_k and q5_k blocks: d, dmin, then eight 6-bit scales and minimums in 12 bytes.
#include "lib/half.wgsl"

fn k_byte(h: vec4u, i: u32) -> u32 { return (h[1u + (i >> 2u)] >> ((i & 3u) * 8u)) & 0xffu; }
// (d scale, dmin min) of inner block i, 0 .. 7
fn k_scale_min(h: vec4u, i: u32) -> vec2f {
  let low = i < 4u;
  let p = k_byte(h, i & 3u);
  let q = k_byte(h, (i & 3u) + 4u);
  let m = k_byte(h, (i & 3u) + 8u);
  let scale = select((m & 15u) | ((p >> 6u) << 4u), p & 63u, low);
  let least = select((m >> 4u) | ((q >> 6u) << 4u), q & 63u, low);
  return vec2f(half_exact(h.x & 0xffffu) * f32(scale), half_exact(h.x >> 16u) * f32(least));
}

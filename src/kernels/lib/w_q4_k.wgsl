// q4_k: d scale q - dmin min. Blocks of 256 are 9 vec4s: header; codes [8], two for each 64
// elements, low nibbles first. See w_block.wgsl.
#include "lib/w_block.wgsl"
#include "lib/k_scales.wgsl"
const W_SUM = true;
struct W_Raw { h: vec4u, p: vec4u, q: vec4u, i: u32 } // q, p: codes in the low nibbles

fn W_get(b: u32) -> W_Raw {
  let i = b & 7u;
  let at = (b >> 3u) * 9u;
  let c = at + 1u + (i >> 1u) * 2u;
  let s = vec4u((i & 1u) * 4u);
  return W_Raw(w[at], w[c] >> s, w[c + 1u] >> s, i);
}
// 1 + q / 16 of the low nibbles of four bytes
fn W_low(q: u32) -> vec4f {
  return bitcast<vec4f>((vec4u(q << 19u, q << 11u, q << 3u, q >> 5u) & vec4u(0x780000u)) | vec4u(0x3f800000u));
}
fn W_at(r: W_Raw, j: u32) -> vec4f {
  let dm = k_scale_min(r.h, r.i);
  return (W_low(select(r.p, r.q, j > 3u)[j & 3u]) * 16.0 - 16.0) * dm.x - dm.y;
}
fn W_vec(b: u32, j: u32) -> vec4f {
  let i = b & 7u;
  let at = (b >> 3u) * 9u;
  let dm = k_scale_min(w[at], i);
  return (W_low(w[at + 1u + (i >> 1u) * 2u + (j >> 2u)][j & 3u] >> ((i & 1u) * 4u)) * 16.0 - 16.0) * dm.x - dm.y;
}
fn W_mul(r: W_Raw, xb: u32) -> f32 {
  let dm = k_scale_min(r.h, r.i);
  let s = dot(W_low(r.p.x), xs[xb]) + dot(W_low(r.p.y), xs[XS + xb])
        + dot(W_low(r.p.z), xs[2u * XS + xb]) + dot(W_low(r.p.w), xs[3u * XS + xb])
        + dot(W_low(r.q.x), xs[4u * XS + xb]) + dot(W_low(r.q.y), xs[5u * XS + xb])
        + dot(W_low(r.q.z), xs[6u * XS + xb]) + dot(W_low(r.q.w), xs[7u * XS + xb]);
  let d = 16.0 * dm.x;
  return d * s - (dm.y + d) * xsum[xb];
}

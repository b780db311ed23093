// q4_0 and q4_1: d q + m. See w_block.wgsl.
#include "lib/w_block.wgsl"
const W_SUM = true;

fn W_dm(b: u32) -> vec2f { return unpack2x16float(w[W_NB + (b >> 2u)][b & 3u]); }
// 1 + q / 16 of the low and of the high nibbles of four bytes
fn W_low(q: u32) -> vec4f {
  return bitcast<vec4f>((vec4u(q << 19u, q << 11u, q << 3u, q >> 5u) & vec4u(0x780000u)) | vec4u(0x3f800000u));
}
fn W_high(q: u32) -> vec4f {
  return bitcast<vec4f>((vec4u(q << 15u, q << 7u, q >> 1u, q >> 9u) & vec4u(0x780000u)) | vec4u(0x3f800000u));
}
fn W_vec(b: u32, j: u32) -> vec4f {
  let dm = W_dm(b);
  return (W_low(w[b][j & 3u] >> (j & 4u)) * 16.0 - 16.0) * dm.x + dm.y;
}
fn W_dot(b: u32, xb: u32) -> f32 {
  let q = w[b];
  let dm = W_dm(b);
  let s = dot(W_low(q.x), xs[xb]) + dot(W_low(q.y), xs[XS + xb])
        + dot(W_low(q.z), xs[2u * XS + xb]) + dot(W_low(q.w), xs[3u * XS + xb])
        + dot(W_high(q.x), xs[4u * XS + xb]) + dot(W_high(q.y), xs[5u * XS + xb])
        + dot(W_high(q.z), xs[6u * XS + xb]) + dot(W_high(q.w), xs[7u * XS + xb]);
  let d = 16.0 * dm.x;
  return d * s + (dm.y - d) * xsum[xb];
}

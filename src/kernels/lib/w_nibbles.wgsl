// q4_0 and q4_1: d q + m. See w_block.wgsl.
#include "lib/w_block.wgsl"
const W_SUM = true;
struct W_Raw { q: vec4u, dm: u32 }

fn W_get(b: u32) -> W_Raw { return W_Raw(w[b], w[W_NB + (b >> 2u)][b & 3u]); }
// 1 + q / 16 of the low and of the high nibbles of four bytes
fn W_low(q: u32) -> vec4f {
  return bitcast<vec4f>((vec4u(q << 19u, q << 11u, q << 3u, q >> 5u) & vec4u(0x780000u)) | vec4u(0x3f800000u));
}
fn W_high(q: u32) -> vec4f {
  return bitcast<vec4f>((vec4u(q << 15u, q << 7u, q >> 1u, q >> 9u) & vec4u(0x780000u)) | vec4u(0x3f800000u));
}
fn W_at(r: W_Raw, j: u32) -> vec4f {
  let dm = unpack2x16float(r.dm);
  return (W_low(r.q[j & 3u] >> (j & 4u)) * 16.0 - 16.0) * dm.x + dm.y;
}
fn W_vec(b: u32, j: u32) -> vec4f { return W_at(W_get(b), j); }
fn W_mul(r: W_Raw, xb: u32) -> f32 {
  let dm = unpack2x16float(r.dm);
  let s = dot(W_low(r.q.x), xs[xb]) + dot(W_low(r.q.y), xs[XS + xb])
        + dot(W_low(r.q.z), xs[2u * XS + xb]) + dot(W_low(r.q.w), xs[3u * XS + xb])
        + dot(W_high(r.q.x), xs[4u * XS + xb]) + dot(W_high(r.q.y), xs[5u * XS + xb])
        + dot(W_high(r.q.z), xs[6u * XS + xb]) + dot(W_high(r.q.w), xs[7u * XS + xb]);
  let d = 16.0 * dm.x;
  return d * s + (dm.y - d) * xsum[xb];
}

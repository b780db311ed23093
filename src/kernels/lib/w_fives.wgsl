// q5_0 and q5_1: d q + m. See w_block.wgsl.
#include "lib/w_block.wgsl"
const W_SUM = true;

fn W_dm(b: u32) -> vec2f { return unpack2x16float(w[W_NB + (b >> 2u)][b & 3u]); }
fn W_fifths(b: u32) -> u32 { return w[W_NB + W_PLANE + (b >> 2u)][b & 3u]; }
// 1 + q / 32, q the low nibbles of four bytes and the low four bits of h above them
fn W_ones(q: u32, h: u32) -> vec4f {
  return bitcast<vec4f>((vec4u(q << 18u, q << 10u, q << 2u, q >> 6u) & vec4u(0x3c0000u))
                      | (vec4u(h << 22u, h << 21u, h << 20u, h << 19u) & vec4u(0x400000u))
                      | vec4u(0x3f800000u));
}
fn W_vec(b: u32, j: u32) -> vec4f {
  let dm = W_dm(b);
  return (W_ones(w[b][j & 3u] >> (j & 4u), W_fifths(b) >> (j * 4u)) * 32.0 - 32.0) * dm.x + dm.y;
}
fn W_dot(b: u32, xb: u32) -> f32 {
  let q = w[b];
  let h = W_fifths(b);
  let dm = W_dm(b);
  let s = dot(W_ones(q.x, h), xs[xb]) + dot(W_ones(q.y, h >> 4u), xs[XS + xb])
        + dot(W_ones(q.z, h >> 8u), xs[2u * XS + xb]) + dot(W_ones(q.w, h >> 12u), xs[3u * XS + xb])
        + dot(W_ones(q.x >> 4u, h >> 16u), xs[4u * XS + xb]) + dot(W_ones(q.y >> 4u, h >> 20u), xs[5u * XS + xb])
        + dot(W_ones(q.z >> 4u, h >> 24u), xs[6u * XS + xb]) + dot(W_ones(q.w >> 4u, h >> 28u), xs[7u * XS + xb]);
  let d = 32.0 * dm.x;
  return d * s + (dm.y - d) * xsum[xb];
}

// q5_0 and q5_1: d q + m. See w_block.wgsl.
#include "lib/w_block.wgsl"
const W_SUM = true;
struct W_Raw { q: vec4u, dm: u32, h: u32 }

fn W_get(b: u32) -> W_Raw {
  let p = W_NB + (b >> 2u);
  return W_Raw(w[b], w[p][b & 3u], w[p + W_PLANE][b & 3u]);
}
// 1 + q / 32, q the low nibbles of four bytes and the low four bits of h above them
fn W_ones(q: u32, h: u32) -> vec4f {
  return bitcast<vec4f>((vec4u(q << 18u, q << 10u, q << 2u, q >> 6u) & vec4u(0x3c0000u))
                      | (vec4u(h << 22u, h << 21u, h << 20u, h << 19u) & vec4u(0x400000u))
                      | vec4u(0x3f800000u));
}
fn W_at(r: W_Raw, j: u32) -> vec4f {
  let dm = unpack2x16float(r.dm);
  return (W_ones(r.q[j & 3u] >> (j & 4u), r.h >> (j * 4u)) * 32.0 - 32.0) * dm.x + dm.y;
}
fn W_vec(b: u32, j: u32) -> vec4f { return W_at(W_get(b), j); }
fn W_mul(r: W_Raw, xb: u32) -> f32 {
  let dm = unpack2x16float(r.dm);
  let p = r.q >> vec4u(4u);
  let s = dot(W_ones(r.q.x, r.h), xs[xb]) + dot(W_ones(r.q.y, r.h >> 4u), xs[XS + xb])
        + dot(W_ones(r.q.z, r.h >> 8u), xs[2u * XS + xb]) + dot(W_ones(r.q.w, r.h >> 12u), xs[3u * XS + xb])
        + dot(W_ones(p.x, r.h >> 16u), xs[4u * XS + xb]) + dot(W_ones(p.y, r.h >> 20u), xs[5u * XS + xb])
        + dot(W_ones(p.z, r.h >> 24u), xs[6u * XS + xb]) + dot(W_ones(p.w, r.h >> 28u), xs[7u * XS + xb]);
  let d = 32.0 * dm.x;
  return d * s + (dm.y - d) * xsum[xb];
}

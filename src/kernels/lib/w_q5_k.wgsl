// q5_k: d scale q - dmin min. Blocks of 256 are 11 vec4s: header; fifth bits [2], bit i of a byte
// for inner block i; codes [8], two for each 64 elements, low nibbles first. See w_block.wgsl.
#include "lib/w_block.wgsl"
#include "lib/k_scales.wgsl"
const W_SUM = true;
struct W_Raw { h: vec4u, p: vec4u, q: vec4u, ph: vec4u, qh: vec4u, i: u32 }

fn W_get(b: u32) -> W_Raw {
  let i = b & 7u;
  let at = (b >> 3u) * 11u;
  let c = at + 3u + (i >> 1u) * 2u;
  let s = vec4u((i & 1u) * 4u);
  return W_Raw(w[at], w[c] >> s, w[c + 1u] >> s, w[at + 1u] >> vec4u(i), w[at + 2u] >> vec4u(i), i);
}
// 1 + q / 32, q the low nibbles of four bytes and bit 0 of the bytes of h above them
fn W_ones(q: u32, h: u32) -> vec4f {
  return bitcast<vec4f>((vec4u(q << 18u, q << 10u, q << 2u, q >> 6u) & vec4u(0x3c0000u))
                      | (vec4u(h << 22u, h << 14u, h << 6u, h >> 2u) & vec4u(0x400000u))
                      | vec4u(0x3f800000u));
}
fn W_at(r: W_Raw, j: u32) -> vec4f {
  let dm = k_scale_min(r.h, r.i);
  let v = W_ones(select(r.p, r.q, j > 3u)[j & 3u], select(r.ph, r.qh, j > 3u)[j & 3u]);
  return (v * 32.0 - 32.0) * dm.x - dm.y;
}
fn W_vec(b: u32, j: u32) -> vec4f {
  let i = b & 7u;
  let at = (b >> 3u) * 11u;
  let dm = k_scale_min(w[at], i);
  let v = W_ones(w[at + 3u + (i >> 1u) * 2u + (j >> 2u)][j & 3u] >> ((i & 1u) * 4u),
                 w[at + 1u + (j >> 2u)][j & 3u] >> i);
  return (v * 32.0 - 32.0) * dm.x - dm.y;
}
fn W_mul(r: W_Raw, xb: u32) -> f32 {
  let dm = k_scale_min(r.h, r.i);
  let s = dot(W_ones(r.p.x, r.ph.x), xs[xb]) + dot(W_ones(r.p.y, r.ph.y), xs[XS + xb])
        + dot(W_ones(r.p.z, r.ph.z), xs[2u * XS + xb]) + dot(W_ones(r.p.w, r.ph.w), xs[3u * XS + xb])
        + dot(W_ones(r.q.x, r.qh.x), xs[4u * XS + xb]) + dot(W_ones(r.q.y, r.qh.y), xs[5u * XS + xb])
        + dot(W_ones(r.q.z, r.qh.z), xs[6u * XS + xb]) + dot(W_ones(r.q.w, r.qh.w), xs[7u * XS + xb]);
  let d = 32.0 * dm.x;
  return d * s - (dm.y + d) * xsum[xb];
}

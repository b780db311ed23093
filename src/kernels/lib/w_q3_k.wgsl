// q3_k: d (scale - 32) (q - 4). Blocks of 256 are 7 vec4s: high bits [2], bit i of a byte for the
// 32 elements of inner block i; low pairs [4], two for each 128 elements; sixteen 6-bit scales in
// 12 bytes; d. See w_block.wgsl.
#include "lib/w_block.wgsl"
#include "lib/half.wgsl"
const W_SUM = false;
// Low pairs and high bits in the low bits of each byte; scales and d; the inner block.
struct W_Raw { p: vec4u, q: vec4u, ph: vec4u, qh: vec4u, s: vec4u, i: u32 }

fn W_get(b: u32) -> W_Raw {
  let i = b & 7u;
  let at = (b >> 3u) * 7u;
  let c = at + 2u + (i >> 2u) * 2u;
  let t = vec4u((i & 3u) * 2u);
  return W_Raw(w[c] >> t, w[c + 1u] >> t, w[at] >> vec4u(i), w[at + 1u] >> vec4u(i), w[at + 6u], i);
}
// (q - 4) / 8 of four bytes, exact
fn W_three(q: u32, h: u32) -> vec4f {
  return bitcast<vec4f>((vec4u(q << 20u, q << 12u, q << 4u, q >> 4u) & vec4u(0x300000u))
                      | (vec4u(h << 22u, h << 14u, h << 6u, h >> 2u) & vec4u(0x400000u))
                      | vec4u(0x3f800000u)) - 1.5;
}
// Scale n, 0 .. 15: the low nibble in byte n % 8, the high pair in byte 8 + n % 4.
fn W_scale(s: vec4u, n: u32) -> i32 {
  let low = s[(n & 7u) >> 2u] >> ((n & 3u) * 8u + (n >> 3u) * 4u);
  let high = s.z >> ((n & 3u) * 8u + (n >> 2u) * 2u);
  return i32((low & 15u) | ((high & 3u) << 4u)) - 32;
}
fn W_scales(r: W_Raw) -> vec2f {
  return vec2f(vec2i(W_scale(r.s, 2u * r.i), W_scale(r.s, 2u * r.i + 1u))) * (8.0 * half_exact(r.s.w));
}
fn W_at(r: W_Raw, j: u32) -> vec4f {
  let s = W_scales(r);
  return W_three(select(r.p, r.q, j > 3u)[j & 3u], select(r.ph, r.qh, j > 3u)[j & 3u]) * select(s.x, s.y, j > 3u);
}
fn W_vec(b: u32, j: u32) -> vec4f { return W_at(W_get(b), j); }
fn W_mul(r: W_Raw, xb: u32) -> f32 {
  let s = W_scales(r);
  return s.x * (dot(W_three(r.p.x, r.ph.x), xs[xb]) + dot(W_three(r.p.y, r.ph.y), xs[XS + xb])
              + dot(W_three(r.p.z, r.ph.z), xs[2u * XS + xb]) + dot(W_three(r.p.w, r.ph.w), xs[3u * XS + xb]))
       + s.y * (dot(W_three(r.q.x, r.qh.x), xs[4u * XS + xb]) + dot(W_three(r.q.y, r.qh.y), xs[5u * XS + xb])
              + dot(W_three(r.q.z, r.qh.z), xs[6u * XS + xb]) + dot(W_three(r.q.w, r.qh.w), xs[7u * XS + xb]));
}

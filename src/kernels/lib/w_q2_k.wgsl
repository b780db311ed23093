// q2_k: d scale q - dmin min. Blocks of 256 are 6 vec4s: sixteen bytes of scale (low nibble) and
// minimum; pairs [4], two for each 128 elements; d, dmin. See w_block.wgsl.
#include "lib/w_block.wgsl"
#include "lib/half.wgsl"
const W_SUM = false;
// Pairs in the low bits of each byte; two scale bytes; (d, dmin).
struct W_Raw { p: vec4u, q: vec4u, s: u32, d: u32 }

fn W_get(b: u32) -> W_Raw {
  let i = b & 7u;
  let at = (b >> 3u) * 6u;
  let c = at + 1u + (i >> 2u) * 2u;
  let t = vec4u((i & 3u) * 2u);
  return W_Raw(w[c] >> t, w[c + 1u] >> t, w[at][i >> 1u] >> ((i & 1u) * 16u), w[at + 5u].x);
}
// q / 4 of four bytes, exact
fn W_two(q: u32) -> vec4f {
  return bitcast<vec4f>((vec4u(q << 21u, q << 13u, q << 5u, q >> 3u) & vec4u(0x600000u)) | vec4u(0x3f800000u)) - 1.0;
}
// (4 d scale of each half of 16, dmin min of each)
fn W_scales(s: u32, d: u32) -> vec4f {
  let v = vec4f(vec4u(s, s >> 8u, s >> 4u, s >> 12u) & vec4u(15u));
  return v * vec4f(vec2f(4.0 * half_exact(d & 0xffffu)), vec2f(half_exact(d >> 16u)));
}
fn W_at(r: W_Raw, j: u32) -> vec4f {
  let s = W_scales(r.s, r.d);
  return W_two(select(r.p, r.q, j > 3u)[j & 3u]) * select(s.x, s.y, j > 3u) - select(s.z, s.w, j > 3u);
}
fn W_vec(b: u32, j: u32) -> vec4f { return W_at(W_get(b), j); }
fn W_mul(r: W_Raw, xb: u32) -> f32 {
  let s = W_scales(r.s, r.d);
  let x0 = xs[xb];
  let x1 = xs[XS + xb];
  let x2 = xs[2u * XS + xb];
  let x3 = xs[3u * XS + xb];
  let x4 = xs[4u * XS + xb];
  let x5 = xs[5u * XS + xb];
  let x6 = xs[6u * XS + xb];
  let x7 = xs[7u * XS + xb];
  return s.x * (dot(W_two(r.p.x), x0) + dot(W_two(r.p.y), x1) + dot(W_two(r.p.z), x2) + dot(W_two(r.p.w), x3))
       + s.y * (dot(W_two(r.q.x), x4) + dot(W_two(r.q.y), x5) + dot(W_two(r.q.z), x6) + dot(W_two(r.q.w), x7))
       - s.z * dot(x0 + x1 + x2 + x3, vec4f(1.0)) - s.w * dot(x4 + x5 + x6 + x7, vec4f(1.0));
}

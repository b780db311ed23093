// q6_k: d scale (q - 32). Blocks of 256 are 14 vec4s: low nibbles [8], four for each 128 elements;
// high pairs [4], two for each 128; sixteen signed scales; d. See w_block.wgsl.
#include "lib/w_block.wgsl"
#include "lib/half.wgsl"
const W_SUM = false;
// Low nibbles, high pairs in the low bits of each byte; scales of the two halves of 16; d.
struct W_Raw { p: vec4u, q: vec4u, ph: vec4u, qh: vec4u, s: u32, d: u32 }

fn W_get(b: u32) -> W_Raw {
  let i = b & 7u;
  let at = (b >> 3u) * 14u;
  let half = i >> 2u;
  let c = at + half * 4u + (i & 1u) * 2u;
  let h = at + 8u + half * 2u;
  let s = vec4u((i & 2u) * 2u);
  let t = vec4u((i & 3u) * 2u);
  return W_Raw(w[c] >> s, w[c + 1u] >> s, w[h] >> t, w[h + 1u] >> t,
               w[at + 12u][i >> 1u] >> ((i & 1u) * 16u), w[at + 13u].x);
}
// (q - 32) / 64 of four bytes, exact
fn W_six(q: u32, h: u32) -> vec4f {
  return bitcast<vec4f>((vec4u(q << 17u, q << 9u, q << 1u, q >> 7u) & vec4u(0x1e0000u))
                      | (vec4u(h << 21u, h << 13u, h << 5u, h >> 3u) & vec4u(0x600000u))
                      | vec4u(0x3f800000u)) - 1.5;
}
fn W_scales(s: u32, d: u32) -> vec2f {
  return vec2f(vec2i(i32(s << 24u) >> 24u, i32(s << 16u) >> 24u)) * (64.0 * half_exact(d));
}
fn W_at(r: W_Raw, j: u32) -> vec4f {
  let s = W_scales(r.s, r.d);
  return W_six(select(r.p, r.q, j > 3u)[j & 3u], select(r.ph, r.qh, j > 3u)[j & 3u]) * select(s.x, s.y, j > 3u);
}
fn W_vec(b: u32, j: u32) -> vec4f { return W_at(W_get(b), j); }
fn W_mul(r: W_Raw, xb: u32) -> f32 {
  let s = W_scales(r.s, r.d);
  return s.x * (dot(W_six(r.p.x, r.ph.x), xs[xb]) + dot(W_six(r.p.y, r.ph.y), xs[XS + xb])
              + dot(W_six(r.p.z, r.ph.z), xs[2u * XS + xb]) + dot(W_six(r.p.w, r.ph.w), xs[3u * XS + xb]))
       + s.y * (dot(W_six(r.q.x, r.qh.x), xs[4u * XS + xb]) + dot(W_six(r.q.y, r.qh.y), xs[5u * XS + xb])
              + dot(W_six(r.q.z, r.qh.z), xs[6u * XS + xb]) + dot(W_six(r.q.w, r.qh.w), xs[7u * XS + xb]));
}

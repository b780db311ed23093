// q8_0: d q, q in -128 .. 127. See w_block.wgsl.
#include "lib/w_block.wgsl"
const W_SUM = false;
struct W_Raw { p: vec4u, q: vec4u, d: u32 }

fn W_scale(b: u32) -> u32 { return w[2u * W_NB + (b >> 2u)][b & 3u]; }
fn W_get(b: u32) -> W_Raw { return W_Raw(w[2u * b], w[2u * b + 1u], W_scale(b)); }
// q / 256 of four bytes, exact: flipping the sign bit gives q + 128
fn W_bytes(q: u32) -> vec4f {
  let u = q ^ 0x80808080u;
  return bitcast<vec4f>((vec4u(u << 15u, u << 7u, u >> 1u, u >> 9u) & vec4u(0x7f8000u)) | vec4u(0x3f800000u)) - 1.5;
}
fn W_at(r: W_Raw, j: u32) -> vec4f {
  return W_bytes(select(r.p, r.q, j > 3u)[j & 3u]) * (256.0 * unpack2x16float(r.d).x);
}
fn W_vec(b: u32, j: u32) -> vec4f {
  return W_bytes(w[2u * b + (j >> 2u)][j & 3u]) * (256.0 * unpack2x16float(W_scale(b)).x);
}
fn W_mul(r: W_Raw, xb: u32) -> f32 {
  let s = dot(W_bytes(r.p.x), xs[xb]) + dot(W_bytes(r.p.y), xs[XS + xb])
        + dot(W_bytes(r.p.z), xs[2u * XS + xb]) + dot(W_bytes(r.p.w), xs[3u * XS + xb])
        + dot(W_bytes(r.q.x), xs[4u * XS + xb]) + dot(W_bytes(r.q.y), xs[5u * XS + xb])
        + dot(W_bytes(r.q.z), xs[6u * XS + xb]) + dot(W_bytes(r.q.w), xs[7u * XS + xb]);
  return s * (256.0 * unpack2x16float(r.d).x);
}

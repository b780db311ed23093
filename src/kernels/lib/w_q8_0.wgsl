// q8_0: d q, q in -128 .. 127. See w_block.wgsl.
#include "lib/w_block.wgsl"
const W_SUM = false;

fn W_d(b: u32) -> f32 { return unpack2x16float(w[2u * W_NB + (b >> 2u)][b & 3u]).x * 256.0; }
// q / 256 of four bytes, exact: flipping the sign bit gives q + 128
fn W_bytes(q: u32) -> vec4f {
  let u = q ^ 0x80808080u;
  return bitcast<vec4f>((vec4u(u << 15u, u << 7u, u >> 1u, u >> 9u) & vec4u(0x7f8000u)) | vec4u(0x3f800000u)) - 1.5;
}
fn W_vec(b: u32, j: u32) -> vec4f { return W_bytes(w[2u * b + (j >> 2u)][j & 3u]) * W_d(b); }
fn W_dot(b: u32, xb: u32) -> f32 {
  let p = w[2u * b];
  let q = w[2u * b + 1u];
  let s = dot(W_bytes(p.x), xs[xb]) + dot(W_bytes(p.y), xs[XS + xb])
        + dot(W_bytes(p.z), xs[2u * XS + xb]) + dot(W_bytes(p.w), xs[3u * XS + xb])
        + dot(W_bytes(q.x), xs[4u * XS + xb]) + dot(W_bytes(q.y), xs[5u * XS + xb])
        + dot(W_bytes(q.z), xs[6u * XS + xb]) + dot(W_bytes(q.w), xs[7u * XS + xb]);
  return s * W_d(b);
}

// Two elements a u32: f16 and bf16, which define W_pair. See w_block.wgsl.
#include "lib/w_block.wgsl"
const W_SUM = false;
struct W_Raw { q0: vec4u, q1: vec4u, q2: vec4u, q3: vec4u }

fn W_get(b: u32) -> W_Raw { return W_Raw(w[b * 4u], w[b * 4u + 1u], w[b * 4u + 2u], w[b * 4u + 3u]); }
fn W_four(q: vec4u, j: u32) -> vec4f {
  let p = select(q.xy, q.zw, (j & 1u) == 1u);
  return vec4f(W_pair(p.x), W_pair(p.y));
}
fn W_at(r: W_Raw, j: u32) -> vec4f {
  return W_four(select(select(r.q0, r.q1, (j & 2u) == 2u), select(r.q2, r.q3, (j & 2u) == 2u), j > 3u), j);
}
fn W_vec(b: u32, j: u32) -> vec4f { return W_four(w[b * 4u + (j >> 1u)], j); }
fn W_mul(r: W_Raw, xb: u32) -> f32 {
  return dot(W_four(r.q0, 0u), xs[xb]) + dot(W_four(r.q0, 1u), xs[XS + xb])
       + dot(W_four(r.q1, 0u), xs[2u * XS + xb]) + dot(W_four(r.q1, 1u), xs[3u * XS + xb])
       + dot(W_four(r.q2, 0u), xs[4u * XS + xb]) + dot(W_four(r.q2, 1u), xs[5u * XS + xb])
       + dot(W_four(r.q3, 0u), xs[6u * XS + xb]) + dot(W_four(r.q3, 1u), xs[7u * XS + xb]);
}

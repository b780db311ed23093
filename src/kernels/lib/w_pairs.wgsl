// Two elements a u32: f16 and bf16, which define W_pair. See w_block.wgsl.
#include "lib/w_block.wgsl"
const W_SUM = false;

fn W_vec(b: u32, j: u32) -> vec4f {
  let q = w[b * 4u + (j >> 1u)];
  let p = select(q.xy, q.zw, (j & 1u) == 1u);
  return vec4f(W_pair(p.x), W_pair(p.y));
}
fn W_dot(b: u32, xb: u32) -> f32 {
  var s = 0.0;
  for (var i = 0u; i < 4u; i++) {
    let q = w[b * 4u + i];
    s += dot(vec4f(W_pair(q.x), W_pair(q.y)), xs[2u * i * XS + xb])
       + dot(vec4f(W_pair(q.z), W_pair(q.w)), xs[(2u * i + 1u) * XS + xb]);
  }
  return s;
}

// f32. See w_block.wgsl.
#include "lib/w_block.wgsl"
const W_SUM = false;

fn W_vec(b: u32, j: u32) -> vec4f { return bitcast<vec4f>(w[b * 8u + j]); }
fn W_dot(b: u32, xb: u32) -> f32 {
  var s = 0.0;
  for (var j = 0u; j < 8u; j++) { s += dot(W_vec(b, j), xs[j * XS + xb]); }
  return s;
}

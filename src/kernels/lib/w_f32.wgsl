// f32. W_get loads nothing: eight vec4s held over a barrier would cost more than they save. See
// w_block.wgsl.
#include "lib/w_block.wgsl"
const W_SUM = false;
struct W_Raw { b: u32 }

fn W_get(b: u32) -> W_Raw { return W_Raw(b); }
fn W_vec(b: u32, j: u32) -> vec4f { return bitcast<vec4f>(w[b * 8u + j]); }
fn W_at(r: W_Raw, j: u32) -> vec4f { return W_vec(r.b, j); }
fn W_mul(r: W_Raw, xb: u32) -> f32 {
  var s = 0.0;
  for (var j = 0u; j < 8u; j++) { s += dot(W_vec(r.b, j), xs[j * XS + xb]); }
  return s;
}

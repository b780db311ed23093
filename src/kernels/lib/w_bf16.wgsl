// bf16: the upper half of an f32. See w_block.wgsl.
#include "lib/w_pairs.wgsl"
fn W_pair(q: u32) -> vec2f { return bitcast<vec2f>(vec2u(q << 16u, q & 0xffff0000u)); }

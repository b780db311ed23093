// f16. See w_block.wgsl.
#include "lib/w_pairs.wgsl"
fn W_pair(q: u32) -> vec2f { return unpack2x16float(q); }

// d, codes. See pack.wgsl.
const BLOCK = 32u;
const BYTES = 18u;
const WORDS = 4u;
const PLANES = 1u;
#include "lib/pack_scale.wgsl"
fn pack_word(o: u32, j: u32) -> u32 {
  if (j < 4u) { return u32_at(o + 2u + 4u * j); }
  return scale_and(o, -8.0);
}

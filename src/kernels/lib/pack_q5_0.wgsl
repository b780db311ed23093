// d, fifth bits, codes. See pack.wgsl.
const BLOCK = 32u;
const BYTES = 22u;
const WORDS = 4u;
const PLANES = 2u;
#include "lib/pack_scale.wgsl"
fn pack_word(o: u32, j: u32) -> u32 {
  if (j == 4u) { return scale_and(o, -16.0); }
  return u32_at(select(o + 2u, o + 6u + 4u * j, j < 4u));
}

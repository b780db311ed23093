// d, codes. See pack.wgsl.
const BLOCK = 32u;
const BYTES = 34u;
const WORDS = 8u;
const PLANES = 1u;
fn pack_word(o: u32, j: u32) -> u32 {
  if (j < 8u) { return u32_at(o + 2u + 4u * j); }
  return u16_at(o);
}

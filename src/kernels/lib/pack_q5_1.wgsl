// d, m, fifth bits, codes. See pack.wgsl.
const BLOCK = 32u;
const BYTES = 24u;
const WORDS = 4u;
const PLANES = 2u;
fn pack_word(o: u32, j: u32) -> u32 {
  if (j == 4u) { return u32_at(o); }
  return u32_at(select(o + 4u, o + 8u + 4u * j, j < 4u));
}

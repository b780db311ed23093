// Blocks that stay as they are, zero-padded to WORDS. See pack.wgsl.
const PLANES = 0u;
fn pack_word(o: u32, j: u32) -> u32 {
  if (j * 4u >= BYTES) { return 0u; }
  if (j * 4u + 2u == BYTES) { return u16_at(o + j * 4u); }
  return u32_at(o + j * 4u);
}

// d, m, codes. See pack.wgsl.
const BLOCK = 32u;
const BYTES = 20u;
const WORDS = 4u;
const PLANES = 1u;
fn pack_word(o: u32, j: u32) -> u32 { return u32_at(select(o, o + 4u + 4u * j, j < 4u)); }

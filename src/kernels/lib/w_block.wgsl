// Included by every w_<type>.wgsl. These read the weights of a kernel, layout as in pack.h, through
//   @group(0) @binding(i) var<storage, read> w: array<vec4<u32>>;
// and need const K, NTOT (row length and rows of the stack). b counts blocks of 32 over the whole
// stack: block kb of row r is r * (K / 32u) + kb. They give
//   const W_SUM: bool             whether W_dot reads xsum (lib/stage.wgsl)
//   fn W_vec(b, j) -> vec4f       elements 4j .. 4j+3 of block b, j = 0 .. 7
//   fn W_block(b) -> array<vec4f, 8>
//   fn W_dot(b, xb) -> f32        block b times staged block xb; needs lib/stage.wgsl
// Codes become floats without a conversion: their bits in the mantissa of 1.0 give 1 + code / 2^n.
const W_NB = NTOT * (K / 32u);       // blocks of the stack
const W_PLANE = (W_NB + 3u) / 4u;    // vec4s of a plane of one u32 a block

fn W_block(b: u32) -> array<vec4f, 8> {
  return array<vec4f, 8>(W_vec(b, 0u), W_vec(b, 1u), W_vec(b, 2u), W_vec(b, 3u),
                         W_vec(b, 4u), W_vec(b, 5u), W_vec(b, 6u), W_vec(b, 7u));
}

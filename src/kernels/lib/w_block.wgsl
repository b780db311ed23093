// Included by every w_<type>.wgsl. These read the weights of a kernel, layout as in pack.h, through
//   @group(0) @binding(i) var<storage, read> w: array<vec4<u32>>;
// and need const K, NTOT (row length and rows of the stack). b counts blocks of 32 over the whole
// stack: block kb of row r is r * (K / 32u) + kb. Each file gives
//   const W_SUM: bool             whether W_mul and W_dot read xsum (lib/stage.wgsl)
//   struct W_Raw                  a block as loaded
//   fn W_get(b) -> W_Raw          loads only, so that it can be issued ahead of a barrier
//   fn W_at(r, j) -> vec4f        elements 4j .. 4j+3 of the block, j = 0 .. 7
//   fn W_mul(r, xb) -> f32        the block times staged block xb of x (lib/stage.wgsl)
//   fn W_vec(b, j) -> vec4f       W_at(W_get(b), j), loading no more than it needs
// Codes become floats without a conversion: their bits in the mantissa of 1.0 give 1 + code / 2^n.
#include "lib/stage.wgsl"
const W_NB = NTOT * (K / 32u);       // blocks of the stack
const W_PLANE = (W_NB + 3u) / 4u;    // vec4s of a plane of one u32 a block

fn W_load(row: u32, kb: u32) -> W_Raw { return W_get(row * (K / 32u) + kb); }
fn W_decode(r: W_Raw) -> array<vec4f, 8> {
  return array<vec4f, 8>(W_at(r, 0u), W_at(r, 1u), W_at(r, 2u), W_at(r, 3u),
                         W_at(r, 4u), W_at(r, 5u), W_at(r, 6u), W_at(r, 7u));
}
fn W_block(b: u32) -> array<vec4f, 8> { return W_decode(W_get(b)); }
// elements 4i .. 4i+3 and 16+4i .. 16+4i+3 of block kb of a row, i = 0 .. 3
fn W_part(row: u32, kb: u32, i: u32) -> array<vec4f, 2> {
  let b = row * (K / 32u) + kb;
  return array<vec4f, 2>(W_vec(b, i), W_vec(b, i + 4u));
}

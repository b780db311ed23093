// step.n_tok rows of K, at most NROWS, from the file's layout, src, to the stack dst [NTOT, K] at row
// step.pos: pack.h has the layouts. Grid: a thread a u32 of dst. A type's file lib/pack_<type>.wgsl gives: BLOCK, elements a block;
// BYTES of it in the file; WORDS in the first plane; PLANES of one u32 a block after it; pack_word.
#include "lib/step.wgsl"
@group(0) @binding(0) var<storage, read> src: array<u32>;
@group(0) @binding(1) var<storage, read_write> dst: array<u32>;
@group(0) @binding(2) var<uniform> step: Step;

// At byte o, a multiple of 2.
fn u16_at(o: u32) -> u32 { return (src[o >> 2u] >> ((o & 2u) * 8u)) & 0xffffu; }
fn u32_at(o: u32) -> u32 {
  if ((o & 2u) == 0u) { return src[o >> 2u]; }
  return (src[o >> 2u] >> 16u) | (src[(o >> 2u) + 1u] << 16u);
}
#include "lib/pack_{W}.wgsl"

@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) wid: vec3u, @builtin(num_workgroups) num: vec3u,
        @builtin(local_invocation_index) t: u32) {
  const PER = WORDS + PLANES;
  const ALL = NTOT * (K / BLOCK);
  let i = (wid.x + wid.y * num.x) * 256u + t;
  let block = i / PER;
  if (block >= step.n_tok * (K / BLOCK)) { return; }
  let j = i % PER;
  let b = step.pos * (K / BLOCK) + block;
  var at = b * WORDS + j;
  if (j >= WORDS) { at = ALL * WORDS + (j - WORDS) * ((ALL + 3u) / 4u * 4u) + b; }
  dst[at] = pack_word(block * BYTES, j);
}

// See pack.wgsl.
const BLOCK = 32u;
const BYTES = 64u;
const WORDS = 16u;
#include "lib/pack_copy.wgsl"

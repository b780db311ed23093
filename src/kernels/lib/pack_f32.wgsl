// See pack.wgsl.
const BLOCK = 32u;
const BYTES = 128u;
const WORDS = 32u;
#include "lib/pack_copy.wgsl"

// See pack.wgsl.
const BLOCK = 256u;
const BYTES = 144u;
const WORDS = 36u;
#include "lib/pack_copy.wgsl"

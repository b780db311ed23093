// See pack.wgsl.
const BLOCK = 256u;
const BYTES = 176u;
const WORDS = 44u;
#include "lib/pack_copy.wgsl"

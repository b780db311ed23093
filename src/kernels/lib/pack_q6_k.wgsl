// See pack.wgsl.
const BLOCK = 256u;
const BYTES = 210u;
const WORDS = 56u;
#include "lib/pack_copy.wgsl"

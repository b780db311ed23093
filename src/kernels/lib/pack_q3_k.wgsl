// See pack.wgsl.
const BLOCK = 256u;
const BYTES = 110u;
const WORDS = 28u;
#include "lib/pack_copy.wgsl"

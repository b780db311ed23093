// See pack.wgsl.
const BLOCK = 256u;
const BYTES = 84u;
const WORDS = 24u;
#include "lib/pack_copy.wgsl"

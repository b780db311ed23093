// q4_0: nibbles with a scale and a minimum.
#include "lib/w_nibbles.wgsl"

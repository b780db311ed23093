// q4_1: nibbles with a scale and a minimum.
#include "lib/w_nibbles.wgsl"

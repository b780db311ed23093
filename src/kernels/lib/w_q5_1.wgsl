// q5_1: five-bit codes with a scale and a minimum.
#include "lib/w_fives.wgsl"

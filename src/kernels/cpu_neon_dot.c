/* The fast forms for 64-bit ARM with the dot product of bytes (FEAT_DotProd). */
#if defined(__aarch64__)
#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("dotprod"))), apply_to = function)
#else
#pragma GCC target("arch=armv8.2-a+dotprod")
#endif
#define CPU_LEVEL 6
#include "kernels/cpu_forms.h"

const cpu_forms cpu_forms_neon_dot = CPU_FORMS_TABLE("neon-dot");
#if defined(__clang__)
#pragma clang attribute pop
#endif
#else
typedef int cpu_neon_dot_is_empty;
#endif

/* The fast forms for x86-64 with AVX2, FMA and F16C. */
#if defined(__x86_64__)
#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2,fma,f16c"))), apply_to = function)
#else
#pragma GCC target("avx2,fma,f16c")
#endif
#define CPU_LEVEL 1
#include "kernels/cpu_forms.h"

const cpu_forms cpu_forms_avx2 = CPU_FORMS_TABLE("avx2");
#if defined(__clang__)
#pragma clang attribute pop
#endif
#else
typedef int cpu_avx2_is_empty;
#endif

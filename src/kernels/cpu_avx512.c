/* The fast forms for x86-64 with AVX-512 F, BW, VL and DQ. */
#if defined(__x86_64__)
#if defined(__clang__)
#pragma clang attribute push(                                                                      \
    __attribute__((target("avx2,fma,f16c,avx512f,avx512bw,avx512vl,avx512dq"))),                   \
    apply_to = function)
#else
#pragma GCC target("avx2,fma,f16c,avx512f,avx512bw,avx512vl,avx512dq")
#endif
#define CPU_LEVEL 3
#include "kernels/cpu_forms.h"

const cpu_forms cpu_forms_avx512 = CPU_FORMS_TABLE("avx512");
#if defined(__clang__)
#pragma clang attribute pop
#endif
#else
typedef int cpu_avx512_is_empty;
#endif

/* The fast forms for x86-64 with AVX-512 F, BW, VL, DQ and VNNI. */
#if defined(__x86_64__)
#if defined(__clang__)
#pragma clang attribute push(                                                                      \
    __attribute__((target("avx2,fma,f16c,avx512f,avx512bw,avx512vl,avx512dq,avx512vnni"))),        \
    apply_to = function)
#else
#pragma GCC target("avx2,fma,f16c,avx512f,avx512bw,avx512vl,avx512dq,avx512vnni")
#endif
#define CPU_LEVEL 4
#include "kernels/cpu_forms.h"

const cpu_forms cpu_forms_avx512_vnni = CPU_FORMS_TABLE("avx512-vnni");
#if defined(__clang__)
#pragma clang attribute pop
#endif
#else
typedef int cpu_avx512_vnni_is_empty;
#endif

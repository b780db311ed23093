/* The fast forms for x86-64 with AVX2, FMA, F16C and AVX-VNNI. */
#if defined(__x86_64__)
#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2,fma,f16c,avxvnni"))), apply_to = function)
#else
#pragma GCC target("avx2,fma,f16c,avxvnni")
#endif
#define CPU_LEVEL 2
#include "kernels/cpu_forms.h"

const cpu_forms cpu_forms_avx2_vnni = CPU_FORMS_TABLE("avx2-vnni");
#if defined(__clang__)
#pragma clang attribute pop
#endif
#else
typedef int cpu_avx2_vnni_is_empty;
#endif

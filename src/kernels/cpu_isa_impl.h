/* The tables of fast forms, one a level; internal to cpu_*.c. */
#ifndef FRIT_KERNELS_CPU_ISA_IMPL_H
#define FRIT_KERNELS_CPU_ISA_IMPL_H

#include "kernels/kernel.h"

typedef struct cpu_forms {
  const char *name;
  hw_cpu_fn matvec, matvec_rounding, matmul, matmul_rounding, attention;
  hw_cpu_fn rmsnorm, silu_mul, add, embed, kv_append, rope;
} cpu_forms;

extern const cpu_forms cpu_forms_base, cpu_forms_avx2, cpu_forms_avx2_vnni, cpu_forms_avx512,
    cpu_forms_avx512_vnni, cpu_forms_neon, cpu_forms_neon_dot, cpu_forms_simd128;

/* Greatest tokens a panel and rows a strip of matmul at any level: scratch is sized for these. */
enum { CPU_PANEL_MAX = 48, CPU_STRIP_MAX = 16, CPU_KEYS_MAX = 64 };

#endif

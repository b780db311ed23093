/* Declarations of every twin and shape function; internal to src/kernels. */
#ifndef FRIT_KERNELS_KERNEL_IMPL_H
#define FRIT_KERNELS_KERNEL_IMPL_H

#include "kernels/kernel.h"

#define X(id, name, dims, consts, types, binds)                                                    \
  void name##_twin(const hw_cpu_call *c);                                                          \
  void name##_shape(const kernel_spec *s, kernel_shape *out);
KERNELS(X)
#undef X

/* Fast forms of the cpu back end (cpu_*.c): NULL where the twin is fast enough. */
void rmsnorm_fast(const hw_cpu_call *c);
void matvec_fast(const hw_cpu_call *c);
void matvec_fast_rounding(const hw_cpu_call *c);
void matmul_fast(const hw_cpu_call *c);
void matmul_fast_rounding(const hw_cpu_call *c);
void attention_fast(const hw_cpu_call *c);
void silu_mul_fast(const hw_cpu_call *c);
void add_fast(const hw_cpu_call *c);

/* The generated texts: every .wgsl file by its path under src/kernels. */
typedef struct kernel_text {
  const char *path, *text;
} kernel_text;
extern const kernel_text kernel_texts[];
extern const uint32_t kernel_n_texts;

#endif

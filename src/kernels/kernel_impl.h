/* Declarations of every twin and shape function; internal to src/kernels. */
#ifndef FRIT_KERNELS_KERNEL_IMPL_H
#define FRIT_KERNELS_KERNEL_IMPL_H

#include "kernels/kernel.h"

#define X(id, name, dims, consts, types, binds)                                                    \
  void name##_twin(const hw_cpu_call *c);                                                          \
  void name##_shape(const kernel_spec *s, kernel_shape *out);
KERNELS(X)
#undef X

/* The generated texts: every .wgsl file by its path under src/kernels. */
typedef struct kernel_text {
  const char *path, *text;
} kernel_text;
extern const kernel_text kernel_texts[];
extern const uint32_t kernel_n_texts;

#endif

/* How matrix products are cut into workgroups: the C side of lib/gemm.wgsl, and the only place that
 * chooses its tunables. */
#ifndef FRIT_KERNELS_GEMM_SHAPE_H
#define FRIT_KERNELS_GEMM_SHAPE_H

#include "kernels/kernel.h"

/* y [m, n] = x [m, k] W^T, W of the type type[0]. Sets all but cpu_scratch. */
void gemm_shape(const kernel_spec *s, uint32_t n, uint32_t k, uint32_t m, kernel_shape *out);

#endif

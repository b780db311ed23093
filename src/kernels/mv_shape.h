/* How the matrix-vector roles are cut into workgroups: the C side of lib/mv.wgsl, and the only
 * place that chooses its tunables. */
#ifndef FRIT_KERNELS_MV_SHAPE_H
#define FRIT_KERNELS_MV_SHAPE_H

#include "kernels/kernel.h"

/* `outs` outputs, each made from `per` rows of W, [outs * per, k]; a workgroup computes whole units
 * of `unit` rows (1, 2 or 4). Sets all but cpu_scratch. */
void mv_shape(const kernel_spec *s, uint32_t outs, uint32_t per, uint32_t unit, uint32_t k,
              kernel_shape *out);

#endif

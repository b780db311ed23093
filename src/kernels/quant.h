/* Block formats of quantised tensors: their definition, one simple C loop each. The kernels' texts
 * and the fast CPU forms are tested against these. Layouts are those of ggml-common.h,
 * little-endian, no alignment; base/dtype.h has the sizes of the blocks. */
#ifndef FRIT_KERNELS_QUANT_H
#define FRIT_KERNELS_QUANT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/dtype.h"

/* True for F32, F16, BF16, Q4_0, Q4_1, Q5_0, Q5_1, Q8_0, Q2_K to Q6_K; the two functions below take
 * these only (asserted). */
bool quant_has(dtype t);

/* src: dtype_row_bytes(t, n) bytes, dst: [n]; n is a multiple of the block. Each product of scale,
 * inner scale and code is exact in f32, so that only the last addition (types with a minimum)
 * rounds: the result does not depend on the order of evaluation or on fused multiply-add. */
void quant_dequant_row(dtype t, const void *src, float *dst, uint64_t n);

/* The other way, rounding to nearest. F16, BF16, Q4_0 to Q8_0 give the bytes of ggml's reference
 * quantiser (as in the gguf Python package); the K types take each inner block's range as its
 * scale, without the reference's search for a better one. Values must be finite. */
void quant_quantize_row(dtype t, const float *src, void *dst, uint64_t n);

#endif

/* The layout of weights on GPUs. One buffer holds a stack of NTOT rows of K, seen by kernels as
 * array<vec4<u32>>. Let nb = NTOT * K / 32, the blocks of the stack in row order:
 *
 *   q4_0, q4_1   codes [nb] of 16 bytes (as in the file: byte j has element j low, j + 16 high);
 *                (d, m) [nb], two f16 in a u32 (q4_0: m = -8 d)
 *   q5_0, q5_1   codes and (d, m) as above (q5_0: m = -16 d); the fifth bits [nb], a u32 each
 *   q8_0         codes [nb] of 32 bytes; d [nb], an f16 in the low half of a u32
 *   K types      the file's blocks of 256, zero-padded to 16 bytes: q2_k 84 -> 96, q3_k 110 -> 112,
 *                q4_k 144, q5_k 176, q6_k 210 -> 224
 *   f32 f16 bf16 as in the file; K is a multiple of 32
 *
 * Each plane begins at a multiple of 16 bytes; gaps are zero. */
#ifndef FRIT_KERNELS_PACK_H
#define FRIT_KERNELS_PACK_H

#include <stdint.h>

#include "base/dtype.h"

/* Bytes of a stack; k a multiple of 32 and of the type's block. */
uint64_t pack_bytes(dtype t, uint64_t k, uint64_t rows);

/* Puts `rows` rows in the file's layout at row0 of the stack dst of `total` rows: what the kernel
 * `pack` does, on the host. */
void pack_rows(dtype t, uint64_t k, uint64_t rows, uint64_t row0, uint64_t total, const void *src,
               void *dst);

#endif

/* Fast CPU forms: which instruction set they use, chosen at run time.
 *
 * One source (cpu_forms.h and what it includes) is compiled once a level into a table of functions.
 * The levels, from plain to wide: on x86-64 "base" (SSE2), "avx2" (with FMA and F16C), "avx2-vnni",
 * "avx512" (F, BW, VL, DQ), "avx512-vnni"; on 64-bit ARM "neon", "neon-dot" (SDOT); in WebAssembly
 * "simd128"; elsewhere "base" alone. "base" never rounds activations. */
#ifndef FRIT_KERNELS_CPU_ISA_H
#define FRIT_KERNELS_CPU_ISA_H

#include "kernels/kernel.h"

/* Name of the level in use: at first the widest that the machine has. */
const char *kernel_cpu_isa(void);
/* The i-th level that this machine has, from plain to wide; NULL after the last. */
const char *kernel_cpu_isa_at(uint32_t i);
/* Uses this level from now on (the whole process), NULL: the widest. ERR_ARG when the name is
 * unknown, ERR_UNSUPPORTED when the machine lacks it. Not while a submit runs. */
err kernel_cpu_limit_isa(const char *name);

/* The fast form of an op (exact, or with activations rounded to 8 bits by groups of 32); NULL: the
 * twin is all there is. */
hw_cpu_fn kernel_cpu_fast(kernel_op op, bool rounds);
/* Adds the scratch that the fast form needs to a shape, at any level. */
void kernel_cpu_shape(const kernel_spec *s, kernel_shape *shape);

#endif

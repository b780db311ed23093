/* Element types of tensors. Quantised types store rows of blocks; block layouts are those of GGUF
 * (little-endian), defined in kernels/quant.c. */
#ifndef FRIT_BASE_DTYPE_H
#define FRIT_BASE_DTYPE_H

#include <stdbool.h>
#include <stdint.h>

/* X(id, name, number in GGUF files or -1, elements a block, bytes a block) */
#define DTYPES(X)                                                                                  \
  X(DT_F32, "f32", 0, 1, 4)                                                                        \
  X(DT_F16, "f16", 1, 1, 2)                                                                        \
  X(DT_BF16, "bf16", 30, 1, 2)                                                                     \
  X(DT_Q4_0, "q4_0", 2, 32, 18)                                                                    \
  X(DT_Q4_1, "q4_1", 3, 32, 20)                                                                    \
  X(DT_Q5_0, "q5_0", 6, 32, 22)                                                                    \
  X(DT_Q5_1, "q5_1", 7, 32, 24)                                                                    \
  X(DT_Q8_0, "q8_0", 8, 32, 34)                                                                    \
  X(DT_Q2_K, "q2_k", 10, 256, 84)                                                                  \
  X(DT_Q3_K, "q3_k", 11, 256, 110)                                                                 \
  X(DT_Q4_K, "q4_k", 12, 256, 144)                                                                 \
  X(DT_Q5_K, "q5_k", 13, 256, 176)                                                                 \
  X(DT_Q6_K, "q6_k", 14, 256, 210)                                                                 \
  X(DT_I32, "i32", 26, 1, 4)                                                                       \
  X(DT_U32, "u32", -1, 1, 4)

typedef enum dtype {
#define X(id, name, gguf, n, bytes) id,
  DTYPES(X)
#undef X
      DT_COUNT_
} dtype;

typedef struct dtype_info {
  const char *name;
  int gguf;       /* number in GGUF files, -1 when it has none */
  uint32_t n;     /* elements a block */
  uint32_t bytes; /* bytes a block */
} dtype_info;

/* Never NULL for a valid id. */
const dtype_info *dtype_get(dtype t);
/* Bytes of a row of n elements; n must be a multiple of the block (checked by importers). */
uint64_t dtype_row_bytes(dtype t, uint64_t n);
/* False when no type has that name ("q4_0") / that GGUF number. */
bool dtype_by_name(const char *name, dtype *out);
bool dtype_by_gguf(uint32_t number, dtype *out);

#endif

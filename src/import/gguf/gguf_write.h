/* Writing GGUF files: keys, then tensor infos, then data, each streamed in this order. For
 * synthetic models, tests and conversions.
 *
 * The file appears under its name only when gguf_writer_finish succeeds; until then it is
 * PATH.part. Errors are sticky: after the first one calls do nothing, and finish returns it. */
#ifndef FRIT_IMPORT_GGUF_GGUF_WRITE_H
#define FRIT_IMPORT_GGUF_GGUF_WRITE_H

#include "import/gguf/gguf.h"

typedef struct gguf_writer gguf_writer;

typedef struct gguf_writer_desc {
  const char *path;
  uint32_t version;   /* 2 or 3; 0: 3 */
  uint32_t alignment; /* power of two of at least 8; 0: 32, and then no general.alignment key */
} gguf_writer_desc;

/* Returns ownership. Errors: ERR_IO with the path and the reason, ERR_ARG, ERR_NOMEM. */
err gguf_writer_new(const gguf_writer_desc *d, gguf_writer **out);
/* Without a successful finish the temporary file is removed. NULL is fine. */
void gguf_writer_free(gguf_writer *w);

/* Keys; all before the first tensor. `value` points at a scalar of that type (a bool is one byte).
 */
void gguf_write_scalar(gguf_writer *w, const char *key, gguf_type type, const void *value);
void gguf_write_u32(gguf_writer *w, const char *key, uint32_t v);
void gguf_write_f32(gguf_writer *w, const char *key, float v);
void gguf_write_bool(gguf_writer *w, const char *key, bool v);
void gguf_write_str(gguf_writer *w, const char *key, const char *s);
/* Array of n numbers, packed as in memory. */
void gguf_write_arr(gguf_writer *w, const char *key, gguf_type type, const void *values,
                    uint64_t n);
/* Array of n elements given one by one: the key now, then exactly n gguf_write_text,
 * gguf_write_number (of that type) or gguf_write_inner (each an array of numbers). */
void gguf_write_arr_begin(gguf_writer *w, const char *key, gguf_type type, uint64_t n);
void gguf_write_text(gguf_writer *w, const char *s, size_t n);
void gguf_write_number(gguf_writer *w, gguf_type type, const void *value);
void gguf_write_inner(gguf_writer *w, gguf_type type, const void *numbers, uint64_t n);

/* Declares a tensor of `n_dims` dimensions ne, fastest first; its data follow in the same order. */
void gguf_write_tensor(gguf_writer *w, const char *name, dtype type, uint32_t n_dims,
                       const uint64_t *ne);
/* Next `size` bytes of data; may end or continue anywhere in a tensor, not run over its end.
 * Returns the first error of all calls so far, so that a long loop can stop. */
err gguf_write_data(gguf_writer *w, const void *bytes, uint64_t size);
/* The first error of all calls, if any; else renames the file into place. ERR_ARG when data are
 * missing. */
err gguf_writer_finish(gguf_writer *w);

#endif

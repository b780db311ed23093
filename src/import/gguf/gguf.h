/* GGUF files, versions 2 and 3, little-endian, in one or several parts.
 *
 * Owns the mapping of the files (or borrows header bytes), the table of keys and the table of
 * tensors. Knows no architecture and no device. Nothing in a file is trusted: whatever a `gguf`
 * hands out lies inside the file, sizes were checked for overflow, names are unique, free of
 * control characters and NUL-terminated. Format: docs/gguf.md of the ggml project. */
#ifndef FRIT_IMPORT_GGUF_GGUF_H
#define FRIT_IMPORT_GGUF_GGUF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/dtype.h"
#include "base/err.h"

typedef struct gguf gguf;

/* Numbers as in the file. */
typedef enum gguf_type {
  GGUF_U8,
  GGUF_I8,
  GGUF_U16,
  GGUF_I16,
  GGUF_U32,
  GGUF_I32,
  GGUF_F32,
  GGUF_BOOL,
  GGUF_STR,
  GGUF_ARR,
  GGUF_U64,
  GGUF_I64,
  GGUF_F64,
  GGUF_TYPE_COUNT_
} gguf_type;

/* Bytes in the file's own encoding (UTF-8 by convention, not checked). Those of a key's own value
 * are followed by a NUL; those inside an array are not. */
typedef struct gguf_text {
  const char *p;
  size_t n;
} gguf_text;

typedef struct gguf_array {
  gguf_type type;       /* of the elements */
  uint64_t n;           /* elements */
  const uint8_t *data;  /* the first element in the file, unaligned */
  uint64_t size;        /* bytes of all elements */
  const uint32_t *offs; /* [n] offset of each string or array from `data`; NULL for numbers and
                           for arrays inside arrays */
} gguf_array;

typedef struct gguf_kv {
  const char *key;
  gguf_type type;
  union {
    uint64_t u; /* U8 U16 U32 U64 */
    int64_t i;  /* I8 I16 I32 I64 */
    double f;   /* F32 F64 */
    bool b;     /* BOOL */
    gguf_text s;
    gguf_array a;
  } v;
} gguf_kv;

typedef struct gguf_tensor {
  const char *name;
  dtype type;        /* DT_COUNT_ when frit has no such type; raw_type says which it is */
  uint32_t raw_type; /* the file's number */
  uint32_t n_dims;   /* 0 to 4 as in the file */
  uint64_t ne[4];    /* elements, fastest first; 1 beyond n_dims; never 0 */
  uint64_t file_off; /* absolute, in its part */
  uint32_t part;     /* 0-based */
  uint64_t size;     /* bytes; 0 when the type's block layout is unknown */
  const uint8_t
      *data; /* aligned to at least 8 bytes when mapped; NULL when only headers are here */
} gguf_tensor;

enum {
  GGUF_MAX_KEYS = 65536,
  GGUF_MAX_TENSORS = 65536,
  GGUF_MAX_KEY = 65535,    /* bytes of a key */
  GGUF_MAX_NAME = 255,     /* bytes of a tensor's name */
  GGUF_MAX_STR = 16 << 20, /* bytes of a key's own string value */
  GGUF_MAX_NESTING = 4,    /* arrays in arrays */
  GGUF_MAX_PARTS = 1024
};

/* Maps the file at `path` and, when its keys say that it is the first of several
 * (NAME-00001-of-0000N.gguf), the others beside it. *out is NULL on failure.
 * ERR_IO: cannot be read or a part is missing; ERR_TRUNCATED: ends too early; ERR_FORMAT;
 * ERR_UNSUPPORTED: version 1, big-endian, not a GGUF file; ERR_LIMIT: over a limit above. */
err gguf_open(const char *path, gguf **out);

/* The same from the first `n` bytes of a file of `file_size` bytes; `head` is borrowed until
 * gguf_free. ERR_TRUNCATED with n < file_size means: call again with more bytes. Tensor `data` is
 * set only when n == file_size. `name` is what errors call the file. Where gguf_part_count is
 * above 1, the other parts are then given in order with gguf_add_part. */
err gguf_parse(const char *name, const uint8_t *head, uint64_t n, uint64_t file_size, gguf **out);
/* On failure `g` is unchanged, so that ERR_TRUNCATED can be answered with more bytes. Pointers from
 * gguf_tensor_at/find are invalid after it. */
err gguf_add_part(gguf *g, const char *name, const uint8_t *head, uint64_t n, uint64_t file_size);
void gguf_free(gguf *g);

const char *gguf_name(const gguf *g); /* the path or name given at opening */
uint32_t gguf_version(const gguf *g);
uint64_t gguf_alignment(const gguf *g);
uint32_t gguf_part_count(const gguf *g); /* parts that the first one announces */
/* Name and size of a part that was read; i below gguf_part_count (and added). */
const char *gguf_part_name(const gguf *g, uint32_t i);
uint64_t gguf_part_size(const gguf *g, uint32_t i);

/* Keys, of the first part, in file order. */
uint64_t gguf_kv_count(const gguf *g);
const gguf_kv *gguf_kv_at(const gguf *g, uint64_t i);
const gguf_kv *gguf_find(const gguf *g, const char *key); /* NULL when missing */
bool gguf_has(const gguf *g, const char *key);
const char *gguf_type_name(gguf_type t); /* "u32", "str", ... */

/* Typed values. Each fails with ERR_FORMAT, naming the key, when it is missing, of another kind or
 * out of range; u32/u64/i32 take any integer type whose value fits; f32 takes f32 and f64.
 * The _or forms put `def` where the key is missing, and fail like the others when it is there with
 * a value that does not fit. Strings are NUL-terminated and valid until gguf_free; *n (may be NULL)
 * gets the length. */
err gguf_u32(const gguf *g, const char *key, uint32_t *out);
err gguf_u64(const gguf *g, const char *key, uint64_t *out);
err gguf_i32(const gguf *g, const char *key, int32_t *out);
err gguf_f32(const gguf *g, const char *key, float *out);
err gguf_bool(const gguf *g, const char *key, bool *out);
err gguf_str(const gguf *g, const char *key, const char **out, size_t *n);
err gguf_u32_or(const gguf *g, const char *key, uint32_t def, uint32_t *out);
err gguf_u64_or(const gguf *g, const char *key, uint64_t def, uint64_t *out);
err gguf_i32_or(const gguf *g, const char *key, int32_t def, int32_t *out);
err gguf_f32_or(const gguf *g, const char *key, float def, float *out);
err gguf_bool_or(const gguf *g, const char *key, bool def, bool *out);
err gguf_str_or(const gguf *g, const char *key, const char *def, const char **out, size_t *n);

/* Arrays: any; of strings; of numbers (integers, floats or bools, mixed with none else).
 * ERR_FORMAT, naming the key, when missing or of another kind. Valid until gguf_free. */
err gguf_arr(const gguf *g, const char *key, gguf_array *out);
err gguf_arr_strs(const gguf *g, const char *key, gguf_array *out);
err gguf_arr_nums(const gguf *g, const char *key, gguf_array *out);
/* Element i < a->n; the array's type must be the right one (asserted). The text points into the
 * file and is not NUL-terminated; O(1) for a key's own array. f64 and i64 convert any number;
 * i64 of a fraction truncates, of a value out of range saturates. */
gguf_text gguf_arr_text(const gguf_array *a, uint64_t i);
double gguf_arr_f64(const gguf_array *a, uint64_t i);
int64_t gguf_arr_i64(const gguf_array *a, uint64_t i);
gguf_array gguf_arr_arr(const gguf_array *a, uint64_t i);

/* Tensors, in file order, parts one after the other. find looks up a hash table; NULL when
 * missing. get also refuses a missing tensor (ERR_FORMAT) and one of a type that frit does not
 * compute with (ERR_UNSUPPORTED, naming tensor and type). Valid until gguf_free. */
uint64_t gguf_tensor_count(const gguf *g);
const gguf_tensor *gguf_tensor_at(const gguf *g, uint64_t i);
const gguf_tensor *gguf_tensor_find(const gguf *g, const char *name);
err gguf_tensor_get(const gguf *g, const char *name, const gguf_tensor **out);
/* "q4_0", "iq2_xxs", ...; "unknown" for a number without a name. */
const char *gguf_tensor_type_name(uint32_t raw_type);
/* The tensor's mapped pages are not needed soon (it was uploaded). A hint; reading stays legal. */
void gguf_tensor_drop(const gguf *g, const gguf_tensor *t);
/* The bytes of a tensor whose part came as a header only: `data` [t->size], borrowed until
 * gguf_free. */
void gguf_tensor_provide(gguf *g, const gguf_tensor *t, const uint8_t *data);

#endif

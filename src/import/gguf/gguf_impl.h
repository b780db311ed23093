/* What the files of the GGUF reader share. */
#ifndef FRIT_IMPORT_GGUF_GGUF_IMPL_H
#define FRIT_IMPORT_GGUF_GGUF_IMPL_H

#include "base/file.h"
#include "base/mem.h"
#include "import/gguf/gguf.h"

/* Open-addressed table over records that begin with their name. A slot is hash << 32 | index + 1,
 * or 0. */
typedef struct gguf_index {
  uint64_t *slots;
  uint32_t mask; /* slots - 1; slots is a power of two, at most half full */
} gguf_index;

typedef struct gguf_kvs {
  gguf_kv *at;
  uint32_t n;
  gguf_index index;
} gguf_kvs;

typedef struct gguf_part {
  const char *name;
  uint64_t size;
  file_map map; /* zero when the bytes are borrowed */
} gguf_part;

struct gguf {
  arena mem; /* names, keys, values, index tables */
  uint32_t version;
  uint64_t alignment;
  gguf_kvs kvs;
  gguf_part *parts; /* [n_parts] */
  uint32_t n_parts; /* announced */
  uint32_t parts_read;
  gguf_tensor *tensors; /* [n_tensors] mem_alloc */
  uint32_t n_tensors;
  gguf_index index; /* over tensors; slots is mem_alloc */
};

/* Slots for n records. */
uint32_t gguf_index_slots(uint64_t n);
/* Index of `name` among records of `stride` bytes at `base`, or UINT32_MAX. */
uint32_t gguf_index_find(const gguf_index *ix, const void *base, size_t stride, const char *name);
/* Adds record i; false when its name is there already. */
bool gguf_index_add(gguf_index *ix, const void *base, size_t stride, uint32_t i);

const gguf_kv *gguf_kvs_find(const gguf_kvs *kvs, const char *key);
/* The value as an unsigned integer up to `max`: ERR_FORMAT naming file and key otherwise. */
err gguf_kv_uint(const char *file, const gguf_kv *kv, uint64_t max, uint64_t *out);

/* Bytes of a scalar of type t; 0 for strings and arrays. */
uint32_t gguf_scalar_size(gguf_type t);

/* Elements and bytes of a block of tensor type `raw`; false when unknown. */
bool gguf_raw_block(uint32_t raw, uint32_t *n, uint32_t *bytes);

#endif

/* Owns the temporary file and the header until it is written, which the first byte of data does.
 * Always holds: `done` bytes of tensor `current` were written, and padding up to where it begins.
 */
#include "import/gguf/gguf_write.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/math.h"
#include "base/mem.h"

struct gguf_writer {
  char *path, *temp;
  FILE *file;
  uint32_t version, alignment;
  buf keys, infos;
  buf sizes; /* u64 each: bytes of a tensor */
  uint64_t n_keys, n_tensors, next_off;
  uint64_t current, done; /* tensor being written, its bytes so far */
  uint64_t written;       /* bytes of the file */
  bool header_out;
  err error;
  char text[512]; /* of the first error: others may be set before finish returns it */
};

static void fail(gguf_writer *w, err e) {
  if (w->error) return;
  w->error = e;
  snprintf(w->text, sizeof w->text, "%s", err_text());
}

/* ---- bytes ---- */

static void out(gguf_writer *w, const void *bytes, uint64_t size) {
  if (w->error || size == 0) return;
  errno = 0;
  if (fwrite(bytes, 1, (size_t)size, w->file) != size)
    fail(w, err_set(ERR_IO, "%s: cannot write %" PRIu64 " bytes at offset %" PRIu64 ": %s", w->path,
                    size, w->written, strerror(errno)));
  w->written += size;
}

static void out_pad(gguf_writer *w) {
  static const uint8_t zeros[4096];
  uint64_t n = round_up(w->written, w->alignment) - w->written;
  for (; n; n -= min_u64(n, sizeof zeros)) out(w, zeros, min_u64(n, sizeof zeros));
}

static void put_u32(buf *b, uint32_t v) { buf_put(b, &v, sizeof v); }
static void put_u64(buf *b, uint64_t v) { buf_put(b, &v, sizeof v); }
static void put_text(buf *b, const char *s, size_t n) {
  put_u64(b, n);
  buf_put(b, s, n);
}

static uint32_t scalar_size(gguf_type t) {
  static const uint8_t size[GGUF_TYPE_COUNT_] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};
  return size[t];
}

/* ---- life ---- */

err gguf_writer_new(const gguf_writer_desc *d, gguf_writer **result) {
  *result = NULL;
  uint32_t version = d->version ? d->version : 3, align = d->alignment ? d->alignment : 32;
  if ((version != 2 && version != 3) || align < 8 || (align & (align - 1)))
    return err_set(ERR_ARG, "%s: cannot write GGUF version %u with alignment %u", d->path, version,
                   align);
  if (file_special(d->path)) return err_set(ERR_IO, "%s: not a regular file", d->path);
  gguf_writer *w = mem_zalloc(1, sizeof *w);
  if (!w) return mem_err(d->path, sizeof *w);
  w->version = version;
  w->alignment = align;
  w->path = mem_strdup(d->path);
  size_t n = strlen(d->path);
  w->temp = mem_alloc(n + 6);
  if (!w->path || !w->temp) {
    gguf_writer_free(w);
    return mem_err(d->path, 2 * n);
  }
  memcpy(w->temp, d->path, n);
  memcpy(w->temp + n, ".part", 6);
  w->file = fopen(w->temp, "wb");
  if (!w->file) {
    err e = err_set(ERR_IO, "%s: cannot create: %s", w->temp, strerror(errno));
    gguf_writer_free(w);
    return e;
  }
  if (d->alignment) gguf_write_u32(w, "general.alignment", align);
  *result = w;
  return ERR_NONE;
}

void gguf_writer_free(gguf_writer *w) {
  if (!w) return;
  if (w->file) {
    fclose(w->file);
    remove(w->temp);
  }
  buf_free(&w->keys);
  buf_free(&w->infos);
  buf_free(&w->sizes);
  mem_free(w->path);
  mem_free(w->temp);
  mem_free(w);
}

/* ---- keys ---- */

static void put_key(gguf_writer *w, const char *key, gguf_type type) {
  if (w->n_tensors) fail(w, err_set(ERR_ARG, "%s: key '%s' after a tensor", w->path, key));
  w->n_keys++;
  put_text(&w->keys, key, strlen(key));
  put_u32(&w->keys, type);
}

void gguf_write_scalar(gguf_writer *w, const char *key, gguf_type type, const void *value) {
  put_key(w, key, type);
  buf_put(&w->keys, value, scalar_size(type));
}
void gguf_write_u32(gguf_writer *w, const char *key, uint32_t v) {
  gguf_write_scalar(w, key, GGUF_U32, &v);
}
void gguf_write_f32(gguf_writer *w, const char *key, float v) {
  gguf_write_scalar(w, key, GGUF_F32, &v);
}
void gguf_write_bool(gguf_writer *w, const char *key, bool v) {
  uint8_t byte = v;
  gguf_write_scalar(w, key, GGUF_BOOL, &byte);
}
void gguf_write_str(gguf_writer *w, const char *key, const char *s) {
  put_key(w, key, GGUF_STR);
  put_text(&w->keys, s, strlen(s));
}

void gguf_write_arr_begin(gguf_writer *w, const char *key, gguf_type type, uint64_t n) {
  put_key(w, key, GGUF_ARR);
  put_u32(&w->keys, type);
  put_u64(&w->keys, n);
}
void gguf_write_arr(gguf_writer *w, const char *key, gguf_type type, const void *values,
                    uint64_t n) {
  gguf_write_arr_begin(w, key, type, n);
  buf_put(&w->keys, values, (size_t)(n * scalar_size(type)));
}
void gguf_write_text(gguf_writer *w, const char *s, size_t n) { put_text(&w->keys, s, n); }
void gguf_write_number(gguf_writer *w, gguf_type type, const void *value) {
  buf_put(&w->keys, value, scalar_size(type));
}
void gguf_write_inner(gguf_writer *w, gguf_type type, const void *numbers, uint64_t n) {
  put_u32(&w->keys, type);
  put_u64(&w->keys, n);
  buf_put(&w->keys, numbers, (size_t)(n * scalar_size(type)));
}

/* ---- tensors ---- */

void gguf_write_tensor(gguf_writer *w, const char *name, dtype type, uint32_t n_dims,
                       const uint64_t *ne) {
  const dtype_info *info = dtype_get(type);
  uint64_t count = 1, size;
  bool ok = info->gguf >= 0 && n_dims >= 1 && n_dims <= 4 && ne[0] % info->n == 0;
  for (uint32_t d = 0; ok && d < n_dims; d++) ok = ne[d] && mul_u64(count, ne[d], &count);
  ok = ok && mul_u64(count / info->n, info->bytes, &size) && size < UINT64_MAX / 2;
  if (!ok) {
    fail(w, err_set(ERR_ARG,
                    "%s: tensor '%s' of type %s cannot be written: rows of %" PRIu64
                    " elements, blocks of %u",
                    w->path, name, info->name, n_dims ? ne[0] : 0, info->n));
    return;
  }
  if (w->header_out) fail(w, err_set(ERR_ARG, "%s: tensor '%s' after data", w->path, name));
  put_text(&w->infos, name, strlen(name));
  put_u32(&w->infos, n_dims);
  for (uint32_t d = 0; d < n_dims; d++) put_u64(&w->infos, ne[d]);
  put_u32(&w->infos, (uint32_t)info->gguf);
  put_u64(&w->infos, w->next_off);
  put_u64(&w->sizes, size);
  w->next_off = round_up(w->next_off + size, w->alignment);
  w->n_tensors++;
}

static void write_header(gguf_writer *w) {
  if (w->header_out) return;
  w->header_out = true;
  if (w->keys.failed || w->infos.failed || w->sizes.failed)
    fail(w, mem_err(w->path, w->keys.n + w->infos.n));
  buf head = {0};
  buf_puts(&head, "GGUF");
  put_u32(&head, w->version);
  put_u64(&head, w->n_tensors);
  put_u64(&head, w->n_keys);
  if (head.failed) fail(w, mem_err(w->path, head.n));
  out(w, head.p, head.n);
  out(w, w->keys.p, w->keys.n);
  out(w, w->infos.p, w->infos.n);
  out_pad(w);
  buf_free(&head);
}

static uint64_t tensor_size(const gguf_writer *w, uint64_t i) {
  return load_u64(w->sizes.p + 8 * i);
}

static err first_error(const gguf_writer *w) {
  return w->error ? err_set(w->error, "%s", w->text) : ERR_NONE;
}

err gguf_write_data(gguf_writer *w, const void *bytes, uint64_t size) {
  write_header(w);
  if (w->error) return first_error(w);
  uint64_t left = w->current < w->n_tensors ? tensor_size(w, w->current) - w->done : 0;
  if (size > left) {
    fail(w, err_set(ERR_ARG,
                    "%s: %" PRIu64 " bytes of data where tensor %" PRIu64 " of %" PRIu64
                    " needs %" PRIu64,
                    w->path, size, w->current + 1, w->n_tensors, left));
    return w->error;
  }
  out(w, bytes, size);
  w->done += size;
  if (size == left) {
    out_pad(w);
    w->current++;
    w->done = 0;
  }
  return first_error(w);
}

err gguf_writer_finish(gguf_writer *w) {
  write_header(w);
  if (!w->error && w->current < w->n_tensors)
    fail(w, err_set(ERR_ARG, "%s: data end in tensor %" PRIu64 " of %" PRIu64, w->path,
                    w->current + 1, w->n_tensors));
  if (w->error) return first_error(w);
  errno = 0;
  int closed = fclose(w->file);
  w->file = NULL;
  if (closed != 0 || rename(w->temp, w->path) != 0) {
    err e = err_set(ERR_IO, "%s: cannot write: %s", w->path, strerror(errno));
    remove(w->temp);
    return e;
  }
  return ERR_NONE;
}

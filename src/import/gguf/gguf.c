/* Reads headers: version, keys, tensor infos; checks each length before it is used. Always holds: a
 * cursor's `off` <= `n` <= `size`, and nothing is read beyond `n`. */
#include "import/gguf/gguf.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/math.h"
#include "import/gguf/gguf_impl.h"

typedef struct cursor {
  const char *file;
  const uint8_t *p;
  uint64_t n;    /* bytes here */
  uint64_t size; /* bytes of the whole file */
  uint64_t off;
  char subject[96]; /* what is being read: "key 'general.name'" */
} cursor;

/* ---- cursor ---- */

static err need(const cursor *c, uint64_t bytes, const char *what) {
  if (bytes <= c->n - c->off) return ERR_NONE;
  if (bytes > c->size - c->off)
    return err_set(c->n == c->size ? ERR_TRUNCATED : ERR_FORMAT,
                   "%s: %s: %s needs %" PRIu64 " bytes at offset %" PRIu64
                   ", but the file ends at %" PRIu64,
                   c->file, c->subject, what, bytes, c->off, c->size);
  return err_set(ERR_TRUNCATED,
                 "%s: %s: %s needs %" PRIu64 " bytes at offset %" PRIu64 ", only the first %" PRIu64
                 " bytes of the file are here",
                 c->file, c->subject, what, bytes, c->off, c->n);
}

static err take(cursor *c, uint64_t bytes, const char *what, const uint8_t **out) {
  err e = need(c, bytes, what);
  if (e) return e;
  *out = c->p + c->off;
  c->off += bytes;
  return ERR_NONE;
}

static err take_u32(cursor *c, const char *what, uint32_t *out) {
  const uint8_t *p;
  err e = take(c, 4, what, &p);
  if (!e) *out = load_u32(p);
  return e;
}

static err take_u64(cursor *c, const char *what, uint64_t *out) {
  const uint8_t *p;
  err e = take(c, 8, what, &p);
  if (!e) *out = load_u64(p);
  return e;
}

static err take_text(cursor *c, uint64_t limit, const char *what, gguf_text *out) {
  uint64_t n;
  const uint8_t *p;
  err e = take_u64(c, what, &n);
  if (e) return e;
  if (n > limit && n <= c->size - c->off)
    return err_set(ERR_LIMIT, "%s: %s: %s has %" PRIu64 " bytes, the limit is %" PRIu64, c->file,
                   c->subject, what, n, limit);
  e = take(c, n, what, &p);
  if (!e) *out = (gguf_text){(const char *)p, (size_t)n};
  return e;
}

/* A name as a C string in the arena: not empty, no control characters (so no NUL either, and safe
 * to print). */
static err take_name(cursor *c, arena *mem, uint64_t limit, const char *what, const char **out) {
  gguf_text t;
  err e = take_text(c, limit, what, &t);
  if (e) return e;
  if (t.n == 0) return err_set(ERR_FORMAT, "%s: %s: %s is empty", c->file, c->subject, what);
  for (size_t i = 0; i < t.n; i++) {
    if ((uint8_t)t.p[i] < 0x20 || t.p[i] == 0x7F)
      return err_set(ERR_FORMAT, "%s: %s: %s has the control character 0x%02x at byte %zu", c->file,
                     c->subject, what, (uint8_t)t.p[i], i);
  }
  *out = arena_strndup(mem, t.p, t.n);
  return *out ? ERR_NONE : mem_err(c->file, t.n + 1);
}

/* ---- index ---- */

/* FNV-1a, folded to 32 bits. */
static uint32_t hash_name(const char *s) {
  uint64_t h = 0xCBF29CE484222325u;
  for (; *s; s++) h = (h ^ (uint8_t)*s) * 0x100000001B3u;
  return (uint32_t)(h ^ h >> 32);
}

static const char *name_at(const void *base, size_t stride, uint32_t i) {
  const char *name;
  memcpy(&name, (const char *)base + (size_t)i * stride, sizeof name);
  return name;
}

uint32_t gguf_index_slots(uint64_t n) {
  uint32_t slots = 8;
  while (slots < 2 * n) slots *= 2;
  return slots;
}

uint32_t gguf_index_find(const gguf_index *ix, const void *base, size_t stride, const char *name) {
  if (!ix->slots) return UINT32_MAX;
  uint32_t h = hash_name(name);
  for (uint32_t s = h & ix->mask; ix->slots[s]; s = (s + 1) & ix->mask) {
    uint32_t i = (uint32_t)ix->slots[s] - 1;
    if (ix->slots[s] >> 32 == h && strcmp(name_at(base, stride, i), name) == 0) return i;
  }
  return UINT32_MAX;
}

bool gguf_index_add(gguf_index *ix, const void *base, size_t stride, uint32_t i) {
  const char *name = name_at(base, stride, i);
  uint32_t h = hash_name(name), s = h & ix->mask;
  for (; ix->slots[s]; s = (s + 1) & ix->mask) {
    if (ix->slots[s] >> 32 == h &&
        strcmp(name_at(base, stride, (uint32_t)ix->slots[s] - 1), name) == 0)
      return false;
  }
  ix->slots[s] = (uint64_t)h << 32 | (i + 1);
  return true;
}

/* ---- keys ---- */

static err take_bools(cursor *c, uint64_t n, const uint8_t *p) {
  for (uint64_t i = 0; i < n; i++) {
    if (p[i] > 1)
      return err_set(ERR_FORMAT, "%s: %s: a bool has the value %u, not 0 or 1", c->file, c->subject,
                     p[i]);
  }
  return ERR_NONE;
}

/* Type, count and elements. `mem` keeps the offsets of strings and inner arrays; NULL at depth > 1,
 * where none are kept. */
static err take_array(cursor *c, arena *mem, int depth, gguf_array *out) {
  uint32_t type;
  uint64_t n, bytes;
  err e = take_u32(c, "an array's type", &type);
  if (!e) e = take_u64(c, "an array's length", &n);
  if (e) return e;
  if (type >= GGUF_TYPE_COUNT_)
    return err_set(ERR_FORMAT, "%s: %s: array of type %u, the last known is %d", c->file,
                   c->subject, type, GGUF_TYPE_COUNT_ - 1);
  *out = (gguf_array){.type = (gguf_type)type, .n = n, .data = c->p + c->off};
  uint32_t scalar = gguf_scalar_size(out->type);
  /* A string takes at least its length, an array its type and length. */
  uint64_t least = scalar ? scalar : type == GGUF_STR ? 8 : 12;
  if (!mul_u64(n, least, &bytes))
    return err_set(ERR_FORMAT, "%s: %s: array of %" PRIu64 " elements", c->file, c->subject, n);
  e = need(c, bytes, "an array");
  if (e) return e;
  if (scalar) {
    c->off += bytes;
    out->size = bytes;
    return type == GGUF_BOOL ? take_bools(c, n, out->data) : ERR_NONE;
  }
  if (depth > GGUF_MAX_NESTING)
    return err_set(ERR_LIMIT, "%s: %s: arrays nested more than %d deep", c->file, c->subject,
                   GGUF_MAX_NESTING);
  uint32_t *offs = NULL;
  if (mem && n) {
    offs = arena_alloc(mem, (size_t)n, sizeof *offs);
    if (!offs) return mem_err(c->file, n * sizeof *offs);
  }
  uint64_t start = c->off;
  for (uint64_t i = 0; i < n; i++) {
    if (c->off - start > UINT32_MAX)
      return err_set(ERR_LIMIT, "%s: %s: array of more than 4 GiB", c->file, c->subject);
    if (offs) offs[i] = (uint32_t)(c->off - start);
    gguf_text text;
    gguf_array inner;
    if (type == GGUF_STR) e = take_text(c, UINT32_MAX, "a string in an array", &text);
    else e = take_array(c, NULL, depth + 1, &inner);
    if (e) return e;
  }
  out->offs = offs;
  out->size = c->off - start;
  return ERR_NONE;
}

static err take_value(cursor *c, arena *mem, gguf_kv *kv) {
  if (kv->type == GGUF_ARR) return take_array(c, mem, 1, &kv->v.a);
  if (kv->type == GGUF_STR) {
    gguf_text t;
    err e = take_text(c, GGUF_MAX_STR, "its string", &t);
    if (e) return e;
    kv->v.s = (gguf_text){arena_strndup(mem, t.p, t.n), t.n};
    return kv->v.s.p ? ERR_NONE : mem_err(c->file, t.n + 1);
  }
  const uint8_t *p;
  err e = take(c, gguf_scalar_size(kv->type), "its value", &p);
  if (e) return e;
  switch (kv->type) {
  case GGUF_U8: kv->v.u = *p; break;
  case GGUF_U16: kv->v.u = load_u16(p); break;
  case GGUF_U32: kv->v.u = load_u32(p); break;
  case GGUF_U64: kv->v.u = load_u64(p); break;
  case GGUF_I8: kv->v.i = (*p ^ 0x80) - 0x80; break;
  case GGUF_I16: kv->v.i = (int16_t)load_u16(p); break;
  case GGUF_I32: kv->v.i = (int32_t)load_u32(p); break;
  case GGUF_I64: kv->v.i = (int64_t)load_u64(p); break;
  case GGUF_F32: kv->v.f = (double)load_f32(p); break;
  case GGUF_F64: memcpy(&kv->v.f, p, sizeof kv->v.f); break;
  case GGUF_BOOL: kv->v.b = *p != 0; return take_bools(c, 1, p);
  default: break;
  }
  return ERR_NONE;
}

static err take_kvs(cursor *c, arena *mem, uint64_t n, gguf_kvs *out) {
  err e = ERR_NONE;
  uint32_t slots = gguf_index_slots(n);
  out->at = arena_alloc(mem, (size_t)n, sizeof *out->at);
  out->index = (gguf_index){arena_alloc(mem, slots, sizeof(uint64_t)), slots - 1};
  if (!out->at || !out->index.slots) return mem_err(c->file, n * sizeof *out->at);
  for (uint32_t i = 0; i < n; i++) {
    gguf_kv *kv = &out->at[i];
    uint32_t type;
    snprintf(c->subject, sizeof c->subject, "key %u of %" PRIu64, i + 1, n);
    TRY(take_name(c, mem, GGUF_MAX_KEY, "its name", &kv->key));
    snprintf(c->subject, sizeof c->subject, "key '%.80s'", kv->key);
    TRY(take_u32(c, "its type", &type));
    if (type >= GGUF_TYPE_COUNT_)
      return err_set(ERR_FORMAT, "%s: %s has type %u, the last known is %d", c->file, c->subject,
                     type, GGUF_TYPE_COUNT_ - 1);
    kv->type = (gguf_type)type;
    TRY(take_value(c, mem, kv));
    if (!gguf_index_add(&out->index, out->at, sizeof *kv, i))
      return err_set(ERR_FORMAT, "%s: %s is there twice", c->file, c->subject);
    out->n = i + 1;
  }
done:
  return e;
}

/* ---- tensors ---- */

/* Shape -> bytes; the row must be whole blocks. */
static err tensor_size(const cursor *c, gguf_tensor *t) {
  uint64_t count = 1;
  uint32_t block, bytes;
  for (int d = 0; d < 4; d++) {
    if (t->ne[d] == 0)
      return err_set(ERR_FORMAT, "%s: %s has dimension %d of 0 elements", c->file, c->subject, d);
    if (!mul_u64(count, t->ne[d], &count) || count > INT64_MAX)
      return err_set(ERR_FORMAT,
                     "%s: %s has %" PRIu64 " x %" PRIu64 " x %" PRIu64 " x %" PRIu64
                     " elements, the limit is 2^63 - 1",
                     c->file, c->subject, t->ne[0], t->ne[1], t->ne[2], t->ne[3]);
  }
  if (!gguf_raw_block(t->raw_type, &block, &bytes)) return ERR_NONE;
  if (t->ne[0] % block)
    return err_set(ERR_FORMAT,
                   "%s: %s has rows of %" PRIu64
                   " elements, not a multiple of the %u of a block of "
                   "type %s",
                   c->file, c->subject, t->ne[0], block, gguf_tensor_type_name(t->raw_type));
  if (!mul_u64(count / block, bytes, &t->size))
    return err_set(ERR_FORMAT, "%s: %s has %" PRIu64 " elements of type %s, over 2^64 bytes",
                   c->file, c->subject, count, gguf_tensor_type_name(t->raw_type));
  return ERR_NONE;
}

static err take_tensor(cursor *c, arena *mem, uint32_t i, uint32_t n, gguf_tensor *t) {
  err e = ERR_NONE;
  *t = (gguf_tensor){.ne = {1, 1, 1, 1}, .type = DT_COUNT_};
  snprintf(c->subject, sizeof c->subject, "tensor %u of %u", i + 1, n);
  TRY(take_name(c, mem, GGUF_MAX_NAME, "its name", &t->name));
  snprintf(c->subject, sizeof c->subject, "tensor '%.80s'", t->name);
  TRY(take_u32(c, "its number of dimensions", &t->n_dims));
  if (t->n_dims > 4)
    return err_set(ERR_FORMAT, "%s: %s has %u dimensions, the limit is 4", c->file, c->subject,
                   t->n_dims);
  for (uint32_t d = 0; d < t->n_dims; d++) TRY(take_u64(c, "its shape", &t->ne[d]));
  TRY(take_u32(c, "its type", &t->raw_type));
  TRY(take_u64(c, "its offset", &t->file_off)); /* from the start of the data, for now */
  dtype_by_gguf(t->raw_type, &t->type);
  e = tensor_size(c, t);
done:
  return e;
}

/* Offsets become absolute; each tensor must lie in the file, and all together cannot be larger than
 * the data, so that overlapping tensors cannot make a small file ask for much memory. */
static err place_tensors(const cursor *c, uint64_t align, uint32_t part, gguf_tensor *t,
                         uint32_t n) {
  uint64_t data = 0, sum = 0;
  bool ok = add_u64(c->off, align - 1, &data);
  data &= ~(align - 1);
  for (uint32_t i = 0; i < n; i++) {
    uint64_t end;
    if (t[i].file_off & (align - 1))
      return err_set(ERR_FORMAT,
                     "%s: tensor '%s' is at offset %" PRIu64 ", not a multiple of the alignment "
                     "%" PRIu64,
                     c->file, t[i].name, t[i].file_off, align);
    if (!ok || !add_u64(t[i].file_off, data, &t[i].file_off) ||
        !add_u64(t[i].file_off, t[i].size, &end) || end > c->size)
      return err_set(c->n == c->size ? ERR_TRUNCATED : ERR_FORMAT,
                     "%s: tensor '%s' needs %" PRIu64 " bytes at offset %" PRIu64
                     ", but the file ends at %" PRIu64,
                     c->file, t[i].name, t[i].size, t[i].file_off, c->size);
    if (!add_u64(sum, t[i].size, &sum) || sum > c->size - data)
      return err_set(ERR_FORMAT,
                     "%s: tensor '%s' overlaps others: together they need more than the %" PRIu64
                     " bytes of data",
                     c->file, t[i].name, c->size - data);
    t[i].part = part;
    t[i].data = c->n == c->size ? c->p + t[i].file_off : NULL;
  }
  return ERR_NONE;
}

/* ---- a part ---- */

static err take_version(cursor *c, uint32_t *version) {
  const uint8_t *p;
  err e = take(c, 4, "the magic number", &p);
  if (e) return e;
  if (memcmp(p, "GGUF", 4) != 0)
    return err_set(ERR_UNSUPPORTED,
                   "%s: not a GGUF file: it begins with bytes %02x %02x %02x %02x, not \"GGUF\"",
                   c->file, p[0], p[1], p[2], p[3]);
  e = take_u32(c, "the version", version);
  if (e) return e;
  if ((*version & 0xFFFF) == 0 && *version)
    return err_set(ERR_UNSUPPORTED, "%s: a big-endian GGUF file; only little-endian ones are read",
                   c->file);
  if (*version != 2 && *version != 3)
    return err_set(ERR_UNSUPPORTED, "%s: GGUF version %u; versions 2 and 3 are read", c->file,
                   *version);
  return ERR_NONE;
}

static err take_counts(cursor *c, uint32_t *n_tensors, uint32_t *n_keys) {
  uint64_t tensors, keys;
  err e = take_u64(c, "the number of tensors", &tensors);
  if (!e) e = take_u64(c, "the number of keys", &keys);
  if (e) return e;
  if (tensors > GGUF_MAX_TENSORS)
    return err_set(ERR_LIMIT, "%s: %" PRIu64 " tensors, the limit is %d", c->file, tensors,
                   GGUF_MAX_TENSORS);
  if (keys > GGUF_MAX_KEYS)
    return err_set(ERR_LIMIT, "%s: %" PRIu64 " keys, the limit is %d", c->file, keys,
                   GGUF_MAX_KEYS);
  /* A key takes at least 14 bytes and a tensor 25: the tables made from these counts stay in
   * proportion to the file. */
  e = need(c, keys * 14 + tensors * 25, "the list of keys and tensors");
  if (e) return e;
  *n_tensors = (uint32_t)tensors;
  *n_keys = (uint32_t)keys;
  return ERR_NONE;
}

static err kvs_uint_or(const cursor *c, const gguf_kvs *kvs, const char *key, uint64_t max,
                       uint64_t def, uint64_t *out) {
  const gguf_kv *kv = gguf_kvs_find(kvs, key);
  *out = def;
  return kv ? gguf_kv_uint(c->file, kv, max, out) : ERR_NONE;
}

static err check_alignment(const cursor *c, const gguf_kvs *kvs, uint64_t *out) {
  err e = kvs_uint_or(c, kvs, "general.alignment", UINT32_MAX, 32, out);
  if (e) return e;
  if (*out < 8 || (*out & (*out - 1)))
    return err_set(ERR_FORMAT,
                   "%s: key 'general.alignment' is %" PRIu64 ", not a power of two of at least 8",
                   c->file, *out);
  return ERR_NONE;
}

/* What the keys say about splitting must fit part `part`; *count gets the parts announced. */
static err check_split(const cursor *c, const gguf_kvs *kvs, uint32_t part, uint32_t expect,
                       uint64_t *count) {
  uint64_t no;
  err e = kvs_uint_or(c, kvs, "split.no", UINT32_MAX, 0, &no);
  if (!e) e = kvs_uint_or(c, kvs, "split.count", UINT32_MAX, 1, count);
  if (e) return e;
  if (*count < 1 || *count > GGUF_MAX_PARTS)
    return err_set(ERR_LIMIT, "%s: key 'split.count' is %" PRIu64 ", the limit is %d", c->file,
                   *count, GGUF_MAX_PARTS);
  if (part == 0 && no != 0)
    return err_set(ERR_ARG, "%s: this is part %" PRIu64 " of %" PRIu64 "; open the first one",
                   c->file, no + 1, *count);
  if (no != part)
    return err_set(ERR_FORMAT, "%s: holds part %" PRIu64 ", where part %u belongs", c->file, no + 1,
                   part + 1);
  if (part && *count != expect)
    return err_set(ERR_FORMAT, "%s: key 'split.count' is %" PRIu64 ", the first part says %u",
                   c->file, *count, expect);
  return ERR_NONE;
}

/* After the last part: the announced number of tensors must be there. */
static err check_total(const cursor *c, const gguf_kvs *kvs, uint64_t total) {
  uint64_t said;
  err e = kvs_uint_or(c, kvs, "split.tensors.count", UINT32_MAX, total, &said);
  if (e) return e;
  if (said != total)
    return err_set(ERR_FORMAT,
                   "%s: key 'split.tensors.count' is %" PRIu64 ", the parts have %" PRIu64
                   " tensors",
                   c->file, said, total);
  return ERR_NONE;
}

/* Old tensors + new ones, and their index; only then `g` takes them over. */
static err merge_tensors(gguf *g, cursor *c, uint64_t align, uint32_t n_new) {
  err e = ERR_NONE;
  uint64_t total = (uint64_t)g->n_tensors + n_new;
  if (total > GGUF_MAX_TENSORS)
    return err_set(ERR_LIMIT, "%s: %" PRIu64 " tensors with the parts before, the limit is %d",
                   c->file, total, GGUF_MAX_TENSORS);
  uint32_t slots = gguf_index_slots(total);
  gguf_tensor *all = mem_zalloc((size_t)total, sizeof *all);
  gguf_index ix = {mem_zalloc(slots, sizeof(uint64_t)), slots - 1};
  if (!all || !ix.slots) {
    e = mem_err(c->file, total * sizeof *all + slots * sizeof(uint64_t));
    goto done;
  }
  if (g->n_tensors) memcpy(all, g->tensors, g->n_tensors * sizeof *all);
  gguf_tensor *fresh = all + g->n_tensors;
  for (uint32_t i = 0; i < n_new; i++) TRY(take_tensor(c, &g->mem, i, n_new, &fresh[i]));
  TRY(place_tensors(c, align, g->parts_read, fresh, n_new));
  for (uint32_t i = 0; i < total; i++) {
    if (!gguf_index_add(&ix, all, sizeof *all, i)) {
      e = err_set(ERR_FORMAT, "%s: tensor '%s' is there twice", c->file, all[i].name);
      goto done;
    }
  }
  mem_free(g->tensors);
  mem_free(g->index.slots);
  g->tensors = all;
  g->n_tensors = (uint32_t)total;
  g->index = ix;
  return ERR_NONE;
done:
  mem_free(all);
  mem_free(ix.slots);
  return e;
}

static err start_parts(gguf *g, uint32_t version, uint64_t align, uint64_t count) {
  g->version = version;
  g->alignment = align;
  g->parts = arena_alloc(&g->mem, (size_t)count, sizeof *g->parts);
  if (!g->parts) return mem_err("gguf parts", count * sizeof *g->parts);
  g->n_parts = (uint32_t)count;
  return ERR_NONE;
}

static err read_part(gguf *g, cursor *c) {
  err e = ERR_NONE;
  arena keep = {0}; /* keys of the later parts, which nobody asks for */
  gguf_kvs kvs = {0};
  uint32_t version = 0, n_tensors = 0, n_keys = 0, part = g->parts_read;
  uint64_t align = 0, count = 0;
  const char *name = arena_strdup(&g->mem, c->file);
  if (!name) return mem_err(c->file, strlen(c->file));
  TRY(take_version(c, &version));
  TRY(take_counts(c, &n_tensors, &n_keys));
  TRY(take_kvs(c, part ? &keep : &g->mem, n_keys, &kvs));
  TRY(check_alignment(c, &kvs, &align));
  TRY(check_split(c, &kvs, part, g->n_parts, &count));
  if (part + 1 == count) {
    const gguf_kvs *first = part ? &g->kvs : &kvs;
    TRY(check_total(c, first, (uint64_t)g->n_tensors + n_tensors));
  }
  if (part == 0) TRY(start_parts(g, version, align, count));
  TRY(merge_tensors(g, c, align, n_tensors));
  if (part == 0) g->kvs = kvs;
  g->parts[part].name = name;
  g->parts[part].size = c->size;
  g->parts_read = part + 1;
done:
  arena_free(&keep);
  return e;
}

/* ---- opening from memory ---- */

err gguf_add_part(gguf *g, const char *name, const uint8_t *head, uint64_t n, uint64_t file_size) {
  if (n > file_size)
    return err_set(ERR_ARG, "%s: %" PRIu64 " header bytes of a file of %" PRIu64, name, n,
                   file_size);
  if (g->n_parts && g->parts_read == g->n_parts)
    return err_set(ERR_ARG, "%s: all %u parts were read already", name, g->n_parts);
  cursor c = {.file = name, .p = head, .n = n, .size = file_size, .subject = "header"};
  return read_part(g, &c);
}

err gguf_parse(const char *name, const uint8_t *head, uint64_t n, uint64_t file_size, gguf **out) {
  *out = NULL;
  gguf *g = mem_zalloc(1, sizeof *g);
  if (!g) return mem_err(name, sizeof *g);
  err e = gguf_add_part(g, name, head, n, file_size);
  if (e) {
    gguf_free(g);
    return e;
  }
  *out = g;
  return ERR_NONE;
}

void gguf_tensor_drop(const gguf *g, const gguf_tensor *t) {
  const file_map *m = &g->parts[t->part].map;
  if (m->data) file_map_drop(m, t->file_off, t->size);
}

void gguf_tensor_provide(gguf *g, const gguf_tensor *t, const uint8_t *data) {
  g->tensors[t - g->tensors].data = data;
}

void gguf_free(gguf *g) {
  if (!g) return;
  for (uint32_t i = 0; i < g->n_parts; i++) file_map_close(&g->parts[i].map);
  mem_free(g->tensors);
  mem_free(g->index.slots);
  arena_free(&g->mem);
  mem_free(g);
}

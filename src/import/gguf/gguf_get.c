/* Reading what was parsed: keys with their types checked, array elements, tensors; and the tables
 * of types. Allocates nothing. */
#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "base/math.h"
#include "import/gguf/gguf_impl.h"

/* ---- types ---- */

static const struct {
  const char *name;
  uint32_t size;
} value_types[] = {{"u8", 1},  {"i8", 1},  {"u16", 2},  {"i16", 2}, {"u32", 4},
                   {"i32", 4}, {"f32", 4}, {"bool", 1}, {"str", 0}, {"arr", 0},
                   {"u64", 8}, {"i64", 8}, {"f64", 8}};
_Static_assert(sizeof value_types / sizeof value_types[0] == GGUF_TYPE_COUNT_, "one row a type");

const char *gguf_type_name(gguf_type t) { return value_types[t].name; }
uint32_t gguf_scalar_size(gguf_type t) { return value_types[t].size; }

/* Tensor types that frit lists but does not compute with: enum ggml_type and the block structs of
 * ggml-common.h. Those that it does compute with are in base/dtype.h. */
static const struct {
  uint32_t raw;
  const char *name;
  uint32_t n, bytes;
} foreign[] = {{9, "q8_1", 32, 36},      {15, "q8_k", 256, 292},   {16, "iq2_xxs", 256, 66},
               {17, "iq2_xs", 256, 74},  {18, "iq3_xxs", 256, 98}, {19, "iq1_s", 256, 50},
               {20, "iq4_nl", 32, 18},   {21, "iq3_s", 256, 110},  {22, "iq2_s", 256, 82},
               {23, "iq4_xs", 256, 136}, {24, "i8", 1, 1},         {25, "i16", 1, 2},
               {27, "i64", 1, 8},        {28, "f64", 1, 8},        {29, "iq1_m", 256, 56},
               {34, "tq1_0", 256, 54},   {35, "tq2_0", 256, 66},   {39, "mxfp4", 32, 17}};
enum { N_FOREIGN = sizeof foreign / sizeof foreign[0] };

bool gguf_raw_block(uint32_t raw, uint32_t *n, uint32_t *bytes) {
  dtype t;
  if (dtype_by_gguf(raw, &t)) {
    *n = dtype_get(t)->n;
    *bytes = dtype_get(t)->bytes;
    return true;
  }
  for (int i = 0; i < N_FOREIGN; i++) {
    if (foreign[i].raw == raw) {
      *n = foreign[i].n;
      *bytes = foreign[i].bytes;
      return true;
    }
  }
  return false;
}

const char *gguf_tensor_type_name(uint32_t raw) {
  dtype t;
  if (dtype_by_gguf(raw, &t)) return dtype_get(t)->name;
  for (int i = 0; i < N_FOREIGN; i++) {
    if (foreign[i].raw == raw) return foreign[i].name;
  }
  return "unknown";
}

/* ---- the file ---- */

const char *gguf_name(const gguf *g) { return g->parts[0].name; }
uint32_t gguf_version(const gguf *g) { return g->version; }
uint64_t gguf_alignment(const gguf *g) { return g->alignment; }
uint32_t gguf_part_count(const gguf *g) { return g->n_parts; }
const char *gguf_part_name(const gguf *g, uint32_t i) { return g->parts[i].name; }
uint64_t gguf_part_size(const gguf *g, uint32_t i) { return g->parts[i].size; }

/* ---- keys ---- */

const gguf_kv *gguf_kvs_find(const gguf_kvs *kvs, const char *key) {
  uint32_t i = gguf_index_find(&kvs->index, kvs->at, sizeof *kvs->at, key);
  return i == UINT32_MAX ? NULL : &kvs->at[i];
}

uint64_t gguf_kv_count(const gguf *g) { return g->kvs.n; }
const gguf_kv *gguf_kv_at(const gguf *g, uint64_t i) { return &g->kvs.at[i]; }
const gguf_kv *gguf_find(const gguf *g, const char *key) { return gguf_kvs_find(&g->kvs, key); }
bool gguf_has(const gguf *g, const char *key) { return gguf_find(g, key) != NULL; }

static err missing(const gguf *g, const char *key) {
  return err_set(ERR_FORMAT, "%s: key '%s' is missing", gguf_name(g), key);
}

static err wrong_type(const char *file, const gguf_kv *kv, const char *wanted) {
  return err_set(ERR_FORMAT, "%s: key '%s' has type %s, not %s", file, kv->key,
                 gguf_type_name(kv->type), wanted);
}

static bool is_unsigned(gguf_type t) {
  return t == GGUF_U8 || t == GGUF_U16 || t == GGUF_U32 || t == GGUF_U64;
}
static bool is_signed(gguf_type t) {
  return t == GGUF_I8 || t == GGUF_I16 || t == GGUF_I32 || t == GGUF_I64;
}

err gguf_kv_uint(const char *file, const gguf_kv *kv, uint64_t max, uint64_t *out) {
  if (!is_unsigned(kv->type) && !is_signed(kv->type)) return wrong_type(file, kv, "an integer");
  if (is_signed(kv->type) && kv->v.i < 0)
    return err_set(ERR_FORMAT, "%s: key '%s' is %" PRId64 ", less than 0", file, kv->key, kv->v.i);
  uint64_t v = is_signed(kv->type) ? (uint64_t)kv->v.i : kv->v.u;
  if (v > max)
    return err_set(ERR_FORMAT, "%s: key '%s' is %" PRIu64 ", the limit is %" PRIu64, file, kv->key,
                   v, max);
  *out = v;
  return ERR_NONE;
}

err gguf_u64(const gguf *g, const char *key, uint64_t *out) {
  const gguf_kv *kv = gguf_find(g, key);
  return kv ? gguf_kv_uint(gguf_name(g), kv, UINT64_MAX, out) : missing(g, key);
}

err gguf_u32(const gguf *g, const char *key, uint32_t *out) {
  const gguf_kv *kv = gguf_find(g, key);
  uint64_t v = 0;
  err e = kv ? gguf_kv_uint(gguf_name(g), kv, UINT32_MAX, &v) : missing(g, key);
  if (!e) *out = (uint32_t)v;
  return e;
}

err gguf_i32(const gguf *g, const char *key, int32_t *out) {
  const gguf_kv *kv = gguf_find(g, key);
  uint64_t v = 0;
  if (!kv) return missing(g, key);
  if (is_signed(kv->type) && kv->v.i < 0) {
    if (kv->v.i < INT32_MIN)
      return err_set(ERR_FORMAT, "%s: key '%s' is %" PRId64 ", the limit is %d", gguf_name(g), key,
                     kv->v.i, INT32_MIN);
    *out = (int32_t)kv->v.i;
    return ERR_NONE;
  }
  err e = gguf_kv_uint(gguf_name(g), kv, INT32_MAX, &v);
  if (!e) *out = (int32_t)v;
  return e;
}

err gguf_f32(const gguf *g, const char *key, float *out) {
  const gguf_kv *kv = gguf_find(g, key);
  if (!kv) return missing(g, key);
  if (kv->type != GGUF_F32 && kv->type != GGUF_F64) return wrong_type(gguf_name(g), kv, "f32");
  *out = (float)kv->v.f;
  return ERR_NONE;
}

err gguf_bool(const gguf *g, const char *key, bool *out) {
  const gguf_kv *kv = gguf_find(g, key);
  if (!kv) return missing(g, key);
  if (kv->type != GGUF_BOOL) return wrong_type(gguf_name(g), kv, "bool");
  *out = kv->v.b;
  return ERR_NONE;
}

err gguf_str(const gguf *g, const char *key, const char **out, size_t *n) {
  const gguf_kv *kv = gguf_find(g, key);
  if (!kv) return missing(g, key);
  if (kv->type != GGUF_STR) return wrong_type(gguf_name(g), kv, "str");
  *out = kv->v.s.p;
  if (n) *n = kv->v.s.n;
  return ERR_NONE;
}

err gguf_u32_or(const gguf *g, const char *key, uint32_t def, uint32_t *out) {
  *out = def;
  return gguf_has(g, key) ? gguf_u32(g, key, out) : ERR_NONE;
}
err gguf_u64_or(const gguf *g, const char *key, uint64_t def, uint64_t *out) {
  *out = def;
  return gguf_has(g, key) ? gguf_u64(g, key, out) : ERR_NONE;
}
err gguf_i32_or(const gguf *g, const char *key, int32_t def, int32_t *out) {
  *out = def;
  return gguf_has(g, key) ? gguf_i32(g, key, out) : ERR_NONE;
}
err gguf_f32_or(const gguf *g, const char *key, float def, float *out) {
  *out = def;
  return gguf_has(g, key) ? gguf_f32(g, key, out) : ERR_NONE;
}
err gguf_bool_or(const gguf *g, const char *key, bool def, bool *out) {
  *out = def;
  return gguf_has(g, key) ? gguf_bool(g, key, out) : ERR_NONE;
}
err gguf_str_or(const gguf *g, const char *key, const char *def, const char **out, size_t *n) {
  *out = def;
  if (n) *n = def ? strlen(def) : 0;
  return gguf_has(g, key) ? gguf_str(g, key, out, n) : ERR_NONE;
}

/* ---- arrays ---- */

err gguf_arr(const gguf *g, const char *key, gguf_array *out) {
  const gguf_kv *kv = gguf_find(g, key);
  if (!kv) return missing(g, key);
  if (kv->type != GGUF_ARR) return wrong_type(gguf_name(g), kv, "an array");
  *out = kv->v.a;
  return ERR_NONE;
}

static err arr_kind(const gguf *g, const char *key, bool strings, gguf_array *out) {
  gguf_array a = {0};
  err e = gguf_arr(g, key, &a);
  if (e) return e;
  if (strings ? a.type != GGUF_STR : gguf_scalar_size(a.type) == 0)
    return err_set(ERR_FORMAT, "%s: key '%s' is an array of %s, not of %s", gguf_name(g), key,
                   gguf_type_name(a.type), strings ? "str" : "numbers");
  *out = a;
  return ERR_NONE;
}

err gguf_arr_strs(const gguf *g, const char *key, gguf_array *out) {
  return arr_kind(g, key, true, out);
}
err gguf_arr_nums(const gguf *g, const char *key, gguf_array *out) {
  return arr_kind(g, key, false, out);
}

/* Bytes that the value at p takes; it was checked when the file was read. */
static uint64_t skip_value(gguf_type type, const uint8_t *p) {
  if (type == GGUF_STR) return 8 + load_u64(p);
  if (type != GGUF_ARR) return gguf_scalar_size(type);
  gguf_type inner = (gguf_type)load_u32(p);
  uint64_t n = load_u64(p + 4), size = 12;
  if (gguf_scalar_size(inner)) return size + n * gguf_scalar_size(inner);
  for (uint64_t i = 0; i < n; i++) size += skip_value(inner, p + size);
  return size;
}

static const uint8_t *element(const gguf_array *a, uint64_t i) {
  assert(i < a->n);
  if (a->offs) return a->data + a->offs[i];
  uint32_t scalar = gguf_scalar_size(a->type);
  if (scalar) return a->data + i * scalar;
  const uint8_t *p = a->data;
  while (i--) p += skip_value(a->type, p);
  return p;
}

gguf_text gguf_arr_text(const gguf_array *a, uint64_t i) {
  assert(a->type == GGUF_STR);
  const uint8_t *p = element(a, i);
  return (gguf_text){(const char *)p + 8, (size_t)load_u64(p)};
}

gguf_array gguf_arr_arr(const gguf_array *a, uint64_t i) {
  assert(a->type == GGUF_ARR);
  const uint8_t *p = element(a, i);
  return (gguf_array){.type = (gguf_type)load_u32(p),
                      .n = load_u64(p + 4),
                      .data = p + 12,
                      .size = skip_value(GGUF_ARR, p) - 12};
}

double gguf_arr_f64(const gguf_array *a, uint64_t i) {
  assert(gguf_scalar_size(a->type));
  const uint8_t *p = element(a, i);
  double f;
  if (a->type == GGUF_F32) return (double)load_f32(p);
  if (a->type == GGUF_U64) return (double)load_u64(p);
  if (a->type != GGUF_F64) return (double)gguf_arr_i64(a, i);
  memcpy(&f, p, sizeof f);
  return f;
}

/* Truncates; NaN becomes 0. */
static int64_t saturate(double f) {
  if (f != f) return 0;
  if (f >= 0x1p63) return INT64_MAX;
  if (f < -0x1p63) return INT64_MIN;
  return (int64_t)f;
}

int64_t gguf_arr_i64(const gguf_array *a, uint64_t i) {
  assert(gguf_scalar_size(a->type));
  const uint8_t *p = element(a, i);
  switch (a->type) {
  case GGUF_U8:
  case GGUF_BOOL: return *p;
  case GGUF_I8: return (int8_t)*p;
  case GGUF_U16: return load_u16(p);
  case GGUF_I16: return (int16_t)load_u16(p);
  case GGUF_U32: return load_u32(p);
  case GGUF_I32: return (int32_t)load_u32(p);
  case GGUF_U64: return load_u64(p) > INT64_MAX ? INT64_MAX : (int64_t)load_u64(p);
  case GGUF_I64: return (int64_t)load_u64(p);
  default: return saturate(gguf_arr_f64(a, i));
  }
}

/* ---- tensors ---- */

uint64_t gguf_tensor_count(const gguf *g) { return g->n_tensors; }
const gguf_tensor *gguf_tensor_at(const gguf *g, uint64_t i) { return &g->tensors[i]; }

const gguf_tensor *gguf_tensor_find(const gguf *g, const char *name) {
  uint32_t i = gguf_index_find(&g->index, g->tensors, sizeof *g->tensors, name);
  return i == UINT32_MAX ? NULL : &g->tensors[i];
}

err gguf_tensor_get(const gguf *g, const char *name, const gguf_tensor **out) {
  const gguf_tensor *t = gguf_tensor_find(g, name);
  if (!t) return err_set(ERR_FORMAT, "%s: tensor '%s' is missing", gguf_name(g), name);
  if (t->type == DT_COUNT_)
    return err_set(ERR_UNSUPPORTED,
                   "%s: tensor '%s' has type %s (%u), which frit cannot compute with",
                   g->parts[t->part].name, name, gguf_tensor_type_name(t->raw_type), t->raw_type);
  *out = t;
  return ERR_NONE;
}

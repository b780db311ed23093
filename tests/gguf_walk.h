/* Touches everything that an opened GGUF file offers, so that a sanitizer sees each read. Used by
 * test_gguf.c and fuzz/fuzz_gguf.c. Returns a checksum, so that nothing is optimised away. */
#ifndef FRIT_GGUF_WALK_H
#define FRIT_GGUF_WALK_H

#include "import/gguf/gguf.h"

static inline uint64_t walk_text(gguf_text t) {
  uint64_t sum = t.n;
  for (size_t i = 0; i < t.n; i++) sum += (uint8_t)t.p[i];
  return sum;
}

static inline uint64_t walk_array(const gguf_array *a) {
  uint64_t sum = a->size + a->n;
  for (uint64_t i = 0; i < a->n; i++) {
    /* Without a table, element i costs i steps. */
    if (!a->offs && (a->type == GGUF_STR || a->type == GGUF_ARR) && i > 50) break;
    if (a->type == GGUF_STR) {
      sum += walk_text(gguf_arr_text(a, i));
    } else if (a->type == GGUF_ARR) {
      gguf_array inner = gguf_arr_arr(a, i);
      sum += walk_array(&inner);
    } else {
      double f = gguf_arr_f64(a, i);
      sum += (uint64_t)gguf_arr_i64(a, i) + (f == f);
    }
  }
  return sum;
}

static inline uint64_t walk_keys(const gguf *g) {
  uint64_t sum = 0, u64;
  for (uint64_t i = 0; i < gguf_kv_count(g); i++) {
    const gguf_kv *kv = gguf_kv_at(g, i);
    uint32_t u32;
    int32_t i32;
    float f;
    bool b;
    const char *s;
    size_t n;
    gguf_array a;
    if (gguf_find(g, kv->key) != kv) return 0;
    sum += (uint8_t)gguf_type_name(kv->type)[0];
    if (!gguf_u32(g, kv->key, &u32)) sum += u32;
    if (!gguf_u64(g, kv->key, &u64)) sum += u64;
    if (!gguf_i32(g, kv->key, &i32)) sum += (uint64_t)i32;
    if (!gguf_f32(g, kv->key, &f)) sum += f == f;
    if (!gguf_bool(g, kv->key, &b)) sum += b;
    if (!gguf_str(g, kv->key, &s, &n)) sum += walk_text((gguf_text){s, n + 1});
    if (!gguf_arr(g, kv->key, &a)) sum += walk_array(&a);
  }
  return sum;
}

/* True when each tensor can be found, lies inside its part and, where it is mapped, can be read. */
static inline bool walk(const gguf *g, uint64_t *sum) {
  *sum = walk_keys(g) + gguf_version(g) + gguf_alignment(g);
  for (uint64_t i = 0; i < gguf_tensor_count(g); i++) {
    const gguf_tensor *t = gguf_tensor_at(g, i), *same = NULL;
    if (gguf_tensor_find(g, t->name) != t) return false;
    if (t->part >= gguf_part_count(g)) return false;
    if (t->file_off > gguf_part_size(g, t->part)) return false;
    if (t->size > gguf_part_size(g, t->part) - t->file_off) return false;
    *sum += (uint8_t)gguf_tensor_type_name(t->raw_type)[0];
    if (!gguf_tensor_get(g, t->name, &same) && same->ne[0] % dtype_get(same->type)->n) return false;
    for (uint64_t k = 0; t->data && k < t->size; k++) *sum += t->data[k];
  }
  return true;
}

#endif

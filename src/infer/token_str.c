/* Strings interned in one block, found through a hash table that is never more than half full. */
#include <string.h>

#include "infer/token_impl.h"

static uint32_t hash(const char *s, size_t n) { /* FNV-1a, then a mix so that low bits are good */
  uint64_t h = 0xCBF29CE484222325u;
  for (size_t i = 0; i < n; i++) h = (h ^ (uint8_t)s[i]) * 0x100000001B3u;
  h ^= h >> 32;
  return (uint32_t)(h * 0x9E3779B97F4A7C15u >> 32);
}

/* The slot that holds the string, or the empty one where it belongs. */
static uint32_t probe(const str_table *t, const char *s, size_t n) {
  for (uint32_t i = hash(s, n);; i++) {
    uint32_t at = i & (t->n_slots - 1), len;
    if (t->slot[at] == 0) return at;
    const char *have = str_at(t, t->slot[at] - 1, &len);
    if (len == n && memcmp(have, s, n) == 0) return at;
  }
}

static err grow_index(str_table *t) {
  if (t->n_indexed < t->n_slots / 2) return ERR_NONE;
  uint32_t old_n = t->n_slots, *old = t->slot;
  uint32_t n = old_n ? old_n * 2 : 1024;
  uint32_t *slot = n ? mem_zalloc(n, sizeof *slot) : NULL;
  if (!slot) return mem_err("vocabulary index", (uint64_t)n * sizeof *slot);
  t->slot = slot;
  t->n_slots = n;
  for (uint32_t i = 0; i < old_n; i++) {
    if (old[i] == 0) continue;
    uint32_t len;
    const char *s = str_at(t, old[i] - 1, &len);
    slot[probe(t, s, len)] = old[i];
  }
  mem_free(old);
  return ERR_NONE;
}

static err grow_offsets(str_table *t) {
  if (t->off && t->n + 1 < t->cap) return ERR_NONE;
  if (t->cap > UINT32_MAX / 2) return err_set(ERR_LIMIT, "vocabulary over %u strings", t->cap);
  uint32_t cap = t->cap ? t->cap * 2 : 1024;
  uint32_t *off = mem_realloc(t->off, (size_t)t->cap * sizeof *off, (size_t)cap * sizeof *off);
  if (!off) return mem_err("vocabulary", (uint64_t)cap * sizeof *off);
  if (!t->off) off[0] = 0;
  t->off = off;
  t->cap = cap;
  return ERR_NONE;
}

err str_push(str_table *t, const char *s, size_t n, bool index) {
  err e = grow_offsets(t);
  if (!e && index) e = grow_index(t);
  if (e) return e;
  if (n > UINT32_MAX - t->bytes.n) return err_set(ERR_LIMIT, "vocabulary over 4 GiB of text");
  uint32_t at = index ? probe(t, s, n) : 0;
  buf_put(&t->bytes, s, n);
  if (t->bytes.failed) return mem_err("vocabulary text", t->bytes.n + n);
  t->off[++t->n] = (uint32_t)t->bytes.n;
  if (index && t->slot[at] == 0) {
    t->slot[at] = t->n;
    t->n_indexed++;
  }
  return ERR_NONE;
}

uint32_t str_find(const str_table *t, const char *s, size_t n) {
  if (!t->n_slots) return NO_ID;
  uint32_t v = t->slot[probe(t, s, n)];
  return v ? v - 1 : NO_ID;
}

void str_free(str_table *t) {
  buf_free(&t->bytes);
  mem_free(t->off);
  mem_free(t->slot);
  *t = (str_table){0};
}

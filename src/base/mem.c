/* Owns the allocation hook and the arena. Every block carries a 64-byte header so that alignment
 * holds on each platform without aligned_alloc (missing in wasi-libc's older releases). */
#include "base/mem.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ALIGN = 64 };

static atomic_uint_least64_t live, calls, fail_in;
static atomic_bool fail_sticky;

void mem_fail_at(uint64_t n, bool sticky) {
  atomic_store(&fail_sticky, sticky);
  atomic_store(&fail_in, n);
}

uint64_t mem_live(void) { return atomic_load(&live); }
uint64_t mem_calls(void) { return atomic_load(&calls); }

static bool must_fail(void) {
  atomic_fetch_add(&calls, 1);
  uint_least64_t n = atomic_load(&fail_in);
  if (n == 0) return false;
  if (n == 1) {
    if (!atomic_load(&fail_sticky)) atomic_store(&fail_in, 0);
    return true;
  }
  atomic_fetch_sub(&fail_in, 1);
  return false;
}

/* calloc for cleared memory: large blocks then cost no pages until they are touched (KV caches). */
static void *alloc(size_t size, bool clear) {
  if (must_fail() || size > SIZE_MAX - 2 * ALIGN) return NULL;
  char *raw = clear ? calloc(1, size + 2 * ALIGN) : malloc(size + 2 * ALIGN);
  if (!raw) return NULL;
  char *p = (char *)(((uintptr_t)raw + 2 * ALIGN - 1) & ~(uintptr_t)(ALIGN - 1));
  memcpy(p - sizeof raw, &raw, sizeof raw);
  atomic_fetch_add(&live, 1);
  return p;
}

void *mem_alloc(size_t size) { return alloc(size, false); }

void *mem_zalloc(size_t n, size_t size) {
  if (size && n > SIZE_MAX / size) return NULL;
  return alloc(n * size, true);
}

void *mem_realloc(void *p, size_t old_size, size_t size) {
  void *q = mem_alloc(size);
  if (!q) return NULL;
  if (p) memcpy(q, p, old_size < size ? old_size : size);
  mem_free(p);
  return q;
}

void mem_free(void *p) {
  if (!p) return;
  char *raw;
  memcpy(&raw, (char *)p - sizeof raw, sizeof raw);
  free(raw);
  atomic_fetch_sub(&live, 1);
}

char *mem_strdup(const char *s) {
  size_t n = strlen(s) + 1;
  char *p = mem_alloc(n);
  if (p) memcpy(p, s, n);
  return p;
}

err(mem_err)(const char *what, uint64_t size) {
  return err_set(ERR_NOMEM, "out of memory: %s needs %llu bytes", what, (unsigned long long)size);
}

/* ---- arena ---- */

typedef struct arena_block {
  struct arena_block *next;
  size_t used, cap; /* bytes after this header */
} arena_block;

enum { BLOCK_SIZE = 64 << 10, HEADER = (sizeof(arena_block) + 15) & ~15u };

void *arena_alloc(arena *a, size_t n, size_t size) {
  if (size && n > (SIZE_MAX - 16) / size) return NULL;
  size_t bytes = (n * size + 15) & ~(size_t)15;
  arena_block *b = a->head;
  if (!b || b->cap - b->used < bytes) {
    size_t cap = bytes > BLOCK_SIZE ? bytes : BLOCK_SIZE;
    b = mem_alloc(HEADER + cap);
    if (!b) return NULL;
    *b = (arena_block){.next = a->head, .cap = cap};
    a->head = b;
  }
  char *p = (char *)b + HEADER + b->used;
  b->used += bytes;
  a->used += bytes;
  memset(p, 0, bytes);
  return p;
}

char *arena_strndup(arena *a, const char *s, size_t n) {
  char *p = n < SIZE_MAX ? arena_alloc(a, n + 1, 1) : NULL;
  if (p && n) memcpy(p, s, n);
  return p;
}

char *arena_strdup(arena *a, const char *s) { return arena_strndup(a, s, strlen(s)); }

char *arena_printf(arena *a, const char *fmt, ...) {
  va_list ap, again;
  va_start(ap, fmt);
  va_copy(again, ap);
  int n = vsnprintf(NULL, 0, fmt, ap);
  char *p = n < 0 ? NULL : arena_alloc(a, (size_t)n + 1, 1);
  if (p) vsnprintf(p, (size_t)n + 1, fmt, again);
  va_end(again);
  va_end(ap);
  return p;
}

void arena_free(arena *a) {
  while (a->head) {
    arena_block *next = a->head->next;
    mem_free(a->head);
    a->head = next;
  }
  a->used = 0;
}

/* ---- buf ---- */

static bool buf_reserve(buf *b, size_t more) {
  if (b->failed) return false;
  if (more >= SIZE_MAX / 4 || b->n >= SIZE_MAX / 4) return !(b->failed = true);
  size_t need = b->n + more + 1;
  if (need <= b->cap) return true;
  size_t cap = b->cap * 2 > need ? b->cap * 2 : need + 32;
  char *p = mem_realloc(b->p, b->n, cap);
  if (!p) return !(b->failed = true);
  b->p = p;
  b->cap = cap;
  return true;
}

void buf_put(buf *b, const void *bytes, size_t n) {
  if (!buf_reserve(b, n)) return;
  if (n) memcpy(b->p + b->n, bytes, n);
  b->n += n;
  b->p[b->n] = 0;
}

void buf_puts(buf *b, const char *s) { buf_put(b, s, strlen(s)); }
void buf_putc(buf *b, char c) { buf_put(b, &c, 1); }

void buf_printf(buf *b, const char *fmt, ...) {
  va_list ap, again;
  va_start(ap, fmt);
  va_copy(again, ap);
  int n = vsnprintf(NULL, 0, fmt, ap);
  if (n >= 0 && buf_reserve(b, (size_t)n)) {
    vsnprintf(b->p + b->n, (size_t)n + 1, fmt, again);
    b->n += (size_t)n;
  }
  va_end(again);
  va_end(ap);
}

void buf_clear(buf *b) {
  b->n = 0;
  b->failed = false;
  if (b->p) b->p[0] = 0;
}

void buf_free(buf *b) {
  mem_free(b->p);
  *b = (buf){0};
}

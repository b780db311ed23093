/* Host memory: the only way that src/ allocates, so that a test can make the n-th call fail and
 * count what is alive. Arena: many small objects with one lifetime (a model, a plan, a session). */
#ifndef FRIT_BASE_MEM_H
#define FRIT_BASE_MEM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

/* Each returns NULL when out of memory (or when the test hook says so); mem_free(NULL) is fine.
 * n * size is checked for overflow. mem_zalloc clears. All results are 64-byte aligned. */
void *mem_alloc(size_t size);
void *mem_zalloc(size_t n, size_t size);
void *mem_realloc(void *p, size_t old_size, size_t size);
void mem_free(void *p);
char *mem_strdup(const char *s); /* returns ownership, NULL when out of memory */

/* The error to return after a NULL: names what was being allocated. */
err mem_err(const char *what, uint64_t size);
#ifdef __clang_analyzer__
#define mem_err(what, size) err_known((mem_err)(what, size), ERR_NOMEM)
#endif

/* Test hook: the n-th allocation from now fails (1 is the next), and each later one too when
 * `sticky`; 0 switches it off. mem_live: allocations not yet freed. mem_calls: total ever made. */
void mem_fail_at(uint64_t n, bool sticky);
uint64_t mem_live(void);
uint64_t mem_calls(void);

typedef struct arena {
  struct arena_block *head;
  size_t used; /* bytes handed out, for reports */
} arena;

/* Zeroed memory, 16-byte aligned, valid until arena_free; NULL when out of memory. */
void *arena_alloc(arena *a, size_t n, size_t size);
char *arena_strndup(arena *a, const char *s, size_t n);
char *arena_strdup(arena *a, const char *s);
/* printf into the arena. */
#if defined(__GNUC__)
__attribute__((format(printf, 2, 3)))
#endif
char *
arena_printf(arena *a, const char *fmt, ...);
void arena_free(arena *a); /* frees everything; the arena is empty and usable again */

/* Growable text or bytes. Zero is empty. Always NUL-terminated once something was appended. On out
 * of memory `failed` stays set and later appends do nothing: check it once at the end. */
typedef struct buf {
  char *p;
  size_t n, cap;
  bool failed;
} buf;
void buf_put(buf *b, const void *bytes, size_t n);
void buf_puts(buf *b, const char *s);
void buf_putc(buf *b, char c);
#if defined(__GNUC__)
__attribute__((format(printf, 2, 3)))
#endif
void buf_printf(buf *b, const char *fmt, ...);
void buf_clear(buf *b); /* keeps the memory */
void buf_free(buf *b);

#endif

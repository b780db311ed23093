/* libFuzzer target: a GGUF file, whole or only its first bytes; the first input byte chooses. With
 * bit 1 set the rest is cut in two and the second half given as the second part. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "../tests/gguf_walk.h"
#include "base/mem.h"

/* A copy of exactly n bytes, so that a read beyond them is seen. */
static uint8_t *copy(const uint8_t *p, size_t n) {
  uint8_t *q = malloc(n ? n : 1);
  if (q && n) memcpy(q, p, n);
  return q;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
  if (n == 0) return 0;
  uint8_t mode = data[0];
  size_t first = mode & 2 ? (n - 1) / 2 : n - 1, second = n - 1 - first;
  uint64_t extra = mode & 1 ? 1 << 20 : 0, sum;
  uint8_t *a = copy(data + 1, first), *b = copy(data + 1 + first, second);
  gguf *g = NULL;
  if (a && b && !gguf_parse("a", a, first, first + extra, &g)) {
    if (!walk(g, &sum)) abort();
    /* A part that is refused leaves the first one as it was. */
    if (gguf_part_count(g) > 1) (void)gguf_add_part(g, "b", b, second, second + extra);
    if (!walk(g, &sum)) abort();
  }
  gguf_free(g);
  free(a);
  free(b);
  if (mem_live() != 0) abort();
  return 0;
}

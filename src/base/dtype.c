/* Owns the table of element types. */
#include "base/dtype.h"

#include <string.h>

static const dtype_info table[] = {
#define X(id, name, gguf, n, bytes) {name, gguf, n, bytes},
    DTYPES(X)
#undef X
};
_Static_assert(sizeof table / sizeof table[0] == DT_COUNT_, "one row a type");

const dtype_info *dtype_get(dtype t) { return &table[t]; }

uint64_t dtype_row_bytes(dtype t, uint64_t n) { return n / table[t].n * table[t].bytes; }

bool dtype_by_name(const char *name, dtype *out) {
  for (int i = 0; i < DT_COUNT_; i++) {
    if (strcmp(table[i].name, name) == 0) {
      *out = (dtype)i;
      return true;
    }
  }
  return false;
}

bool dtype_by_gguf(uint32_t number, dtype *out) {
  for (int i = 0; i < DT_COUNT_; i++) {
    if (table[i].gguf >= 0 && (uint32_t)table[i].gguf == number) {
      *out = (dtype)i;
      return true;
    }
  }
  return false;
}

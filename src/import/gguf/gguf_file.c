/* Opens a file and its parts by path. Apart from gguf.c: a module for browsers has no paths. */
#include <stdio.h>
#include <string.h>

#include "base/math.h"
#include "import/gguf/gguf_impl.h"

/* The path of part `i` from the first one's, which must end in "-00001-of-0000N.gguf". */
static err part_path(gguf *g, const char *first, uint32_t i, const char **out) {
  char tail[40], mine[40];
  snprintf(tail, sizeof tail, "-%05u-of-%05u.gguf", 1u, g->n_parts);
  snprintf(mine, sizeof mine, "-%05u-of-%05u.gguf", i + 1, g->n_parts);
  size_t n = strlen(first), tail_n = strlen(tail);
  if (n < tail_n || strcmp(first + n - tail_n, tail) != 0)
    return err_set(ERR_FORMAT,
                   "%s: is the first of %u parts, but its name does not end in '%s', so the others "
                   "cannot be found",
                   first, g->n_parts, tail);
  *out = arena_printf(&g->mem, "%.*s%s", (int)(n - tail_n), first, mine);
  return *out ? ERR_NONE : mem_err(first, n + 1);
}

static err open_others(gguf *g, const char *first) {
  for (uint32_t i = 1; i < g->n_parts; i++) {
    const char *path = NULL;
    err e = part_path(g, first, i, &path);
    if (e) return e;
    e = file_map_open(path, &g->parts[i].map);
    if (e) {
      char why[256];
      snprintf(why, sizeof why, "%s", err_text());
      return err_set(e, "%s: part %u of %u cannot be read (%s)", first, i + 1, g->n_parts, why);
    }
    e = gguf_add_part(g, path, g->parts[i].map.data, g->parts[i].map.size, g->parts[i].map.size);
    if (e) return e;
  }
  return ERR_NONE;
}

err gguf_open(const char *path, gguf **out) {
  *out = NULL;
  gguf *g = NULL;
  file_map map;
  err e = file_map_open(path, &map);
  if (e) return e;
  e = gguf_parse(path, map.data, map.size, map.size, &g);
  if (e) {
    file_map_close(&map);
    return e;
  }
  g->parts[0].map = map;
  e = open_others(g, path);
  if (e) {
    gguf_free(g);
    return e;
  }
  *out = g;
  return ERR_NONE;
}

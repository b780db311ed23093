/* An engine from a path. Apart from engine.c: a module for browsers has no paths. */
#include "infer/engine.h"

err engine_open(const char *path, const engine_opts *o, engine **out) {
  *out = NULL;
  gguf *file;
  err e = gguf_open(path, &file);
  return e ? e : engine_new(file, o, out);
}

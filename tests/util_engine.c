/* Owns the waiting. */
#include "util_engine.h"

#include <stdlib.h>
#include <time.h>

#include "base/file.h"
#include "base/math.h"
#include "test.h"
#include "util_hw.h"
#include "util_kernels.h"

static const double limit = 600; /* seconds; software adapters on busy machines are slow */

static void nap(void) {
  struct timespec t = {.tv_nsec = 20000};
  nanosleep(&t, NULL);
}

static char path[512];
static void remove_model(void) { remove(path); }

const char *te_model(const synth_desc *d) {
  if (!path[0]) { /* a name of this process's own */
    char name[64];
    snprintf(name, sizeof name, "frit-engine-%.0f.gguf", time_now() * 1e6);
    snprintf(path, sizeof path, "%s", test_tmp(name));
    atexit(remove_model);
  }
  remove(path); /* an engine may still have the old one mapped */
  err e = synth_write(d, path);
  if (!e) return path;
  FAIL("synth_write: %s", err_text());
  return NULL;
}

void te_write(const char *file, const char *tensor, uint64_t off, const void *bytes, size_t n) {
  gguf *g = NULL;
  err e = gguf_open(file, &g);
  const gguf_tensor *t = e ? NULL : gguf_tensor_find(g, tensor);
  FILE *f = t ? fopen(file, "r+b") : NULL;
  bool ok = f && !fseek(f, (long)(t->file_off + off), SEEK_SET) && fwrite(bytes, 1, n, f) == n;
  if (f) ok = !fclose(f) && ok;
  if (!ok) FAIL("%s: '%s' could not be written", file, tensor);
  gguf_free(g);
}

void te_spoil(const char *file, const char *tensor, uint64_t block) {
  gguf *g = NULL;
  err e = gguf_open(file, &g);
  const gguf_tensor *t = e ? NULL : gguf_tensor_find(g, tensor);
  uint8_t bytes[256];
  REQUIRE(t != NULL);
  const size_t n = dtype_get(t->type)->bytes;
  memcpy(bytes, t->data + block * n, n);
  kt_put_nan(t->type, bytes);
  gguf_free(g);
  te_write(file, tensor, block * n, bytes, n);
}

err te_load(const char *file, const engine_opts *o, engine **out) {
  engine *en = NULL;
  *out = NULL;
  err e = engine_open(file, o, &en);
  if (e) return e;
  double start = time_now();
  for (bool done = false; !e && !done;) {
    engine_progress p;
    e = engine_load(en, &p, &done);
    if (o->device != HW_CPU && !done) nap();
    if (!e && time_now() - start > limit) e = err_set(ERR_DEVICE, "loading took too long");
  }
  if (e) engine_close(en);
  else *out = en;
  return e;
}

engine *te_open(const char *file, engine_opts o) {
  engine *en = NULL;
  if (!file) return NULL;
  err e = te_load(file, &o, &en);
  if (e == ERR_NO_DEVICE) test_skip("device %s: %s", test_device(), err_text());
  else if (e) FAIL("loading: %s: %s", err_name(e), err_text());
  return en;
}

engine *te_open_here(const char *file, engine_opts o) {
  o.device = test_kind();
  return te_open(file, o);
}

bool te_start(session *s, const uint32_t *prompt, uint32_t n) {
  err e = session_rewind(s, 0);
  if (!e) e = session_feed(s, prompt, n);
  if (e) FAIL("%s", err_text());
  return !e;
}

err te_generate(session *s, const sample_opts *o, uint32_t max, uint32_t *ids, uint32_t *n) {
  *n = 0;
  err e = session_generate(s, o, max);
  double start = time_now();
  for (session_event ev = SESSION_BUSY; !e && ev != SESSION_DONE;) {
    uint32_t id;
    e = session_poll(s, &ev, &id);
    if (!e && ev == SESSION_TOKEN && *n < max) ids[(*n)++] = id;
    if (ev == SESSION_BUSY) nap();
    if (!e && time_now() - start > limit) e = err_set(ERR_DEVICE, "generation took too long");
  }
  return e;
}

err te_logits(session *s, float *out) {
  err e = ERR_NONE;
  double start = time_now();
  for (bool done = false; !e && !done;) {
    e = session_logits(s, out, &done);
    if (!done) nap();
    if (!e && time_now() - start > limit) e = err_set(ERR_DEVICE, "logits took too long");
  }
  return e;
}

void te_prompt(uint32_t seed, uint32_t vocab, uint32_t *ids, uint32_t n) {
  for (uint32_t i = 0; i < n; i++) ids[i] = 1 + rng_u32(seed, i) % (vocab - 1);
}

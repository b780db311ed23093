/* frit.h: a thin layer over engine, pick and chat. Owns nothing else. */
#include "frit.h"

#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "tasks/chat.h"
#include "tasks/pick.h"

_Static_assert((int)FRIT_OK == (int)ERR_NONE && (int)FRIT_NOMEM == (int)ERR_NOMEM &&
                   (int)FRIT_IO == (int)ERR_IO && (int)FRIT_FORMAT == (int)ERR_FORMAT &&
                   (int)FRIT_TRUNCATED == (int)ERR_TRUNCATED &&
                   (int)FRIT_UNSUPPORTED == (int)ERR_UNSUPPORTED &&
                   (int)FRIT_LIMIT == (int)ERR_LIMIT && (int)FRIT_ARG == (int)ERR_ARG &&
                   (int)FRIT_NO_DEVICE == (int)ERR_NO_DEVICE &&
                   (int)FRIT_DEVICE == (int)ERR_DEVICE &&
                   (int)FRIT_DEVICE_LOST == (int)ERR_DEVICE_LOST &&
                   (int)FRIT_DEVICE_NOMEM == (int)ERR_DEVICE_NOMEM &&
                   (int)FRIT_CANCELLED == (int)ERR_CANCELLED,
               "results are error codes");
_Static_assert((int)FRIT_BUSY == (int)STREAM_BUSY && (int)FRIT_TEXT == (int)STREAM_TOKEN &&
                   (int)FRIT_DONE == (int)STREAM_DONE,
               "events are those of a stream");

struct frit_engine {
  char *path, *webgpu;
  engine_opts o;
  pick *picking; /* until the device is known */
  engine *e;     /* from then on */
  bool ready;
  char device[320];
};

struct frit_session {
  chat *c;
};

static frit_result result(err e) { return (frit_result)e; }

const char *frit_error(void) { return err_text(); }
const char *frit_result_name(frit_result r) { return err_name((err)r); }

/* ---- engines ---- */

static err open_parts(frit_engine *f, const char *path, const frit_options *o) {
  file_map m;
  err e = file_map_open(path, &m); /* what is not there is said at once */
  if (e) return e;
  file_map_close(&m);
  f->path = mem_strdup(path);
  if (o->webgpu) f->webgpu = mem_strdup(o->webgpu);
  if (!f->path || (o->webgpu && !f->webgpu)) return mem_err("path", strlen(path));
  f->o = (engine_opts){.ctx = o->context,
                       .batch = o->batch,
                       .f32 = o->f32 != 0,
                       .hw = {.threads = o->threads, .library = f->webgpu}};
  return pick_begin(o->device, f->webgpu, &f->picking);
}

frit_result frit_open(const char *path, const frit_options *o, frit_engine **out) {
  static const frit_options none;
  *out = NULL;
  frit_engine *f = mem_zalloc(1, sizeof *f);
  if (!f) return result(mem_err("engine", sizeof *f));
  err e = open_parts(f, path, o ? o : &none);
  if (e) frit_close(f);
  else *out = f;
  return result(e);
}

static err find_device(frit_engine *f) {
  bool done;
  err e = pick_poll(f->picking, &f->o.device, &f->o.hw.index, &done);
  if (e || !done) return e;
  pick_end(f->picking);
  f->picking = NULL;
  return engine_open(f->path, &f->o, &f->e);
}

static void describe(frit_engine *f) {
  const hw_caps *c = hw_get_caps(engine_hw(f->e));
  if (c->kind == HW_CPU)
    snprintf(f->device, sizeof f->device, "cpu: %s, %u threads", c->name, c->threads);
  else snprintf(f->device, sizeof f->device, "gpu: %s, %s, %s", c->name, c->api, c->library);
}

frit_result frit_load(frit_engine *f, frit_progress *p, int *ready) {
  static const char *const phases[] = {"open", "compile", "upload", "warmup", "ready"};
  engine_progress ep = {.phase = ENGINE_OPEN};
  err e = ERR_NONE;
  if (f->ready) ep.phase = ENGINE_READY;
  else if (f->picking) e = find_device(f);
  else if (f->e) e = engine_load(f->e, &ep, &f->ready);
  else e = err_set(ERR_ARG, "%s: opening it failed before", f->path);
  if (!e && f->ready && !f->device[0]) describe(f);
  if (p) *p = (frit_progress){phases[ep.phase], ep.done, ep.total};
  *ready = !e && f->ready;
  return result(e);
}

void frit_close(frit_engine *f) {
  if (!f) return;
  pick_end(f->picking);
  engine_close(f->e);
  mem_free(f->path);
  mem_free(f->webgpu);
  mem_free(f);
}

const char *frit_device(const frit_engine *f) { return f->device; }
uint32_t frit_context(const frit_engine *f) { return f->ready ? engine_ctx(f->e) : 0; }

static err must_be_ready(const frit_engine *f) {
  return f->ready ? ERR_NONE : err_set(ERR_ARG, "%s: not loaded yet", f->path);
}

frit_result frit_tokenize(const frit_engine *f, const char *text, size_t n, int special,
                          uint32_t *ids, size_t room, size_t *count) {
  token_ids all = {0};
  *count = 0;
  err e = must_be_ready(f);
  if (!e) e = token_encode(engine_tokenizer(f->e), text, n, special != 0, true, &all);
  if (!e) {
    *count = all.n;
    size_t some = all.n < room ? all.n : room;
    if (some) memcpy(ids, all.p, some * sizeof *ids);
  }
  token_ids_free(&all);
  return result(e);
}

frit_result frit_piece(const frit_engine *f, uint32_t id, const char **bytes, size_t *n) {
  err e = must_be_ready(f);
  return result(e ? e : token_piece(engine_tokenizer(f->e), id, true, bytes, n));
}

/* ---- sessions ---- */

frit_result frit_session_new(frit_engine *f, frit_session **out) {
  *out = NULL;
  err e = must_be_ready(f);
  if (e) return result(e);
  frit_session *s = mem_zalloc(1, sizeof *s);
  if (!s) return result(mem_err("session", sizeof *s));
  e = chat_new(f->e, &s->c);
  if (e) mem_free(s);
  else *out = s;
  return result(e);
}

void frit_session_free(frit_session *s) {
  if (!s) return;
  chat_free(s->c);
  mem_free(s);
}

static chat_opts options(const frit_sampling *o) {
  static const frit_sampling greedy;
  if (!o) o = &greedy;
  return (chat_opts){.sample = {.temp = o->temperature,
                                .top_k = o->top_k,
                                .top_p = o->top_p,
                                .min_p = o->min_p,
                                .penalty = o->penalty,
                                .seed = o->seed},
                     .max = o->max_tokens};
}

frit_result frit_chat_add(frit_session *s, const char *role, const char *text, size_t n) {
  return result(chat_add(s->c, role, text, n));
}
void frit_chat_drop(frit_session *s) { chat_drop(s->c); }
void frit_chat_clear(frit_session *s) { chat_clear(s->c); }

frit_result frit_chat(frit_session *s, const frit_sampling *o) {
  chat_opts co = options(o);
  return result(chat_begin(s->c, &co));
}

frit_result frit_complete(frit_session *s, const char *text, size_t n, int special,
                          const frit_sampling *o) {
  chat_opts co = options(o);
  return result(chat_complete(s->c, text, n, special != 0, &co));
}

frit_result frit_step(frit_session *s, frit_event *ev, const char **text, size_t *n) {
  stream_event se;
  err e = chat_step(s->c, &se, text, n);
  *ev = (frit_event)se;
  return result(e);
}

void frit_stop(frit_session *s) { chat_stop(s->c); }
const char *frit_end(const frit_session *s) { return stream_end_name(chat_end(s->c)); }

frit_stats frit_get_stats(const frit_session *s) {
  session_stats st = session_get_stats(chat_session(s->c));
  return (frit_stats){st.prompt_tokens, st.tokens, st.prompt_seconds, st.seconds};
}

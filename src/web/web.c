/* Owns the object that JavaScript holds: header bytes, engine, conversation, and results that stay
 * valid until the next call. */
#include "web/web.h"

#include <string.h>

#include "base/math.h"
#include "base/mem.h"
#include "frit.h"
#include "web/web_impl.h"

#define IMPORT(name) __attribute__((import_module("frit"), import_name(#name))) extern
#define EXPORT(name) __attribute__((export_name("frit_" #name)))

/* Begins bringing bytes of a part to a GPU buffer (buf, at offset dst) or, with buf 0, to the
 * memory at address dst. */
IMPORT(source_fetch)
void source_fetch(uint32_t source, uint32_t part, double off, double size, uint32_t buf,
                  double dst);
/* 0 pending, 1 done, 2 failed with a sentence in text. */
IMPORT(source_fetched) uint32_t source_fetched(uint32_t source, char *text, uint32_t room);
IMPORT(log) void js_log(uint32_t level, const char *text, uint32_t n);

static void on_log(void *user, log_level level, const char *text) {
  (void)user;
  js_log(level, text, (uint32_t)strlen(text));
}

EXPORT(version) const char *web_version(void) { return frit_version(); }
EXPORT(alloc) void *web_alloc(uint32_t size) { return mem_alloc(size); }
EXPORT(free) void web_free(void *p) { mem_free(p); }
EXPORT(error) const char *web_error(void) { return err_text(); }

/* ---- the file ---- */

EXPORT(model_new) web_model *web_model_new(uint32_t source) {
  log_set(on_log, NULL);
  web_model *m = mem_zalloc(1, sizeof *m);
  if (m) m->source = source;
  return m;
}

EXPORT(model_free) void web_model_free(web_model *m) {
  if (!m) return;
  stream_free(&m->direct);
  if (m->own) session_free(m->session);
  chat_free(m->chat);
  engine_close(m->en);
  gguf_free(m->file);
  for (uint32_t i = 0; i < m->n_kept; i++) mem_free(m->kept[i]);
  mem_free(m->kept);
  token_ids_free(&m->ids);
  buf_free(&m->chat_words);
  buf_free(&m->text);
  mem_free(m);
}

/* Memory that the gguf borrows: freed after it. */
static err keep(web_model *m, uint8_t *p) {
  void *grown =
      mem_realloc(m->kept, m->n_kept * sizeof *m->kept, (m->n_kept + 1) * sizeof *m->kept);
  if (!grown) return mem_err("header", sizeof *m->kept);
  m->kept = grown;
  m->kept[m->n_kept++] = p;
  return ERR_NONE;
}

EXPORT(part) err web_part(web_model *m, const char *name, uint8_t *head, uint32_t n, double size) {
  uint64_t file_size = (uint64_t)size;
  err e = m->file ? gguf_add_part(m->file, name, head, n, file_size)
                  : gguf_parse(name, head, n, file_size, &m->file);
  return e ? e : keep(m, head);
}

EXPORT(parts) uint32_t web_parts(const web_model *m) {
  return m->file ? gguf_part_count(m->file) : 0;
}

EXPORT(need) bool web_need(const web_model *m, uint32_t i, double out[3]) {
  const gguf_tensor *t = model_needs(m->file, i);
  if (!t) return false;
  out[0] = t->part;
  out[1] = (double)t->file_off;
  out[2] = (double)t->size;
  return true;
}

EXPORT(give) err web_give(web_model *m, uint32_t i, uint8_t *data) {
  const gguf_tensor *t = model_needs(m->file, i);
  err e = t ? keep(m, data) : err_set(ERR_ARG, "no tensor %u is asked for", i);
  if (!e) gguf_tensor_provide(m->file, t, data);
  return e;
}

/* ---- the engine ---- */

static err fetch(void *user, uint32_t part, uint64_t off, uint64_t size, hw_buf dst,
                 uint64_t dst_off) {
  const web_model *m = user;
  const hw *h = engine_hw(m->en);
  uint32_t js = hw_buf_js(h, dst);
  char *host = js ? NULL : hw_buf_host(h, dst);
  if (!js && !host) return err_set(ERR_ARG, "no such buffer to load into");
  double at = js ? (double)dst_off : (double)(uintptr_t)(host + dst_off);
  source_fetch(m->source, part, (double)off, (double)size, js, at);
  return ERR_NONE;
}

static bool fetched(void *user, err *e) {
  const web_model *m = user;
  char text[400];
  uint32_t state = source_fetched(m->source, text, sizeof text);
  *e = state == 2 ? err_set(ERR_IO, "%s", text) : ERR_NONE;
  return state != 0;
}

EXPORT(open)
err web_open(web_model *m, bool gpu, uint32_t flags, uint32_t ctx, uint32_t batch,
             double limit_binding) {
  if (!m->file) return err_set(ERR_ARG, "a model without a file");
  engine_opts o = {.device = gpu ? HW_BROWSER : HW_CPU,
                   .hw = {.no_f16 = flags & WEB_NO_F16,
                          .no_subgroups = flags & WEB_NO_SUBGROUPS,
                          .limit_binding = (uint64_t)limit_binding},
                   .ctx = ctx,
                   .batch = batch,
                   .f32 = flags & WEB_F32,
                   .level_set = flags & (WEB_LEVEL_NONE | WEB_LEVEL_ROLE),
                   .level = flags & WEB_LEVEL_NONE ? PLAN_NONE : PLAN_ROLE,
                   .fetch = fetch,
                   .fetched = fetched,
                   .user = m};
  gguf *file = m->file;
  m->file = NULL;
  m->gpu = gpu;
  return engine_new(file, &o, &m->en);
}

EXPORT(estimate)
err web_estimate(web_model *m, double max_binding, double max_buffer, uint32_t storage_buffers,
                 uint32_t invocations, uint32_t workgroup_mem, uint32_t features, uint32_t sg_min,
                 uint32_t sg_max, double out[3]) {
  hw_caps caps = {.kind = m->gpu ? HW_BROWSER : HW_CPU,
                  .native_weights = !m->gpu,
                  .max_binding = (uint64_t)max_binding,
                  .max_buffer = (uint64_t)max_buffer,
                  .max_storage_buffers = storage_buffers,
                  .max_groups = 65535,
                  .max_invocations = invocations,
                  .max_workgroup_mem = workgroup_mem,
                  .offset_align = 256,
                  .f16 = features & 1,
                  .subgroups = features & 2,
                  .dot4i8 = features & 4,
                  .subgroup_min = sg_min,
                  .subgroup_max = sg_max,
                  .threads = 1};
  run_memory need;
  err e = engine_estimate(m->en, &caps, &need);
  if (e) return e;
  out[0] = (double)need.weights;
  out[1] = (double)need.kv;
  out[2] = (double)need.work;
  return ERR_NONE;
}

/* What changes when a call got somewhere. */
static uint64_t footprint(const web_model *m, const engine_progress *p) {
  const hw *h = engine_hw(m->en);
  hw_counts c = h ? hw_get_counts(h) : (hw_counts){0};
  return p->phase + p->done + p->total + c.submits + c.made_buffers + c.made_kernels +
         c.made_bindgroups + c.live_programs + (h ? 1 : 0) + (engine_run(m->en) ? 1 : 0);
}

/* A template that cannot be read leaves the rest usable: web_chat_begin then says why. */
static err begin_text(web_model *m) {
  m->chat_error = chat_new(m->en, &m->chat);
  if (!m->chat_error) {
    m->session = chat_session(m->chat);
    return ERR_NONE;
  }
  buf_clear(&m->chat_words);
  buf_puts(&m->chat_words, err_text());
  m->own = true;
  return session_new(m->en, &m->session);
}

EXPORT(load) err web_load(web_model *m, double out[5]) {
  engine_progress p = {0};
  bool done = m->session != NULL;
  err e = done ? ERR_NONE : engine_load(m->en, &p, &done);
  if (!e && done && !m->session) e = begin_text(m);
  uint64_t now = footprint(m, &p);
  out[0] = done ? ENGINE_READY : p.phase;
  out[1] = (double)p.done;
  out[2] = (double)p.total;
  out[3] = done;
  out[4] = now != m->footprint;
  m->footprint = now;
  return e;
}

/* ---- tokens ---- */

EXPORT(encode)
err web_encode(web_model *m, const char *text, uint32_t n, bool special, bool add,
               uint32_t out[2]) {
  m->ids.n = 0;
  err e = token_encode(engine_tokenizer(m->en), text, n, special, add, &m->ids);
  out[0] = (uint32_t)(uintptr_t)m->ids.p;
  out[1] = (uint32_t)m->ids.n;
  return e;
}

EXPORT(piece) err web_piece(web_model *m, uint32_t id, bool special, uint32_t out[2]) {
  const char *p = NULL;
  size_t n = 0;
  err e = token_piece(engine_tokenizer(m->en), id, special, &p, &n);
  out[0] = (uint32_t)(uintptr_t)p;
  out[1] = (uint32_t)n;
  return e;
}

EXPORT(is_eog) bool web_is_eog(const web_model *m, uint32_t id) {
  return token_is_eog(engine_tokenizer(m->en), id);
}

/* ---- text ---- */

EXPORT(sampling)
void web_sampling(web_model *m, float temp, uint32_t top_k, float top_p, float min_p, float penalty,
                  uint32_t seed, uint32_t max, double now) {
  m->o = (chat_opts){.sample = {.temp = temp,
                                .top_k = top_k,
                                .top_p = top_p,
                                .min_p = min_p,
                                .penalty = penalty,
                                .seed = seed},
                     .max = max,
                     .now = (int64_t)now};
}

static err must_chat(const web_model *m) {
  if (!m->session) return err_set(ERR_ARG, "the model is not loaded yet");
  return m->chat ? ERR_NONE : err_set(m->chat_error, "%s", m->chat_words.p ? m->chat_words.p : "");
}

EXPORT(chat_clear) void web_chat_clear(web_model *m) {
  if (m->chat) chat_clear(m->chat);
}

EXPORT(chat_add)
err web_chat_add(web_model *m, const char *role, const char *text, uint32_t n) {
  err e = must_chat(m);
  return e ? e : chat_add(m->chat, role, text, n);
}

EXPORT(chat_begin) err web_chat_begin(web_model *m) {
  err e = must_chat(m);
  m->is_direct = false;
  return e ? e : chat_begin(m->chat, &m->o);
}

/* Keeps what the timeline has in common with `ids`, but for the last of them, which must run. */
EXPORT(continue) err web_continue(web_model *m, const uint32_t *ids, uint32_t n) {
  if (!m->session) return err_set(ERR_ARG, "the model is not loaded yet");
  const uint32_t *have = session_tokens(m->session);
  uint32_t same = 0, most = min_u32(session_length(m->session), n ? n - 1 : 0);
  while (same < most && have[same] == ids[same]) same++;
  err e = session_rewind(m->session, same);
  if (!e) e = session_feed(m->session, ids + same, n - same);
  m->prompt = n;
  m->is_direct = true;
  return e ? e : stream_begin(&m->direct, m->en, m->session, &m->o.sample, m->o.max, false);
}

EXPORT(complete)
err web_complete(web_model *m, const char *text, uint32_t n, bool special) {
  uint32_t out[2];
  err e = web_encode(m, text, n, special, true, out);
  return e ? e : web_continue(m, m->ids.p, (uint32_t)m->ids.n);
}

EXPORT(step) err web_step(web_model *m, uint32_t out[5]) {
  stream_event ev = STREAM_BUSY;
  const char *text = NULL;
  size_t n = 0;
  hw_counts before = hw_get_counts(engine_hw(m->en));
  err e;
  if (m->is_direct) {
    e = stream_step(&m->direct, &ev);
    text = m->direct.text.p;
    n = m->direct.text.n;
  } else {
    e = must_chat(m);
    if (!e) e = chat_step(m->chat, &ev, &text, &n);
  }
  const uint32_t *ids = session_tokens(m->session);
  uint32_t length = session_length(m->session);
  out[0] = ev;
  out[1] = (uint32_t)(uintptr_t)text;
  out[2] = e ? 0 : (uint32_t)n;
  out[3] = length ? ids[length - 1] : 0;
  out[4] = ev != STREAM_BUSY || hw_get_counts(engine_hw(m->en)).submits != before.submits;
  return e;
}

EXPORT(stop) void web_stop(web_model *m) {
  if (m->is_direct) stream_stop(&m->direct);
  else if (m->chat) chat_stop(m->chat);
}

EXPORT(usage) void web_usage(const web_model *m, double out[8]) {
  session_stats s = session_get_stats(m->session);
  out[0] = m->is_direct ? m->prompt : m->chat ? chat_prompt_tokens(m->chat) : 0;
  out[1] = s.prompt_tokens;
  out[2] = s.tokens;
  out[3] = s.prompt_seconds;
  out[4] = s.seconds;
  out[5] = (double)s.submits;
  out[6] = (double)s.dispatches;
  out[7] = m->is_direct ? m->direct.end : m->chat ? chat_end(m->chat) : STREAM_RUNNING;
}

EXPORT(tokens) void web_tokens(const web_model *m, uint32_t out[2]) {
  out[0] = m->session ? (uint32_t)(uintptr_t)session_tokens(m->session) : 0;
  out[1] = m->session ? session_length(m->session) : 0;
}

EXPORT(counts) void web_counts(const web_model *m, double out[4]) {
  const hw *h = m->en ? engine_hw(m->en) : NULL;
  hw_counts c = h ? hw_get_counts(h) : (hw_counts){0};
  out[0] = (double)c.live_bytes;
  out[1] = (double)c.peak_bytes;
  out[2] = (double)c.live_buffers;
  out[3] = (double)c.made_bindgroups;
}

/* tasks/chat, stream, pick and frit.h on a tiny synthetic model, on the cpu device. */
#include "tasks/chat.h"

#include "base/file.h"
#include "frit.h"
#include "import/gguf/synth.h"
#include "tasks/pick.h"
#include "test.h"

enum { CTX = 256 };

static const char *tiny(void) {
  static char path[512];
  if (path[0]) return path;
  snprintf(path, sizeof path, "%s", test_tmp("chat.gguf"));
  synth_desc d = {.preset = "tiny", .quant = "f32", .seed = 3, .context = CTX};
  CHECK_OK(synth_write(&d, path));
  return path;
}

static engine *open_model(const char *path) {
  engine *e = NULL;
  engine_opts o = {.device = HW_CPU, .hw = {.threads = 1}, .batch = 16, .f32 = true};
  bool done = false;
  engine_progress p;
  err x = engine_open(path, &o, &e);
  while (!x && !done) x = engine_load(e, &p, &done);
  if (!x) return e;
  FAIL("%s: %s", path, err_text());
  engine_close(e);
  return NULL;
}

/* Steps to the end; the text. */
static err finish(chat *c, buf *text) {
  stream_event ev = STREAM_BUSY;
  const char *p;
  size_t n;
  err e = ERR_NONE;
  buf_clear(text);
  while (!e && ev != STREAM_DONE) {
    e = chat_step(c, &ev, &p, &n);
    if (!e) buf_put(text, p, n);
  }
  return e;
}

static err say(chat *c, const char *text, const chat_opts *o, buf *answer) {
  err e = chat_add(c, "user", text, strlen(text));
  if (!e) e = chat_begin(c, o);
  return e ? e : finish(c, answer);
}

/* ---- chat ---- */

static void turns_share_their_beginning(void) {
  engine *e = open_model(tiny());
  chat *c = NULL, *d = NULL;
  buf first = {0}, second = {0}, again = {0};
  REQUIRE(e);
  chat_opts o = {.max = 12};
  CHECK_OK(chat_new(e, &c));
  CHECK(chat_own_template(c));
  CHECK_OK(say(c, "hello", &o, &first));
  CHECK_EQ(chat_count(c), 2);
  uint32_t prompt = chat_prompt_tokens(c);
  CHECK_EQ(session_get_stats(chat_session(c)).prompt_tokens, prompt);
  CHECK_OK(say(c, "and you", &o, &second));
  CHECK_EQ(chat_count(c), 4);
  CHECK(chat_prompt_tokens(c) > prompt);
  /* The first turn's prompt is not run again. */
  CHECK(session_get_stats(chat_session(c)).prompt_tokens <= chat_prompt_tokens(c) - prompt);
  chat_free(c);

  /* A fresh chat with the same messages says the same. */
  CHECK_OK(chat_new(e, &d));
  CHECK_OK(chat_add(d, "user", "hello", 5));
  CHECK_OK(chat_add(d, "assistant", first.p ? first.p : "", first.n));
  CHECK_OK(say(d, "and you", &o, &again));
  CHECK_EQ(again.n, second.n);
  CHECK(again.n == second.n && (!again.n || memcmp(again.p, second.p, again.n) == 0));
  chat_free(d);
  engine_close(e);
  buf_free(&first);
  buf_free(&second);
  buf_free(&again);
}

static void ends_are_told_apart(void) {
  engine *e = open_model(tiny());
  chat *c = NULL;
  buf text = {0};
  REQUIRE(e);
  CHECK_OK(chat_new(e, &c));
  CHECK_OK(say(c, "hello", &(chat_opts){.max = 1}, &text));
  CHECK(chat_end(c) == STREAM_LENGTH || chat_end(c) == STREAM_STOP);
  chat_clear(c);

  CHECK_OK(chat_add(c, "user", "hello", 5));
  CHECK_OK(chat_begin(c, &(chat_opts){.max = 0}));
  stream_event ev = STREAM_BUSY;
  const char *p;
  size_t n;
  uint32_t tokens = 0;
  while (ev != STREAM_DONE) {
    if (chat_step(c, &ev, &p, &n)) break;
    tokens += ev == STREAM_TOKEN;
    if (tokens == 2) chat_stop(c);
  }
  CHECK_EQ(ev, STREAM_DONE);
  CHECK_EQ(chat_end(c), tokens < 2 ? STREAM_STOP : STREAM_CANCELLED);
  CHECK_EQ(tokens > 2, 0);
  CHECK_EQ(chat_count(c), 2);
  /* Stopped or not, the conversation goes on. */
  CHECK_OK(say(c, "more", &(chat_opts){.max = 2}, &text));
  chat_free(c);
  engine_close(e);
  buf_free(&text);
}

static void too_long_names_both_numbers(void) {
  engine *e = open_model(tiny());
  chat *c = NULL;
  buf text = {0}, longer = {0};
  REQUIRE(e);
  for (int i = 0; i < 400; i++) buf_puts(&longer, "w ");
  CHECK_OK(chat_new(e, &c));
  CHECK_OK(chat_add(c, "user", longer.p, longer.n));
  CHECK_ERR(chat_begin(c, &(chat_opts){0}), ERR_LIMIT, "the context holds 256");
  CHECK_EQ(chat_count(c), 1);
  chat_drop(c);
  CHECK_OK(say(c, "short", &(chat_opts){.max = 2}, &text));
  CHECK_ERR(chat_complete(c, longer.p, longer.n, false, &(chat_opts){0}), ERR_LIMIT, "256");
  CHECK_ERR(chat_complete(c, "", 0, false, &(chat_opts){0}), ERR_ARG, "nothing to continue");
  chat_free(c);
  engine_close(e);
  buf_free(&text);
  buf_free(&longer);
}

static void continuations_leave_messages_alone(void) {
  engine *e = open_model(tiny());
  chat *c = NULL;
  buf a = {0}, b = {0};
  REQUIRE(e);
  CHECK_OK(chat_new(e, &c));
  CHECK_OK(chat_complete(c, "hello", 5, true, &(chat_opts){.max = 6}));
  CHECK_OK(finish(c, &a));
  CHECK_EQ(chat_count(c), 0);
  CHECK_OK(chat_complete(c, "hello", 5, true, &(chat_opts){.max = 6}));
  CHECK_EQ(session_get_stats(chat_session(c)).prompt_tokens, 1); /* the rest is there already */
  CHECK_OK(finish(c, &b));
  CHECK(a.n == b.n && (!a.n || memcmp(a.p, b.p, a.n) == 0));
  chat_free(c);
  engine_close(e);
  buf_free(&a);
  buf_free(&b);
}

/* A copy of the model in which the key `from` is called `to`, of the same length. */
static const char *renamed(const char *from, const char *to, const char *name) {
  static char path[512];
  char *bytes = NULL;
  size_t n = 0, len = strlen(from);
  snprintf(path, sizeof path, "%s", test_tmp(name));
  CHECK_OK(file_read(tiny(), 1 << 24, &bytes, &n));
  size_t found = 0;
  for (size_t i = 0; bytes && i + len <= n; i++) {
    if (memcmp(bytes + i, from, len) != 0) continue;
    memcpy(bytes + i, to, len);
    found++;
  }
  CHECK(found > 0);
  if (bytes) CHECK_OK(file_write(path, bytes, n));
  mem_free(bytes);
  return path;
}

static void chatml_stands_in(void) {
  const char *path = renamed("tokenizer.chat_template", "tokenizer.chat_templatx", "bare.gguf");
  engine *own = open_model(tiny()), *bare = open_model(path);
  chat *a = NULL, *b = NULL;
  buf x = {0}, y = {0};
  REQUIRE(own && bare);
  CHECK_OK(chat_new(own, &a));
  CHECK_OK(chat_new(bare, &b));
  CHECK(!chat_own_template(b));
  CHECK_OK(chat_add(b, "system", "be kind", 7));
  CHECK_OK(chat_add(a, "system", "be kind", 7));
  CHECK_OK(say(a, "hello", &(chat_opts){.max = 4}, &x));
  CHECK_OK(say(b, "hello", &(chat_opts){.max = 4}, &y));
  CHECK_EQ(chat_prompt_tokens(a), chat_prompt_tokens(b)); /* the synthetic models' own is ChatML */
  CHECK(x.n == y.n && (!x.n || memcmp(x.p, y.p, x.n) == 0));
  chat_free(a);
  chat_free(b);
  engine_close(own);
  engine_close(bare);
  buf_free(&x);
  buf_free(&y);
}

static void bad_template_is_an_error(void) {
  engine *e = open_model(renamed("{% for message in", "{% fro message in", "broken.gguf"));
  chat *c = NULL;
  REQUIRE(e);
  CHECK_ERR(chat_new(e, &c), ERR_UNSUPPORTED, "template");
  CHECK(!c);
  engine_close(e);
}

/* Whichever allocation fails, the turn fails cleanly or succeeds, and nothing is left behind. */
static void nth_allocation_fails(void) {
  engine *e = open_model(tiny());
  REQUIRE(e);
  chat *warm = NULL; /* the device keeps the buffer of its first read-back */
  buf said = {0};
  CHECK_OK(chat_new(e, &warm));
  CHECK_OK(say(warm, "hi", &(chat_opts){.max = 2}, &said));
  chat_free(warm);
  buf_free(&said);
  uint64_t live = mem_live();
  bool whole = false;
  for (uint64_t i = 1; i < 3000 && !whole; i++) {
    chat *c = NULL;
    buf text = {0};
    mem_fail_at(i, false);
    err x = chat_new(e, &c);
    if (!x) x = say(c, "hi", &(chat_opts){.max = 2}, &text);
    whole = !x && !text.failed;
    mem_fail_at(0, false);
    if (x && x != ERR_NOMEM) FAIL("allocation %d: %s: %s", (int)i, err_name(x), err_text());
    chat_free(c);
    buf_free(&text);
    if (mem_live() != live) {
      FAIL("allocation %d: %d not freed", (int)i, (int)(mem_live() - live));
      break;
    }
  }
  CHECK(whole);
  engine_close(e);
}

/* ---- pick ---- */

static void devices_by_name(void) {
  CHECK(pick_valid(NULL) && pick_valid("auto") && pick_valid("cpu") && pick_valid("gpu"));
  CHECK(pick_valid("gpu:0") && pick_valid("gpu:12"));
  CHECK(!pick_valid("") && !pick_valid("gpu:") && !pick_valid("gpu:x") && !pick_valid("gpu:1x"));
  CHECK(!pick_valid("GPU") && !pick_valid("gpu:1234") && !pick_valid("gpu:-1"));
  pick *p = NULL;
  hw_kind kind;
  uint32_t index;
  bool done = false;
  CHECK_OK(pick_begin("cpu", NULL, &p));
  CHECK_OK(pick_poll(p, &kind, &index, &done));
  CHECK(done && kind == HW_CPU);
  CHECK_STR(pick_note(p), "");
  pick_end(p);
  CHECK_OK(pick_begin("auto", "./no-such-library", &p));
  CHECK_OK(pick_poll(p, &kind, &index, &done));
  CHECK(done && kind == HW_CPU);
  CHECK(strstr(pick_note(p), "no GPU") != NULL);
  pick_end(p);
#ifdef __wasm__
  CHECK_ERR(pick_begin("gpu", "./no-such-library", &p), ERR_NO_DEVICE, "no such back end");
#else
  CHECK_ERR(pick_begin("gpu", "./no-such-library", &p), ERR_NO_DEVICE, "no-such-library");
#endif
  CHECK_ERR(pick_begin("tpu", NULL, &p), ERR_ARG, "'tpu'");
}

/* ---- frit.h ---- */

static frit_engine *public_engine(void) {
  frit_engine *e = NULL;
  int ready = 0;
  frit_progress p = {0};
  frit_result r = frit_open(tiny(), &(frit_options){.device = "cpu", .threads = 1}, &e);
  while (!r && !ready) r = frit_load(e, &p, &ready);
  if (!r) {
    CHECK_STR(p.phase, "ready");
    return e;
  }
  FAIL("%s: %s", frit_result_name(r), frit_error());
  frit_close(e);
  return NULL;
}

static void public_calls(void) {
  frit_engine *e = public_engine();
  frit_session *s = NULL;
  frit_event ev = FRIT_BUSY;
  const char *text;
  size_t n;
  uint32_t ids[4], tokens = 0;
  REQUIRE(e);
  CHECK_EQ(frit_context(e), CTX);
  CHECK(strncmp(frit_device(e), "cpu: ", 5) == 0);
  CHECK_EQ(frit_tokenize(e, "hello <|im_end|> you", 20, 1, ids, 4, &n), FRIT_OK);
  CHECK(n > 4);
  CHECK_EQ(frit_piece(e, ids[0], &text, &n), FRIT_OK);
  CHECK(n > 0 && text[0] == 'h');
  CHECK_EQ(frit_piece(e, 1u << 30, &text, &n), FRIT_ARG);
  CHECK_EQ(frit_session_new(e, &s), FRIT_OK);
  CHECK_STR(frit_end(s), "running");
  CHECK_EQ(frit_chat_add(s, "user", "hello", 5), FRIT_OK);
  CHECK_EQ(frit_chat(s, &(frit_sampling){.max_tokens = 5, .temperature = 1, .seed = 9}), FRIT_OK);
  while (ev != FRIT_DONE) {
    REQUIRE(frit_step(s, &ev, &text, &n) == FRIT_OK);
    CHECK_EQ(strlen(text), n);
    tokens += ev == FRIT_TEXT;
  }
  CHECK(tokens <= 5 && frit_get_stats(s).tokens >= tokens);
  CHECK(strcmp(frit_end(s), "length") == 0 || strcmp(frit_end(s), "stop") == 0);
  CHECK_EQ(frit_complete(s, "hello", 5, 0, NULL), FRIT_OK);
  frit_stop(s);
  do REQUIRE(frit_step(s, &ev, &text, &n) == FRIT_OK);
  while (ev != FRIT_DONE);
  CHECK_STR(frit_end(s), "cancelled");
  frit_session_free(s);
  frit_close(e);
}

static void public_errors(void) {
  frit_engine *e = NULL;
  frit_session *s = NULL;
  int ready;
  CHECK_EQ(frit_open("/no/such/file.gguf", NULL, &e), FRIT_IO);
  CHECK(!e && strstr(frit_error(), "/no/such/file.gguf"));
  CHECK_EQ(frit_open(tiny(), &(frit_options){.device = "tpu"}, &e), FRIT_ARG);
  CHECK_EQ(frit_open(tiny(), &(frit_options){.device = "cpu", .context = 100000}, &e), FRIT_OK);
  CHECK_EQ(frit_session_new(e, &s), FRIT_ARG);
  CHECK_EQ(frit_context(e), 0);
  frit_result r;
  do r = frit_load(e, NULL, &ready);
  while (!r && !ready);
  CHECK_EQ(r, FRIT_ARG);
  CHECK_EQ(frit_load(e, NULL, &ready), FRIT_ARG);
  frit_close(e);
  frit_close(NULL);
  frit_session_free(NULL);
}

void suite_chat(void) {
  RUN(turns_share_their_beginning);
  RUN(ends_are_told_apart);
  RUN(too_long_names_both_numbers);
  RUN(continuations_leave_messages_alone);
  RUN(chatml_stands_in);
  RUN(bad_template_is_an_error);
  RUN(nth_allocation_fails);
  RUN(devices_by_name);
  RUN(public_calls);
  RUN(public_errors);
}

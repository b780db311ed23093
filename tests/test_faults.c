/* Fault injection: whichever allocation or device call fails while a model is opened, loaded, run
 * and closed, the result is a typed error, nothing leaks, nothing crashes. And a device lost in the
 * middle of an answer: the answer goes on with a new engine from the tokens that were kept. */
#include <stdlib.h>

#include "base/mem.h"
#include "test.h"
#include "util_engine.h"
#include "util_hw.h"

enum { PROMPT = 9, TOKENS = 3 };

/* The smallest model that has every kind of step, and the shortest life of an engine. */
static const char *small_model(void) {
  synth_shape shape = {.layers = 1,
                       .embd = 32,
                       .heads = 2,
                       .heads_kv = 1,
                       .head_dim = 16,
                       .ffn = 32,
                       .vocab = SYNTH_MIN_VOCAB,
                       .context = 32,
                       .rope_base = 1e4f,
                       .pre = "smollm"};
  return te_model(&(synth_desc){.shape = &shape, .mix = "attn_v=q8_0", .bias = false});
}

static engine_opts options(plan_level level) {
  return (engine_opts){.device = test_kind(),
                       .hw.threads = 1,
                       .ctx = 32,
                       .batch = 4,
                       .depth = 2,
                       .level_set = true,
                       .level = level,
                       .nll = test_kind() == HW_CPU};
}

static err load(engine *en) {
  err e = ERR_NONE;
  for (bool done = false; !e && !done;) {
    engine_progress p;
    e = engine_load(en, &p, &done);
  }
  return e;
}

/* A prompt in chunks, greedy tokens, sampled tokens, logits, perplexity. */
static err use(engine *en) {
  session *s = NULL;
  uint32_t ids[PROMPT], got[TOKENS], n;
  static float logits[SYNTH_MIN_VOCAB];
  double sum;
  te_prompt(1, SYNTH_MIN_VOCAB, ids, PROMPT);
  sample_opts greedy = {0}, draw = {.temp = 1, .penalty = 1.1f};
  err e = session_new(en, &s);
  if (!e) e = session_feed(s, ids, PROMPT);
  if (!e) e = te_generate(s, &greedy, TOKENS, got, &n);
  if (!e) e = te_generate(s, &draw, TOKENS, got, &n);
  if (!e) e = te_logits(s, logits);
  bool done = !run_get_opts(engine_run(en))->nll;
  while (!e && !done) e = session_nll(s, ids, PROMPT, &sum, &done);
  session_free(s);
  return e;
}

static bool typed(err e) { return e > ERR_NONE && e < ERR_COUNT_ && err_text()[0]; }

static err life(const char *path, const engine_opts *o) {
  engine *en = NULL;
  err e = engine_open(path, o, &en);
  if (!e) e = load(en);
  if (!e) e = use(en);
  engine_close(en);
  return e;
}

/* How far apart the failing calls are: every one on the cpu, a few where a life takes seconds. */
static uint64_t stride(uint64_t gpu) { return test_kind() == HW_CPU ? test_quick() ? 7 : 1 : gpu; }

static void nth_allocation(bool sticky) {
  const char *path = small_model();
  REQUIRE(path);
  engine_opts o = options(sticky ? PLAN_NONE : PLAN_ROLE);
  uint64_t before = mem_live(), n = 1;
  err e = life(path, &o);
  if (e == ERR_NO_DEVICE) SKIP("device %s: %s", test_device(), err_text());
  CHECK_OK(e);
  CHECK_EQ(mem_live(), before);
  for (e = ERR_NOMEM; e && n < 100000; n += e ? stride(97) : 0) {
    mem_fail_at(n, sticky);
    e = life(path, &o);
    mem_fail_at(0, false);
    if (e && e != ERR_NOMEM && e != ERR_DEVICE_NOMEM)
      FAIL("allocation %d: %s: %s", (int)n, err_name(e), err_text());
    if (e && !typed(e)) FAIL("allocation %d: no sentence", (int)n);
    if (mem_live() != before) {
      FAIL("allocation %d: %d left", (int)n, (int)(mem_live() - before));
      before = mem_live();
    }
  }
  CHECK(n > 100 && n < 100000);
}

static void one_allocation_fails(void) { nth_allocation(false); }
static void all_allocations_fail_from_one_on(void) { nth_allocation(true); }

/* The n-th call of the device fails. Out of memory leaves the device working: the same engine goes
 * on, if it was loaded; else all further calls say what the first said. */
static void nth_call(err code) {
  const char *path = small_model();
  REQUIRE(path);
  engine_opts o = options(PLAN_ROLE);
  uint64_t before = mem_live(), n = 1;
  bool failed = true;
  for (; failed && n < 100000; n += failed ? stride(41) : 0) {
    engine *en = NULL;
    err e = engine_open(path, &o, &en);
    engine_progress p;
    bool done = false;
    while (!e && (!engine_hw(en) || hw_poll(engine_hw(en)) == HW_OPENING))
      e = engine_load(en, &p, &done);
    if (e == ERR_NO_DEVICE) {
      engine_close(en);
      SKIP("device %s: %s", test_device(), err_text());
    }
    CHECK_OK(e);
    if (e) {
      engine_close(en);
      return;
    }
    hw_fail_at(engine_hw(en), n, code);
    e = load(en);
    bool loaded = !e;
    if (loaded) e = use(en);
    failed = e != ERR_NONE;
    if (failed && e != code) FAIL("call %d: %s: %s", (int)n, err_name(e), err_text());
    if (failed && !strstr(err_text(), "forced by a test"))
      FAIL("call %d: '%s'", (int)n, err_text());
    hw_fail_at(engine_hw(en), 0, ERR_NONE);
    err again = failed ? loaded ? use(en) : engine_load(en, &p, &done) : ERR_NONE;
    if (loaded && code == ERR_DEVICE_NOMEM) CHECK_OK(again);
    else if (failed && code != ERR_DEVICE_NOMEM) CHECK_EQ(again, code);
    engine_close(en);
    if (mem_live() != before) {
      FAIL("call %d: %d allocations left", (int)n, (int)(mem_live() - before));
      before = mem_live();
    }
  }
  CHECK(n > 40 && n < 100000);
}

static void device_call_fails(void) { nth_call(ERR_DEVICE); }
static void device_call_loses_it(void) { nth_call(ERR_DEVICE_LOST); }
static void device_call_out_of_memory(void) { nth_call(ERR_DEVICE_NOMEM); }

/* The device goes in mid-answer; what was delivered is enough to go on elsewhere. */
static void lost_in_mid_answer(void) {
  enum { N = 24 };
  const char *path = te_model(&(synth_desc){.preset = "tiny"});
  engine_opts o = {.f32 = true, .ctx = 64};
  engine *en = te_open_here(path, o);
  if (!en) return;
  session *s = NULL;
  sample_opts greedy = {0};
  uint32_t ids[PROMPT], want[N], kept[64], n = 0, m = 0, id;
  te_prompt(6, 320, ids, PROMPT);
  CHECK_OK(session_new(en, &s));
  CHECK_OK(session_feed(s, ids, PROMPT));
  CHECK_OK(te_generate(s, &greedy, N, want, &n));
  CHECK_OK(session_rewind(s, 0));
  CHECK_OK(session_feed(s, ids, PROMPT));
  CHECK_OK(session_generate(s, &greedy, N));
  err e = ERR_NONE;
  for (session_event ev = SESSION_BUSY; !e && ev != SESSION_DONE;) {
    e = session_poll(s, &ev, &id);
    if (!e && ev == SESSION_TOKEN && ++m == 10) hw_lose(engine_hw(en));
  }
  CHECK_EQ(e, ERR_DEVICE_LOST);
  CHECK(strstr(err_text(), "lost"));
  CHECK(m >= 10 && m < N);
  CHECK_ERR(session_generate(s, &greedy, 1), ERR_DEVICE_LOST, "lost");
  uint32_t length = session_length(s);
  REQUIRE(length == PROMPT + m);
  memcpy(kept, session_tokens(s), length * sizeof *kept);
  CHECK(memcmp(kept + PROMPT, want, m * sizeof *kept) == 0);
  session_free(s);
  engine_close(en);
  en = te_open_here(path, o);
  if (!en) return;
  CHECK_OK(session_new(en, &s));
  CHECK_OK(session_feed(s, kept, length));
  CHECK_OK(te_generate(s, &greedy, N - m, kept, &n));
  CHECK(n == N - m && memcmp(kept, want + m, n * sizeof *kept) == 0);
  session_free(s);
  engine_close(en);
}

void suite_faults(void) {
  test_quiet(true);
  RUN(one_allocation_fails);
  RUN(all_allocations_fail_from_one_on);
  RUN(device_call_fails);
  RUN(device_call_loses_it);
  RUN(device_call_out_of_memory);
  RUN(lost_in_mid_answer);
  test_quiet(false);
}

/* Engines and sessions on synthetic models: the same words come out whatever the level, the device,
 * the batch, the tokens in flight, the binding limit and the history; limits are errors that say
 * so; a token costs one submit and nothing else. */
#include <stdlib.h>

#include "base/math.h"
#include "base/mem.h"
#include "test.h"
#include "util_engine.h"
#include "util_hw.h"

enum { PROMPT = 21, GEN = 12, MAX_VOCAB = 512 };
static const sample_opts greedy;

/* Sums in another order: f32 rounding of a few hundred terms through two layers. */
static const double same_sums = 2e-4;

static double rms(const float *x, uint32_t n) {
  double sum = 0;
  for (uint32_t i = 0; i < n; i++) sum += (double)x[i] * (double)x[i];
  return sqrt(sum / n);
}

/* Software GPUs take seconds to compile a model's kernels: there, fewer engines are loaded. */
static bool thorough(void) { return test_kind() == HW_CPU && !test_quick(); }

/* One engine for the cases about sessions: model "tiny". NULL, and the case skipped, without a
 * device. */
enum { CTX = 96, BATCH = 32, VOCAB = 320 };
static engine *shared;
static engine *usual(void) {
  /* One thread: on a busy machine two wait for each other at every one of many tiny steps. The
   * cases that compare engines have them all. */
  static const engine_opts o = {
      .f32 = true, .ctx = CTX, .batch = BATCH, .nll = true, .hw.threads = 1};
  if (!shared) shared = te_open_here(te_model(&(synth_desc){.preset = "tiny"}), o);
  return shared;
}

/* `s` gives what `ref` gives: logits within tol of their size after the prompt, then the same
 * greedy tokens; where they part, the reference's logits must be that close. */
static void same_output(const char *what, session *ref, session *s, uint32_t vocab, uint32_t n,
                        double tol) {
  static float a[MAX_VOCAB], b[MAX_VOCAB];
  uint32_t prompt[64], x[GEN] = {0}, y[GEN] = {0}, nx, ny;
  REQUIRE(vocab <= MAX_VOCAB && n <= 64);
  te_prompt(7, vocab, prompt, n);
  if (!te_start(ref, prompt, n) || !te_start(s, prompt, n)) return;
  CHECK_OK(te_logits(ref, a));
  CHECK_OK(te_logits(s, b));
  double size = rms(a, vocab);
  CHECK(size > 0.01 && size < 100);
  for (uint32_t i = 0; i < vocab; i++) {
    if (fabs((double)a[i] - (double)b[i]) <= tol * size) continue;
    FAIL("%s: logit %u is %g, not %g within %g", what, i, (double)b[i], (double)a[i], tol * size);
    return;
  }
  CHECK_OK(te_generate(ref, &greedy, GEN, x, &nx));
  CHECK_OK(te_generate(s, &greedy, GEN, y, &ny));
  CHECK(nx == GEN && ny == GEN);
  for (uint32_t i = 0; i < GEN; i++) {
    if (x[i] == y[i]) continue;
    CHECK_OK(session_rewind(ref, n + i));
    CHECK_OK(te_logits(ref, a));
    if (!(fabs((double)a[x[i]] - (double)a[y[i]]) <= 2 * tol * size))
      FAIL("%s: token %u is %u (logit %g), not %u (%g)", what, i, y[i], (double)a[y[i]], x[i],
           (double)a[x[i]]);
    return;
  }
}

/* Loads the two and compares; the first is the reference. */
static void compare(const char *what, const char *path, const engine_opts *a, const engine_opts *b,
                    uint32_t n, double tol) {
  engine *ea = te_open(path, *a), *eb = ea ? te_open(path, *b) : NULL;
  session *sa = NULL, *sb = NULL;
  if (eb) {
    CHECK_OK(session_new(ea, &sa));
    CHECK_OK(session_new(eb, &sb));
    if (sa && sb) same_output(what, sa, sb, run_vocab(engine_run(ea)), n, tol);
  }
  session_free(sa);
  session_free(sb);
  engine_close(ea);
  engine_close(eb);
}

static const engine_opts reference = {
    .device = HW_CPU, .f32 = true, .ctx = 64, .level_set = true, .level = PLAN_NONE};

/* Every level on this device against level none on the cpu. */
static void levels_agree(const char *what, const synth_desc *d) {
  const char *path = te_model(d);
  for (int level = PLAN_NONE; path && level <= PLAN_ROLE; level++) {
    engine_opts o = reference;
    o.device = test_kind();
    o.level = (plan_level)level;
    if (o.device == HW_CPU && level == PLAN_NONE) continue;
    char name[96];
    snprintf(name, sizeof name, "%s at level %s", what, level ? "role" : "none");
    compare(name, path, &reference, &o, PROMPT, same_sums);
  }
}

static void block_types(void) {
  static const char *const types[] = {"q4_0", "f32", "f16", "bf16", "q4_1", "q5_0", "q5_1", "q8_0"};
  uint32_t n = thorough() ? sizeof types / sizeof types[0] : 1;
  for (uint32_t i = 0; i < n; i++)
    levels_agree(types[i], &(synth_desc){.preset = "tiny", .quant = types[i], .seed = 1 + i});
}

static void k_types(void) {
  static const char *const types[] = {"q4_k", "q2_k", "q3_k", "q5_k", "q6_k"};
  uint32_t n = thorough() ? sizeof types / sizeof types[0] : 1;
  for (uint32_t i = 0; i < n; i++)
    levels_agree(types[i], &(synth_desc){.preset = "tiny-k", .quant = types[i], .seed = 1 + i});
}

/* A type a matrix: all of them in two models, no stack of siblings left. */
static void every_type_at_once(void) {
  levels_agree("types, first half",
               &(synth_desc){.preset = "tiny-k",
                             .untied = true,
                             .quant = "q4_0",
                             .mix =
                                 "attn_k=q5_k,attn_v=q6_k,attn_output=q2_k,ffn_gate=q3_k,"
                                 "ffn_up=q4_k,ffn_down=q5_0,token_embd=q8_0,output.weight=q4_1"});
  levels_agree("types, second half",
               &(synth_desc){.preset = "tiny-k",
                             .untied = true,
                             .quant = "q5_1",
                             .mix = "attn_k=f16,attn_v=bf16,attn_output=f32,ffn_gate=q8_0,"
                                    "ffn_up=q4_1,ffn_down=f16,token_embd=q6_k,output.weight=bf16"});
}

/* Stacks of siblings fall apart: another type among q, k, v or gate, up; biases between them. */
static void mixed(void) {
  levels_agree("biases", &(synth_desc){.preset = "tiny", .quant = "q4_1", .bias = true});
  if (!thorough()) return;
  levels_agree(
      "v of another type",
      &(synth_desc){.preset = "tiny-k", .quant = "q4_k", .mix = "attn_v=q6_k", .untied = true});
  levels_agree("q and up of another type",
               &(synth_desc){.preset = "tiny",
                             .mix = "attn_q=q8_0,ffn_up=f16,output.weight=q5_1",
                             .untied = true});
  levels_agree("yarn", &(synth_desc){.preset = "tiny", .quant = "q8_0", .rope_scaling = "yarn"});
}

/* What a GPU runs, on a software adapter too, whose own shapes are smaller. */
static void as_gpu(void) {
  const char *path = te_model(&(synth_desc){.preset = "tiny"});
  engine_opts o = reference;
  o.device = test_kind();
  o.hw.as_gpu = true;
  o.level = PLAN_ROLE;
  if (path && o.device != HW_CPU) compare("as on a GPU", path, &reference, &o, PROMPT, same_sums);
}

/* An f16 cache and rounded activations: near, not equal. 8-bit activations err by 1/254 of the
 * largest of a block. */
static void default_precision(void) {
  const char *path = te_model(&(synth_desc){.preset = "tiny"});
  engine_opts o = {.device = test_kind(), .ctx = 64};
  compare("default precision", path, &reference, &o, PROMPT, 0.05);
}

static void independent_of_batch(void) {
  static const uint32_t batches[] = {512, 7, 2, 64};
  const char *path = te_model(&(synth_desc){.preset = "tiny"});
  engine_opts p = reference;
  p.device = test_kind();
  p.level = PLAN_ROLE;
  for (uint32_t i = thorough() ? 0 : 1; i < 4; i += thorough() ? 1 : 3) {
    char name[32];
    snprintf(name, sizeof name, "batch %u", p.batch = batches[i]);
    compare(name, path, &reference, &p, 33, same_sums);
  }
  for (p.batch = 0, p.depth = 1; p.depth <= (thorough() ? 5 : 1); p.depth += 4) {
    char name[32];
    snprintf(name, sizeof name, "depth %u", p.depth);
    compare(name, path, &reference, &p, PROMPT, same_sums);
  }
}

/* Splits of decode attention, more of them than there are rows too. */
static void independent_of_splits(void) {
  const char *path = te_model(&(synth_desc){.preset = "tiny"});
  engine_opts o = reference;
  o.device = test_kind();
  o.level = PLAN_ROLE;
  for (o.splits = thorough() ? 1 : 16; o.splits <= 64; o.splits *= 8) {
    char name[32];
    snprintf(name, sizeof name, "%u splits", o.splits);
    compare(name, path, &reference, &o, PROMPT, same_sums);
  }
}

/* 41 kB: the tables and the stacks of f32 weights are split by rows. */
static void small_bindings(void) {
  const char *path = te_model(&(synth_desc){.preset = "tiny", .quant = "f32", .untied = true});
  for (int level = thorough() ? PLAN_NONE : PLAN_ROLE; level <= PLAN_ROLE; level++) {
    engine_opts o = reference;
    o.device = test_kind();
    o.level = (plan_level)level;
    o.batch = 16;
    o.hw.limit_binding = 41000;
    compare("small bindings", path, &reference, &o, PROMPT, same_sums);
  }
  engine *en = NULL;
  engine_opts o = reference;
  o.device = test_kind();
  o.hw.limit_binding = 41000;
  o.ctx = 256;
  CHECK_ERR(te_load(path, &o, &en), ERR_LIMIT, "activations at a batch of 256 need");
  o.hw.limit_binding = 20000;
  CHECK_ERR(te_load(path, &o, &en), ERR_LIMIT, "64 rows of tensor 'blk.0.ffn_down.weight'");
  path = te_model(&(synth_desc){.preset = "tiny", .context = 4096});
  o.hw.limit_binding = 200000;
  o.batch = 2;
  o.ctx = 4096;
  CHECK_ERR(te_load(path, &o, &en), ERR_LIMIT, "at a context of 4096 needs");
}

/* What is fed after a rewind runs as if the rest had never been. */
static void prefix_reuse(void) {
  engine *en = usual();
  if (!en) return;
  session *s = NULL;
  uint32_t ids[60], a[GEN], b[GEN], n;
  CHECK_OK(session_new(en, &s));
  te_prompt(3, 320, ids, 60);
  CHECK(te_start(s, ids, 60));
  CHECK_OK(te_generate(s, &greedy, GEN, a, &n));
  CHECK_EQ(session_get_stats(s).prompt_tokens, 60);
  CHECK_EQ(session_length(s), 60 + GEN);
  CHECK(memcmp(session_tokens(s), ids, sizeof ids) == 0);
  CHECK(memcmp(session_tokens(s) + 60, a, sizeof a) == 0);
  uint32_t other[40];
  te_prompt(4, 320, other, 40);
  CHECK_OK(session_rewind(s, 30));
  CHECK_OK(session_feed(s, other, 40));
  CHECK_OK(te_generate(s, &greedy, GEN, b, &n));
  CHECK_EQ(session_get_stats(s).prompt_tokens, 40);
  CHECK_OK(session_rewind(s, 30));
  CHECK_OK(session_feed(s, ids + 30, 30));
  CHECK_OK(te_generate(s, &greedy, GEN, b, &n));
  CHECK(memcmp(a, b, sizeof a) == 0);
  /* The whole prompt is there already: only its last token is run again. */
  CHECK_OK(session_rewind(s, 60));
  CHECK_OK(te_generate(s, &greedy, GEN, b, &n));
  CHECK_EQ(session_get_stats(s).prompt_tokens, 1);
  CHECK(memcmp(a, b, sizeof a) == 0);
  session_free(s);
}

static void stop_on(engine *en) {
  session *s = NULL;
  uint32_t ids[PROMPT], all[30], got[30], n = 0, k = 0, id;
  CHECK_OK(session_new(en, &s));
  te_prompt(5, 320, ids, PROMPT);
  CHECK(te_start(s, ids, PROMPT));
  CHECK_OK(te_generate(s, &greedy, 30, all, &n));
  CHECK_EQ(n, 30);
  CHECK(te_start(s, ids, PROMPT));
  for (int turn = 0; turn < 3; turn++) { /* three pieces of ten, each stopped */
    CHECK_OK(session_generate(s, &greedy, 0));
    uint32_t until = k + 10;
    for (session_event ev = SESSION_BUSY; ev != SESSION_DONE;) {
      err e = session_poll(s, &ev, &id);
      CHECK_OK(e);
      if (e) break;
      if (ev != SESSION_TOKEN) continue;
      CHECK(k < until);
      if (k < 30) got[k++] = id;
      if (k == until) session_stop(s);
    }
    CHECK_EQ(session_length(s), PROMPT + k);
  }
  CHECK(k == 30 && memcmp(all, got, sizeof all) == 0);
  /* A session given up with tokens in flight costs its device nothing. */
  for (int i = 0; i < 40; i++) {
    session_event ev = SESSION_BUSY;
    session *other = NULL;
    CHECK_OK(session_new(en, &other));
    CHECK_OK(session_feed(other, ids, PROMPT));
    CHECK_OK(session_generate(other, &greedy, 0));
    for (int j = 0; j < 6; j++) CHECK_OK(session_poll(other, &ev, &id));
    session_free(other);
  }
  CHECK(te_start(s, ids, PROMPT));
  CHECK_OK(te_generate(s, &greedy, 30, got, &n));
  CHECK(memcmp(all, got, sizeof all) == 0);
  session_free(s);
}

static void stop_and_continue(void) {
  engine *en = usual(), *deep = NULL;
  if (!en) return;
  stop_on(en);
  if (test_kind() != HW_CPU) return; /* deep already */
  const char *path = te_model(&(synth_desc){.preset = "tiny"});
  deep = te_open_here(path, (engine_opts){.f32 = true, .ctx = CTX, .depth = 8});
  if (deep) stop_on(deep);
  engine_close(deep);
}

static void sampling(void) {
  engine *en = usual();
  if (!en) return;
  session *s = NULL;
  enum { N = 32 };
  uint32_t ids[PROMPT], best[N], a[N], b[N], n;
  CHECK_OK(session_new(en, &s));
  te_prompt(9, 320, ids, PROMPT);
#define DRAW(out, ...)                                                                             \
  do {                                                                                             \
    sample_opts o_ = {__VA_ARGS__};                                                                \
    CHECK(te_start(s, ids, PROMPT));                                                               \
    CHECK_OK(te_generate(s, &o_, N, out, &n));                                                     \
    CHECK_EQ(n, N);                                                                                \
  } while (0)
  DRAW(best, .temp = 0);
  DRAW(a, .temp = 0.8f, .top_k = 1);
  CHECK(memcmp(a, best, sizeof a) == 0);
  DRAW(a, .temp = 1.0f, .min_p = 1.0f, .seed = 3);
  CHECK(memcmp(a, best, sizeof a) == 0);
  DRAW(a, .temp = 1.0f, .top_p = 1e-6f, .seed = 4);
  CHECK(memcmp(a, best, sizeof a) == 0);
  DRAW(a, .temp = 1.2f, .seed = 1);
  DRAW(b, .temp = 1.2f, .seed = 1);
  CHECK(memcmp(a, b, sizeof a) == 0);
  CHECK(memcmp(a, best, sizeof a) != 0);
  DRAW(b, .temp = 1.2f, .seed = 2);
  CHECK(memcmp(a, b, sizeof a) != 0);
  /* A penalty beyond reason: nothing of the last 64 tokens comes again, where logits are above 0.
   */
  DRAW(a, .penalty = 1e6f);
  for (uint32_t i = 0; i < N; i++) {
    for (uint32_t j = 0; j < i; j++) CHECK(a[i] != a[j]);
    for (uint32_t j = 0; j < PROMPT; j++) CHECK(a[i] != ids[j]);
  }
  DRAW(b, .penalty = 1.0f);
  CHECK(memcmp(b, best, sizeof b) == 0);
#undef DRAW
  session_free(s);
}

static void full_context(void) {
  engine *en = usual();
  if (!en) return;
  session *s = NULL;
  uint32_t ids[CTX + 1], got[CTX], n;
  float logits[MAX_VOCAB];
  CHECK_OK(session_new(en, &s));
  te_prompt(2, VOCAB, ids, CTX + 1);
  CHECK_ERR(session_feed(s, ids, CTX + 1), ERR_LIMIT,
            "a prompt of 97 tokens is longer than the context of 96");
  CHECK_EQ(session_length(s), 0);
  CHECK_ERR(session_generate(s, &greedy, 1), ERR_ARG, "nothing to continue");
  CHECK_OK(session_feed(s, ids, CTX - 10));
  CHECK_ERR(session_feed(s, ids, 11), ERR_LIMIT,
            "a prompt of 97 tokens is longer than the context of 96");
  CHECK_OK(te_generate(s, &greedy, 0, got, &n)); /* the token after the last row is known too */
  CHECK_EQ(session_length(s), CTX + 1);
  CHECK_OK(te_generate(s, &greedy, 5, got, &n));
  CHECK_EQ(n, 0);
  CHECK_ERR(session_feed(s, ids, 1), ERR_LIMIT,
            "a prompt of 98 tokens is longer than the context of 96");
  CHECK_ERR(te_logits(s, logits), ERR_LIMIT, "do not fit a context of 96");
  /* A prompt that fills it to the last row, in one piece. */
  CHECK_OK(session_rewind(s, 0));
  CHECK_OK(session_feed(s, ids, CTX));
  CHECK_OK(te_logits(s, logits));
  CHECK_OK(te_generate(s, &greedy, CTX, got, &n));
  CHECK_EQ(n, 1);
  session_free(s);
}

/* A session refuses what it cannot do, and is none the worse for it. */
static void misuse(void) {
  const char *path = te_model(&(synth_desc){.preset = "tiny"});
  engine *en = NULL;
  engine_opts o = {.device = test_kind(), .ctx = 300};
  CHECK_ERR(te_load(path, &o, &en), ERR_ARG, "a context of 300 is more than the model's own 256");
  CHECK_ERR(te_load("/nonexistent/m.gguf", &o, &en), ERR_IO, "/nonexistent/m.gguf");
  session *s = NULL, *unloaded = NULL;
  o.ctx = CTX;
  CHECK_OK(engine_open(path, &o, &en));
  CHECK_ERR(session_new(en, &unloaded), ERR_ARG, "not loaded yet");
  engine_close(en);
  en = usual();
  if (!en) return;
  uint32_t ids[PROMPT], got[GEN], again[GEN], n, id, bad = 320;
  float logits[MAX_VOCAB];
  double sum;
  bool done;
  session_event ev;
  CHECK_OK(session_new(en, &s));
  te_prompt(2, 320, ids, PROMPT);
  CHECK_ERR(session_feed(s, &bad, 1), ERR_ARG, "token 320 is beyond the vocabulary of 320");
  CHECK_ERR(session_rewind(s, 1), ERR_ARG, "rewind to 1 tokens of 0");
  CHECK_OK(session_feed(s, ids, PROMPT));
  CHECK_OK(te_generate(s, &greedy, GEN, got, &n));
  CHECK_OK(session_poll(s, &ev, &id));
  CHECK(ev == SESSION_DONE);
  CHECK_OK(session_rewind(s, PROMPT));
  CHECK_OK(session_generate(s, &greedy, GEN));
  CHECK_ERR(session_feed(s, ids, 1), ERR_ARG, "feed while the session is busy");
  CHECK_ERR(session_rewind(s, 1), ERR_ARG, "rewind while");
  CHECK_ERR(session_generate(s, &greedy, 1), ERR_ARG, "generate while");
  CHECK_ERR(session_logits(s, logits, &done), ERR_ARG, "logits while");
  CHECK_ERR(session_nll(s, ids, 4, &sum, &done), ERR_ARG, "perplexity while");
  for (n = 0, ev = SESSION_BUSY; ev != SESSION_DONE && n < GEN + 1;) {
    err e = session_poll(s, &ev, &id);
    CHECK_OK(e);
    if (e) break;
    if (ev == SESSION_TOKEN && n < GEN) again[n++] = id;
  }
  CHECK(n == GEN && memcmp(got, again, sizeof got) == 0);
  CHECK_ERR(session_nll(s, ids, 1, &sum, &done), ERR_ARG, "at least 2 tokens");
  session_free(s);
}

/* A context whose cache is beyond any memory: refused with the sizes, before anything is made. */
static void does_not_fit(void) {
  synth_shape shape = {.layers = 40,
                       .embd = 32,
                       .heads = 8,
                       .heads_kv = 8,
                       .head_dim = 128,
                       .ffn = 32,
                       .vocab = 288,
                       .context = 1 << 24,
                       .rope_base = 1e4f,
                       .pre = "smollm"};
  const char *path = te_model(&(synth_desc){.shape = &shape});
  engine *en = NULL;
  engine_opts o = {.ctx = 1 << 24};
  CHECK_ERR(te_load(path, &o, &en), ERR_LIMIT, "KV cache 26");
  CHECK(strstr(err_text(), "context of 16777216") && strstr(err_text(), "MiB of memory are free"));
  if (test_kind() == HW_CPU) return;
  o.device = test_kind();
  err e = te_load(path, &o, &en);
  if (e == ERR_NO_DEVICE) SKIP("device %s: %s", test_device(), err_text());
  CHECK_ERR(e, ERR_LIMIT, "context of 16777216");
}

/* Decoding allocates nothing, makes no object on the device, submits once a token. */
static void steady_state(void) {
  engine *en = usual();
  if (!en) return;
  session *s = NULL;
  uint32_t ids[PROMPT], id;
  CHECK_OK(session_new(en, &s));
  te_prompt(2, 320, ids, PROMPT);
  const run *r = engine_run(en);
  uint64_t body = run_plan(r, PLAN_BODY, 1)->n_steps, head = run_plan(r, PLAN_HEAD, 1)->n_steps;
  for (int sampled = 0; sampled < 2; sampled++) {
    sample_opts o = {.temp = sampled ? 0.7f : 0, .penalty = sampled ? 1.1f : 0};
    uint64_t draw = run_plan(r, sampled ? PLAN_SAMPLE : PLAN_GREEDY, 1)->n_steps;
    CHECK(te_start(s, ids, PROMPT));
    CHECK_OK(session_generate(s, &o, 60));
    uint64_t calls = 0, live = 0;
    hw_counts c0 = {0};
    uint32_t n = 0;
    for (session_event ev = SESSION_BUSY; ev != SESSION_DONE;) {
      err e = session_poll(s, &ev, &id);
      CHECK_OK(e);
      if (e) break;
      if (ev == SESSION_TOKEN && ++n == 20) {
        calls = mem_calls();
        live = mem_live();
        c0 = hw_get_counts(engine_hw(en));
      }
    }
    hw_counts c = hw_get_counts(engine_hw(en));
    CHECK_EQ(n, 60);
    CHECK_EQ(mem_calls(), calls);
    CHECK_EQ(mem_live(), live);
    CHECK(c.made_buffers == c0.made_buffers && c.made_kernels == c0.made_kernels &&
          c.made_bindgroups == c0.made_bindgroups);
    session_stats st = session_get_stats(s);
    CHECK_EQ(st.tokens, 60);
    CHECK_EQ(st.submits, 60); /* the prompt is one chunk, and its submit gives the first token */
    CHECK_EQ(c.dispatches - c0.dispatches, (c.submits - c0.submits) * (body + head + draw));
  }
  session_free(s);
}

static void labelled(void) {
  engine *en = usual();
  if (!en) return;
  for (int part = PLAN_BODY; part <= PLAN_NLL; part++) {
    for (uint32_t m = 1; m <= BATCH; m += BATCH - 1) {
      const plan *p = run_plan(engine_run(en), (plan_part_kind)part, m);
      REQUIRE(p && p->n_steps);
      for (uint32_t i = 0; i < p->n_steps; i++) CHECK(p->steps[i].label && p->steps[i].label[0]);
    }
  }
}

static void two_engines(void) {
  engine *a = usual();
  const char *path = te_model(&(synth_desc){.preset = "tiny-k", .seed = 2, .quant = "q4_k"});
  engine *b = a ? te_open_here(path, (engine_opts){.ctx = 96, .f32 = true}) : NULL;
  session *s[2] = {0};
  uint32_t ids[2][PROMPT], alone[2][GEN], both[2][GEN], n[2] = {0};
  if (!b) return;
  for (int i = 0; i < 2; i++) {
    CHECK_OK(session_new(i ? b : a, &s[i]));
    te_prompt(2, 320, ids[i], PROMPT);
    CHECK(te_start(s[i], ids[i], PROMPT));
    CHECK_OK(te_generate(s[i], &greedy, GEN, alone[i], &n[i]));
    CHECK(te_start(s[i], ids[i], PROMPT));
    CHECK_OK(session_generate(s[i], &greedy, GEN));
    n[i] = 0;
  }
  bool busy[2] = {true, true};
  while (busy[0] || busy[1]) { /* turn by turn */
    for (int i = 0; i < 2; i++) {
      session_event ev;
      uint32_t id;
      err e = session_poll(s[i], &ev, &id);
      CHECK_OK(e);
      busy[i] = !e && ev != SESSION_DONE;
      if (!e && ev == SESSION_TOKEN && n[i] < GEN) both[i][n[i]++] = id;
    }
  }
  CHECK(n[0] == GEN && n[1] == GEN && memcmp(alone, both, sizeof alone) == 0);
  session_free(s[0]);
  engine_close(shared); /* the last case that uses it */
  shared = NULL;
  CHECK(te_start(s[1], ids[1], PROMPT));
  CHECK_OK(te_generate(s[1], &greedy, GEN, both[1], &n[1]));
  CHECK(memcmp(alone[1], both[1], sizeof alone[1]) == 0);
  session_free(s[1]);
  engine_close(b);
}

/* -log p summed by session_nll is that of the logits, one prefix after the other. */
static void perplexity(void) {
  enum { N = 19 };
  engine *en = usual();
  if (!en) return;
  session *s = NULL;
  uint32_t ids[N];
  static float logits[MAX_VOCAB];
  double want = 0, got = 0;
  CHECK_OK(session_new(en, &s));
  te_prompt(8, 320, ids, N);
  for (uint32_t i = 1; i < N; i++) {
    double sum = 0;
    CHECK_OK(session_feed(s, ids + i - 1, 1));
    CHECK_OK(te_logits(s, logits));
    for (uint32_t j = 0; j < 320; j++) sum += exp((double)logits[j]);
    want += log(sum) - (double)logits[ids[i]];
  }
  err e = ERR_NONE;
  for (bool done = false; !e && !done;) e = session_nll(s, ids, N, &got, &done);
  CHECK_OK(e);
  CHECK_NEAR(got, want, 1e-3 * want);
  CHECK_EQ(session_length(s), 0);
  session_free(s);
}

void suite_engine(void) {
  RUN(block_types);
  RUN(k_types);
  RUN(every_type_at_once);
  RUN(mixed);
  RUN(as_gpu);
  RUN(default_precision);
  RUN(independent_of_batch);
  RUN(independent_of_splits);
  RUN(small_bindings);
  RUN(prefix_reuse);
  RUN(stop_and_continue);
  RUN(sampling);
  RUN(full_context);
  RUN(misuse);
  RUN(does_not_fit);
  RUN(steady_state);
  RUN(labelled);
  RUN(perplexity);
  RUN(two_engines);
  engine_close(shared);
  shared = NULL;
}

/* Whole models against llama.cpp: the demo model (tools/vectors/reference.py) and small random ones
 * with the other options of the architecture (reference_tiny.py), on --device.
 *
 * Every prompt is run, except on a GPU that is a CPU in disguise (one prompt, four tokens, unless
 * FRIT_FULL=1) and under a sanitizer (one short prompt). Each prompt prints what was seen. */
#include <stdlib.h>
#include <time.h>

#include "base/file.h"
#include "base/math.h"
#include "base/mem.h"
#include "infer/engine.h"
#include "test.h"
#include "util_hw.h"

enum { STEPS = 64, TOP = 32, STRIDE = 16, MAX_PROMPTS = 16, CTX = 2048 };
#if defined(__SANITIZE_ADDRESS__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SANITIZED 1
#endif
#endif

enum { DEMO_MAGIC = 0x31524546, TINY_MAGIC = 0x31544546 };

/* ---- vectors ---- */

typedef struct span { /* n little-endian words, or bytes of a text; within the file's bytes */
  const uint8_t *p;
  uint32_t n;
} span;

typedef struct prompt {
  span name, text, ids, greedy, gap, top, top_logits, logits;
  float rough; /* mean |logit difference| of llama.cpp's own default */
} prompt;

typedef struct passage {
  span name, text, ids;
  float nll, rough_nll; /* of the F32 file, of llama.cpp's own default */
} passage;

typedef struct vectors {
  char *bytes;
  size_t size, at;
  prompt prompts[MAX_PROMPTS];
  passage texts[MAX_PROMPTS];
  uint32_t n_prompts, n_texts;
} vectors;

static uint32_t word(span s, uint32_t i) { return load_u32(s.p + 4 * (size_t)i); }
static float number(span s, uint32_t i) { return load_f32(s.p + 4 * (size_t)i); }

static span take(vectors *v, size_t n, size_t size) {
  if (n > (v->size - v->at) / size) {
    FAIL("the vectors end at %zu of %zu", v->at, v->size);
    n = 0;
  }
  span s = {(const uint8_t *)v->bytes + v->at, (uint32_t)n};
  v->at += n * size;
  return s;
}
static uint32_t take_word(vectors *v) {
  span s = take(v, 1, 4);
  return s.n ? word(s, 0) : 0;
}
static float take_number(vectors *v) {
  span s = take(v, 1, 4);
  return s.n ? number(s, 0) : 0;
}
static span take_text(vectors *v) { return take(v, take_word(v), 1); }
static span take_array(vectors *v) { return take(v, take_word(v), 4); }

static bool vectors_open(vectors *v, const char *rel, uint32_t magic) {
  *v = (vectors){0};
  if (file_read(test_data(rel), 4 << 20, &v->bytes, &v->size)) {
    FAIL("%s", err_text());
    return false;
  }
  if (take_word(v) == magic) return true;
  FAIL("%s is not what reference.py makes", rel);
  mem_free(v->bytes);
  return false;
}

static bool demo_open(vectors *v) {
  if (!vectors_open(v, "reference/demo.bin", DEMO_MAGIC)) return false;
  v->n_prompts = take_word(v);
  v->n_texts = take_word(v);
  bool fits = v->n_prompts <= MAX_PROMPTS && v->n_texts <= MAX_PROMPTS;
  for (uint32_t i = 0; fits && i < v->n_prompts; i++) {
    prompt *p = &v->prompts[i];
    p->name = take_text(v);
    p->text = take_text(v);
    p->ids = take_array(v);
    p->greedy = take_array(v);
    p->gap = take_array(v);
    p->rough = take_number(v);
    p->top = take_array(v);
    p->top_logits = take_array(v);
    p->logits = take_array(v);
    fits = p->greedy.n == STEPS && p->gap.n == STEPS && p->top.n == TOP && p->top_logits.n == TOP;
  }
  for (uint32_t i = 0; fits && i < v->n_texts; i++) {
    passage *t = &v->texts[i];
    t->name = take_text(v);
    t->text = take_text(v);
    t->ids = take_array(v);
    t->nll = take_number(v);
    t->rough_nll = take_number(v);
  }
  if (fits && v->at == v->size && v->n_prompts) return true;
  FAIL("reference/demo.bin is damaged");
  mem_free(v->bytes);
  return false;
}

/* The ids of an array, in memory of its own. */
static uint32_t *ids_of(span s) {
  uint32_t *ids = calloc(s.n + 1u, sizeof *ids);
  for (uint32_t i = 0; ids && i < s.n; i++) ids[i] = word(s, i);
  return ids;
}

/* ---- an engine and a session that wait ---- */

typedef struct rig {
  engine *e;
  session *s;
  uint32_t vocab;
  float *logits; /* [vocab], of the last rig_logits */
} rig;

static const double step_limit = 600; /* seconds for one answer; software adapters are slow */

static void nap(void) {
  struct timespec t = {.tv_nsec = 300000}; /* a software GPU needs the cores */
  nanosleep(&t, NULL);
}

static void rig_close(rig *r) {
  session_free(r->s);
  engine_close(r->e);
  free(r->logits);
  *r = (rig){0};
}

/* False, with the case marked skipped or failed, when there is no device or no engine. */
static bool rig_open(rig *r, const char *path, engine_opts o) {
  *r = (rig){0};
  hw *h = test_open();
  if (!h) return false;
  o.device = test_kind();
  /* Grids are recorded for whole chunks: small ones where a workgroup costs most. */
  if (hw_get_caps(h)->software) o.batch = 16;
  bool done = false;
  engine_progress p;
  err e = engine_open(path, &o, &r->e);
  double start = time_now();
  while (!e && !done) {
    e = engine_load(r->e, &p, &done);
    if (!e && time_now() - start > step_limit) e = err_set(ERR_DEVICE, "loading takes too long");
    nap();
  }
  if (!e) e = session_new(r->e, &r->s);
  if (!e) {
    r->vocab = run_vocab(engine_run(r->e));
    r->logits = calloc(r->vocab, sizeof *r->logits);
    return true;
  }
  if (e == ERR_NO_DEVICE) test_skip("device %s: %s", test_device(), err_text());
  else FAIL("%s: %s", path, err_text());
  rig_close(r);
  return false;
}

/* The logits after the first n of `ids`, of which `have` are in the timeline already. */
static bool rig_logits(rig *r, const uint32_t *ids, uint32_t have, uint32_t n) {
  bool done = false;
  err e = session_rewind(r->s, have);
  if (!e) e = session_feed(r->s, ids + have, n - have);
  double start = time_now();
  while (!e && !done) {
    e = session_logits(r->s, r->logits, &done);
    if (!e && time_now() - start > step_limit)
      e = err_set(ERR_DEVICE, "no logits after %g s", step_limit);
    if (!done) nap();
  }
  if (e) FAIL("logits: %s", err_text());
  return !e;
}

/* `n` greedy tokens after what is in the timeline. */
static bool rig_greedy(rig *r, uint32_t *out, uint32_t n) {
  session_event ev = SESSION_BUSY;
  uint32_t got = 0, id;
  err e = session_generate(r->s, &(sample_opts){0}, n);
  double start = time_now();
  while (!e && ev != SESSION_DONE) {
    e = session_poll(r->s, &ev, &id);
    if (!e && ev == SESSION_TOKEN && got < n) out[got++] = id;
    if (!e && time_now() - start > step_limit)
      e = err_set(ERR_DEVICE, "no token after %g s", step_limit);
    if (ev == SESSION_BUSY) nap();
  }
  if (e) FAIL("tokens: %s", err_text());
  else if (got != n) FAIL("%u tokens of %u came", got, n);
  return !e && got == n;
}

static bool rig_nll(rig *r, const uint32_t *ids, uint32_t n, double *mean) {
  bool done = false;
  err e = ERR_NONE;
  double start = time_now();
  while (!e && !done) {
    e = session_nll(r->s, ids, n, mean, &done);
    if (!e && time_now() - start > step_limit)
      e = err_set(ERR_DEVICE, "no nll after %g s", step_limit);
    if (!done) nap();
  }
  if (e) FAIL("nll: %s", err_text());
  else *mean /= n - 1;
  return !e;
}

/* ---- how much of it ---- */

typedef struct extent {
  uint32_t prompts, steps, texts;
} extent;

static bool full_run(void) {
  const char *full = getenv("FRIT_FULL");
  return full && full[0] == '1';
}

/* Of the demo model only demo_levels runs: loading alone takes a software GPU half a minute. */
static bool too_slow(void) {
  hw *h = test_open();
  return h && hw_get_caps(h)->software && !full_run();
}
#define SKIP_SLOW                                                                                  \
  if (too_slow()) SKIP("a software GPU takes minutes for it; FRIT_FULL=1 runs it")

/* Under sanitizers, and where FRIT_TEST_SHORT=1 (an emulator): one prompt, a few tokens. */
static extent how_much(const vectors *v) {
#ifdef SANITIZED
  bool brief = true;
#else
  const char *set = getenv("FRIT_TEST_SHORT");
  bool brief = set && set[0] == '1';
#endif
  extent all = {v->n_prompts, STEPS, v->n_texts};
  if (full_run()) return all;
  if (brief) return (extent){1, 4, 0};
  return test_quick() ? (extent){2, 16, 0} : all;
}

/* ---- the demo model ---- */

/* A different first token is an error unless the reference's two best were this close: f32 sums in
 * another order move the demo model's logits by 1e-5 to 4e-5 in the mean. */
static const double close_call = 0.02, mean_limit = 2e-3;

static double mean_difference(const rig *r, const prompt *p) {
  double sum = 0;
  for (uint32_t i = 0; i < p->logits.n && (uint64_t)i * STRIDE < r->vocab; i++)
    sum += fabs((double)r->logits[i * STRIDE] - (double)number(p->logits, i));
  for (uint32_t i = 0; i < TOP; i++)
    sum += fabs((double)r->logits[word(p->top, i) % r->vocab] - (double)number(p->top_logits, i));
  return sum / (p->logits.n + TOP);
}

/* The first step whose token is not the reference's, or n. */
static uint32_t first_difference(const uint32_t *got, span want, uint32_t n) {
  uint32_t i = 0;
  while (i < n && got[i] == word(want, i)) i++;
  return i;
}

static void check_prompt(rig *r, const prompt *p, uint32_t steps) {
  uint32_t *ids = ids_of(p->ids), got[STEPS];
  int name_n = (int)p->name.n;
  const char *name = (const char *)p->name.p;
  CHECK_EQ(p->logits.n, (r->vocab + STRIDE - 1) / STRIDE);
  if (rig_logits(r, ids, 0, p->ids.n)) {
    double mean = mean_difference(r, p);
    if (!(mean <= mean_limit))
      FAIL("%.*s: logits differ by %g in the mean, at most %g", name_n, name, mean, mean_limit);
    if (rig_greedy(r, got, steps)) {
      uint32_t n = first_difference(got, p->greedy, steps);
      double gap = n < steps ? (double)number(p->gap, n) : 0;
      printf("  | %.*s | %u | %u of %u | ", name_n, name, p->ids.n, n, steps);
      if (n < steps) printf("%.4f", gap);
      printf(" | %.1e |\n", mean);
      fflush(stdout);
      if (n < steps && !(gap <= close_call))
        FAIL("%.*s: token %u is %u, not %u, where the two best are %g apart", name_n, name, n,
             got[n], word(p->greedy, n), gap);
    }
  }
  free(ids);
}

static void demo_at(plan_level level) {
  vectors v;
  rig r;
  const char *path = test_model();
  if (!path) SKIP("the demo model is not there");
  if (!demo_open(&v)) return;
  engine_opts o = {.f32 = true, .level_set = true, .level = level, .ctx = CTX};
  if (rig_open(&r, path, o)) {
    extent x = how_much(&v);
    for (uint32_t i = 0; i < x.prompts; i++) check_prompt(&r, &v.prompts[i], x.steps);
  }
  rig_close(&r);
  mem_free(v.bytes);
}

static void demo_none(void) {
  SKIP_SLOW;
  demo_at(PLAN_NONE);
}

/* On the cpu roles run as the plain twins, a token a second: the small models below cover them. */
static void demo_role(void) {
  SKIP_SLOW;
  demo_at(PLAN_ROLE);
}

static void same_ids(const tokenizer *t, span name, span text, span want) {
  token_ids ids = {0};
  CHECK_OK(token_encode(t, (const char *)text.p, text.n, true, true, &ids));
  uint32_t n = ids.n < want.n ? (uint32_t)ids.n : want.n;
  uint32_t same = first_difference(ids.p, want, n);
  if (ids.n != want.n || same < n)
    FAIL("%.*s: %zu ids, not %u; %u agree", (int)name.n, (const char *)name.p, ids.n, want.n, same);
  token_ids_free(&ids);
}

static void demo_ids(void) {
  vectors v;
  engine *e;
  const char *path = test_model();
  if (!path) SKIP("the demo model is not there");
  if (!demo_open(&v)) return;
  err failed = engine_open(path, &(engine_opts){.ctx = CTX}, &e);
  CHECK_OK(failed);
  if (!failed) {
    const tokenizer *t = engine_tokenizer(e);
    for (uint32_t i = 0; i < v.n_prompts; i++)
      same_ids(t, v.prompts[i].name, v.prompts[i].text, v.prompts[i].ids);
    for (uint32_t i = 0; i < v.n_texts; i++)
      same_ids(t, v.texts[i].name, v.texts[i].text, v.texts[i].ids);
    engine_close(e);
  }
  mem_free(v.bytes);
}

/* Perplexity with f32: within 0.1 % of the reference. */
static void demo_nll(void) {
  vectors v;
  rig r;
  const char *path = test_model();
  SKIP_SLOW;
  if (!path) SKIP("the demo model is not there");
  if (!demo_open(&v)) return;
  if (rig_open(&r, path, (engine_opts){.f32 = true, .ctx = CTX, .nll = true})) {
    extent x = how_much(&v);
    for (uint32_t i = 0; i < x.texts; i++) {
      const passage *t = &v.texts[i];
      uint32_t *ids = ids_of(t->ids);
      double got = 0, want = (double)t->nll;
      if (rig_nll(&r, ids, t->ids.n, &got)) {
        printf("  | %.*s | %u | nll %.5f | reference %.5f | %+.4f %% |\n", (int)t->name.n,
               (const char *)t->name.p, t->ids.n, got, want, 100 * (got / want - 1));
        CHECK_NEAR(got, want, 1e-3 * want);
      }
      free(ids);
    }
  }
  rig_close(&r);
  mem_free(v.bytes);
}

/* The default precision may round activations and keeps an f16 cache: its nll is no farther from
 * the F32 reference than that of llama.cpp's own default. The prompts' logits are one throw of the
 * dice each (llama.cpp's are off by 0.10 to 0.43): their mean may be a quarter larger. */
static void demo_default(void) {
  vectors v;
  rig r;
  const char *path = test_model();
  SKIP_SLOW;
  if (!path) SKIP("the demo model is not there");
  if (!demo_open(&v)) return;
  if (rig_open(&r, path, (engine_opts){.ctx = CTX, .nll = true})) {
    extent x = how_much(&v);
    double ours = 0, theirs = 0;
    for (uint32_t i = 0; i < x.prompts; i++) {
      const prompt *p = &v.prompts[i];
      uint32_t *ids = ids_of(p->ids);
      if (rig_logits(&r, ids, 0, p->ids.n)) ours += mean_difference(&r, p);
      theirs += (double)p->rough;
      free(ids);
    }
    printf("  | logits, %u prompts | ours off by %.4f | llama.cpp's default by %.4f |\n", x.prompts,
           ours / x.prompts, theirs / x.prompts);
    if (!(ours <= 1.25 * theirs))
      FAIL("logits: off by %g, llama.cpp's default by %g", ours, theirs);
    for (uint32_t i = 0; i < x.texts; i++) {
      const passage *t = &v.texts[i];
      uint32_t *ids = ids_of(t->ids);
      double got = 0, want = (double)t->nll, rough = (double)t->rough_nll;
      if (rig_nll(&r, ids, t->ids.n, &got)) {
        printf("  | %.*s | nll %.5f | reference %.5f | llama.cpp's default %.5f |\n",
               (int)t->name.n, (const char *)t->name.p, got, want, rough);
        if (!(fabs(got - want) <= fabs(rough - want))) FAIL("nll is farther from the reference");
      }
      free(ids);
    }
  }
  rig_close(&r);
  mem_free(v.bytes);
}

/* Levels none and role give the same logits and tokens, and the reference's (gaps above 0.05). */
static void demo_levels(void) {
  vectors v;
  rig r[2] = {0};
  const char *path = test_model();
  if (!path) SKIP("the demo model is not there");
  if (!demo_open(&v)) return;
  const prompt *p = &v.prompts[0];
  uint32_t *ids = ids_of(p->ids), got[2][STEPS];
  bool ok = true;
  for (uint32_t i = 0; ok && i < 2; i++) {
    engine_opts o = {
        .f32 = true, .level_set = true, .level = i ? PLAN_ROLE : PLAN_NONE, .ctx = 256};
    ok = rig_open(&r[i], path, o) && rig_logits(&r[i], ids, 0, p->ids.n);
    double mean = ok ? mean_difference(&r[i], p) : 0;
    if (!(mean <= mean_limit)) FAIL("level %u: logits differ by %g in the mean", i, mean);
    if (ok) ok = rig_greedy(&r[i], got[i], 4);
    if (ok) CHECK_EQ(first_difference(got[i], p->greedy, 4), 4);
    if (ok) printf("  | level %u | %.1e |\n", i, mean);
  }
  if (ok) {
    double sum = 0;
    for (uint32_t i = 0; i < r[0].vocab; i++)
      sum += fabs((double)r[0].logits[i] - (double)r[1].logits[i]);
    printf("  | none and role | %.1e |\n", sum / r[0].vocab);
    CHECK(sum / r[0].vocab <= mean_limit);
  }
  rig_close(&r[0]);
  rig_close(&r[1]);
  free(ids);
  mem_free(v.bytes);
}

/* ---- options of the architecture ---- */

/* Logits of these models are about 6 in size (standard deviation). f32 sums of 32 terms in another
 * order move them by 1e-4 at most (numpy in f64 against llama.cpp); a missed option by 1 and more.
 */
static const double tiny_limit = 1e-3;

/* Scalings of the angles change a table that the host fills: where each pipeline takes a second to
 * compile, only the options that change kernels are run. */
static bool changes_kernels(span file) {
  char name[128];
  snprintf(name, sizeof name, "%.*s", (int)file.n, (const char *)file.p);
  return strstr(name, "bias") || strstr(name, "key-length") || strstr(name, "partial");
}

/* One model: its rows are the logits after 17 ids (a chunk), 18 (a single token), 40 (a chunk). */
static void check_tiny(vectors *v, plan_level level, bool all) {
  span file = take_text(v), id_words = take_array(v);
  char rel[128];
  snprintf(rel, sizeof rel, "reference/%.*s", (int)file.n, (const char *)file.p);
  uint32_t *ids = ids_of(id_words), have = 0;
  rig r = {0};
  bool ok = (all || changes_kernels(file)) &&
            rig_open(&r, test_data(rel),
                     (engine_opts){.f32 = true, .level_set = true, .level = level, .ctx = 64});
  for (int row = 0; row < 3; row++) {
    uint32_t n = take_word(v);
    span want = take_array(v);
    ok = ok && n <= id_words.n && rig_logits(&r, ids, have, n);
    if (!ok) continue;
    have = n;
    double worst = 0;
    for (uint32_t i = 0; i < want.n && i < r.vocab; i++)
      worst = fmax(worst, fabs((double)r.logits[i] - (double)number(want, i)));
    CHECK_EQ(want.n, r.vocab);
    if (!(worst <= tiny_limit))
      FAIL("%s, level %d: off by %g after %u ids", rel, (int)level, worst, n);
  }
  rig_close(&r);
  free(ids);
}

static void tiny_at(plan_level level) {
  vectors v;
  hw *h = test_open();
  if (!h) return;
  bool all = !hw_get_caps(h)->software || full_run();
  if (!vectors_open(&v, "reference/tiny.bin", TINY_MAGIC)) return;
  uint32_t n = take_word(&v);
  CHECK(n > 0);
  for (uint32_t i = 0; i < n && v.at < v.size; i++) check_tiny(&v, level, all);
  CHECK_EQ(v.at, v.size);
  mem_free(v.bytes);
}

static void tiny_none(void) { tiny_at(PLAN_NONE); }
static void tiny_role(void) { tiny_at(PLAN_ROLE); }

void suite_reference(void) {
  RUN(tiny_none);
  RUN(tiny_role);
  RUN(demo_ids);
  RUN(demo_none);
  if (test_kind() == HW_WEBGPU) {
    RUN(demo_role);
    RUN(demo_levels);
  }
  RUN(demo_nll);
  RUN(demo_default);
}

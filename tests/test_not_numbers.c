/* Models whose logits are not numbers: every way to run a session ends in an error that says why,
 * and the session is none the worse for it. */
#include "test.h"
#include "util_engine.h"
#include "util_hw.h"

enum { PROMPT = 21, GEN = 12, CTX = 96, BATCH = 32, VOCAB = 320, MAX_VOCAB = 512 };
static const sample_opts greedy;

/* All ways to run the timeline end in the same error. */
static void refuses(session *s, const uint32_t *prompt, uint32_t n, const char *text) {
  static float logits[MAX_VOCAB];
  const sample_opts draw = {.temp = 0.9f, .penalty = 1.2f};
  uint32_t ids[GEN], got;
  double sum;
  err e = ERR_NONE;
  CHECK(te_start(s, prompt, n));
  CHECK_ERR(te_generate(s, &greedy, GEN, ids, &got), ERR_FORMAT, text);
  CHECK_EQ(got, 0);
  CHECK_EQ(session_length(s), n);
  CHECK(te_start(s, prompt, n));
  CHECK_ERR(te_generate(s, &draw, GEN, ids, &got), ERR_FORMAT, text);
  CHECK_EQ(got, 0);
  CHECK(te_start(s, prompt, n));
  CHECK_ERR(te_logits(s, logits), ERR_FORMAT, text);
  for (bool done = false; !e && !done;) e = session_nll(s, prompt, n, &sum, &done);
  CHECK_ERR(e, ERR_FORMAT, text);
}

/* A damaged weight anywhere shows as an error that names it, in both precisions. */
static void damaged_weights(void) {
  static const char *const tensors[] = {"token_embd.weight",        "blk.0.attn_k.weight",
                                        "output_norm.weight",       "output.weight",
                                        "blk.0.attn_q.weight",      "blk.1.attn_v.weight",
                                        "blk.0.attn_output.weight", "blk.0.attn_norm.weight",
                                        "blk.1.ffn_gate.weight",    "blk.1.ffn_up.weight",
                                        "blk.0.ffn_down.weight",    "blk.1.ffn_norm.weight"};
  const uint32_t n = !test_quick() ? sizeof tensors / sizeof tensors[0] : 2;
  uint32_t ids[PROMPT];
  te_prompt(4, VOCAB, ids, PROMPT);
  ids[5] = 0; /* the row of token_embd that is damaged */
  for (uint32_t i = 0; i < 2 * n; i++) {
    const char *path = te_model(&(synth_desc){
        .preset = i % 3 ? "tiny" : "tiny-k", .quant = i % 3 ? "q4_0" : "q4_k", .untied = true});
    if (!path) return;
    te_spoil(path, tensors[i / 2], 0);
    engine *en = te_open_here(
        path,
        (engine_opts){.f32 = i % 2, .ctx = CTX, .batch = BATCH, .nll = true, .hw.threads = 1});
    if (!en) return;
    session *s = NULL;
    char text[128];
    snprintf(text, sizeof text, "element 0 of '%s' is NaN", tensors[i / 2]);
    CHECK_OK(session_new(en, &s));
    if (s) refuses(s, ids, PROMPT, text);
    session_free(s);
    engine_close(en);
  }
}

/* One damaged row of token_embd: a prompt without that token runs as it did, also after one with it
 * has left the cache full of NaN. */
static void after_an_error(void) {
  enum { BAD = 7 };
  const char *path =
      te_model(&(synth_desc){.preset = "tiny-k", .quant = "q4_k", .context = CTX, .untied = true});
  if (!path) return;
  te_spoil(path, "token_embd.weight", BAD); /* rows of one block */
  engine *en =
      te_open_here(path, (engine_opts){.ctx = CTX, .batch = BATCH, .nll = true, .hw.threads = 1});
  if (!en) return;
  session *s = NULL;
  uint32_t ids[PROMPT], bad[60], want[GEN], got[GEN], n;
  te_prompt(4, VOCAB, ids, PROMPT);
  for (uint32_t i = 0; i < PROMPT; i++) ids[i] += ids[i] == BAD;
  for (uint32_t i = 0; i < 60; i++) bad[i] = i % 3 ? BAD : 3;
  const char *text = "element 1792 of 'token_embd.weight' is NaN";
  CHECK_OK(session_new(en, &s));
  CHECK_OK(session_feed(s, ids, PROMPT));
  CHECK_OK(te_generate(s, &greedy, GEN, want, &n));
  refuses(s, bad, 60, text);
  for (int round = 0; round < 2; round++) {
    CHECK(te_start(s, ids, PROMPT));
    CHECK_OK(session_feed(s, bad, 60));
    CHECK_ERR(te_generate(s, &greedy, GEN, got, &n), ERR_FORMAT, text);
    CHECK_OK(session_rewind(s, round ? PROMPT : 0));
    if (!round) CHECK_OK(session_feed(s, ids, PROMPT));
    CHECK_OK(te_generate(s, &greedy, GEN, got, &n));
    CHECK_EQ(n, GEN);
    CHECK(memcmp(got, want, sizeof want) == 0);
  }
  session_free(s);
  engine_close(en);
}

/* Whole weights whose sums overflow: the norm's gain is beyond reason. */
static void overflow(void) {
  const char *path = te_model(&(synth_desc){.preset = "tiny", .quant = "f32", .untied = true});
  if (!path) return;
  float gain[64];
  for (int i = 0; i < 64; i++) gain[i] = 3e38f;
  te_write(path, "output_norm.weight", 0, gain, sizeof gain);
  engine *en = te_open_here(path, (engine_opts){.ctx = CTX, .batch = BATCH, .hw.threads = 1});
  if (!en) return;
  session *s = NULL;
  uint32_t ids[PROMPT], got;
  te_prompt(4, VOCAB, ids, PROMPT);
  CHECK_OK(session_new(en, &s));
  CHECK_OK(session_feed(s, ids, PROMPT));
  CHECK_ERR(te_generate(s, &greedy, GEN, ids, &got), ERR_LIMIT,
            "all weights are: a sum overflowed");
  session_free(s);
  engine_close(en);
}

void suite_not_numbers(void) {
  RUN(after_an_error);
  if (test_kind() == HW_CPU) { /* a software GPU loads an engine for long */
    RUN(damaged_weights);
    RUN(overflow);
  }
}

/* The GGUF writer and the synthesiser of models: what they write reads back, nothing half-written
 * stays behind. */
#include "base/file.h"
#include "base/math.h"
#include "base/mem.h"
#include "import/gguf/gguf_write.h"
#include "import/gguf/synth.h"
#include "kernels/quant.h"
#include "test.h"
#ifndef __wasm__
#include <signal.h>
#include <sys/resource.h>
#endif

static bool exists(const char *path) {
  FILE *f = fopen(path, "rb");
  if (f) fclose(f);
  return f != NULL;
}

static bool same_bytes(const char *a, const char *b) {
  file_map x = {0}, y = {0};
  CHECK_OK(file_map_open(a, &x));
  CHECK_OK(file_map_open(b, &y));
  bool same = x.size == y.size && x.size && memcmp(x.data, y.data, x.size) == 0;
  file_map_close(&x);
  file_map_close(&y);
  return same;
}

static void writer_misuse(void) {
  char path[512];
  snprintf(path, sizeof path, "%s", test_tmp("frit-writer.gguf"));
  remove(path);
  gguf_writer *w = NULL;
  uint64_t ne[2] = {64, 1};
  float data[65] = {0};
  CHECK_ERR(gguf_writer_new(&(gguf_writer_desc){.path = path, .alignment = 24}, &w), ERR_ARG,
            "alignment 24");
  CHECK_ERR(gguf_writer_new(&(gguf_writer_desc){.path = "/nonexistent/x.gguf"}, &w), ERR_IO,
            "/nonexistent/x.gguf.part: cannot create");
  CHECK_OK(gguf_writer_new(&(gguf_writer_desc){.path = path}, &w));
  gguf_write_tensor(w, "t", DT_F32, 2, ne);
  CHECK_OK(gguf_write_data(w, data, 64));
  CHECK_ERR(gguf_writer_finish(w), ERR_ARG, "data end in tensor 1 of 1");
  gguf_writer_free(w);
  CHECK_OK(gguf_writer_new(&(gguf_writer_desc){.path = path}, &w));
  gguf_write_tensor(w, "t", DT_F32, 2, ne);
  CHECK_ERR(gguf_write_data(w, data, sizeof data), ERR_ARG,
            "260 bytes of data where tensor 1 of 1");
  CHECK_ERR(gguf_writer_finish(w), ERR_ARG, "260 bytes of data where tensor 1 of 1");
  gguf_writer_free(w);
  CHECK_OK(gguf_writer_new(&(gguf_writer_desc){.path = path}, &w));
  gguf_write_tensor(w, "t", DT_Q4_K, 2, ne);
  CHECK_ERR(gguf_writer_finish(w), ERR_ARG,
            "tensor 't' of type q4_k cannot be written: rows of 64");
  gguf_writer_free(w);
  CHECK(!exists(path));
  CHECK(!exists(test_tmp("frit-writer.gguf.part")));
}

static void same_seed_same_bytes(void) {
  char a[512], b[512];
  snprintf(a, sizeof a, "%s", test_tmp("frit-synth-a.gguf"));
  snprintf(b, sizeof b, "%s", test_tmp("frit-synth-b.gguf"));
  synth_desc d = {.preset = "tiny", .seed = 5};
  CHECK_OK(synth_write(&d, a));
  CHECK_OK(synth_write(&d, b));
  CHECK(same_bytes(a, b));
  d.seed = 6;
  CHECK_OK(synth_write(&d, b));
  CHECK(!same_bytes(a, b));
  remove(a);
  remove(b);
}

/* Mean and standard deviation of a tensor. */
static void moments(const gguf_tensor *t, double *mean, double *std) {
  uint64_t n = t->ne[0] * t->ne[1];
  float *x = mem_alloc(n * sizeof *x);
  double sum = 0, squares = 0;
  if (!x) return;
  quant_dequant_row(t->type, t->data, x, n);
  for (uint64_t i = 0; i < n; i++) {
    sum += (double)x[i];
    squares += (double)x[i] * (double)x[i];
  }
  *mean = sum / (double)n;
  *std = sqrt(squares / (double)n - *mean * *mean);
  mem_free(x);
}

static void weights_have_scale(void) {
  static const char *const types[] = {"f32",  "f16",  "bf16", "q4_0", "q4_1", "q5_0", "q5_1",
                                      "q8_0", "q2_k", "q3_k", "q4_k", "q5_k", "q6_k"};
  char path[512];
  snprintf(path, sizeof path, "%s", test_tmp("frit-synth.gguf"));
  for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
    synth_desc d = {.preset = "tiny-k", .quant = types[i], .seed = 3, .untied = true};
    gguf *g = NULL;
    dtype want = DT_COUNT_;
    CHECK_OK(synth_write(&d, path));
    CHECK_OK(gguf_open(path, &g));
    REQUIRE(g && dtype_by_name(types[i], &want));
    const gguf_tensor *t = NULL;
    CHECK_OK(gguf_tensor_get(g, "output.weight", &t));
    REQUIRE(t);
    CHECK_EQ(t->type, want);
    double mean = 1, std = 0;
    moments(t, &mean, &std);
    if (!(fabs(std * 16 - 1) < 0.06 && fabs(mean) < 0.03 * std))
      FAIL("%s: mean %g, standard deviation %g, wanted 0 and 1/16", types[i], mean, std);
    CHECK_OK(gguf_tensor_get(g, "blk.1.attn_norm.weight", &t));
    moments(t, &mean, &std);
    CHECK(t->type == DT_F32 && fabs(mean - 1) < 0.03 && fabs(std - 0.1) < 0.02);
    gguf_free(g);
  }
  remove(path);
}

static void options(void) {
  char path[512];
  snprintf(path, sizeof path, "%s", test_tmp("frit-synth.gguf"));
  gguf *g = NULL;
  float factor = 0;
  uint32_t context = 0;
  const gguf_tensor *t = NULL;
  synth_desc d = {.preset = "tiny",
                  .quant = "q4_k",
                  .mix = "attn_v=f16,blk.1.ffn_down=q8_0",
                  .bias = true,
                  .rope_scaling = "yarn",
                  .rope_factor = 8,
                  .context = 512};
  CHECK_OK(synth_write(&d, path));
  CHECK_OK(gguf_open(path, &g));
  REQUIRE(g);
  CHECK_OK(gguf_f32(g, "llama.rope.scaling.factor", &factor));
  CHECK_OK(gguf_u32(g, "llama.rope.scaling.original_context_length", &context));
  CHECK(factor == 8 && context == 64);
  CHECK_OK(gguf_tensor_get(g, "blk.0.ffn_down.weight", &t));
  CHECK(t && t->type == DT_Q5_0 && t->ne[0] == 160 &&
        t->ne[1] == 64); /* 160 is no multiple of 256 */
  CHECK_OK(gguf_tensor_get(g, "blk.1.ffn_down.weight", &t));
  CHECK(t && t->type == DT_Q8_0);
  CHECK_OK(gguf_tensor_get(g, "blk.1.attn_v.weight", &t));
  CHECK(t && t->type == DT_F16);
  CHECK_OK(gguf_tensor_get(g, "blk.1.attn_k.bias", &t));
  CHECK(t && t->type == DT_F32 && t->n_dims == 1 && t->ne[0] == 32);
  CHECK(!gguf_tensor_find(g, "output.weight") && !gguf_tensor_find(g, "rope_freqs.weight"));
  gguf_free(g);
  remove(path);
  CHECK_ERR(synth_write(&(synth_desc){.preset = "huge"}, path), ERR_ARG, "no model preset 'huge'");
  CHECK_ERR(synth_write(&(synth_desc){.preset = "tiny", .quant = "q9"}, path), ERR_ARG, "'q9'");
  CHECK_ERR(synth_write(&(synth_desc){.preset = "tiny", .mix = "a"}, path), ERR_ARG, "PART=TYPE");
  CHECK_ERR(synth_write(&(synth_desc){.preset = "tiny", .rope_scaling = "x"}, path), ERR_ARG,
            "rope scaling 'x'");
  CHECK(!exists(path));
}

/* Llama 3.2 1B's factors at three dimensions: below, between, above the two wavelengths. */
static void llama3_rope_factors(void) {
  char path[512];
  snprintf(path, sizeof path, "%s", test_tmp("frit-synth.gguf"));
  synth_shape s;
  REQUIRE(synth_preset("llama-3.2-1b", &s));
  s.layers = 1;
  s.embd = s.ffn = 64;
  s.heads = s.heads_kv = 1;
  s.vocab = SYNTH_MIN_VOCAB;
  gguf *g = NULL;
  const gguf_tensor *t = NULL;
  CHECK_OK(synth_write(&(synth_desc){.shape = &s}, path));
  CHECK_OK(gguf_open(path, &g));
  REQUIRE(g);
  CHECK_OK(gguf_tensor_get(g, "rope_freqs.weight", &t));
  REQUIRE(t && t->ne[0] == 32);
  CHECK_NEAR(load_f32(t->data), 1, 0);
  CHECK_NEAR(load_f32(t->data + 4 * 16), 3.2923, 1e-3);
  CHECK_NEAR(load_f32(t->data + 4 * 31), 32, 0);
  gguf_free(g);
  remove(path);
}

static void vocabulary(void) {
  char path[512];
  snprintf(path, sizeof path, "%s", test_tmp("frit-synth.gguf"));
  gguf *g = NULL;
  gguf_array tokens, types, merges;
  CHECK_OK(synth_write(&(synth_desc){.preset = "tiny"}, path));
  CHECK_OK(gguf_open(path, &g));
  REQUIRE(g);
  CHECK_OK(gguf_arr_strs(g, "tokenizer.ggml.tokens", &tokens));
  CHECK_OK(gguf_arr_nums(g, "tokenizer.ggml.token_type", &types));
  CHECK_OK(gguf_arr_strs(g, "tokenizer.ggml.merges", &merges));
  CHECK(tokens.n == 320 && types.n == 320 && merges.n == 12);
  CHECK(gguf_arr_i64(&types, 2) == 3 && gguf_arr_i64(&types, 3) == 1);
  for (uint64_t i = 0; i < tokens.n; i++) {
    gguf_text a = gguf_arr_text(&tokens, i);
    for (uint64_t k = 0; k < i; k++) {
      gguf_text b = gguf_arr_text(&tokens, k);
      if (a.n == b.n && memcmp(a.p, b.p, a.n) == 0)
        FAIL("tokens %d and %d are equal", (int)k, (int)i);
    }
  }
  gguf_text space = gguf_arr_text(&tokens, 3 + ' '), letter = gguf_arr_text(&tokens, 3 + 'A');
  CHECK(space.n == 2 && memcmp(space.p, "\304\240", 2) == 0);
  CHECK(letter.n == 1 && letter.p[0] == 'A');
  gguf_free(g);
  remove(path);
}

#ifndef __wasm__
static void disk_full(void) {
  char path[512];
  struct rlimit old, small;
  snprintf(path, sizeof path, "%s", test_tmp("frit-full.gguf"));
  REQUIRE(getrlimit(RLIMIT_FSIZE, &old) == 0);
  small = (struct rlimit){100000, old.rlim_max};
  void (*handler)(int) = signal(SIGXFSZ, SIG_IGN);
  REQUIRE(setrlimit(RLIMIT_FSIZE, &small) == 0);
  err e = synth_write(&(synth_desc){.preset = "tiny-k"}, path);
  setrlimit(RLIMIT_FSIZE, &old);
  signal(SIGXFSZ, handler);
  CHECK_EQ(e, ERR_IO);
  CHECK(strstr(err_text(), "frit-full.gguf: cannot write"));
  CHECK(!exists(path) && !exists(test_tmp("frit-full.gguf.part")));
}
#endif

static void allocation_failures(void) {
  char path[512];
  snprintf(path, sizeof path, "%s", test_tmp("frit-synth.gguf"));
  uint64_t before = mem_live();
  synth_desc d = {.preset = "tiny"};
  err e = ERR_NOMEM;
  int n = 0;
  while (e && n < 1000) {
    mem_fail_at(++n, false);
    e = synth_write(&d, path);
    mem_fail_at(0, false);
    if (e) CHECK_EQ(e, ERR_NOMEM);
    CHECK_EQ(mem_live(), before);
    CHECK_EQ(exists(path), e == ERR_NONE);
  }
  CHECK(n > 5 && n < 1000);
  e = ERR_NOMEM;
  for (n = 0; e && n < 1000;) {
    gguf *g = NULL;
    mem_fail_at(++n, false);
    e = gguf_open(path, &g);
    mem_fail_at(0, false);
    if (e) CHECK_EQ(e, ERR_NOMEM);
    gguf_free(g);
    CHECK_EQ(mem_live(), before);
  }
  CHECK(n > 4 && n < 1000);
  remove(path);
}

void suite_synth(void) {
  RUN(writer_misuse);
  RUN(same_seed_same_bytes);
  RUN(weights_have_scale);
  RUN(options);
  RUN(llama3_rope_factors);
  RUN(vocabulary);
#ifndef __wasm__
  RUN(disk_full);
#endif
  RUN(allocation_failures);
}

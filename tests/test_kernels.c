/* Each base op against its twin, on the device that --device names: rows of op, shape, type,
 * tolerance and its reason. Sizes 1, WG-1, WG, WG+1 and odd; chunks with fewer tokens than room. */
#include "base/math.h"
#include "kernels/pack.h"
#include "test.h"
#include "util_hw.h"
#include "util_kernels.h"

static const char *const summed = "f32 sums in another order";
static const char *const one_step = "one rounding, fused or not";
static const char *const has_exp = "exp of a GPU is good to some ulp";

/* ---- weights ---- */

static void matvec_case(dtype t, uint32_t n, uint32_t k, uint32_t row0, uint32_t above) {
  const uint32_t rows = row0 + n + above, yn = n + 5, y0 = 3;
  kt_run(&(kt_case){
      .spec = {.op = KERNEL_MATVEC, .dim = {n, k, row0, rows, yn, y0}, .type = {t}},
      .step = {.n_tok = 1},
      .bind = {{KT_WEIGHTS, rows, k, .type = t}, {KT_FLOATS, 1, k}, {KT_POISON, 1, yn}, {KT_STEP}},
      .tol = 1e-5,
      .why = summed,
      .seed = n + k});
}

/* A text takes a software GPU about a second to compile: one shape a type here and below, the other
 * shapes with a few types. */
static void matvec_types(void) {
  if (!test_open()) return;
  for (uint32_t i = 0; i < kt_n_types; i++) { matvec_case(kt_types[i], 70, 768, 5, 2); }
}

static void matvec_sizes(void) {
  if (!test_open()) return;
  matvec_case(DT_Q4_0, 1, 32, 0, 0);
  matvec_case(DT_Q4_1, 7, 576, 1, 1);
  matvec_case(DT_Q8_0, 255, 1536, 0, 0);
  matvec_case(DT_Q4_0, 9, 2048, 0, 3);
  matvec_case(DT_F16, 3, 2080, 2, 0);    /* staged in two parts */
  matvec_case(DT_Q6_K, 5, 5120, 0, 0);   /* in three */
  matvec_case(DT_Q4_1, 16389, 64, 0, 0); /* several rows a thread */
}

static void matmul_case(dtype t, uint32_t n, uint32_t k, uint32_t m, uint32_t n_tok,
                        uint32_t row0) {
  const uint32_t rows = row0 + n + 1, yn = n + 5, y0 = 4;
  kt_run(
      &(kt_case){.spec = {.op = KERNEL_MATMUL, .dim = {n, k, m, row0, rows, yn, y0}, .type = {t}},
                 .step = {.n_tok = n_tok},
                 .bind = {{KT_WEIGHTS, rows, k, .type = t},
                          {KT_FLOATS, m, k, .valid = n_tok},
                          {KT_POISON, m, yn},
                          {KT_STEP}},
                 .tol = 1e-5,
                 .why = summed,
                 .seed = n + k + m});
}

static void matmul_types(void) {
  if (!test_open()) return;
  for (uint32_t i = 0; i < kt_n_types; i++) { matmul_case(kt_types[i], 70, 512, 9, 7, 3); }
}

static void matmul_sizes(void) {
  if (!test_open()) return;
  matmul_case(DT_Q4_0, 1, 32, 1, 1, 0);
  matmul_case(DT_F32, 63, 64, 31, 1, 0);
  matmul_case(DT_Q4_1, 65, 96, 33, 33, 2);
  matmul_case(DT_Q8_0, 128, 288, 64, 63, 1);
  matmul_case(DT_Q4_0, 8200, 32, 64, 64, 0); /* enough tiles of the larger kind */
}

static void embed_types(void) {
  if (!test_open()) return;
  for (uint32_t i = 0; i < kt_n_types; i++) {
    const dtype t = kt_types[i];
    /* Ids 0..49 over a part of rows 10..39: rows of the others stay untouched. */
    kt_run(&(kt_case){.spec = {.op = KERNEL_EMBED, .dim = {768, 30, 40, 10}, .type = {t}},
                      .step = {.n_tok = 37},
                      .bind = {{KT_WEIGHTS, 30, 768, .type = t},
                               {KT_IDS, 40, 1, .valid = 37, .type = DT_U32, .limit = 50},
                               {KT_POISON, 40, 768},
                               {KT_STEP}},
                      .tol = 1e-6,
                      .why = one_step,
                      .seed = i});
  }
}

static void pack_types(void) {
  if (!test_open()) return;
  for (uint32_t i = 0; i < kt_n_types; i++) {
    const dtype t = kt_types[i];
    const uint32_t k = dtype_get(t)->n == 256 ? 512 : 96;
    const uint64_t words = pack_bytes(t, k, 11) / 4;
    for (uint32_t n = 1; n <= 7; n += 6) {
      kt_run(&(kt_case){.spec = {.op = KERNEL_PACK, .dim = {k, 7, 11}, .type = {t}},
                        .step = {.pos = 11 - n - n % 2, .n_tok = n},
                        .bind = {{KT_FILE, 7, k, .type = t, .valid = n},
                                 {KT_POISON, 1, words, .type = DT_U32},
                                 {KT_STEP}},
                        .seed = i});
    }
  }
}

/* ---- rows of floats ---- */

static const uint32_t widths[] = {1, 2, 63, 64, 65, 255, 256, 257, 1000};

static void two_inputs(kernel_op op, uint32_t n, uint32_t m, uint32_t n_tok, double tol,
                       const char *why) {
  kt_run(&(kt_case){
      .spec = {.op = op, .dim = {n, m}},
      .step = {.n_tok = n_tok},
      .bind = {{KT_FLOATS, m, n, .valid = n_tok},
               {KT_FLOATS, op == KERNEL_BIAS ? 1 : m, n, .valid = op == KERNEL_BIAS ? 1 : n_tok},
               {KT_POISON, m, n},
               {KT_STEP}},
      .tol = tol,
      .why = why,
      .seed = n});
}

static void element_wise(void) {
  if (!test_open()) return;
  for (uint32_t i = 0; i < sizeof widths / sizeof widths[0]; i++) {
    two_inputs(KERNEL_ADD, widths[i], 3, 2, 0, NULL);
    two_inputs(KERNEL_BIAS, widths[i], 5, 5, 0, NULL);
    two_inputs(KERNEL_SILU_MUL, widths[i], 4, 3, 2e-6, has_exp);
  }
}

static void rmsnorm(void) {
  if (!test_open()) return;
  for (uint32_t i = 0; i < sizeof widths / sizeof widths[0]; i++) {
    const uint32_t n = widths[i];
    kt_run(&(kt_case){
        .spec = {.op = KERNEL_RMSNORM, .dim = {n, 4}, .f = {1e-5f}},
        .step = {.n_tok = 3},
        .bind = {{KT_FLOATS, 4, n, .valid = 3}, {KT_FLOATS, 1, n}, {KT_POISON, 4, n}, {KT_STEP}},
        .tol = 2e-6,
        .why = summed,
        .seed = n});
  }
}

static void last_row(void) {
  if (!test_open()) return;
  for (uint32_t n_tok = 1; n_tok <= 5; n_tok += 2) {
    kt_run(
        &(kt_case){.spec = {.op = KERNEL_LAST_ROW, .dim = {257, 5}},
                   .step = {.n_tok = n_tok},
                   .bind = {{KT_FLOATS, 5, 257, .valid = n_tok}, {KT_POISON, 1, 257}, {KT_STEP}}});
  }
}

/* ---- positions and caches ---- */

static void rope_case(uint32_t h, uint32_t d, uint32_t rot, uint32_t neox, uint32_t pos,
                      uint32_t n_tok) {
  kt_run(&(kt_case){.spec = {.op = KERNEL_ROPE, .dim = {h, d, rot, neox, 4}},
                    .step = {.pos = pos, .n_tok = n_tok},
                    .bind = {{KT_FLOATS, 4, h * d, .valid = n_tok},
                             {KT_ANGLES, 40, rot},
                             {KT_POISON, 4, h * d},
                             {KT_STEP}},
                    .tol = 1e-6,
                    .why = one_step,
                    .seed = d + rot});
}

static void rope(void) {
  if (!test_open()) return;
  for (uint32_t neox = 0; neox < 2; neox++) {
    rope_case(1, 2, 2, neox, 0, 1);
    rope_case(3, 64, 64, neox, 7, 3);
    rope_case(2, 80, 32, neox, 36, 4);
    rope_case(9, 128, 128, neox, 11, 4);
  }
}

static void kv_append(void) {
  if (!test_open()) return;
  const dtype types[] = {DT_F32, DT_F16};
  for (uint32_t i = 0; i < 2; i++) {
    for (uint32_t n = 2; n <= 514; n += 256) {
      kt_run(&(kt_case){
          .spec = {.op = KERNEL_KV_APPEND, .dim = {n, 5}, .type = {types[i]}},
          .step = {.pos = 3, .n_tok = 4},
          .bind = {{KT_FLOATS, 5, n, .valid = 4}, {KT_POISON, 9, n, .type = types[i]}, {KT_STEP}},
          .tol = 1e-3,
          .why = "f16 may be rounded to either neighbour",
          .seed = n});
    }
  }
}

static void attention_case(dtype t, uint32_t h, uint32_t g, uint32_t d, uint32_t pos,
                           uint32_t n_tok) {
  const uint32_t context = pos + n_tok + 3, valid = pos + n_tok;
  kt_run(&(kt_case){.spec = {.op = KERNEL_ATTENTION, .dim = {h, g, d, 5}, .f = {2}, .type = {t}},
                    .step = {.pos = pos, .n_tok = n_tok},
                    .bind = {{KT_FLOATS, 5, h * d, .valid = n_tok},
                             {KT_FLOATS, context, g * d, .valid = valid, .type = t},
                             {KT_FLOATS, context, g * d, .valid = valid, .type = t},
                             {KT_POISON, 5, h * d},
                             {KT_STEP}},
                    .tol = 2e-5, /* scores of up to about 40 */
                    .why = "exp of scores that were summed in another order",
                    .seed = d + pos});
}

static void attention(void) {
  if (!test_open()) return;
  const dtype types[] = {DT_F32, DT_F16};
  for (uint32_t i = 0; i < 2; i++) {
    attention_case(types[i], 1, 1, 4, 0, 1);
    attention_case(types[i], 9, 3, 64, 0, 5);
    attention_case(types[i], 4, 4, 80, 126, 3); /* across the edge of a tile of rows */
    attention_case(types[i], 8, 2, 128, 255, 1);
    attention_case(types[i], 2, 1, 256, 300, 2);
  }
}

/* ---- sampling ---- */

static kt_case argmax_case(uint32_t n, const float *logits) {
  return (kt_case){
      .spec = {.op = KERNEL_ARGMAX, .dim = {n}},
      .step = {.n_tok = 1},
      .bind = {{KT_FLOATS, 1, n, .data = logits}, {KT_POISON, 1, 1, .type = DT_U32}, {KT_STEP}},
      .seed = n};
}

static void argmax(void) {
  if (!test_open()) return;
  enum { N = 3000, CASES = 7 };
  static float l[CASES][N];
  kt_case cases[CASES];
  for (uint32_t i = 0; i < sizeof widths / sizeof widths[0]; i++) {
    const kt_case c = argmax_case(widths[i], NULL);
    kt_run(&c);
  }
  for (uint32_t i = 0; i < CASES; i++) { /* the first of two equal ones; the last row: all -inf */
    const uint32_t best = i * 499;
    for (uint32_t j = 0; j < N; j++) l[i][j] = i + 1 == CASES ? -INFINITY : -5 - (float)(j % 7);
    if (i + 1 < CASES) l[i][best] = l[i][(best + 700) % N] = -1;
    cases[i] = argmax_case(N, l[i]);
  }
  kt_run_all(cases, CASES);
}

static kt_case sample_case(uint32_t n, const float *logits, step_params step) {
  step.n_tok = 1;
  if (step.temp == 0) step.temp = 1;
  if (step.top_p == 0) step.top_p = 1;
  return (kt_case){
      .spec = {.op = KERNEL_SAMPLE, .dim = {n}},
      .step = step,
      .bind = {{KT_FLOATS, 1, n, .data = logits}, {KT_POISON, 1, 1, .type = DT_U32}, {KT_STEP}},
      .why = "a draw; near a boundary it may differ",
      .seed = n};
}

/* Logits with a NaN of either sign, only NaN, and an infinity: both sides yield the id of none. */
static void not_numbers(void) {
  if (!test_open()) return;
  enum { N = 1500, CASES = 5 };
  static float l[CASES][N];
  for (uint32_t i = 0; i < CASES; i++)
    for (uint32_t j = 0; j < N; j++) l[i][j] = i == 4 ? -NAN : 9 * rng_f32(i, j);
  l[0][300] = NAN;
  l[1][N - 1] = bits_f32(0xFFC00001);
  l[2][0] = bits_f32(0x7F800001); /* a signalling one */
  l[3][700] = INFINITY;
  kt_case greedy[CASES], draw[CASES];
  for (uint32_t i = 0; i < CASES; i++) {
    greedy[i] = argmax_case(N, l[i]);
    draw[i] = sample_case(N, l[i], (step_params){.seed = i, .top_k = 1 + 60 * i, .temp = 2});
  }
  kt_run_all(greedy, CASES);
  kt_run_all(draw, CASES);
}

static void penalize(void) {
  if (!test_open()) return;
  const uint32_t counts[] = {0, 1, 5, 63, 64, 200}, pos[] = {2, 133, 264};
  kt_case cases[18];
  for (uint32_t i = 0; i < 18; i++)
    cases[i] = (kt_case){
        .spec = {.op = KERNEL_PENALIZE, .dim = {50, 64}},
        .step = {.pos = pos[i % 3], .n_tok = 3, .n_recent = counts[i / 3], .penalty = 1.3f},
        .bind = {{KT_IDS, 64, 1, .type = DT_U32, .limit = 60}, {KT_FLOATS, 1, 50}, {KT_STEP}},
        .tol = 1e-6,
        .why = "division of a GPU is good to 2.5 ulp",
        .seed = i};
  kt_run_all(cases, 18);
}

static void remember(void) {
  if (!test_open()) return;
  for (uint32_t pos = 0; pos < 20; pos += 6) {
    kt_run(&(kt_case){.spec = {.op = KERNEL_REMEMBER, .dim = {7}},
                      .step = {.pos = pos, .n_tok = 1 + pos % 5},
                      .bind = {{KT_IDS, 1, 1, .type = DT_U32, .limit = 1000},
                               {KT_POISON, 7, 1, .type = DT_U32},
                               {KT_STEP}}});
  }
}

static void sample_settings(void) {
  if (!test_open()) return;
  enum { N = 5000, DRAWS = 12, ROWS = 7 };
  const step_params rows[ROWS] = {{.top_k = 1},
                                  {.top_k = 40, .temp = 0.8f, .top_p = 0.95f, .min_p = 0.05f},
                                  {.top_k = 256, .temp = 3},
                                  {.top_k = 64, .temp = 1.5f, .top_p = 0.3f},
                                  {.top_k = 100, .temp = 0.7f, .min_p = 0.5f},
                                  {.top_k = 20, .temp = 0.01f},
                                  {.top_k = 255, .top_p = 0.001f}};
  static float l[N];
  static kt_case cases[DRAWS * ROWS];
  for (uint32_t i = 0; i < N; i++) l[i] = 8 * rng_f32(7, i) + 4 * rng_f32(8, i);
  for (uint32_t i = 0; i < DRAWS * ROWS; i++) {
    step_params s = rows[i % ROWS];
    s.seed = 1234 + i % ROWS;
    s.draw = i / ROWS;
    cases[i] = sample_case(N, l, s);
  }
  kt_run_all(cases, DRAWS * ROWS);
}

/* Vocabularies below k. */
static void sample_small(void) {
  if (!test_open()) return;
  const uint32_t sizes[] = {1, 64, 255, 256, 257};
  for (uint32_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
    kt_case cases[4];
    for (uint32_t draw = 0; draw < 4; draw++)
      cases[draw] = sample_case(sizes[i], NULL,
                                (step_params){.seed = 5, .draw = draw, .top_k = 256, .temp = 5});
    kt_run_all(cases, 4);
  }
}

/* Logits that defeat the bound of the threads' maxima: equal ones, all great ones in one thread's
 * share; and -inf. */
static void sample_hard(void) {
  if (!test_open()) return;
  enum { N = 4001, DRAWS = 3 };
  static float l[4][N];
  kt_case cases[4 * DRAWS];
  for (uint32_t i = 0; i < N; i++) {
    l[0][i] = 1.5f;
    l[1][i] = i == N - 1 ? 2 : i == N / 2 ? 1 : 1.5f;
    l[2][i] = i % 256 < 2 ? (float)i * 1e-3f : -20 - (float)(i % 3);
    l[3][i] = i % 1999 ? -INFINITY : (float)i * 1e-4f;
  }
  for (uint32_t i = 0; i < 4 * DRAWS; i++)
    cases[i] =
        sample_case(N, l[i % 4],
                    (step_params){.seed = 5, .draw = i / 4, .top_k = 16 + 80 * (i % 3), .temp = 5});
  kt_run_all(cases, 4 * DRAWS);
}

static void nll(void) {
  if (!test_open()) return;
  for (uint32_t i = 0; i < sizeof widths / sizeof widths[0]; i++) {
    kt_run(&(kt_case){.spec = {.op = KERNEL_NLL, .dim = {widths[i], 3}},
                      .step = {.n_tok = 2},
                      .bind = {{KT_FLOATS, 3, widths[i], .valid = 2},
                               {KT_IDS, 3, 1, .valid = 2, .type = DT_U32, .limit = widths[i]},
                               {KT_POISON, 3, 1},
                               {KT_STEP}},
                      .tol = 1e-5,
                      .why = has_exp,
                      .seed = i});
  }
}

void suite_kernels(void) {
  RUN(matvec_types);
  RUN(matvec_sizes);
  RUN(matmul_types);
  RUN(matmul_sizes);
  RUN(embed_types);
  RUN(pack_types);
  RUN(element_wise);
  RUN(rmsnorm);
  RUN(last_row);
  RUN(rope);
  RUN(kv_append);
  RUN(attention);
  RUN(argmax);
  RUN(not_numbers);
  RUN(penalize);
  RUN(remember);
  RUN(sample_settings);
  RUN(sample_small);
  RUN(sample_hard);
  RUN(nll);
}

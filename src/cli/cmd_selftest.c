/* frit selftest: small random models on the device against the cpu device, unfused and in f32. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/math.h"
#include "cli/cli.h"
#include "import/gguf/synth.h"

enum { PROMPT = 40, ANSWER = 16, SEED = 7 };

typedef struct options {
  cli_device device;
  bool json;
} options;

/* What a model said. */
typedef struct said {
  float *logits; /* [n] after the prompt */
  uint32_t n, tokens[ANSWER], n_tokens;
} said;

typedef struct verdict {
  const char *model, *type, *level, *precision;
  double worst;  /* largest difference of a logit, as a share of the largest logit */
  uint32_t same; /* tokens that agree, of ANSWER */
  bool good;
  char why[256];
} verdict;

static err speak(engine *e, said *out) {
  session *s = NULL;
  bool done = false;
  cli_wait w = {0};
  session_event ev = SESSION_BUSY;
  out->n = run_vocab(engine_run(e));
  out->logits = mem_alloc(out->n * sizeof *out->logits);
  if (!out->logits) return mem_err("logits", out->n * sizeof *out->logits);
  uint32_t ids[PROMPT], id;
  for (uint32_t i = 0; i < PROMPT; i++) ids[i] = rng_u32(SEED, i) % out->n;
  err x = session_new(e, &s);
  if (!x) x = session_feed(s, ids, PROMPT);
  while (!x && !done) {
    x = session_logits(s, out->logits, &done);
    cli_wait_step(&w, done);
  }
  if (!x) x = session_generate(s, &(sample_opts){0}, ANSWER);
  while (!x && ev != SESSION_DONE) {
    x = session_poll(s, &ev, &id);
    if (!x && ev == SESSION_TOKEN && out->n_tokens < ANSWER) out->tokens[out->n_tokens++] = id;
    cli_wait_step(&w, ev != SESSION_BUSY);
  }
  session_free(s);
  return x;
}

/* batch 24: the prompt is a full chunk and a part of one. */
static err run_model(const cli_device *d, const char *path, said *out) {
  cli_model m;
  cli_device one = *d;
  one.quiet = true;
  one.batch = 24;
  *out = (said){.n = 0};
  err e = cli_load(&one, path, NULL, &m);
  if (e) return e;
  e = speak(m.e, out);
  cli_unload(&m);
  return e;
}

/* In f32 what differs is the order of sums; with f16 storage or 8-bit activations, the rounding. */
static void judge(const said *want, const said *got, bool f32, verdict *v) {
  double top = 0, worst = 0;
  bool finite = true;
  for (uint32_t i = 0; i < want->n; i++) {
    top = fmax(top, fabs((double)want->logits[i]));
    worst = fmax(worst, fabs((double)want->logits[i] - (double)got->logits[i]));
    finite = finite && isfinite(got->logits[i]);
  }
  v->worst = finite ? worst / (top > 0 ? top : 1) : INFINITY;
  while (v->same < ANSWER && v->same < got->n_tokens &&
         got->tokens[v->same] == want->tokens[v->same])
    v->same++;
  v->good = v->worst <= (f32 ? 1e-3 : 5e-2) && (!f32 || v->same == ANSWER);
}

static void compare(const cli_device *d, const char *path, const said *want, verdict *v) {
  cli_device one = *d;
  said got;
  one.level = v->level;
  one.precision = v->precision;
  err e = run_model(&one, path, &got);
  if (e) snprintf(v->why, sizeof v->why, "%s", err_text());
  else judge(want, &got, strcmp(v->precision, "f32") == 0, v);
  mem_free(got.logits);
}

static void print_row(const options *o, const verdict *v) {
  if (o->json) return;
  printf("%-4s %-7s %-5s level %-4s %-4s  ", v->good ? "ok" : "FAIL", v->model, v->type, v->level,
         v->precision);
  if (v->why[0]) printf("%s\n", v->why);
  else printf("logits within %.1e, %u of %d tokens\n", v->worst, v->same, ANSWER);
  fflush(stdout);
}

static cJSON *json_row(const verdict *v) {
  cJSON *j = cJSON_CreateObject();
  cJSON_AddStringToObject(j, "model", v->model);
  cJSON_AddStringToObject(j, "type", v->type);
  cJSON_AddStringToObject(j, "level", v->level);
  cJSON_AddStringToObject(j, "precision", v->precision);
  cJSON_AddBoolToObject(j, "ok", v->good);
  if (v->why[0]) cJSON_AddStringToObject(j, "error", v->why);
  else {
    cJSON_AddNumberToObject(j, "logits", v->worst);
    cJSON_AddNumberToObject(j, "tokens", v->same);
  }
  return j;
}

/* One model at each level and precision; counts the failures. */
static err test_model(const options *o, const char *path, const char *shape, const char *type,
                      cJSON *rows, uint32_t *failed) {
  static const char *const levels[] = {"none", "role"}, *const precisions[] = {"f32", "auto"};
  said want = {0};
  err e = synth_write(
      &(synth_desc){.preset = shape, .quant = type, .seed = SEED, .bias = strcmp(type, "f32") == 0},
      path);
  cli_device reference = {.device = "cpu", .precision = "f32", .level = "none"};
  if (!e) e = run_model(&reference, path, &want);
  for (int i = 0; i < 4 && !e && !cli_interrupts; i++) {
    verdict v = {
        .model = shape, .type = type, .level = levels[i / 2], .precision = precisions[i % 2]};
    compare(&o->device, path, &want, &v);
    *failed += !v.good;
    print_row(o, &v);
    if (rows) cJSON_AddItemToArray(rows, json_row(&v));
  }
  mem_free(want.logits);
  return e;
}

/* An empty file of a name that nobody can guess; it and the writer's PATH.part go with a signal. */
static err make_file(char *path, size_t size) {
  const char *tmp = getenv("TMPDIR");
  int n = snprintf(path, size, "%s/frit-selftest-XXXXXX", tmp && *tmp ? tmp : "/tmp");
  if (n < 0 || (size_t)n + sizeof ".part" > size)
    return err_set(ERR_ARG, "TMPDIR is longer than %zu bytes", size);
  int fd = mkstemp(path);
  if (fd < 0) return err_set(ERR_IO, "%s: %s", path, strerror(errno));
  close(fd);
  cli_temporary(path, true);
  return ERR_NONE;
}

static int selftest(const options *o) {
  static const char *const models[][2] = {
      {"tiny", "f32"},    {"tiny", "f16"},    {"tiny", "q4_0"},   {"tiny", "q4_1"},
      {"tiny", "q5_0"},   {"tiny", "q5_1"},   {"tiny", "q8_0"},   {"tiny-k", "q2_k"},
      {"tiny-k", "q3_k"}, {"tiny-k", "q4_k"}, {"tiny-k", "q5_k"}, {"tiny-k", "q6_k"}};
  cli_picked p;
  hw_caps caps[16];
  uint32_t n = 0, failed = 0;
  err e = cli_pick(&o->device, &p);
  if (!e) e = cli_list(p.desc.kind, o->device.webgpu, caps, 16, &n);
  if (e || p.desc.index >= n) return cli_fail();
  char device[320];
  cli_describe(&caps[p.desc.index], device, sizeof device);
  if (!o->json) printf("%s\n", device);
  char path[512];
  if (make_file(path, sizeof path)) return cli_fail();
  cli_catch_interrupts();
  cJSON *j = o->json ? cJSON_CreateObject() : NULL, *rows = NULL;
  if (j) cJSON_AddStringToObject(j, "device", device);
  if (j) rows = cJSON_AddArrayToObject(j, "tests");
  for (size_t i = 0; i < sizeof models / sizeof *models && !e && !cli_interrupts; i++)
    e = test_model(o, path, models[i][0], models[i][1], rows, &failed);
  unlink(path);
  int status = e ? cli_fail() : failed || cli_interrupts ? CLI_BAD_INPUT : CLI_OK;
  if (j && cli_print_json(j)) status = CLI_BAD_INPUT;
  if (!e && failed) cli_note("%u tests disagree with the cpu device", failed);
  return status;
}

static int run_selftest(int argc, const char **argv) {
  options o = {0};
  cli_table t = {0};
  cli_args args;
  cli_add(&t, (cli_option[]){{.name = "json",
                              .type = CLI_FLAG,
                              .to = &o.json,
                              .help = "prints one object: device, tests"},
                             {0}});
  cli_add_adapter(&t, &o.device);
  int status = cli_parse(&cli_selftest, &t, "", argc, argv, &args);
  if (status != CLI_GO) return status;
  status = cli_check_device(&cli_selftest, &o.device);
  if (status == CLI_GO) status = selftest(&o);
  cli_args_free(&args);
  return status;
}

const cli_command cli_selftest = {
    .name = "selftest",
    .summary = "checks that a device computes what it should",
    .synopsis = "[--device=WHERE] [--json]",
    .text =
        "Writes small random models of every tensor type to a temporary file, runs them on the "
        "device "
        "at\neach plan level, in f32 and at the default precision, and compares logits and tokens "
        "with those\nof the cpu device, unfused and in f32.",
    .examples = "frit selftest --device=gpu",
    .exit = "0 all agree, 1 some do not",
    .run = run_selftest,
};

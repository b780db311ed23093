/* frit bench: prompt and decode speed, as llama-bench tells them. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"
#include "base/math.h"
#include "cli/cli.h"
#include "cli/profile.h"
#include "frit.h"

enum { MAX_LIST = 8, MAX_ROWS = 128, SEED = 20240917 };

typedef struct list {
  uint32_t v[MAX_LIST], n;
} list;

typedef struct options {
  cli_device device;
  const char *prompts, *tokens, *depths, *levels;
  list p, n, d;
  plan_level level[2];
  uint32_t n_levels, reps;
  bool json, csv, profile;
} options;

enum { MAX_SAMPLES = 64 };

typedef struct row {
  char test[48];
  uint32_t n, depth; /* tokens, before them */
  bool prompt;
  const char *level;
  double mean, sd;             /* tokens a second */
  double samples[MAX_SAMPLES]; /* the first of them, each run's */
  double wall_ms;              /* a token; of a prompt: a run */
  double gpu_ms;               /* the same, < 0: not known */
  double submits, dispatches;  /* the same */
} row;

typedef struct bench {
  const options *o;
  cli_model m;
  session *s;
  uint32_t *ids; /* random tokens */
  uint32_t n_ids;
  hw_caps caps;
  char model[128], date[32];
  uint64_t bytes, params;
  row rows[MAX_ROWS];
  uint32_t n_rows;
} bench;

/* ---- measuring ---- */

static err drain(session *s, uint32_t max) {
  session_event ev = SESSION_BUSY;
  uint32_t id;
  cli_wait w = {0};
  err e = session_generate(s, &(sample_opts){0}, max);
  while (!e && ev != SESSION_DONE) {
    e = session_poll(s, &ev, &id);
    cli_wait_step(&w, ev != SESSION_BUSY);
  }
  if (!e && cli_interrupts) e = err_set(ERR_CANCELLED, "interrupted");
  return e;
}

/* Leaves `depth` tokens in the cache. */
static err fill(bench *b, uint32_t depth) {
  err e = session_rewind(b->s, 0);
  if (e || !depth) return e;
  e = session_feed(b->s, b->ids, depth);
  if (!e) e = drain(b->s, 1);
  return e ? e : session_rewind(b->s, depth);
}

/* A prompt of n tokens up to the token that follows, or n decode steps, the first from a token fed.
 */
static err once(bench *b, const row *r, double *seconds) {
  err e = session_rewind(b->s, r->depth);
  if (!e) e = session_feed(b->s, b->ids + r->depth, r->prompt ? r->n : 1);
  double t0 = time_now();
  if (!e) e = drain(b->s, r->prompt ? 1 : r->n);
  *seconds = time_now() - t0;
  return e;
}

static err measure_gpu(bench *b, row *r, profile *p) {
  err e = profile_run(engine_run(b->m.e), r->depth, b->ids + r->depth, r->prompt ? r->n : 1, p);
  r->gpu_ms = e ? -1 : (double)p->ns / 1e6;
  /* The cache rows behind depth hold the profiled run's now. */
  err rewound = session_rewind(b->s, r->depth);
  return e == ERR_UNSUPPORTED ? rewound : e;
}

static err measure(bench *b, row *r) {
  double seconds, sum = 0, squares = 0, wall = 0;
  uint32_t reps = b->o->reps;
  err e = fill(b, r->depth);
  if (!e) e = once(b, r, &seconds); /* warm-up */
  hw_counts c0 = hw_get_counts(engine_hw(b->m.e));
  for (uint32_t i = 0; i < reps && !e; i++) {
    e = once(b, r, &seconds);
    double speed = r->n / (seconds > 0 ? seconds : 1e-9);
    if (i < MAX_SAMPLES) r->samples[i] = speed;
    sum += speed;
    squares += speed * speed;
    wall += seconds;
  }
  if (e) return e;
  hw_counts c1 = hw_get_counts(engine_hw(b->m.e));
  double runs = r->prompt ? reps : (double)reps * r->n;
  r->mean = sum / reps;
  r->sd = reps > 1 ? sqrt(fmax(0, (squares - sum * sum / reps) / (reps - 1))) : 0;
  r->wall_ms = wall * 1e3 / runs;
  r->submits = (double)(c1.submits - c0.submits) / runs;
  r->dispatches = (double)(c1.dispatches - c0.dispatches) / runs;
  return ERR_NONE;
}

/* ---- printing ---- */

/* A table of kernels after each row: the header of the rows stands above each, too. */
static bool with_profiles(const options *o) { return o->profile && !o->json && !o->csv; }

static void print_header(const bench *b) {
  if (b->o->csv)
    puts("model,bytes,params,device,driver,level,threads,test,tokens_per_s,stddev,submits,"
         "dispatches,"
         "gpu_ms,wall_ms,date,version");
  else if (!b->o->json)
    puts("| model | size | params | device | level | threads | test | t/s |\n"
         "| --- | ---: | ---: | --- | --- | ---: | ---: | ---: |");
}

static cJSON *json_row(const bench *b, const row *r) {
  cJSON *j = cJSON_CreateObject();
  cJSON_AddStringToObject(j, "test", r->test);
  cJSON_AddNumberToObject(j, "tokens_per_s", r->mean);
  cJSON_AddNumberToObject(j, "stddev", r->sd);
  int n = b->o->reps < MAX_SAMPLES ? (int)b->o->reps : MAX_SAMPLES;
  cJSON_AddItemToObject(j, "samples", cJSON_CreateDoubleArray(r->samples, n));
  cJSON_AddNumberToObject(j, "submits", r->submits);
  cJSON_AddNumberToObject(j, "dispatches", r->dispatches);
  if (r->gpu_ms >= 0) cJSON_AddNumberToObject(j, "gpu_ms", r->gpu_ms);
  else cJSON_AddNullToObject(j, "gpu_ms");
  cJSON_AddNumberToObject(j, "wall_ms", r->wall_ms);
  cJSON_AddStringToObject(j, "model", b->model);
  cJSON_AddNumberToObject(j, "bytes", (double)b->bytes);
  cJSON_AddNumberToObject(j, "params", (double)b->params);
  cJSON_AddStringToObject(j, "device", b->caps.name);
  cJSON_AddStringToObject(j, "driver", b->caps.driver);
  cJSON_AddStringToObject(j, "library", b->caps.library);
  cJSON_AddStringToObject(j, "api", b->caps.api);
  cJSON_AddStringToObject(j, "level", r->level);
  cJSON_AddStringToObject(j, "precision", b->o->device.precision ? b->o->device.precision : "auto");
  cJSON_AddNumberToObject(j, "threads", b->caps.threads);
  cJSON_AddNumberToObject(j, "repetitions", b->o->reps);
  cJSON_AddStringToObject(j, "date", b->date);
  cJSON_AddStringToObject(j, "version", frit_version());
  return j;
}

static void csv_text(const char *s) {
  putchar('"');
  for (; *s; s++) {
    if (*s == '"') putchar('"');
    putchar(*s);
  }
  fputs("\",", stdout);
}

static void print_csv(const bench *b, const row *r) {
  csv_text(b->model);
  printf("%llu,%llu,", (unsigned long long)b->bytes, (unsigned long long)b->params);
  csv_text(b->caps.name);
  csv_text(b->caps.driver);
  printf("%s,%u,%s,%.3f,%.3f,%g,%g,", r->level, b->caps.threads, r->test, r->mean, r->sd,
         r->submits, r->dispatches);
  if (r->gpu_ms >= 0) printf("%.6f", r->gpu_ms);
  printf(",%.6f,%s,%s\n", r->wall_ms, b->date, frit_version());
}

static void print_row(const bench *b, const row *r) {
  if (b->o->json) return;
  if (b->o->csv) print_csv(b, r);
  else {
    printf("| %s | %s | %.2f M | %s | %s | ", b->model, cli_bytes(b->bytes),
           (double)b->params / 1e6, b->caps.name, r->level);
    if (b->caps.threads) printf("%u | ", b->caps.threads);
    else printf("- | ");
    printf("%s | %.2f ± %.2f |\n", r->test, r->mean, r->sd);
  }
  fflush(stdout);
}

/* ---- the runs ---- */

static void describe_model(bench *b, const char *path) {
  const gguf *g = engine_file(b->m.e);
  const char *slash = strrchr(path, '/');
  snprintf(b->model, sizeof b->model, "%s", slash ? slash + 1 : path);
  size_t n = strlen(b->model);
  if (n > 5 && strcmp(b->model + n - 5, ".gguf") == 0) b->model[n - 5] = 0;
  b->bytes = b->params = 0;
  for (uint64_t i = 0; i < gguf_tensor_count(g); i++) {
    const gguf_tensor *t = gguf_tensor_at(g, i);
    b->bytes += t->size;
    b->params += t->ne[0] * t->ne[1] * t->ne[2] * t->ne[3];
  }
}

static err run_row(bench *b, uint32_t n, uint32_t depth, bool prompt, const char *level) {
  if (!n || b->n_rows == MAX_ROWS) return ERR_NONE;
  row *r = &b->rows[b->n_rows];
  *r = (row){.n = n, .depth = depth, .prompt = prompt, .level = level, .gpu_ms = -1};
  int len = snprintf(r->test, sizeof r->test, "%s%u", prompt ? "pp" : "tg", n);
  if (depth) snprintf(r->test + len, sizeof r->test - (size_t)len, " @ d%u", depth);
  profile *p = mem_alloc(sizeof *p);
  if (!p) return mem_err("profile", sizeof *p);
  err e = measure(b, r);
  if (!e) e = measure_gpu(b, r, p);
  if (!e) {
    b->n_rows++;
    if (with_profiles(b->o)) print_header(b);
    print_row(b, r);
    if (with_profiles(b->o) && r->gpu_ms >= 0) profile_print(p);
  }
  mem_free(p);
  return e;
}

static err run_rows(bench *b, const char *level) {
  const options *o = b->o;
  err e = ERR_NONE;
  for (uint32_t d = 0; d < o->d.n && !e; d++) {
    for (uint32_t i = 0; i < o->p.n && !e; i++) e = run_row(b, o->p.v[i], o->d.v[d], true, level);
    for (uint32_t i = 0; i < o->n.n && !e; i++) e = run_row(b, o->n.v[i], o->d.v[d], false, level);
  }
  return e;
}

static uint32_t most(const list *l) {
  uint32_t m = 0;
  for (uint32_t i = 0; i < l->n; i++) m = max_u32(m, l->v[i]);
  return m;
}

static err run_level(bench *b, const char *path, uint32_t which) {
  static const char *const names[] = {"none", "role"};
  const options *o = b->o;
  cli_device d = o->device;
  if (which < o->n_levels) d.level = names[o->level[which]];
  uint32_t longest = most(&o->d) + max_u32(most(&o->p), most(&o->n)) + 1;
  err e = cli_load(&d, path, &(engine_opts){.ctx = longest}, &b->m);
  if (e) return e;
  b->caps = *hw_get_caps(engine_hw(b->m.e));
  describe_model(b, path);
  b->n_ids = longest;
  b->ids = mem_alloc(longest * sizeof *b->ids);
  if (!b->ids) e = mem_err("tokens", longest * sizeof *b->ids);
  uint32_t vocab = run_vocab(engine_run(b->m.e));
  for (uint32_t i = 0; i < longest && !e; i++) b->ids[i] = rng_u32(SEED, i) % vocab;
  if (!e) e = session_new(b->m.e, &b->s);
  if (!e && which == 0 && !with_profiles(o)) print_header(b);
  if (!e) e = run_rows(b, names[run_get_opts(engine_run(b->m.e))->level]);
  session_free(b->s);
  b->s = NULL;
  mem_free(b->ids);
  b->ids = NULL;
  cli_unload(&b->m);
  return e;
}

static int run_all(const char *path, const options *o) {
  bench *b = mem_zalloc(1, sizeof *b);
  if (!b) {
    mem_err("bench", sizeof *b);
    return cli_fail();
  }
  b->o = o;
  time_t now = time(NULL);
  struct tm tm;
  if (gmtime_r(&now, &tm)) strftime(b->date, sizeof b->date, "%Y-%m-%dT%H:%M:%SZ", &tm);
  cli_catch_interrupts();
  err e = ERR_NONE;
  for (uint32_t i = 0; i < max_u32(o->n_levels, 1) && !e; i++) e = run_level(b, path, i);
  int status = e ? cli_fail() : CLI_OK;
  if (!e && o->json) {
    cJSON *a = cJSON_CreateArray();
    for (uint32_t i = 0; i < b->n_rows; i++) cJSON_AddItemToArray(a, json_row(b, &b->rows[i]));
    status = cli_print_json(a);
  } else if (!e) status = cli_flush();
  mem_free(b);
  return status;
}

/* ---- options ---- */

static int parse_list(const char *name, const char *s, uint32_t max, list *out) {
  out->n = 0;
  for (;;) {
    char *end;
    unsigned long v = strtoul(s, &end, 10);
    bool good = s[0] >= '0' && s[0] <= '9' && v <= max && (*end == ',' || !*end);
    if (!good || out->n == MAX_LIST)
      return cli_usage(
          &cli_bench,
          "--%s takes up to %d whole numbers from 0 to %u separated by commas, not '%s'", name,
          MAX_LIST, max, s);
    out->v[out->n++] = (uint32_t)v;
    if (!*end) return CLI_GO;
    s = end + 1;
  }
}

static int parse_levels(options *o) {
  const char *s = o->levels;
  while (s && *s) {
    size_t n = strcspn(s, ",");
    bool none = n == 4 && strncmp(s, "none", n) == 0, role = n == 4 && strncmp(s, "role", n) == 0;
    if ((!none && !role) || o->n_levels == 2)
      return cli_usage(&cli_bench,
                       "--levels takes none, role or both separated by a comma, not '%s'",
                       o->levels);
    o->level[o->n_levels++] = role ? PLAN_ROLE : PLAN_NONE;
    s += n + (s[n] == ',');
  }
  return CLI_GO;
}

static int check(options *o) {
  int status = cli_check_device(&cli_bench, &o->device);
  if (status == CLI_GO) status = parse_list("prompt", o->prompts, 1 << 20, &o->p);
  if (status == CLI_GO) status = parse_list("tokens", o->tokens, 1 << 20, &o->n);
  if (status == CLI_GO) status = parse_list("depth", o->depths, 1 << 20, &o->d);
  if (status == CLI_GO) status = parse_levels(o);
  if (status == CLI_GO && o->json && o->csv)
    status = cli_usage(&cli_bench, "--json and --csv exclude each other");
  return status;
}

static int run_bench(int argc, const char **argv) {
  options o = {.prompts = "512", .tokens = "128", .depths = "0", .reps = 5};
  cli_table t = {0};
  cli_args args;
  cli_add(
      &t,
      (cli_option[]){
          {.name = "prompt",
           .letter = 'p',
           .type = CLI_TEXT,
           .to = &o.prompts,
           .arg = "N,...",
           .help = "lengths of prompts; 0: none (default 512)"},
          {.name = "tokens",
           .letter = 'n',
           .type = CLI_TEXT,
           .to = &o.tokens,
           .arg = "N,...",
           .help = "tokens to decode; 0: none (default 128)"},
          {.name = "depth",
           .letter = 'd',
           .type = CLI_TEXT,
           .to = &o.depths,
           .arg = "N,...",
           .help = "tokens in the context before each test (default 0)"},
          {.name = "repetitions",
           .letter = 'r',
           .type = CLI_U32,
           .to = &o.reps,
           .arg = "N",
           .min = 1,
           .max = 1000,
           .help = "runs of each test, after one to warm up"},
          {.name = "levels",
           .type = CLI_TEXT,
           .to = &o.levels,
           .arg = "L,...",
           .help = "none, role or both, one after the other (default: that of --level)"},
          {.name = "profile",
           .type = CLI_FLAG,
           .to = &o.profile,
           .help = "prints the time of each kernel in one more run of each test"},
          {.name = "json",
           .type = CLI_FLAG,
           .to = &o.json,
           .help = "prints one array: test, tokens_per_s, stddev, submits, dispatches, gpu_ms, "
                   "wall_ms (of a token; for prompts of a run), device, ..."},
          {.name = "csv", .type = CLI_FLAG, .to = &o.csv, .help = "prints comma-separated values"},
          {0}});
  cli_add_quiet(&t, &o.device);
  cli_add_device(&t, &o.device);
  int status = cli_parse(&cli_bench, &t, "MODEL", argc, argv, &args);
  if (status != CLI_GO) return status;
  status = check(&o);
  if (status == CLI_GO) status = run_all(args.arg[0], &o);
  cli_args_free(&args);
  return status;
}

const cli_command cli_bench = {
    .name = "bench",
    .summary = "measures the speed of a model",
    .synopsis = "MODEL [-p N,...] [-n N,...] [-d N,...] [OPTION...]",
    .text = "Runs prompts of random tokens (pp512: 512 of them, up to the token that follows) and "
            "decoding\n"
            "(tg128: 128 steps, each the likeliest token, several in flight on a GPU), each after "
            "a number of\n"
            "tokens already in the context (tg128 @ d4096), and prints tokens a second with the "
            "standard\n"
            "deviation. The context is as long as the tests need unless --context says more.",
    .examples = "frit bench model.gguf\n"
                "frit bench model.gguf -p 0 -n 64 -d 0,4096 --json\n"
                "frit bench model.gguf --device=gpu --levels=none,role --profile",
    .run = run_bench,
};

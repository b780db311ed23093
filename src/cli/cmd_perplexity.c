/* frit perplexity: how well a model predicts a text. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/math.h"
#include "cli/cli.h"

typedef struct options {
  cli_device device;
  bool json, no_special;
} options;

enum { TEXT_LIMIT = 256 << 20 };

typedef struct result {
  double nll;       /* mean */
  uint64_t counted; /* tokens predicted */
  uint64_t tokens, windows;
  double seconds;
} result;

static err window(session *s, const uint32_t *ids, uint32_t n, double *sum) {
  bool done = false;
  cli_wait w = {0};
  err e = ERR_NONE;
  while (!e && !done) {
    if (cli_interrupts) return err_set(ERR_CANCELLED, "interrupted");
    e = session_nll(s, ids, n, sum, &done);
    cli_wait_step(&w, done);
  }
  return e;
}

/* Windows of the context, one after the other; a last one of a single token predicts nothing. */
static err windows(const cli_model *m, session *s, const token_ids *ids, result *r) {
  uint32_t ctx = engine_ctx(m->e);
  double t0 = time_now(), total = 0;
  cli_bar bar = {.name = "perplexity", .on = isatty(STDERR_FILENO)};
  err e = ERR_NONE;
  for (size_t at = 0; at + 1 < ids->n && !e; at += ctx) {
    uint32_t n = (uint32_t)min_u64(ctx, ids->n - at);
    if (n < 2) break;
    double sum = 0;
    cli_bar_draw(&bar, "of the text", at, ids->n);
    e = window(s, ids->p + at, n, &sum);
    total += sum;
    r->counted += n - 1;
    r->windows++;
  }
  cli_bar_clear(&bar);
  r->nll = total / (double)r->counted;
  r->seconds = time_now() - t0;
  return e;
}

static int report(const cli_model *m, const options *o, const result *r) {
  if (!o->json) {
    printf("nll %.4f  perplexity %.4f  (%llu tokens in %llu windows of %u, %.2f s, %s)\n", r->nll,
           exp(r->nll), (unsigned long long)r->tokens, (unsigned long long)r->windows,
           engine_ctx(m->e), r->seconds, m->device);
    return cli_flush();
  }
  cJSON *j = cJSON_CreateObject();
  cJSON_AddNumberToObject(j, "nll", r->nll);
  cJSON_AddNumberToObject(j, "ppl", exp(r->nll));
  cJSON_AddNumberToObject(j, "tokens", (double)r->tokens);
  cJSON_AddNumberToObject(j, "predicted", (double)r->counted);
  cJSON_AddNumberToObject(j, "windows", (double)r->windows);
  cJSON_AddNumberToObject(j, "context", engine_ctx(m->e));
  cJSON_AddNumberToObject(j, "seconds", r->seconds);
  cJSON_AddStringToObject(j, "device", m->device);
  return cli_print_json(j);
}

static int perplexity(const char *path, const char *file, const options *o) {
  cli_model m = {0};
  session *s = NULL;
  token_ids ids = {0};
  char *text = NULL;
  size_t n;
  result r = {0};
  int status = CLI_OK;
  err e;
  TRY(file_read(file, TEXT_LIMIT, &text, &n));
  TRY(cli_load(&o->device, path, &(engine_opts){.nll = true}, &m));
  TRY(session_new(m.e, &s));
  TRY(token_encode(engine_tokenizer(m.e), text, n, !o->no_special, true, &ids));
  r.tokens = ids.n;
  if (engine_ctx(m.e) < 2)
    e = err_set(ERR_ARG, "in a context of 1 no token is predicted: --context takes 2 or more");
  else if (ids.n < 2)
    e = err_set(ERR_ARG, "%s: %zu tokens; perplexity needs at least 2", file, ids.n);
  if (e) goto done;
  cli_catch_interrupts();
  TRY(windows(&m, s, &ids, &r));
  status = report(&m, o, &r);
done:
  if (e) status = cli_fail();
  mem_free(text);
  token_ids_free(&ids);
  session_free(s);
  cli_unload(&m);
  return status;
}

static int run_perplexity(int argc, const char **argv) {
  options o = {0};
  cli_table t = {0};
  cli_args args;
  cli_add(&t,
          (cli_option[]){
              {.name = "json",
               .type = CLI_FLAG,
               .to = &o.json,
               .help = "prints one object: nll, ppl, tokens, predicted, windows, context, seconds, "
                       "device"},
              {0}});
  cli_add_no_special(&t, &o.no_special);
  cli_add_quiet(&t, &o.device);
  cli_add_device(&t, &o.device);
  int status = cli_parse(&cli_perplexity, &t, "MODEL FILE", argc, argv, &args);
  if (status != CLI_GO) return status;
  status = cli_check_device(&cli_perplexity, &o.device);
  if (status == CLI_GO) status = perplexity(args.arg[0], args.arg[1], &o);
  cli_args_free(&args);
  return status;
}

const cli_command cli_perplexity = {
    .name = "perplexity",
    .summary = "measures how well a model predicts a text",
    .synopsis = "MODEL FILE [--context=N] [--json] [OPTION...]",
    .text =
        "Cuts the tokens of the file into windows of --context and prints the mean of -log p over "
        "all\ntokens but the first of each window (nll), and its exponential. The last window may "
        "be "
        "shorter;\nthe first begins with the tokens that the file's own rules add. The default "
        "context is the\nmodel's own, at most 8192.",
    .examples = "frit perplexity model.gguf wiki.txt --context=512 --precision=f32 --json",
    .run = run_perplexity,
};

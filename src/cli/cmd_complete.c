/* frit complete: the continuation of a text, as it stands. */
#include <stdio.h>

#include "base/file.h"
#include "cli/cli.h"
#include "tasks/stream.h"

typedef struct options {
  cli_device device;
  cli_text text;
  sample_opts sample;
  uint32_t n;
  bool json, no_special, ignore_eos, stats;
} options;

typedef struct result {
  token_ids prompt, tokens;
  buf text;
  stream_end end;
  session_stats stats;
} result;

/* Steps to the end; text goes out as it comes unless --json. */
static err generate(const options *o, engine *e, session *s, result *r) {
  stream st = {.special = false};
  cli_wait w = {0};
  stream_event ev = STREAM_BUSY;
  err x = stream_begin(&st, e, s, &o->sample, o->n, o->ignore_eos);
  while (!x && ev != STREAM_DONE) {
    x = stream_step(&st, &ev);
    if (x) break;
    if (cli_interrupts) stream_stop(&st);
    cli_wait_step(&w, ev != STREAM_BUSY);
    if (ev == STREAM_TOKEN) x = token_ids_put(&r->tokens, st.id);
    if (!st.text.n) continue;
    buf_put(&r->text, st.text.p, st.text.n);
    if (o->json) continue;
    fwrite(st.text.p, 1, st.text.n, stdout);
    fflush(stdout);
  }
  r->end = st.end;
  r->stats = session_get_stats(s);
  stream_free(&st);
  if (!x && r->text.failed) x = mem_err("text", r->text.n);
  return x;
}

static double rate(double n, double seconds) { return seconds > 0 ? n / seconds : 0; }
/* The first token comes with the prompt: decoding is the steps between the first and the last. */
static uint32_t steps(const session_stats *st) { return st->tokens ? st->tokens - 1 : 0; }

static int print_json(const cli_model *m, const result *r) {
  const session_stats *st = &r->stats;
  cJSON *j = cJSON_CreateObject(), *t;
  cJSON_AddStringToObject(j, "text", r->text.p ? r->text.p : "");
  cJSON_AddItemToObject(j, "tokens", cli_json_ids(r->tokens.p, r->tokens.n));
  cJSON_AddItemToObject(j, "prompt_tokens", cli_json_ids(r->prompt.p, r->prompt.n));
  t = cJSON_AddObjectToObject(j, "timings");
  cJSON_AddNumberToObject(t, "load_s", m->load_s);
  cJSON_AddNumberToObject(t, "prompt_n", st->prompt_tokens);
  cJSON_AddNumberToObject(t, "prompt_s", st->prompt_seconds);
  cJSON_AddNumberToObject(t, "prompt_tokens_per_s", rate(st->prompt_tokens, st->prompt_seconds));
  cJSON_AddNumberToObject(t, "decode_n", steps(st));
  cJSON_AddNumberToObject(t, "decode_s", st->seconds);
  cJSON_AddNumberToObject(t, "decode_tokens_per_s", rate(steps(st), st->seconds));
  cJSON_AddNumberToObject(t, "submits", (double)st->submits);
  cJSON_AddNumberToObject(t, "dispatches", (double)st->dispatches);
  cJSON_AddStringToObject(j, "device", m->device);
  cJSON_AddStringToObject(j, "finish_reason", stream_end_name(r->end));
  return cli_print_json(j);
}

void cli_print_stats(const cli_model *m, const session_stats *st) {
  if (m->note[0]) fprintf(stderr, "%s\n", m->note);
  fprintf(stderr, "device  %s\nload    %.2f s\n", m->device, m->load_s);
  fprintf(stderr, "prompt  %u tokens, %.2f s, %.1f tokens/s\n", st->prompt_tokens,
          st->prompt_seconds, rate(st->prompt_tokens, st->prompt_seconds));
  fprintf(stderr, "answer  %u tokens, %.2f s, %.1f tokens/s\n", st->tokens, st->seconds,
          rate(steps(st), st->seconds));
}

static int complete(const char *path, const options *o, const char *text, size_t n) {
  cli_model m = {0};
  session *s = NULL;
  result r = {0};
  int status = CLI_OK;
  err e;
  TRY(cli_load(&o->device, path, NULL, &m));
  TRY(session_new(m.e, &s));
  TRY(cli_encode(&m, text, n, !o->no_special, &r.prompt));
  TRY(session_feed(s, r.prompt.p, (uint32_t)r.prompt.n));
  cli_catch_interrupts();
  TRY(generate(o, m.e, s, &r));
  if (o->json) status = print_json(&m, &r);
  else if (putchar('\n'), (status = cli_flush()) == CLI_OK && o->stats)
    cli_print_stats(&m, &r.stats);
done:
  if (e) status = cli_fail();
  session_free(s);
  cli_unload(&m);
  token_ids_free(&r.prompt);
  token_ids_free(&r.tokens);
  buf_free(&r.text);
  return status;
}

static int run_complete(int argc, const char **argv) {
  options o = {.sample = {.top_p = 1, .penalty = 1}};
  cli_table t = {0};
  cli_args args;
  cli_add_text(&t, &o.text);
  cli_add(
      &t,
      (cli_option[]){
          {.name = "tokens",
           .letter = 'n',
           .type = CLI_U32,
           .to = &o.n,
           .arg = "N",
           .help = "most tokens to add (default 0: until the model ends or the context is full)"},
          {.name = "ignore-eos",
           .type = CLI_FLAG,
           .to = &o.ignore_eos,
           .help = "goes on after an end-of-generation token"},
          {.name = "json",
           .type = CLI_FLAG,
           .to = &o.json,
           .help = "prints one object at the end: text, tokens, prompt_tokens, timings, device, "
                   "finish_reason"},
          {.name = "stats",
           .type = CLI_FLAG,
           .to = &o.stats,
           .help = "prints device and speed on standard error at the end"},
          {0}});
  cli_add_no_special(&t, &o.no_special);
  cli_add_quiet(&t, &o.device);
  cli_add_sampling(&t, &o.sample);
  cli_add_device(&t, &o.device);
  int status = cli_parse(&cli_complete, &t, "MODEL", argc, argv, &args);
  if (status != CLI_GO) return status;
  char *text = NULL;
  size_t n;
  status = cli_check_device(&cli_complete, &o.device);
  if (status == CLI_GO) status = cli_read_text(&cli_complete, &o.text, &text, &n);
  if (status == CLI_GO) status = complete(args.arg[0], &o, text, n);
  mem_free(text);
  cli_args_free(&args);
  return status;
}

const cli_command cli_complete = {
    .name = "complete",
    .summary = "continues a text",
    .synopsis = "MODEL -p TEXT [-n N] [OPTION...]\nMODEL --file=FILE [-n N] [OPTION...]",
    .text =
        "Runs the model on the text as it stands, without a chat template, and prints what follows "
        "as it\ncomes. The text begins with the tokens that the file's own rules add (a BOS, say). "
        "By default\neach token is the likeliest one (--temp=0). Ctrl-C ends the text early.",
    .examples = "frit complete model.gguf -p 'The capital of France is' -n 20\n"
                "frit complete model.gguf -p - --json <prompt.txt",
    .run = run_complete,
};

/* frit chat: a conversation in the terminal, or one answer with -p. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/line.h"
#include "tasks/chat.h"

typedef struct options {
  cli_device device;
  cli_text text;
  sample_opts sample;
  const char *system;
  uint32_t max;
  bool stats;
} options;

typedef struct talk {
  const options *o;
  cli_model m;
  chat *c;
  char *system; /* what /system set, or NULL: that of the command line; mem_free */
} talk;

enum { INTERRUPTED = 130 };
#define SEED_RANDOM UINT32_MAX /* no --seed: another one each time */

/* Seconds since 1970 by the user's clock on the wall: templates print the date. */
static int64_t local_now(void) {
  time_t now = time(NULL);
  struct tm tm;
  return localtime_r(&now, &tm) ? (int64_t)now + tm.tm_gmtoff : (int64_t)now;
}

static uint32_t random_seed(void) {
  struct timespec t;
  clock_gettime(CLOCK_REALTIME, &t);
  return (uint32_t)t.tv_nsec ^ (uint32_t)t.tv_sec * 2654435761u ^ (uint32_t)getpid() << 16;
}

/* Prints the answer to the messages as it comes. *stopped: by Ctrl-C. */
static err answer(talk *t, bool *stopped) {
  chat_opts co = {.sample = t->o->sample, .max = t->o->max, .now = local_now()};
  if (co.sample.seed == SEED_RANDOM) co.sample.seed = random_seed();
  err e = chat_begin(t->c, &co);
  stream_event ev = STREAM_BUSY;
  cli_wait w = {0};
  while (!e && ev != STREAM_DONE) {
    const char *text;
    size_t n;
    e = chat_step(t->c, &ev, &text, &n);
    if (cli_interrupts) chat_stop(t->c);
    cli_wait_step(&w, ev != STREAM_BUSY);
    if (n) fwrite(text, 1, n, stdout);
    if (n) fflush(stdout);
  }
  *stopped = !e && chat_end(t->c) == STREAM_CANCELLED;
  return e;
}

/* Asks and answers; what was asked is forgotten when it cannot be answered. */
static err ask(talk *t, const char *text, size_t n, bool *stopped) {
  err e = chat_add(t->c, "user", text, n);
  if (e) return e;
  e = answer(t, stopped);
  if (e) chat_drop(t->c);
  else putchar('\n');
  return e;
}

static err begin(talk *t) {
  const char *system = t->system ? t->system : t->o->system;
  chat_clear(t->c);
  return system && system[0] ? chat_add(t->c, "system", system, strlen(system)) : ERR_NONE;
}

/* ---- one answer ---- */

static int once(talk *t) {
  char *text = NULL;
  size_t n;
  bool stopped = false;
  int status = cli_read_text(&cli_chat, &t->o->text, &text, &n);
  if (status != CLI_GO) return status;
  status = ask(t, text, n, &stopped) ? cli_fail() : cli_flush();
  mem_free(text);
  if (status == CLI_OK && t->o->stats) {
    session_stats st = session_get_stats(chat_session(t->c));
    fputc('\n', stderr);
    cli_print_stats(&t->m, &st);
  }
  return stopped ? INTERRUPTED : status;
}

/* ---- a conversation ---- */

static const char commands_text[] =
    "/clear        forgets the conversation\n"
    "/system TEXT  sets the instruction that it begins with, and clears\n"
    "/help         this list\n"
    "/exit         leaves; so does Ctrl-D\n"
    "A line that ends with \\ goes on in the next one. Ctrl-C stops an answer.\n";

/* A line that begins with a slash; false: leave. */
static err command(talk *t, const char *line, bool *leave) {
  if (strcmp(line, "/exit") == 0 || strcmp(line, "/quit") == 0) {
    *leave = true;
  } else if (strcmp(line, "/clear") == 0) {
    return begin(t);
  } else if (strncmp(line, "/system", 7) == 0 && (line[7] == ' ' || !line[7])) {
    char *text = mem_strdup(line[7] ? line + 8 : "");
    if (!text) return mem_err("system text", strlen(line));
    mem_free(t->system);
    t->system = text;
    return begin(t);
  } else {
    if (strcmp(line, "/help") != 0) printf("there is no command %s\n", line);
    fputs(commands_text, stdout);
  }
  return ERR_NONE;
}

static err turn(talk *t, const char *text, size_t n, bool *leave) {
  bool stopped;
  if (n == 0) return ERR_NONE;
  if (text[0] == '/') return command(t, text, leave);
  err e = ask(t, text, n, &stopped);
  if (!e && t->o->stats) {
    session_stats st = session_get_stats(chat_session(t->c));
    cli_print_stats(&t->m, &st);
  }
  if (!e && chat_end(t->c) == STREAM_CONTEXT) cli_note("the context is full; /clear begins anew");
  return e;
}

static int converse(talk *t) {
  line_editor *in = NULL;
  buf text = {0};
  bool leave = false;
  int status = CLI_OK;
  if (line_open("history", &in)) return cli_fail();
  if (line_terminal(in)) fputs("/help lists the commands.\n", stdout);
  /* From the end of the line on Ctrl-C is meant for the answer. */
  while (!leave && (cli_interrupts = 0, line_read(in, &text))) {
    if (text.failed) mem_err("line", text.n);
    if (!text.failed && !turn(t, text.p ? text.p : "", text.n, &leave)) continue;
    status = cli_fail();
    if (hw_error(engine_hw(t->m.e)) || text.failed)
      break; /* the device is gone: no turn can follow */
    if (line_terminal(in)) status = CLI_OK;
  }
  if (line_terminal(in) && !leave) putchar('\n');
  line_close(in);
  buf_free(&text);
  int flushed = cli_flush();
  return status ? status : flushed;
}

static int run_loaded(talk *t) {
  if (chat_new(t->m.e, &t->c) || begin(t)) return cli_fail();
  if (!chat_own_template(t->c))
    cli_note("the file has no chat template; ChatML stands in, which the model may not know");
  cli_catch_interrupts();
  return t->o->text.text || t->o->text.file ? once(t) : converse(t);
}

static int run_chat(int argc, const char **argv) {
  options o = {.sample = {.temp = 0.7f,
                          .top_k = 40,
                          .top_p = 0.95f,
                          .min_p = 0.05f,
                          .penalty = 1,
                          .seed = SEED_RANDOM}};
  cli_table t = {0};
  cli_args args;
  cli_add_text(&t, &o.text);
  cli_add(
      &t,
      (cli_option[]){
          {.name = "system",
           .type = CLI_TEXT,
           .to = &o.system,
           .arg = "TEXT",
           .help = "the instruction that the conversation begins with (default: the template's)"},
          {.name = "max",
           .type = CLI_U32,
           .to = &o.max,
           .arg = "N",
           .help = "most tokens of an answer; 0: what the context holds"},
          {.name = "stats",
           .type = CLI_FLAG,
           .to = &o.stats,
           .help = "prints device, load time and speed on standard error after each answer"},
          {0}});
  cli_add_quiet(&t, &o.device);
  cli_add_sampling(&t, &o.sample);
  cli_add_device(&t, &o.device);
  int status = cli_parse(&cli_chat, &t, "MODEL", argc, argv, &args);
  if (status != CLI_GO) return status;
  talk k = {.o = &o};
  status = cli_check_device(&cli_chat, &o.device);
  if (status == CLI_GO && o.text.text && o.text.file)
    status = cli_usage(&cli_chat, "--prompt and --file exclude each other");
  if (status == CLI_GO)
    status = cli_load(&o.device, args.arg[0], NULL, &k.m) ? cli_fail() : run_loaded(&k);
  chat_free(k.c);
  cli_unload(&k.m);
  mem_free(k.system);
  cli_args_free(&args);
  return status;
}

const cli_command cli_chat = {
    .name = "chat",
    .summary = "talks with a model",
    .synopsis = "MODEL [OPTION...]\nMODEL -p TEXT [OPTION...]",
    .text =
        "Without -p, reads what you say line by line and streams the answers; the whole "
        "conversation so far\nis what the model sees. Lines can be edited and are remembered in "
        "$XDG_STATE_HOME/frit/history\n(~/.local/state by default). A line that ends with \\ goes "
        "on "
        "in the next one; /help lists the\ncommands; Ctrl-C stops an answer; Ctrl-D leaves.\n\n"
        "With -p, prints one answer and ends.\n\n"
        "The messages are put into the form that the model's own chat template asks for; a file "
        "without one\nis talked to in ChatML.",
    .examples = "frit chat model.gguf\n"
                "frit chat model.gguf --system 'Answer in rhymes.' --temp=1\n"
                "frit chat model.gguf -p 'Why is the sky blue?' --stats\n"
                "git diff | frit chat model.gguf -p - --system 'Write a commit message.'",
    .exit = "0 done, 1 bad input, 130 the answer to -p was stopped",
    .run = run_chat,
};

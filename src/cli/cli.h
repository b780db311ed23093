/* What the commands share: option tables, messages, the device options, loading a model with a bar.
 *
 * A command is a row of cli_command; its function gets argv from the command's name on and returns
 * the exit status: 0 done, 1 bad input (file, device, text), 2 bad usage. Errors are one line on
 * standard error, "frit: ...". */
#ifndef FRIT_CLI_CLI_H
#define FRIT_CLI_CLI_H

#include <cjson/cJSON.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/mem.h"
#include "infer/engine.h"

/* ---- commands ---- */

typedef struct cli_command {
  const char *name;
  const char *summary;  /* one line */
  const char *synopsis; /* what follows "frit NAME"; several lines: several forms */
  const char *text;     /* what it does: paragraphs */
  const char *examples; /* one a line */
  const char *exit;     /* what statuses 0 and 1 mean, NULL: the usual */
  int (*run)(int argc, const char **argv);
} cli_command;

extern const cli_command cli_chat, cli_complete, cli_tokenize, cli_inspect, cli_devices, cli_bench,
    cli_perplexity, cli_logits, cli_explain, cli_selftest, cli_synth;

enum { CLI_OK = 0, CLI_BAD_INPUT = 1, CLI_BAD_USAGE = 2, CLI_GO = -1 };

/* ---- options ---- */

typedef enum cli_type {
  CLI_FLAG, /* bool */
  CLI_TEXT, /* const char *, valid as long as the cli_args */
  CLI_U32,
  CLI_BYTES, /* uint64_t, with K, M or G */
  CLI_F32
} cli_type;

typedef struct cli_option {
  const char *name;
  char letter; /* 0: none */
  cli_type type;
  void *to;
  const char *arg;  /* what help calls the value */
  const char *help; /* with the default */
  double min, max;  /* of numbers; max 0: no limit but the type's */
  char preset[16];  /* set by cli_add: a number's value before parsing, for help that names no
                       default */
} cli_option;

enum { CLI_MAX_OPTIONS = 48, CLI_MAX_ARGS = 4 };
typedef struct cli_table {
  cli_option row[CLI_MAX_OPTIONS];
  uint32_t n;
} cli_table;
/* Appends rows up to one without a name. */
void cli_add(cli_table *t, const cli_option *rows);

typedef struct cli_args {
  arena mem;
  const char *arg[CLI_MAX_ARGS]; /* what is no option; NULL beyond n */
  uint32_t n;
} cli_args;
/* Reads the command line: CLI_GO, or the status to return at once (after --help, 0). `want` names
 * the arguments, e.g. "MODEL FILE"; all are needed. */
int cli_parse(const cli_command *c, cli_table *t, const char *want, int argc, const char **argv,
              cli_args *out);
void cli_args_free(cli_args *a);
void cli_help(const cli_command *c, const cli_table *t);

/* ---- messages ---- */

#if defined(__GNUC__)
#define CLI_PRINTF(a, b) __attribute__((format(printf, a, b)))
#else
#define CLI_PRINTF(a, b)
#endif
/* "frit: NAME: ...; 'frit NAME --help' explains"; returns CLI_BAD_USAGE. */
int cli_usage(const cli_command *c, const char *fmt, ...) CLI_PRINTF(2, 3);
/* "frit: " and err_text(); returns CLI_BAD_INPUT. */
int cli_fail(void);
/* "frit: " and a note, no error. */
void cli_note(const char *fmt, ...) CLI_PRINTF(1, 2);
/* Prints and deletes; the status: CLI_OK unless out of memory or standard output is broken. */
int cli_print_json(cJSON *j);
/* A number array; NULL when out of memory. */
cJSON *cli_json_ids(const uint32_t *ids, size_t n);
/* Flushes standard output: CLI_BAD_INPUT, with a message, when it could not be written. */
int cli_flush(void);
/* "12.3 MB" of a static ring of texts. */
const char *cli_bytes(uint64_t n);

/* ---- waiting ---- */

/* Polite polling: call it with whether the last poll got anywhere. Yields at first, then sleeps 20
 * us at a time, and longer when nothing comes for long. */
typedef struct cli_wait {
  uint32_t idle;
} cli_wait;
void cli_wait_step(cli_wait *w, bool progressed);

/* While on, what libraries write to standard error on their own is dropped (drivers and loaders are
 * talkative when a GPU is looked for). FRIT_VERBOSE=1 leaves it. */
void cli_hush(bool on);

/* Ctrl-C: counted instead of ending the program. */
extern volatile sig_atomic_t cli_interrupts;
void cli_catch_interrupts(void);
/* The file goes when a signal ends the program: Ctrl-C (unless caught, see above; call this first),
 * SIGTERM, SIGHUP. One file at a time; with_part: also PATH.part,
 * which the GGUF writer makes. */
void cli_temporary(const char *path, bool with_part);

/* ---- the model and its device ---- */

typedef struct cli_device {
  const char *device, *precision, *level, *off, *webgpu, *isa;
  uint32_t threads, context, batch;
  bool no_f16, no_subgroups;
  uint64_t limit_binding;
  bool quiet;
} cli_device;
void cli_add_device(cli_table *t, cli_device *d);
/* Only what picks a device: --device, --webgpu, --threads, --isa and the pretended limits. */
void cli_add_adapter(cli_table *t, cli_device *d);
/* Refuses words that are none of an option's: CLI_GO or CLI_BAD_USAGE. */
int cli_check_device(const cli_command *c, const cli_device *d);

typedef struct cli_picked {
  hw_open_desc desc;
  char note[320]; /* why the CPU stands in for a GPU, "" when it does not */
} cli_picked;
/* Resolves --device. */
err cli_pick(const cli_device *d, cli_picked *out);
/* The adapters of that kind, at most max; none is opened. */
err cli_list(hw_kind kind, const char *library, hw_caps *out, uint32_t max, uint32_t *n);

typedef struct cli_model {
  engine *e;
  double load_s;
  char device[320]; /* "NVIDIA H200, vulkan, Dawn ..." */
  char note[320];   /* as in cli_picked */
} cli_model;
/* Opens and loads with a bar when standard error is a terminal. `more` (or NULL) sets what no
 * option does. */
err cli_load(const cli_device *d, const char *path, const engine_opts *more, cli_model *out);
void cli_unload(cli_model *m);
/* The tokens of a text that is to be continued, those of the file's own rules before them; no token
 * at all is an error. */
err cli_encode(const cli_model *m, const char *text, size_t n, bool special, token_ids *out);
void cli_describe(const hw_caps *c, char *out, size_t size);
void cli_print_stats(const cli_model *m, const session_stats *st); /* on standard error */
/* The engine options that the command line asks for. */
engine_opts cli_engine_opts(const cli_device *d, const cli_picked *p);

typedef struct cli_bar {
  const char *name;
  bool on, drawn;
  double shown;
} cli_bar;
void cli_bar_draw(cli_bar *b, const char *what, uint64_t done, uint64_t total);
void cli_bar_clear(cli_bar *b);

/* ---- text ---- */

typedef struct cli_text {
  const char *text, *file; /* -p TEXT ("-" is standard input) or --file FILE */
} cli_text;
void cli_add_text(cli_table *t, cli_text *x);
/* Checks that there is exactly one, and reads it. CLI_GO or the status. mem_free *out. */
int cli_read_text(const cli_command *c, const cli_text *x, char **out, size_t *n);

/* ---- rows that several commands have ---- */

void cli_add_no_special(cli_table *t, bool *no_special); /* of texts that are tokenised */
void cli_add_quiet(cli_table *t, cli_device *d);         /* of commands that load with a bar */

void cli_add_sampling(cli_table *t, sample_opts *o);

#endif

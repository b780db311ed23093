/* Messages, waiting, Ctrl-C, the bar, texts from the command line. */
#include "cli/cli.h"

#include <fcntl.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"

/* ---- messages ---- */

static void vsay(const char *prefix, const char *fmt, va_list args) {
  fflush(stdout);
  fputs(prefix, stderr);
  vfprintf(stderr, fmt, args);
}

int cli_usage(const cli_command *c, const char *fmt, ...) {
  char prefix[64];
  snprintf(prefix, sizeof prefix, "frit: %s: ", c->name);
  va_list args;
  va_start(args, fmt);
  vsay(prefix, fmt, args);
  va_end(args);
  fprintf(stderr, "; 'frit %s --help' explains\n", c->name);
  return CLI_BAD_USAGE;
}

int cli_fail(void) {
  cli_note("%s", err_text());
  return CLI_BAD_INPUT;
}

void cli_note(const char *fmt, ...) {
  va_list args;
  va_start(args, fmt);
  vsay("frit: ", fmt, args);
  va_end(args);
  fputc('\n', stderr);
}

int cli_flush(void) {
  if (fflush(stdout) == 0 && !ferror(stdout)) return CLI_OK;
  cli_note("standard output cannot be written");
  return CLI_BAD_INPUT;
}

int cli_print_json(cJSON *j) {
  char *text = j ? cJSON_PrintUnformatted(j) : NULL;
  cJSON_Delete(j);
  if (!text) {
    cli_note("out of memory");
    return CLI_BAD_INPUT;
  }
  puts(text);
  cJSON_free(text);
  return cli_flush();
}

cJSON *cli_json_ids(const uint32_t *ids, size_t n) {
  cJSON *a = cJSON_CreateArray();
  for (size_t i = 0; a && i < n; i++) cJSON_AddItemToArray(a, cJSON_CreateNumber(ids[i]));
  return a;
}

const char *cli_bytes(uint64_t n) {
  static char ring[8][24];
  static unsigned at;
  char *s = ring[at++ % 8];
  static const char *const units[] = {"B", "kB", "MB", "GB", "TB"};
  double v = (double)n;
  int u = 0;
  while (v >= 999.95 && u < 4) v /= 1000, u++;
  snprintf(s, sizeof ring[0], u ? "%.1f %s" : "%.0f %s", v, units[u]);
  return s;
}

/* ---- waiting ---- */

void cli_wait_step(cli_wait *w, bool progressed) {
  if (progressed) {
    w->idle = 0;
    return;
  }
  if (w->idle++ < 50) { /* a token of a fast GPU is near: give way, but do not sleep */
    sched_yield();
    return;
  }
  long us = w->idle < 500 ? 20 : 200;
  nanosleep(&(struct timespec){.tv_nsec = us * 1000}, NULL);
}

void cli_hush(bool on) {
  static int kept = -1;
  if (!on && kept >= 0) {
    fflush(stderr);
    dup2(kept, STDERR_FILENO);
    close(kept);
    kept = -1;
  }
  if (!on || kept >= 0 || getenv("FRIT_VERBOSE")) return;
  int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
  fflush(stderr);
  if (null >= 0 && (kept = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3)) >= 0)
    dup2(null, STDERR_FILENO);
  if (null >= 0) close(null);
}

volatile sig_atomic_t cli_interrupts;
static void on_interrupt(int sig) {
  (void)sig;
  cli_interrupts++;
}
void cli_catch_interrupts(void) {
  struct sigaction a = {.sa_handler = on_interrupt}; /* no SA_RESTART: it ends a read */
  sigemptyset(&a.sa_mask);
  sigaction(SIGINT, &a, NULL);
}

static char temporary[4096], temporary_part[4096 + sizeof ".part"];
static void on_end(int sig) { /* unlink, signal and raise are safe here */
  unlink(temporary);
  if (temporary_part[0]) unlink(temporary_part);
  signal(sig, SIG_DFL);
  raise(sig);
}
void cli_temporary(const char *path, bool with_part) {
  static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
  if (strlen(path) >= sizeof temporary) return; /* longer than any file's name can be */
  memcpy(temporary, path, strlen(path) + 1);
  if (with_part) snprintf(temporary_part, sizeof temporary_part, "%s.part", path);
  struct sigaction a = {.sa_handler = on_end};
  sigemptyset(&a.sa_mask);
  for (int i = 0; i < 3; i++) sigaction(signals[i], &a, NULL);
}

/* ---- the bar ---- */

void cli_bar_draw(cli_bar *b, const char *what, uint64_t done, uint64_t total) {
  double now = time_now();
  if (!b->on || (b->drawn && now - b->shown < 0.05)) return;
  b->shown = now;
  b->drawn = true;
  struct winsize w;
  int columns = ioctl(STDERR_FILENO, TIOCGWINSZ, &w) == 0 && w.ws_col ? w.ws_col : 80;
  int percent = total ? (int)(100 * (done < total ? done : total) / total) : 0;
  char right[64];
  int n = total ? snprintf(right, sizeof right, "%3d %% %s", percent, what)
                : snprintf(right, sizeof right, "%s", what);
  int name = (int)strlen(b->name), room = columns - n - 6;
  if (name > room / 2) name = room / 2 > 0 ? room / 2 : 0;
  int width = room - name;
  if (width > 40) width = 40;
  if (width < 0) width = 0;
  int full = width * percent / 100;
  fprintf(stderr, "\r\033[K%.*s [%.*s%*s] %s", name, b->name, full,
          "########################################", width - full, "", right);
  fflush(stderr);
}

void cli_bar_clear(cli_bar *b) {
  if (b->drawn) fputs("\r\033[K", stderr);
  b->drawn = false;
}

/* ---- texts ---- */

void cli_add_text(cli_table *t, cli_text *x) {
  cli_add(t, (cli_option[]){{.name = "prompt",
                             .letter = 'p',
                             .type = CLI_TEXT,
                             .to = &x->text,
                             .arg = "TEXT",
                             .help = "the text; '-' reads standard input"},
                            {.name = "file",
                             .type = CLI_TEXT,
                             .to = &x->file,
                             .arg = "FILE",
                             .help = "reads the text from a file, every byte of it"},
                            {0}});
}

enum { TEXT_LIMIT = 256 << 20 };

static int read_stdin(char **out, size_t *n) {
  buf b = {0};
  char block[65536];
  size_t got;
  while ((got = fread(block, 1, sizeof block, stdin)) > 0 && b.n <= TEXT_LIMIT)
    buf_put(&b, block, got);
  err e = ERR_NONE;
  if (ferror(stdin)) e = err_set(ERR_IO, "standard input cannot be read");
  else if (b.n > TEXT_LIMIT)
    e = err_set(ERR_LIMIT, "standard input is longer than %d bytes", TEXT_LIMIT);
  buf_put(&b, "", 0);
  if (!e && !b.p) buf_putc(&b, 0), b.n = 0;
  if (!e && b.failed) e = mem_err("standard input", b.n);
  if (e) {
    buf_free(&b);
    return cli_fail();
  }
  *out = b.p;
  *n = b.n;
  return CLI_GO;
}

int cli_read_text(const cli_command *c, const cli_text *x, char **out, size_t *n) {
  *out = NULL;
  if (x->text && x->file) return cli_usage(c, "--prompt and --file exclude each other");
  if (!x->text && !x->file) return cli_usage(c, "no text: give --prompt or --file");
  if (x->file) return file_read(x->file, TEXT_LIMIT, out, n) ? cli_fail() : CLI_GO;
  if (strcmp(x->text, "-") == 0) return read_stdin(out, n);
  *out = mem_strdup(x->text);
  if (!*out) {
    mem_err("text", strlen(x->text));
    return cli_fail();
  }
  *n = strlen(x->text);
  return CLI_GO;
}

void cli_add_no_special(cli_table *t, bool *no_special) {
  cli_add(t, (cli_option[]){{.name = "no-special",
                             .type = CLI_FLAG,
                             .to = no_special,
                             .help = "texts of special tokens are plain text"},
                            {0}});
}

void cli_add_quiet(cli_table *t, cli_device *d) {
  cli_add(t, (cli_option[]){{.name = "quiet",
                             .letter = 'q',
                             .type = CLI_FLAG,
                             .to = &d->quiet,
                             .help = "no progress bar"},
                            {0}});
}

void cli_add_sampling(cli_table *t, sample_opts *o) {
  const char *seed =
      o->seed == UINT32_MAX
          ? "of the draws: the same seed gives the same text (default: another each time)"
          : "of the draws: the same seed gives the same text";
  cli_add(
      t,
      (cli_option[]){
          {.name = "temp",
           .type = CLI_F32,
           .to = &o->temp,
           .arg = "X",
           .max = 100,
           .help = "temperature; 0 always takes the likeliest token"},
          {.name = "top-k",
           .type = CLI_U32,
           .to = &o->top_k,
           .arg = "N",
           .max = 256,
           .help = "draws among the N likeliest tokens; 0: 256"},
          {.name = "top-p",
           .type = CLI_F32,
           .to = &o->top_p,
           .arg = "X",
           .max = 1,
           .help = "draws among the likeliest tokens that reach this probability together; 1: off"},
          {.name = "min-p",
           .type = CLI_F32,
           .to = &o->min_p,
           .arg = "X",
           .max = 1,
           .help = "leaves out tokens below this share of the likeliest one's probability; 0: off"},
          {.name = "penalty",
           .type = CLI_F32,
           .to = &o->penalty,
           .arg = "X",
           .max = 10,
           .help = "divides the logits of recent tokens; 1: off"},
          {.name = "seed",
           .type = CLI_U32,
           .to = &o->seed,
           .arg = "N",
           .max = UINT32_MAX - 1.0, /* UINT32_MAX: none was given */
           .help = seed},
          {0}});
}

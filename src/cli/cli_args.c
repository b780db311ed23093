/* Option tables: popt does the splitting, the rows say what a value must be. */
#include "cli/cli.h"

#include <errno.h>
#include <math.h>
#include <popt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { HELP_COLUMN = 25, HELP_WIDTH = 80, HELP_ID = 1000 };

void cli_add(cli_table *t, const cli_option *rows) {
  for (; rows->name && t->n < CLI_MAX_OPTIONS; rows++) {
    cli_option *o = &t->row[t->n++];
    *o = *rows;
    if (strstr(o->help, "default")) continue;
    if (o->type == CLI_F32) snprintf(o->preset, sizeof o->preset, "%g", (double)*(float *)o->to);
    if (o->type == CLI_U32) snprintf(o->preset, sizeof o->preset, "%u", *(uint32_t *)o->to);
  }
}

/* ---- values ---- */

static double suffix(const char **s) {
  static const char letters[] = "KMG";
  const char *at = **s ? strchr(letters, **s) : NULL;
  if (!at) return 1;
  *s += 1;
  return (double)(UINT64_C(1) << (10 * (at - letters + 1)));
}

static int bad_value(const cli_command *c, const cli_option *o, const char *text) {
  bool whole = o->type != CLI_F32;
  double max = o->max > 0 ? o->max : o->type == CLI_U32 ? 4294967295.0 : INFINITY;
  if (max < INFINITY)
    return cli_usage(c, "--%s takes a %snumber from %g to %.10g, not '%s'", o->name,
                     whole ? "whole " : "", o->min, max, text);
  return cli_usage(c, "--%s takes a %snumber from %g on, not '%s'", o->name, whole ? "whole " : "",
                   o->min, text);
}

static int set_value(const cli_command *c, const cli_option *o, const char *text) {
  if (o->type == CLI_TEXT) {
    *(const char **)o->to = text;
    return CLI_GO;
  }
  size_t digits = strspn(text, "0123456789.eE+-"); /* what strtod takes beyond is no number here */
  char *stop = NULL;
  double v = digits ? strtod(text, &stop) : NAN;
  const char *end = stop == text + digits ? stop : text;
  if (o->type == CLI_BYTES) v *= suffix(&end);
  double max = o->max > 0 ? o->max : o->type == CLI_U32 ? 4294967295.0 : 1e18;
  bool good = end != text && !*end && v >= o->min && v <= max;
  if (good && o->type != CLI_F32) good = v == floor(v);
  if (!good) return bad_value(c, o, text);
  if (o->type == CLI_U32) *(uint32_t *)o->to = (uint32_t)v;
  else if (o->type == CLI_BYTES) *(uint64_t *)o->to = (uint64_t)v;
  else *(float *)o->to = (float)v;
  return CLI_GO;
}

/* ---- the command line ---- */

static uint32_t count_words(const char *s) {
  uint32_t n = *s != 0;
  for (; *s; s++) n += *s == ' ';
  return n;
}

static int take_args(const cli_command *c, const char *want, poptContext pc, cli_args *out) {
  uint32_t wanted = count_words(want);
  const char *a;
  while ((a = poptGetArg(pc))) {
    if (out->n == wanted) return cli_usage(c, "'%s' is one argument too many", a);
    out->arg[out->n] = arena_strdup(&out->mem, a);
    if (!out->arg[out->n++]) {
      mem_err("arguments", strlen(a));
      return cli_fail();
    }
  }
  for (uint32_t i = 0; i < out->n; i++)
    want += strcspn(want, " ") + (want[strcspn(want, " ")] == ' ');
  if (out->n < wanted) return cli_usage(c, "%.*s is missing", (int)strcspn(want, " "), want);
  return CLI_GO;
}

static int take_option(const cli_command *c, const cli_option *o, poptContext pc, cli_args *out) {
  if (o->type == CLI_FLAG) {
    *(bool *)o->to = true;
    return CLI_GO;
  }
  char *value = poptGetOptArg(pc);
  const char *kept = arena_strdup(&out->mem, value ? value : "");
  free(value);
  if (kept) return set_value(c, o, kept);
  mem_err("arguments", 0);
  return cli_fail();
}

int cli_parse(const cli_command *c, cli_table *t, const char *want, int argc, const char **argv,
              cli_args *out) {
  struct poptOption table[CLI_MAX_OPTIONS + 2] = {{0}};
  for (uint32_t i = 0; i < t->n; i++) {
    const cli_option *o = &t->row[i];
    table[i] = (struct poptOption){
        o->name, o->letter, o->type == CLI_FLAG ? POPT_ARG_NONE : POPT_ARG_STRING, NULL, (int)i + 1,
        NULL,    NULL};
  }
  table[t->n] = (struct poptOption){"help", 'h', POPT_ARG_NONE, NULL, HELP_ID, NULL, NULL};
  *out = (cli_args){0};
  poptContext pc = poptGetContext(NULL, argc, argv, table, 0);
  int status = CLI_GO, id = -1;
  while (status == CLI_GO && (id = poptGetNextOpt(pc)) > 0 && id != HELP_ID)
    status = take_option(c, &t->row[id - 1], pc, out);
  if (id == HELP_ID) {
    cli_help(c, t);
    status = cli_flush();
  } else if (status == CLI_GO && id < -1) {
    const char *bad = poptBadOption(pc, POPT_BADOPTION_NOALIAS);
    if (id == POPT_ERROR_BADOPT) status = cli_usage(c, "there is no option %s", bad);
    else if (id == POPT_ERROR_NOARG) status = cli_usage(c, "%s needs a value", bad);
    else status = cli_usage(c, "%s: %s", bad, poptStrerror(id));
  } else if (status == CLI_GO) {
    status = take_args(c, want, pc, out);
  }
  poptFreeContext(pc);
  if (status != CLI_GO) cli_args_free(out);
  return status;
}

void cli_args_free(cli_args *a) { arena_free(&a->mem); }

/* ---- help ---- */

/* Words of `text` from column `at` on, later lines indented to HELP_COLUMN. */
static void put_wrapped(const char *text, int at) {
  for (; at < HELP_COLUMN; at++) putchar(' ');
  const char *sep = "";
  while (*text) {
    int n = (int)strcspn(text, " ");
    if (at + n + (int)strlen(sep) > HELP_WIDTH) {
      printf("\n%*s", HELP_COLUMN, "");
      at = HELP_COLUMN;
      sep = "";
    }
    printf("%s%.*s", sep, n, text);
    at += n + (int)strlen(sep);
    sep = " ";
    text += n + (text[n] == ' ');
  }
  putchar('\n');
}

static void put_option(const cli_option *o) {
  char left[96];
  int n = snprintf(left, sizeof left, "  %c%c%s--%s%s%s", o->letter ? '-' : ' ',
                   o->letter ? o->letter : ' ', o->letter ? ", " : "  ", o->name, o->arg ? "=" : "",
                   o->arg ? o->arg : "");
  fputs(left, stdout);
  if (n + 2 > HELP_COLUMN) {
    putchar('\n');
    n = 0;
  }
  char help[512];
  snprintf(help, sizeof help, "%s%s%s%s", o->help, o->preset[0] ? " (default " : "", o->preset,
           o->preset[0] ? ")" : "");
  put_wrapped(help, n);
}

static void put_lines(const char *prefix, const char *lines) {
  for (; *lines; lines += strcspn(lines, "\n"), lines += *lines == '\n')
    printf("%s%.*s\n", prefix, (int)strcspn(lines, "\n"), lines);
}

void cli_help(const cli_command *c, const cli_table *t) {
  char prefix[64];
  printf("frit %s: %s\n\nUsage:\n", c->name, c->summary);
  snprintf(prefix, sizeof prefix, "  frit %s ", c->name);
  put_lines(prefix, c->synopsis);
  printf("\n%s\n\nOptions:\n", c->text);
  for (uint32_t i = 0; i < t->n; i++) put_option(&t->row[i]);
  put_option(&(cli_option){.name = "help", .letter = 'h', .help = "this text"});
  printf("\nExit status: %s, 2 bad usage.\n\nExamples:\n",
         c->exit ? c->exit : "0 done, 1 bad input");
  put_lines("  ", c->examples);
}

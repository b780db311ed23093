#include "cli/line.h"

#include <errno.h>
#include <histedit.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <wchar.h>

enum { HISTORY_LINES = 1000 };

struct line_editor {
  EditLine *el; /* NULL: standard input is no terminal */
  History *past;
  HistEvent ev;
  char *path; /* of the history, NULL: not kept */
  bool more;  /* in the continuation of a line */
  bool interrupted;
};

static char *prompt(EditLine *el) {
  static char first[] = "> ", more[] = ". ";
  line_editor *l;
  el_get(el, EL_CLIENTDATA, &l);
  return l->more ? more : first;
}

/* Ctrl-C as a key: the line is dropped and a new one begins. */
static unsigned char drop_line(EditLine *el, int key) {
  (void)key;
  line_editor *l;
  el_get(el, EL_CLIENTDATA, &l);
  l->interrupted = true;
  fputs("^C\n", stdout);
  return CC_NEWLINE;
}

/* Around what it pastes, a terminal that was asked to puts these. */
static const char paste_on[] = "\033[?2004h", paste_off[] = "\033[?2004l";
static const char paste_begin[] = "\033[200~", paste_end[] = "\033[201~";

/* A pasted text, line ends and all, becomes part of the line. */
static unsigned char paste(EditLine *el, int key) {
  (void)key;
  buf b = {0};
  size_t end = sizeof paste_end - 1;
  wchar_t c;
  char bytes[MB_LEN_MAX];
  while (el_wgetc(el, &c) == 1) {
    size_t n = wcrtomb(bytes, c == L'\r' ? L'\n' : c, &(mbstate_t){0});
    if (n != (size_t)-1) buf_put(&b, bytes, n);
    if (b.failed || (b.n >= end && memcmp(b.p + b.n - end, paste_end, end) == 0)) break;
  }
  bool whole = !b.failed && b.n >= end;
  if (whole) b.n -= end;
  while (whole && b.n && b.p[b.n - 1] == '\n') b.n--;
  if (whole) b.p[b.n] = 0;
  int added = whole && b.n ? el_insertstr(el, b.p) : 0;
  buf_free(&b);
  return added ? CC_ERROR : CC_REFRESH;
}

/* $XDG_STATE_HOME/frit/NAME, its folder made; NULL when there is no home. */
static char *state_path(const char *name) {
  const char *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");
  buf b = {0};
  if (state && state[0] == '/') buf_puts(&b, state);
  else if (home && home[0] == '/') buf_printf(&b, "%s/.local/state", home);
  else return NULL;
  buf_printf(&b, "/frit/%s", name);
  if (b.failed) {
    buf_free(&b);
    return NULL;
  }
  for (char *p = b.p + 1; (p = strchr(p, '/')); p++) {
    *p = 0;
    mkdir(b.p, 0700);
    *p = '/';
  }
  return b.p;
}

static err open_editor(line_editor *l, const char *history_name) {
  l->el = el_init("frit", stdin, stdout, stderr);
  l->past = history_init();
  if (!l->el || !l->past) return mem_err("line editor", 0);
  el_set(l->el, EL_CLIENTDATA, l);
  el_set(l->el, EL_PROMPT, prompt);
  el_set(l->el, EL_EDITOR, "emacs");
  el_set(l->el, EL_SIGNAL, 0);
  el_set(l->el, EL_HIST, history, l->past);
  el_set(l->el, EL_SETTY, "-d", "-isig", NULL); /* while editing Ctrl-C is a key */
  el_set(l->el, EL_ADDFN, "frit-drop-line", "Drops the line", drop_line);
  el_set(l->el, EL_BIND, "^C", "frit-drop-line", NULL);
  el_set(l->el, EL_ADDFN, "frit-paste", "Takes a pasted text", paste);
  el_set(l->el, EL_BIND, paste_begin, "frit-paste", NULL);
  history(l->past, &l->ev, H_SETSIZE, HISTORY_LINES);
  history(l->past, &l->ev, H_SETUNIQUE, 1);
  l->path = state_path(history_name);
  if (l->path) history(l->past, &l->ev, H_LOAD, l->path);
  return ERR_NONE;
}

err line_open(const char *history_name, line_editor **out) {
  *out = NULL;
  line_editor *l = mem_zalloc(1, sizeof *l);
  if (!l) return mem_err("line editor", sizeof *l);
  err e = isatty(STDIN_FILENO) ? open_editor(l, history_name) : ERR_NONE;
  if (e) line_close(l);
  else *out = l;
  return e;
}

void line_close(line_editor *l) {
  if (!l) return;
  mode_t mask = umask(077);
  if (l->path) history(l->past, &l->ev, H_SAVE, l->path);
  umask(mask);
  if (l->el) el_end(l->el);
  if (l->past) history_end(l->past);
  mem_free(l->path);
  mem_free(l);
}

bool line_terminal(const line_editor *l) { return l->el != NULL; }

/* *error: why there was no line. */
static const char *edit(line_editor *l, int *n, int *error) {
  el_set(l->el, EL_PREP_TERM, 1); /* before the prompt: el_gets does it after, and a Ctrl-C between
                                     them would be a signal yet */
  fputs(paste_on, stdout);
  fflush(stdout);
  el_resize(l->el); /* the window may have changed while an answer came */
  errno = 0;
  const char *s = el_gets(l->el, n);
  *error = errno;
  fputs(paste_off, stdout);
  fflush(stdout);
  return s;
}

/* What was typed, its end included (recalled and pasted ones have line ends inside too); NULL at
 * the end of input. */
static const char *edited(line_editor *l) {
  for (;;) {
    int n = 0, error;
    l->interrupted = false;
    const char *s = edit(l, &n, &error);
    if (s && n > 0 && !l->interrupted) return s;
    if (l->interrupted) l->more = false;
    else if (!(n == -1 && error == EINTR)) return NULL;
    if (l->interrupted) return "";
  }
}

static bool plain(buf *out) {
  int c;
  size_t before = out->n;
  while ((c = getchar()) != EOF && c != '\n') buf_putc(out, (char)c);
  return c == '\n' || out->n > before;
}

bool line_read(line_editor *l, buf *out) {
  buf_clear(out);
  l->more = false;
  for (;;) {
    if (l->el) {
      const char *s = edited(l);
      if (!s) return false;
      if (l->interrupted) buf_clear(out);
      size_t n = strlen(s);
      buf_put(out, s, n && s[n - 1] == '\n' ? n - 1 : n);
    } else if (!plain(out)) {
      return out->n > 0;
    }
    l->more = out->n && out->p[out->n - 1] == '\\';
    if (!l->more) break;
    out->p[out->n - 1] = '\n';
  }
  if (l->el && out->n) history(l->past, &l->ev, H_ENTER, out->p);
  return true;
}

/* Owns the filters on texts and numbers, and the look-up of filters. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "infer/jinja_impl.h"

#define UNUSED (void)a, (void)av, (void)c

/* ---- text ---- */

static jval *f_trim(jctx *c, jval *v, const jargs *a, jval **av) {
  (void)a;
  jval *s = jx_tostr(c, v), *chars = av[0];
  if (!s) return NULL;
  if (chars && chars->type == JV_NONE) chars = NULL;
  if (chars && chars->type != JV_STR) return jx_fail(c, ERR_FORMAT, "trim takes a str");
  if (!jx_work(c, 1 + s->s.n / 16 * (chars ? 1 + chars->s.n : 1))) return NULL;
  const char *p = s->s.p;
  size_t n = s->s.n;
  jt_strip(&p, &n, chars, true, true);
  return jx_like(c, s, jx_substr(c, p, n));
}

typedef enum letter_case { UPPER, LOWER, CAPITALIZE, TITLE } letter_case;

/* A character after which the title filter begins a word. */
static bool begins_word(uint32_t c) {
  return jt_space(c) || c == '-' || c == '(' || c == '{' || c == '[' || c == '<';
}

static jval *recase(jctx *c, jval *v, letter_case to) {
  jval *s = jx_tostr(c, v);
  buf b = {0};
  if (!s || !jx_work(c, s->s.n / 4)) return NULL;
  bool start = true;
  for (size_t i = 0; i < s->s.n;) {
    uint32_t cp;
    i += jt_decode(s->s.p + i, s->s.n - i, &cp);
    bool up = to == UPPER || (to != LOWER && start);
    if (to == UPPER && cp == 0xDF) buf_puts(&b, "SS");
    else jt_put(&b, up ? jt_upper(cp) : jt_lower(cp));
    start = to == TITLE && begins_word(cp);
  }
  return jx_like(c, s, jx_buf(c, &b));
}
static jval *f_upper(jctx *c, jval *v, const jargs *a, jval **av) {
  UNUSED;
  return recase(c, v, UPPER);
}
static jval *f_lower(jctx *c, jval *v, const jargs *a, jval **av) {
  UNUSED;
  return recase(c, v, LOWER);
}
static jval *f_capitalize(jctx *c, jval *v, const jargs *a, jval **av) {
  UNUSED;
  return recase(c, v, CAPITALIZE);
}
static jval *f_title(jctx *c, jval *v, const jargs *a, jval **av) {
  UNUSED;
  return recase(c, v, TITLE);
}

/* Python's replace of "": x before each character and at the end. */
static bool replace_empty(jctx *c, buf *b, const jval *s, const jval *x, int64_t count) {
  uint32_t cp;
  for (size_t i = 0, k;; i += k) {
    if (count-- != 0 && !jx_put(c, b, x->s.p, x->s.n)) return false;
    if (i >= s->s.n) return true;
    k = jt_decode(s->s.p + i, s->s.n - i, &cp);
    if (!jx_put(c, b, s->s.p + i, k)) return false;
  }
}

static jval *f_replace(jctx *c, jval *v, const jargs *a, jval **av) {
  (void)a;
  int64_t count = -1;
  jval *s = jx_tostr(c, v), *old = jx_tostr(c, av[0]), *x = jx_tostr(c, av[1]);
  if (!s || !old || !x) return NULL;
  if (av[2] && av[2]->type != JV_NONE && !jv_whole(av[2], &count))
    return jx_fail(c, ERR_FORMAT, "replace takes an int as its count");
  if (s->flavor && !(x = jx_escape(c, x))) return NULL;
  buf b = {0};
  bool ok = true;
  if (!old->s.n) {
    ok = replace_empty(c, &b, s, x, count);
  } else {
    for (size_t from = 0; ok;) {
      size_t at = count-- == 0 ? SIZE_MAX : jt_find(c, s, old, from);
      size_t end = at == SIZE_MAX ? s->s.n : at;
      ok = jx_put(c, &b, s->s.p + from, end - from);
      if (at == SIZE_MAX) break;
      ok = ok && jx_put(c, &b, x->s.p, x->s.n);
      from = at + old->s.n;
    }
  }
  if (ok) return jx_like(c, s, jx_buf(c, &b));
  buf_free(&b);
  return NULL;
}

static jval *f_indent(jctx *c, jval *v, const jargs *a, jval **av) {
  (void)a;
  jval *s = jx_tostr(c, v), *by = av[0], blank = {.type = JV_STR, .s = {" ", 1}};
  if (by && by->type != JV_STR && !(by = jx_arith(c, '*', &blank, by))) return NULL;
  jval *lines = s ? jx_lines(c, s, false) : NULL;
  if (!lines) return NULL;
  size_t n = lines->seq.n;
  /* jinja2 adds a line break before it splits: a break at the end gives an empty last line. */
  bool tail = s->s.n && s->s.p[s->s.n - 1] == '\n';
  bool first = av[1] && jv_truth(av[1]), empty = av[2] && jv_truth(av[2]), ok = true;
  buf b = {0};
  for (size_t i = 0; ok && i < n + tail; i++) {
    const jval *line = i < n ? lines->seq.v[i] : &jv_empty;
    bool in = i ? empty || line->s.n : first;
    if (i) ok = jx_put(c, &b, "\n", 1);
    if (ok && in) ok = by ? jx_put(c, &b, by->s.p, by->s.n) : jx_put(c, &b, "    ", 4);
    ok = ok && jx_put(c, &b, line->s.p, line->s.n);
  }
  if (ok && n + tail == 0 && first)
    ok = by ? jx_put(c, &b, by->s.p, by->s.n) : jx_put(c, &b, "    ", 4);
  if (ok) return jx_like(c, s, jx_buf(c, &b));
  buf_free(&b);
  return NULL;
}

static jval *f_string(jctx *c, jval *v, const jargs *a, jval **av) {
  UNUSED;
  return jx_tostr(c, v);
}

static jval *f_safe(jctx *c, jval *v, const jargs *a, jval **av) {
  UNUSED;
  jval *s = jx_tostr(c, v), *r = s ? jx_substr(c, s->s.p, s->s.n) : NULL;
  if (r) r->flavor = 1;
  return r;
}

static jval *f_escape(jctx *c, jval *v, const jargs *a, jval **av) {
  UNUSED;
  return jx_escape(c, v);
}

static jval *f_tojson(jctx *c, jval *v, const jargs *a, jval **av) {
  (void)a;
  return jx_json(c, v, av[1], av[2], av[0] && jv_truth(av[0]), av[3] && jv_truth(av[3]));
}

static jval *f_default(jctx *c, jval *v, const jargs *a, jval **av) {
  (void)a, (void)c;
  bool use = v->type == JV_UNDEF || (av[1] && jv_truth(av[1]) && !jv_truth(v));
  return !use ? v : av[0] ? av[0] : (jval *)&jv_empty;
}

/* ---- numbers ---- */

/* A number in a text as Python's int() or float() reads it; blanks around it and single
 * underscores between digits are fine. */
static bool read_number(const jval *v, bool whole, int64_t *i, double *f) {
  char text[64];
  const char *p = v->s.p;
  size_t n = v->s.n, k = 0;
  jt_strip(&p, &n, NULL, true, true);
  for (size_t j = 0; j < n; j++) {
    bool inner =
        j && j + 1 < n && p[j - 1] >= '0' && p[j - 1] <= '9' && p[j + 1] >= '0' && p[j + 1] <= '9';
    if (p[j] == '_' && inner) continue;
    if (k + 1 >= sizeof text || !p[j] || strchr("xXpP() ", p[j])) return false;
    text[k++] = p[j];
  }
  text[k] = 0;
  char *end = text;
  if (k && whole) {
    size_t sign = text[0] == '-' || text[0] == '+';
    if (strspn(text + sign, "0123456789") != k - sign || k - sign > 18) return false;
    *i = strtoll(text, &end, 10);
  } else if (k) {
    *f = strtod(text, &end);
  }
  return end != text && !*end;
}

static jval *f_int(jctx *c, jval *v, const jargs *a, jval **av) {
  (void)a;
  int64_t i = 0;
  double f = NAN;
  if (av[1] && !(jv_whole(av[1], &i) && i == 10))
    return jx_fail(c, ERR_UNSUPPORTED, "filter 'int' with another base than 10 is not supported");
  if (jv_whole(v, &i)) return jx_int(c, i);
  if (v->type == JV_FLOAT) f = v->f;
  if (v->type == JV_STR && read_number(v, true, &i, &f)) return jx_int(c, i);
  if (v->type == JV_STR && !read_number(v, false, &i, &f)) f = NAN;
  if (fabs(f) < 9.2e18) return jx_int(c, (int64_t)f);
  return av[0] ? av[0] : jx_int(c, 0);
}

static jval *f_float(jctx *c, jval *v, const jargs *a, jval **av) {
  (void)a;
  double f;
  int64_t i;
  if (jv_num(v, &f)) return jx_f64(c, f);
  if (v->type == JV_STR && read_number(v, false, &i, &f)) return jx_f64(c, f);
  return av[0] ? av[0] : jx_f64(c, 0);
}

static jval *f_abs(jctx *c, jval *v, const jargs *a, jval **av) {
  UNUSED;
  int64_t i;
  if (v->type == JV_FLOAT) return jx_f64(c, fabs(v->f));
  if (!jv_whole(v, &i))
    return jx_fail(c, ERR_FORMAT, "abs takes a number, not %s", jv_type_name(v));
  if (i == INT64_MIN) return jx_fail(c, ERR_LIMIT, "an integer is over 64 bits");
  return jx_int(c, i < 0 ? -i : i);
}

static jval *f_round(jctx *c, jval *v, const jargs *a, jval **av) {
  (void)a;
  int64_t places = 0;
  double f;
  char text[400];
  if (!jv_num(v, &f)) return jx_fail(c, ERR_FORMAT, "round takes a number");
  if (av[0] && !jv_whole(av[0], &places)) return jx_fail(c, ERR_FORMAT, "round takes an int");
  if (places < -18 || places > 18)
    return jx_fail(c, ERR_LIMIT, "round: %lld places, the limit is 18", (long long)places);
  bool common = !av[1] || jv_is_str(av[1], "common");
  if (!common && !jv_is_str(av[1], "ceil") && !jv_is_str(av[1], "floor"))
    return jx_fail(c, ERR_FORMAT, "round takes 'common', 'ceil' or 'floor'");
  double scale = pow(10, (double)places);
  if (!common) {
    f *= scale;
    return jx_f64(c, (jv_is_str(av[1], "ceil") ? ceil(f) : floor(f)) / scale);
  }
  if (v->type != JV_FLOAT && places >= 0) return v;
  if (places < 0) f = nearbyint(f * scale) / scale;
  else if (isfinite(f)) {
    snprintf(text, sizeof text, "%.*f", (int)places, f); /* exact, ties to even */
    f = strtod(text, NULL);
  }
  return v->type == JV_FLOAT ? jx_f64(c, f) : jx_int(c, (int64_t)f);
}

/* ---- look-up ---- */

const jbuiltin *jinja_row(const jbuiltin *rows, size_t count, const char *s, size_t n) {
  for (size_t i = 0; i < count; i++)
    if (strlen(rows[i].name) == n && memcmp(rows[i].name, s, n) == 0) return &rows[i];
  return NULL;
}

const jbuiltin *jinja_filter(const char *s, size_t n) {
  static const jbuiltin rows[] = {
      {"trim", "chars", 0, 0, f_trim},
      {"upper", "", 0, 0, f_upper},
      {"lower", "", 0, 0, f_lower},
      {"capitalize", "", 0, 0, f_capitalize},
      {"title", "", 0, 0, f_title},
      {"replace", "old new count", 2, 0, f_replace},
      {"indent", "width first blank", 0, 0, f_indent},
      {"string", "", 0, 0, f_string},
      {"safe", "", 0, 0, f_safe},
      {"escape", "", 0, 0, f_escape},
      {"e", "", 0, 0, f_escape},
      {"tojson", "ensure_ascii indent separators sort_keys", 0, 0, f_tojson},
      {"default", "default_value boolean", 0, 0, f_default},
      {"d", "default_value boolean", 0, 0, f_default},
      {"int", "default base", 0, 0, f_int},
      {"float", "default", 0, 0, f_float},
      {"abs", "", 0, 0, f_abs},
      {"round", "precision method", 0, 0, f_round},
  };
  const jbuiltin *b = jinja_row(rows, sizeof rows / sizeof *rows, s, n);
  return b ? b : jinja_seq_filter(s, n);
}

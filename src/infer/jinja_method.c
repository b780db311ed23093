/* Owns the methods of str, dict and list that templates call, and the global functions. */
#include <stdint.h>
#include <string.h>
#include <time.h>

#include "infer/jinja_impl.h"

#define UNUSED (void)a, (void)av, (void)c

static bool need_str(jctx *c, const jval *v, const char *what) {
  if (v->type == JV_STR) return true;
  jx_fail(c, ERR_FORMAT, "%s takes a str, not %s", what, jv_type_name(v));
  return false;
}

/* An optional integer. */
static bool get_int(jctx *c, const jval *v, const char *what, int64_t *out) {
  if (!v || jv_whole(v, out)) return true;
  jx_fail(c, ERR_FORMAT, "%s takes an int, not %s", what, jv_type_name(v));
  return false;
}

/* ---- str ---- */

static jval *strip(jctx *c, jval *v, jval *chars, bool left, bool right) {
  if (chars && chars->type == JV_NONE) chars = NULL;
  if (chars && !need_str(c, chars, "strip")) return NULL;
  if (!jx_work(c, 1 + v->s.n / 16 * (chars ? 1 + chars->s.n : 1))) return NULL;
  const char *p = v->s.p;
  size_t n = v->s.n;
  jt_strip(&p, &n, chars, left, right);
  return jx_like(c, v, jx_substr(c, p, n));
}
static jval *m_strip(jctx *c, jval *v, const jargs *a, jval **av) {
  UNUSED;
  return strip(c, v, av[0], true, true);
}
static jval *m_lstrip(jctx *c, jval *v, const jargs *a, jval **av) {
  UNUSED;
  return strip(c, v, av[0], true, false);
}
static jval *m_rstrip(jctx *c, jval *v, const jargs *a, jval **av) {
  UNUSED;
  return strip(c, v, av[0], false, true);
}

static jval *call_filter(jctx *c, const char *name, jval *v, const jargs *a) {
  return jx_builtin(c, jinja_filter(name, strlen(name)), "method", v, a);
}
static jval *m_upper(jctx *c, jval *v, const jargs *a, jval **av) {
  UNUSED;
  return call_filter(c, "upper", v, a);
}
static jval *m_lower(jctx *c, jval *v, const jargs *a, jval **av) {
  UNUSED;
  return call_filter(c, "lower", v, a);
}
static jval *m_capitalize(jctx *c, jval *v, const jargs *a, jval **av) {
  UNUSED;
  return call_filter(c, "capitalize", v, a);
}

static jval *m_title(jctx *c, jval *v, const jargs *a, jval **av) {
  UNUSED;
  buf b = {0};
  bool in_word = false;
  if (!jx_work(c, v->s.n / 4)) return NULL;
  for (size_t i = 0; i < v->s.n;) {
    uint32_t cp;
    i += jt_decode(v->s.p + i, v->s.n - i, &cp);
    jt_put(&b, in_word ? jt_lower(cp) : jt_upper(cp));
    in_word = jt_alpha(cp);
  }
  return jx_like(c, v, jx_buf(c, &b));
}

/* Splits at blanks, at most `max` times (negative: always). */
static jval *split_blanks(jctx *c, jval *v, int64_t max) {
  jval *out = jx_seq(c, JS_LIST);
  const char *p = v->s.p, *end = p + v->s.n;
  while (out && jx_work(c, 1)) {
    size_t left = (size_t)(end - p), n = 0, k = 0;
    uint32_t cp;
    jt_strip(&p, &left, NULL, true, false);
    if (p == end) return out;
    if (max-- == 0) return jx_push(c, out, jx_substr(c, p, left)) ? out : NULL;
    for (; n < left; n += k) {
      k = jt_decode(p + n, left - n, &cp);
      if (jt_space(cp)) break;
    }
    if (!jx_push(c, out, jx_substr(c, p, n))) return NULL;
    p += n;
  }
  return NULL;
}

static jval *m_split(jctx *c, jval *v, const jargs *a, jval **av) {
  UNUSED;
  int64_t max = -1;
  if (!get_int(c, av[1], "split", &max)) return NULL;
  if (!av[0] || av[0]->type == JV_NONE) return split_blanks(c, v, max);
  if (!need_str(c, av[0], "split")) return NULL;
  if (!av[0]->s.n) return jx_fail(c, ERR_FORMAT, "split takes a separator that is not empty");
  jval *out = jx_seq(c, JS_LIST);
  size_t from = 0;
  while (out) {
    size_t at = max-- == 0 ? SIZE_MAX : jt_find(c, v, av[0], from);
    size_t end = at == SIZE_MAX ? v->s.n : at;
    if (!jx_push(c, out, jx_like(c, v, jx_substr(c, v->s.p + from, end - from)))) return NULL;
    if (at == SIZE_MAX) break;
    from = at + av[0]->s.n;
  }
  return out;
}

/* The last place of x before `end`, or SIZE_MAX. */
static size_t find_last(jctx *c, const jval *v, const jval *x, size_t end) {
  if (x->s.n > end) return SIZE_MAX;
  for (size_t i = end - x->s.n + 1; i-- > 0;) {
    if (!jx_work(c, 1 + x->s.n / 16)) break;
    if (memcmp(v->s.p + i, x->s.p, x->s.n) == 0) return i;
  }
  return SIZE_MAX;
}

static jval *m_rsplit(jctx *c, jval *v, const jargs *a, jval **av) {
  int64_t max = -1;
  if (!get_int(c, av[1], "rsplit", &max)) return NULL;
  if (max < 0) return m_split(c, v, a, av);
  if (!av[0] || av[0]->type == JV_NONE)
    return jx_fail(c, ERR_UNSUPPORTED, "rsplit with a limit needs a separator");
  if (!need_str(c, av[0], "rsplit")) return NULL;
  if (!av[0]->s.n) return jx_fail(c, ERR_FORMAT, "rsplit takes a separator that is not empty");
  jval *back = jx_seq(c, JS_LIST), *out = jx_seq(c, JS_LIST);
  size_t end = v->s.n;
  while (back) {
    size_t at = max-- == 0 ? SIZE_MAX : find_last(c, v, av[0], end);
    size_t from = at == SIZE_MAX ? 0 : at + av[0]->s.n;
    if (!jx_push(c, back, jx_like(c, v, jx_substr(c, v->s.p + from, end - from)))) return NULL;
    if (at == SIZE_MAX) break;
    end = at;
  }
  for (size_t i = back ? back->seq.n : 0; out && i-- > 0;)
    if (!jx_push(c, out, back->seq.v[i])) return NULL;
  return back ? out : NULL;
}

static jval *m_splitlines(jctx *c, jval *v, const jargs *a, jval **av) {
  UNUSED;
  return jx_lines(c, v, av[0] && jv_truth(av[0]));
}

/* startswith and endswith: a str or a tuple of them. */
static jval *affix(jctx *c, const jval *v, const jval *x, bool start) {
  if (x->type == JV_SEQ && x->flavor == JS_TUPLE) {
    for (size_t i = 0; i < x->seq.n; i++) {
      jval *r = affix(c, v, x->seq.v[i], start);
      if (!r || r->b) return r;
    }
    return jx_bool(false);
  }
  if (!need_str(c, x, start ? "startswith" : "endswith") || !jx_work(c, x->s.n / 16)) return NULL;
  if (x->s.n > v->s.n) return jx_bool(false);
  return jx_bool(memcmp(v->s.p + (start ? 0 : v->s.n - x->s.n), x->s.p, x->s.n) == 0);
}
static jval *m_startswith(jctx *c, jval *v, const jargs *a, jval **av) {
  UNUSED;
  return affix(c, v, av[0], true);
}
static jval *m_endswith(jctx *c, jval *v, const jargs *a, jval **av) {
  UNUSED;
  return affix(c, v, av[0], false);
}

static jval *m_removeprefix(jctx *c, jval *v, const jargs *a, jval **av) {
  jval *has = m_startswith(c, v, a, av);
  if (!has || !has->b) return has ? v : NULL;
  return jx_substr(c, v->s.p + av[0]->s.n, v->s.n - av[0]->s.n);
}
static jval *m_removesuffix(jctx *c, jval *v, const jargs *a, jval **av) {
  jval *has = m_endswith(c, v, a, av);
  return !has || !has->b ? has ? v : NULL : jx_substr(c, v->s.p, v->s.n - av[0]->s.n);
}

static jval *m_replace(jctx *c, jval *v, const jargs *a, jval **av) {
  if (!need_str(c, av[0], "replace") || !need_str(c, av[1], "replace")) return NULL;
  return call_filter(c, "replace", v, a);
}

static jval *char_index(jctx *c, const jval *v, size_t at) {
  return c->e ? NULL : jx_int(c, at == SIZE_MAX ? -1 : (int64_t)jt_count(v->s.p, at));
}
static jval *m_find(jctx *c, jval *v, const jargs *a, jval **av) {
  UNUSED;
  return need_str(c, av[0], "find") ? char_index(c, v, jt_find(c, v, av[0], 0)) : NULL;
}
static jval *m_rfind(jctx *c, jval *v, const jargs *a, jval **av) {
  UNUSED;
  return need_str(c, av[0], "rfind") ? char_index(c, v, find_last(c, v, av[0], v->s.n)) : NULL;
}

static jval *m_count(jctx *c, jval *v, const jargs *a, jval **av) {
  UNUSED;
  if (!need_str(c, av[0], "count")) return NULL;
  if (!av[0]->s.n) return jx_int(c, (int64_t)jt_count(v->s.p, v->s.n) + 1);
  int64_t n = 0;
  for (size_t at = 0; (at = jt_find(c, v, av[0], at)) != SIZE_MAX; at += av[0]->s.n) n++;
  return jx_int(c, n);
}

static jval *m_join(jctx *c, jval *v, const jargs *a, jval **av) {
  UNUSED;
  jval *items = jx_iter(c, av[0]), *out = items ? jx_seq(c, JS_LIST) : NULL;
  for (size_t i = 0; out && i < items->seq.n; i++) {
    if (!need_str(c, items->seq.v[i], "join")) return NULL;
    if ((i && !jx_push(c, out, v)) || !jx_push(c, out, items->seq.v[i])) return NULL;
  }
  return out ? jx_concat(c, out->seq.v, out->seq.n) : NULL;
}

/* All characters are in a class, and there is one. */
static jval *all_chars(jctx *c, const jval *v, bool digits, bool letters, bool blanks) {
  if (!jx_work(c, v->s.n / 16)) return NULL;
  bool ok = v->s.n > 0;
  for (size_t i = 0; ok && i < v->s.n;) {
    uint32_t cp;
    i += jt_decode(v->s.p + i, v->s.n - i, &cp);
    ok =
        (digits && cp >= '0' && cp <= '9') || (letters && jt_alpha(cp)) || (blanks && jt_space(cp));
  }
  return jx_bool(ok);
}
static jval *m_isdigit(jctx *c, jval *v, const jargs *a, jval **av) {
  UNUSED;
  return all_chars(c, v, true, false, false);
}
static jval *m_isalpha(jctx *c, jval *v, const jargs *a, jval **av) {
  UNUSED;
  return all_chars(c, v, false, true, false);
}
static jval *m_isalnum(jctx *c, jval *v, const jargs *a, jval **av) {
  UNUSED;
  return all_chars(c, v, true, true, false);
}
static jval *m_isspace(jctx *c, jval *v, const jargs *a, jval **av) {
  UNUSED;
  return all_chars(c, v, false, false, true);
}

static jval *call_test(jctx *c, const char *name, jval *v, const jargs *a) {
  return jx_builtin(c, jinja_test(name, strlen(name)), "method", v, a);
}
static jval *m_isupper(jctx *c, jval *v, const jargs *a, jval **av) {
  UNUSED;
  return call_test(c, "upper", v, a);
}
static jval *m_islower(jctx *c, jval *v, const jargs *a, jval **av) {
  UNUSED;
  return call_test(c, "lower", v, a);
}

/* ---- dict, list ---- */

static jval *m_get(jctx *c, jval *v, const jargs *a, jval **av) {
  UNUSED;
  jval *item = jd_get(&v->d, av[0]);
  return item ? item : av[1] ? av[1] : jx_none();
}

static jval *m_items(jctx *c, jval *v, const jargs *a, jval **av) {
  UNUSED;
  jval *out = jx_seq(c, JS_VIEW);
  for (size_t i = 0; out && i < v->d.n; i++) {
    jval *t = jx_seq(c, JS_TUPLE);
    if (!t || !jx_push(c, t, v->d.v[i].key) || !jx_push(c, t, v->d.v[i].val) || !jx_push(c, out, t))
      return NULL;
  }
  return out;
}

static jval *m_keys(jctx *c, jval *v, const jargs *a, jval **av) {
  UNUSED;
  jval *out = jx_iter(c, v);
  if (out) out->flavor = JS_VIEW;
  return out;
}

static jval *m_values(jctx *c, jval *v, const jargs *a, jval **av) {
  UNUSED;
  jval *out = jx_seq(c, JS_VIEW);
  for (size_t i = 0; out && i < v->d.n; i++)
    if (!jx_push(c, out, v->d.v[i].val)) return NULL;
  return out;
}

static jval *m_copy(jctx *c, jval *v, const jargs *a, jval **av) {
  UNUSED;
  return v; /* values do not change */
}

static jval *m_list_count(jctx *c, jval *v, const jargs *a, jval **av) {
  UNUSED;
  int64_t n = 0;
  for (size_t i = 0; i < v->seq.n; i++) n += jx_equal(c, v->seq.v[i], av[0]);
  return jx_int(c, n);
}

static jval *m_list_index(jctx *c, jval *v, const jargs *a, jval **av) {
  UNUSED;
  for (size_t i = 0; i < v->seq.n; i++)
    if (jx_equal(c, v->seq.v[i], av[0])) return jx_int(c, (int64_t)i);
  return jx_fail(c, ERR_FORMAT, "index: the item is not in the list");
}

const jbuiltin *jinja_method(const jval *v, const char *s, size_t n) {
  static const jbuiltin rows[] = {
      {"strip", "chars", 0, JV_STR, m_strip},
      {"lstrip", "chars", 0, JV_STR, m_lstrip},
      {"rstrip", "chars", 0, JV_STR, m_rstrip},
      {"split", "sep maxsplit", 0, JV_STR, m_split},
      {"rsplit", "sep maxsplit", 0, JV_STR, m_rsplit},
      {"splitlines", "keepends", 0, JV_STR, m_splitlines},
      {"startswith", "prefix", 1, JV_STR, m_startswith},
      {"endswith", "suffix", 1, JV_STR, m_endswith},
      {"removeprefix", "prefix", 1, JV_STR, m_removeprefix},
      {"removesuffix", "suffix", 1, JV_STR, m_removesuffix},
      {"replace", "old new count", 2, JV_STR, m_replace},
      {"upper", "", 0, JV_STR, m_upper},
      {"lower", "", 0, JV_STR, m_lower},
      {"title", "", 0, JV_STR, m_title},
      {"capitalize", "", 0, JV_STR, m_capitalize},
      {"find", "sub", 1, JV_STR, m_find},
      {"rfind", "sub", 1, JV_STR, m_rfind},
      {"count", "sub", 1, JV_STR, m_count},
      {"join", "iterable", 1, JV_STR, m_join},
      {"isdigit", "", 0, JV_STR, m_isdigit},
      {"isalpha", "", 0, JV_STR, m_isalpha},
      {"isalnum", "", 0, JV_STR, m_isalnum},
      {"isspace", "", 0, JV_STR, m_isspace},
      {"isupper", "", 0, JV_STR, m_isupper},
      {"islower", "", 0, JV_STR, m_islower},
      {"get", "key default", 1, JV_DICT, m_get},
      {"items", "", 0, JV_DICT, m_items},
      {"keys", "", 0, JV_DICT, m_keys},
      {"values", "", 0, JV_DICT, m_values},
      {"copy", "", 0, JV_DICT, m_copy},
      {"copy", "", 0, JV_SEQ, m_copy},
      {"count", "value", 1, JV_SEQ, m_list_count},
      {"index", "value", 1, JV_SEQ, m_list_index},
  };
  if (v->type == JV_SEQ && v->flavor > JS_TUPLE) return NULL;
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    if (rows[i].type == v->type && strlen(rows[i].name) == n && memcmp(rows[i].name, s, n) == 0)
      return &rows[i];
  return NULL;
}

/* ---- global functions ---- */

static jval *g_range(jctx *c, jval *v, const jargs *a, jval **av) {
  (void)v;
  int64_t x[3] = {0, 0, 1};
  (void)av;
  if (a->npos < 1 || a->npos > 3 || a->nkw)
    return jx_fail(c, ERR_FORMAT, "range takes one to three ints");
  for (size_t i = 0; i < a->npos; i++)
    if (!get_int(c, a->pos[i], "range", a->npos == 1 ? &x[1] : &x[i])) return NULL;
  if (x[2] == 0) return jx_fail(c, ERR_FORMAT, "range has step 0");
  jval *out = jx_seq(c, JS_RANGE);
  while (out && (x[2] > 0 ? x[0] < x[1] : x[0] > x[1])) {
    if (out->seq.n == 100000) /* jinja2's sandbox has the same limit */
      return jx_fail(c, ERR_LIMIT, "range is over 100000 items");
    if (!jx_push(c, out, jx_int(c, x[0]))) return NULL;
    if (__builtin_add_overflow(x[0], x[2], &x[0])) break;
  }
  return out;
}

static jval *g_dict(jctx *c, jval *v, const jargs *a, jval **av) {
  (void)v, (void)av;
  jval *d = jx_dict(c);
  if (a->npos > 1 || (a->npos && a->pos[0]->type != JV_DICT && a->pos[0]->type != JV_NS))
    return jx_fail(c, ERR_FORMAT, "dict and namespace take a dict and named items");
  for (size_t i = 0; d && a->npos && i < a->pos[0]->d.n; i++)
    if (!jx_dset(c, d, a->pos[0]->d.v[i].key, a->pos[0]->d.v[i].val)) return NULL;
  for (size_t i = 0; d && i < a->nkw; i++)
    if (!jx_dset(c, d, jx_str(c, a->kw[i].s, a->kw[i].n), a->kw[i].v)) return NULL;
  return d;
}

static jval *g_namespace(jctx *c, jval *v, const jargs *a, jval **av) {
  jval *d = g_dict(c, v, a, av);
  if (d) d->type = JV_NS;
  return d;
}

static jval *g_raise(jctx *c, jval *v, const jargs *a, jval **av) {
  (void)v, (void)a;
  jval *s = jx_tostr(c, av[0]);
  return s ? jx_fail(c, ERR_ARG, "%.*s", s->s.n < 600 ? (int)s->s.n : 600, s->s.p) : NULL;
}

/* Gregorian date of a day since 1970 (Hinnant's civil_from_days). */
static struct tm civil(int64_t seconds) {
  int64_t days = seconds / 86400 - (seconds % 86400 < 0), sec = seconds - days * 86400;
  int64_t z = days + 719468, era = (z >= 0 ? z : z - 146096) / 146097, doe = z - era * 146097;
  int64_t yoe = (doe - doe / 1460 + doe / 36524 - doe / 146096) / 365;
  int64_t doy = doe - (365 * yoe + yoe / 4 - yoe / 100), mp = (5 * doy + 2) / 153;
  int64_t month = mp < 10 ? mp + 3 : mp - 9, year = yoe + era * 400 + (month <= 2);
  bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
  return (struct tm){
      .tm_year = (int)(year - 1900),
      .tm_mon = (int)month - 1,
      .tm_mday = (int)(doy - (153 * mp + 2) / 5 + 1),
      .tm_hour = (int)(sec / 3600),
      .tm_min = (int)(sec / 60 % 60),
      .tm_sec = (int)(sec % 60),
      .tm_wday = (int)(((days + 4) % 7 + 7) % 7),
      .tm_yday = (int)(month > 2 ? doy + 59 + leap : doy - 306),
  };
}

static jval *g_strftime(jctx *c, jval *v, const jargs *a, jval **av) {
  static const char *const full = "YmdHMSBbAayjIpeFTDhR%";
  (void)v, (void)a;
  if (!need_str(c, av[0], "strftime_now")) return NULL;
  int64_t now = c->o.now ? c->o.now : (int64_t)time(NULL);
  if (now > 253402300799 || now < -62135596800) now = 0; /* years 1 to 9999 */
  struct tm t = civil(now);
  buf b = {0};
  for (size_t i = 0; i < av[0]->s.n && !c->e; i++) {
    char ch = av[0]->s.p[i], fmt[3] = {'%', 0, 0}, text[64];
    if (ch != '%') {
      jx_put(c, &b, &ch, 1);
      continue;
    }
    bool bare = i + 2 < av[0]->s.n && av[0]->s.p[i + 1] == '-'; /* %-d: no zero in front */
    i += bare ? 2 : 1;
    fmt[1] = i < av[0]->s.n ? av[0]->s.p[i] : 0;
    if (!fmt[1] || !strchr(full, fmt[1])) {
      jx_fail(c, ERR_UNSUPPORTED, "strftime_now: the format is not supported");
      break;
    }
    size_t n = strftime(text, sizeof text, fmt, &t), from = 0;
    while (bare && from + 1 < n && (text[from] == '0' || text[from] == ' ')) from++;
    jx_put(c, &b, text + from, n - from);
  }
  return jx_buf(c, &b);
}

const jbuiltin *jinja_global(const char *s, size_t n) {
  static const jbuiltin rows[] = {
      {"range", "*", 0, 0, g_range},
      {"dict", "*", 0, 0, g_dict},
      {"namespace", "*", 0, 0, g_namespace},
      {"raise_exception", "message", 1, 0, g_raise},
      {"strftime_now", "format", 1, 0, g_strftime},
  };
  return jinja_row(rows, sizeof rows / sizeof *rows, s, n);
}

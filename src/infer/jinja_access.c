/* Owns reaching into values: iteration, attributes, items, slices, dotted paths; and printing. */
#include <stdlib.h>
#include <string.h>

#include "infer/jinja_impl.h"

/* ---- iteration ---- */

jval *jx_iter(jctx *c, jval *v) {
  if (v->type == JV_SEQ && v->flavor != JS_GEN) return v;
  if (v->type == JV_SEQ && !v->spent) return v->spent = true, v;
  if (v->type == JV_NONE || v->type == JV_NS || v->type == JV_FUNC || v->type == JV_LOOP ||
      v->type == JV_BOOL || v->type == JV_INT || v->type == JV_FLOAT)
    return jx_fail(c, ERR_FORMAT, "%s cannot be walked through", jv_type_name(v));
  jval *out = jx_seq(c, JS_LIST);
  if (!out) return NULL;
  if (v->type == JV_DICT) {
    for (size_t i = 0; i < v->d.n; i++)
      if (!jx_push(c, out, v->d.v[i].key)) return NULL;
  } else if (v->type == JV_STR) {
    uint32_t cp;
    for (size_t i = 0, k; i < v->s.n; i += k) {
      k = jt_decode(v->s.p + i, v->s.n - i, &cp);
      if (!jx_push(c, out, jx_like(c, v, jx_substr(c, v->s.p + i, k)))) return NULL;
    }
  }
  return out; /* Undefined and a spent generator: nothing */
}

/* ---- attributes and items ---- */

static jval *bound(jctx *c, const jbuiltin *m, jval *self) {
  jval *v = jx_new(c, JV_FUNC);
  if (!v) return NULL;
  v->fn.fn = m;
  v->fn.self = self;
  return v;
}

static bool is(const char *s, size_t n, const char *name) {
  return n == strlen(name) && memcmp(s, name, n) == 0;
}

static jval *loop_attr(jctx *c, const jloop *l, const char *s, size_t n) {
  int64_t i = (int64_t)l->i, count = (int64_t)l->n;
  if (is(s, n, "index")) return jx_int(c, i + 1);
  if (is(s, n, "index0")) return jx_int(c, i);
  if (is(s, n, "revindex")) return jx_int(c, count - i);
  if (is(s, n, "revindex0")) return jx_int(c, count - i - 1);
  if (is(s, n, "first")) return jx_bool(i == 0);
  if (is(s, n, "last")) return jx_bool(i + 1 == count);
  if (is(s, n, "length")) return jx_int(c, count);
  /* depth counts recursive loops only */
  if (is(s, n, "depth")) return jx_int(c, 1);
  if (is(s, n, "depth0")) return jx_int(c, 0);
  if (is(s, n, "previtem")) return i ? l->v[i - 1] : jx_undef(c, "there is no previous item");
  if (is(s, n, "nextitem"))
    return i + 1 < count ? l->v[i + 1] : jx_undef(c, "there is no next item");
  if (is(s, n, "cycle") || is(s, n, "changed"))
    return jx_fail(c, ERR_UNSUPPORTED, "loop.%.*s is not supported", (int)n, s);
  return jx_undef(c, "loop has no '%.*s'", n < 99 ? (int)n : 99, s);
}

/* What would change a list or dict: jinja2's immutable sandbox refuses it too. */
static bool mutator(const jval *v, const char *s, size_t n) {
  static const char *const list[] = {"append", "clear",  "extend",  "insert",
                                     "pop",    "remove", "reverse", "sort"};
  static const char *const dict[] = {"clear", "pop", "popitem", "setdefault", "update"};
  bool seq = v->type == JV_SEQ && v->flavor == JS_LIST;
  size_t count = seq ? sizeof list / sizeof *list : sizeof dict / sizeof *dict;
  if (!seq && v->type != JV_DICT) return false;
  for (size_t i = 0; i < count; i++)
    if (is(s, n, seq ? list[i] : dict[i])) return true;
  return false;
}

static jval *missing(jctx *c, const jval *v, const char *s, size_t n) {
  int k = n < 99 ? (int)n : 99;
  if (mutator(v, s, n)) return jx_undef(c, "%s cannot be changed by '%.*s'", jv_type_name(v), k, s);
  return jx_undef(c, "%s has no '%.*s'", jv_type_name(v), k, s);
}

jval *jx_attr(jctx *c, jval *v, const char *s, size_t n) {
  if (v->type == JV_UNDEF) return jx_fail(c, ERR_FORMAT, "%s", v->s.p);
  if (v->type == JV_LOOP) return loop_attr(c, v->loop, s, n);
  const jbuiltin *m = jinja_method(v, s, n);
  if (m) return bound(c, m, v);
  if (v->type == JV_FUNC && v->fn.macro && is(s, n, "name"))
    return jx_str(c, v->fn.macro->s, v->fn.macro->n);
  jval *item = v->type == JV_DICT || v->type == JV_NS ? jd_gets(&v->d, s, n) : NULL;
  return item ? item : missing(c, v, s, n);
}

/* Byte offset of character i (negative from the end), or SIZE_MAX. */
static size_t char_at(jctx *c, const jval *v, int64_t i) {
  uint32_t cp;
  if (!jx_work(c, v->s.n / 16)) return SIZE_MAX;
  if (i < 0) i += (int64_t)jt_count(v->s.p, v->s.n);
  size_t at = 0;
  for (; i > 0 && at < v->s.n; i--) at += jt_decode(v->s.p + at, v->s.n - at, &cp);
  return i == 0 && at < v->s.n ? at : SIZE_MAX;
}

static jval *item_at(jctx *c, jval *v, int64_t i) {
  uint32_t cp;
  if (v->type == JV_STR) {
    size_t at = char_at(c, v, i);
    if (at != SIZE_MAX)
      return jx_like(c, v, jx_substr(c, v->s.p + at, jt_decode(v->s.p + at, v->s.n - at, &cp)));
  } else if (v->flavor <= JS_RANGE) {
    if (i < 0) i += (int64_t)v->seq.n;
    if (i >= 0 && (uint64_t)i < v->seq.n) return v->seq.v[i];
  }
  return c->e ? NULL : jx_undef(c, "%s has no item %lld", jv_type_name(v), (long long)i);
}

jval *jx_item(jctx *c, jval *v, jval *key) {
  int64_t i;
  if (v->type == JV_UNDEF) return jx_fail(c, ERR_FORMAT, "%s", v->s.p);
  jval *item = v->type == JV_DICT ? jd_get(&v->d, key) : NULL;
  if (item) return item;
  if ((v->type == JV_STR || v->type == JV_SEQ) && jv_whole(key, &i)) return item_at(c, v, i);
  if (key->type == JV_STR) return jx_attr(c, v, key->s.p, key->s.n);
  return jx_undef(c, "%s has no such item", jv_type_name(v));
}

/* The bound of a slice over n items: what is given, clipped as Python does. */
static bool slice_bound(jctx *c, const jval *v, int64_t n, int64_t lo, int64_t hi, int64_t *out) {
  if (!v || v->type == JV_NONE) return true;
  if (!jv_whole(v, out)) {
    jx_fail(c, ERR_FORMAT, "a slice takes integers, not %s", jv_type_name(v));
    return false;
  }
  if (*out < 0) *out = *out < -n ? lo : *out + n;
  if (*out < lo) *out = lo;
  if (*out > hi) *out = hi;
  return true;
}

static jval *slice_text(jctx *c, jval *v, int64_t i, int64_t end, int64_t step) {
  uint32_t cp;
  size_t from = 0, to = 0;
  if (step == 1) { /* a part of it, not copied */
    for (int64_t k = 0; k < end; k++) {
      if (k == i) from = to;
      to += jt_decode(v->s.p + to, v->s.n - to, &cp);
    }
    return jx_like(c, v, i < end ? jx_substr(c, v->s.p + from, to - from) : jx_substr(c, "", 0));
  }
  jval *chars = jx_iter(c, v), *out = chars ? jx_seq(c, JS_LIST) : NULL;
  for (; out && (step > 0 ? i < end : i > end); i += step)
    if (!jx_push(c, out, chars->seq.v[i])) return NULL;
  return out ? jx_like(c, v, jx_concat(c, out->seq.v, out->seq.n)) : NULL;
}

jval *jx_slice(jctx *c, jval *v, jval *a, jval *b, jval *by) {
  int64_t step = 1, n;
  bool text = v->type == JV_STR;
  if (v->type == JV_UNDEF) return jx_fail(c, ERR_FORMAT, "%s", v->s.p);
  if (!text && !(v->type == JV_SEQ && v->flavor <= JS_RANGE))
    return jx_fail(c, ERR_FORMAT, "%s cannot be sliced", jv_type_name(v));
  if (!jx_work(c, text ? v->s.n / 16 : 1)) return NULL;
  n = (int64_t)(text ? jt_count(v->s.p, v->s.n) : v->seq.n);
  if (by && by->type != JV_NONE && !jv_whole(by, &step))
    return jx_fail(c, ERR_FORMAT, "a slice takes integers, not %s", jv_type_name(by));
  if (step == 0) return jx_fail(c, ERR_FORMAT, "a slice has step 0");
  if (step > n + 1) step = n + 1;
  if (step < -n - 1) step = -n - 1;
  int64_t lo = step < 0 ? -1 : 0, hi = step < 0 ? n - 1 : n;
  int64_t i = step < 0 ? hi : lo, end = step < 0 ? lo : hi;
  if (!slice_bound(c, a, n, lo, hi, &i) || !slice_bound(c, b, n, lo, hi, &end)) return NULL;
  if (text) return slice_text(c, v, i, end, step);
  jval *out = jx_seq(c, v->flavor);
  for (; out && (step > 0 ? i < end : i > end); i += step)
    if (!jx_push(c, out, v->seq.v[i])) return NULL;
  return out;
}

jval *jx_path(jctx *c, jval *v, const jval *path) {
  if (path->type == JV_INT) return jx_item(c, v, (jval *)path);
  if (path->type != JV_STR)
    return jx_fail(c, ERR_FORMAT, "an attribute is named by a str, not %s", jv_type_name(path));
  const char *p = path->s.p, *end = p + path->s.n;
  while (v) {
    const char *dot = memchr(p, '.', (size_t)(end - p));
    size_t n = (size_t)((dot ? dot : end) - p);
    bool number = n > 0 && n < 10;
    for (size_t i = 0; i < n; i++) number = number && p[i] >= '0' && p[i] <= '9';
    jval key = {.type = JV_STR, .s = {p, n}};
    if (number) key = (jval){.type = JV_INT, .i = strtol(p, NULL, 10)};
    v = jx_item(c, v, &key);
    if (!dot) break;
    p = dot + 1;
  }
  return v;
}

/* ---- printing ---- */

static bool unprintable(uint32_t c) {
  return c < 0x20 || (c >= 0x7F && c <= 0xA0) || c == 0xAD || c == 0x61C || c == 0x1680 ||
         c == 0x180E || (c >= 0x2000 && c <= 0x200F) || (c >= 0x2028 && c <= 0x202F) ||
         (c >= 0x205F && c <= 0x206F) || c == 0x3000 || (c >= 0xD800 && c < 0xF900) ||
         c == 0xFEFF || (c >= 0xFFF0 && c <= 0xFFFB) || (c & 0xFFFE) == 0xFFFE || c >= 0xE0000;
}

static bool quote(jctx *c, buf *b, const jval *v) {
  bool one = memchr(v->s.p, '\'', v->s.n) != NULL, two = memchr(v->s.p, '"', v->s.n) != NULL;
  char q = one && !two ? '"' : '\'';
  if (v->flavor) buf_puts(b, "Markup(");
  buf_putc(b, q);
  for (size_t i = 0, k; i < v->s.n; i += k) {
    uint32_t cp;
    k = jt_decode(v->s.p + i, v->s.n - i, &cp);
    if (cp == (unsigned char)q || cp == '\\') buf_printf(b, "\\%c", (char)cp);
    else if (cp == '\n') buf_puts(b, "\\n");
    else if (cp == '\r') buf_puts(b, "\\r");
    else if (cp == '\t') buf_puts(b, "\\t");
    else if (!unprintable(cp)) buf_put(b, v->s.p + i, k);
    else if (cp < 0x100) buf_printf(b, "\\x%02x", cp);
    else buf_printf(b, cp < 0x10000 ? "\\u%04x" : "\\U%08x", cp);
    if (!jx_put(c, b, "", 0)) return false;
  }
  return jx_put(c, b, q == '"' ? "\"" : "'", 1) && (!v->flavor || jx_put(c, b, ")", 1));
}

static bool print_seq(jctx *c, buf *b, const jval *v) {
  if (v->flavor > JS_TUPLE)
    return jx_fail(c, ERR_UNSUPPORTED, "%s cannot be printed: put |list behind it",
                   jv_type_name(v)),
           false;
  bool tuple = v->flavor == JS_TUPLE;
  bool ok = jx_put(c, b, tuple ? "(" : "[", 1);
  for (size_t i = 0; ok && i < v->seq.n; i++)
    ok = (!i || jx_put(c, b, ", ", 2)) && jx_print(c, b, v->seq.v[i], true);
  if (ok && tuple && v->seq.n == 1) ok = jx_put(c, b, ",", 1);
  return ok && jx_put(c, b, tuple ? ")" : "]", 1);
}

static bool print_dict(jctx *c, buf *b, const jval *v) {
  bool ok = jx_put(c, b, "{", 1);
  for (size_t i = 0; ok && i < v->d.n; i++)
    ok = (!i || jx_put(c, b, ", ", 2)) && jx_print(c, b, v->d.v[i].key, true) &&
         jx_put(c, b, ": ", 2) && jx_print(c, b, v->d.v[i].val, true);
  return ok && jx_put(c, b, "}", 1);
}

static bool print(jctx *c, buf *b, jval *v, bool repr) {
  switch (v->type) {
  case JV_UNDEF: return jx_put(c, b, repr ? "Undefined" : "", repr ? 9 : 0);
  case JV_NONE: return jx_put(c, b, "None", 4);
  case JV_BOOL: return jx_put(c, b, v->b ? "True" : "False", v->b ? 4 : 5);
  case JV_INT: buf_printf(b, "%lld", (long long)v->i); return jx_put(c, b, "", 0);
  case JV_FLOAT: jt_float(b, v->f); return jx_put(c, b, "", 0);
  case JV_STR: return repr ? quote(c, b, v) : jx_put(c, b, v->s.p, v->s.n);
  case JV_SEQ: return print_seq(c, b, v);
  case JV_DICT: return print_dict(c, b, v);
  default: return jx_fail(c, ERR_UNSUPPORTED, "%s cannot be printed", jv_type_name(v)), false;
  }
}

bool jx_print(jctx *c, buf *b, jval *v, bool repr) {
  if (!jx_enter(c)) return false;
  bool ok = print(c, b, v, repr);
  c->depth--;
  return ok;
}

jval *jx_tostr(jctx *c, jval *v) { return v->type == JV_STR ? v : jx_concat(c, &v, 1); }

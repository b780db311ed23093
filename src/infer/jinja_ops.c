/* Owns what Python does to values: equality, order, arithmetic, concatenation, sorting; and the
 * making of values during a render. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "infer/jinja_impl.h"

/* ---- making ---- */

jval *jx_new(jctx *c, jtype t) {
  jval *v = jx_alloc(c, 1, sizeof *v);
  if (v) v->type = (uint8_t)t;
  return v;
}

/* Shared constants are never written to: only namespaces and generators change. */
jval *jx_bool(bool b) { return (jval *)(b ? &jv_true : &jv_false); }
jval *jx_none(void) { return (jval *)&jv_none; }

jval *jx_int(jctx *c, int64_t i) {
  jval *v = jx_new(c, JV_INT);
  if (v) v->i = i;
  return v;
}

jval *jx_f64(jctx *c, double f) {
  jval *v = jx_new(c, JV_FLOAT);
  if (v) v->f = f;
  return v;
}

jval *jx_substr(jctx *c, const char *p, size_t n) {
  jval *v = jx_new(c, JV_STR);
  if (!v) return NULL;
  v->s.p = n ? p : "";
  v->s.n = n;
  return v;
}

jval *jx_str(jctx *c, const char *p, size_t n) {
  char *copy = n < SIZE_MAX ? jx_alloc(c, n + 1, 1) : NULL;
  if (!copy) return NULL;
  if (n) memcpy(copy, p, n);
  return jx_substr(c, copy, n);
}

jval *jx_like(jctx *c, const jval *s, jval *fresh) {
  (void)c;
  if (fresh && s->type == JV_STR && s->flavor) fresh->flavor = 1;
  return fresh;
}

jval *jx_buf(jctx *c, buf *b) {
  jval *v = NULL;
  if (b->failed) jx_fail(c, ERR_NOMEM, "out of memory: %zu bytes of text", b->n);
  else if (!c->e) v = jx_str(c, b->p, b->n);
  buf_free(b);
  return v;
}

jval *jx_undef(jctx *c, const char *fmt, ...) {
  char text[200];
  va_list ap;
  va_start(ap, fmt);
  vsnprintf(text, sizeof text, fmt, ap);
  va_end(ap);
  jval *v = jx_str(c, text, strlen(text));
  if (v) v->type = JV_UNDEF;
  return v;
}

jval *jx_seq(jctx *c, jflavor f) {
  jval *v = jx_new(c, JV_SEQ);
  if (!v) return NULL;
  v->flavor = (uint8_t)f;
  v->seq.a = &c->mem;
  return v;
}

bool jx_push(jctx *c, jval *seq, jval *item) {
  if (!item || !jx_work(c, 1)) return false;
  if (jval_push(seq, item)) jx_fail(c, ERR_NOMEM, "out of memory: a list of %zu", seq->seq.n);
  return !c->e;
}

jval *jx_dict(jctx *c) {
  jval *v = jx_new(c, JV_DICT);
  if (v) v->d.a = &c->mem;
  return v;
}

bool jx_dset(jctx *c, jval *d, jval *key, jval *val) {
  if (!key || !val || !jx_work(c, 1 + d->d.n / 16)) return false;
  err e = jd_set(&d->d, key, val);
  if (e == ERR_FORMAT) jx_fail(c, e, "a dict key cannot be %s", jv_type_name(key));
  else if (e) jx_fail(c, e, "out of memory: a dict of %zu", d->d.n);
  return !c->e;
}

/* ---- equality and order ---- */

static bool equal_dicts(jctx *c, const jval *a, const jval *b) {
  if (a->d.n != b->d.n) return false;
  for (size_t i = 0; i < a->d.n; i++) {
    const jval *v = jd_get(&b->d, a->d.v[i].key);
    if (!v || !jx_equal(c, a->d.v[i].val, v)) return false;
  }
  return true;
}

static bool equal(jctx *c, const jval *a, const jval *b) {
  double x, y;
  int64_t i, j;
  if (jv_whole(a, &i) && jv_whole(b, &j)) return i == j;
  if (jv_num(a, &x) && jv_num(b, &y)) return x == y;
  if (a->type != b->type) return false;
  switch (a->type) {
  case JV_UNDEF:
  case JV_NONE: return true;
  case JV_STR:
    return a->s.n == b->s.n && jx_work(c, a->s.n / 16) && memcmp(a->s.p, b->s.p, a->s.n) == 0;
  case JV_DICT: return equal_dicts(c, a, b);
  case JV_SEQ:
    if (a->flavor != b->flavor || a->seq.n != b->seq.n || a->flavor == JS_GEN) return a == b;
    for (size_t k = 0; k < a->seq.n; k++)
      if (!jx_equal(c, a->seq.v[k], b->seq.v[k])) return false;
    return true;
  default: return a == b;
  }
}

bool jx_equal(jctx *c, const jval *a, const jval *b) {
  if (!jx_work(c, 1) || !jx_enter(c)) return false;
  bool r = equal(c, a, b);
  c->depth--;
  return r;
}

static bool less_seq(jctx *c, const jval *a, const jval *b) {
  size_t n = a->seq.n < b->seq.n ? a->seq.n : b->seq.n;
  for (size_t i = 0; i < n && !c->e; i++)
    if (!jx_equal(c, a->seq.v[i], b->seq.v[i])) return jx_less(c, a->seq.v[i], b->seq.v[i]);
  return a->seq.n < b->seq.n;
}

static bool less(jctx *c, const jval *a, const jval *b) {
  double x, y;
  int64_t i, j;
  if (jv_whole(a, &i) && jv_whole(b, &j)) return i < j;
  if (jv_num(a, &x) && jv_num(b, &y)) return x < y;
  if (a->type == JV_STR && b->type == JV_STR) {
    size_t n = a->s.n < b->s.n ? a->s.n : b->s.n;
    int r = jx_work(c, n / 16) ? memcmp(a->s.p, b->s.p, n) : 0;
    return r ? r < 0 : a->s.n < b->s.n;
  }
  if (a->type == JV_SEQ && b->type == JV_SEQ && a->flavor == b->flavor && a->flavor <= JS_TUPLE)
    return less_seq(c, a, b);
  if (a->type == JV_UNDEF || b->type == JV_UNDEF)
    return jx_fail(c, ERR_FORMAT, "%s", a->type == JV_UNDEF ? a->s.p : b->s.p), false;
  jx_fail(c, ERR_FORMAT, "%s and %s have no order", jv_type_name(a), jv_type_name(b));
  return false;
}

bool jx_less(jctx *c, const jval *a, const jval *b) {
  if (!jx_work(c, 1) || !jx_enter(c)) return false;
  bool r = less(c, a, b);
  c->depth--;
  return r;
}

bool jx_in(jctx *c, jval *x, jval *box) {
  if (box->type == JV_STR) {
    if (x->type == JV_STR) return jt_find(c, box, x, 0) != SIZE_MAX;
    jx_fail(c, ERR_FORMAT, "'in' a str takes a str, not %s", jv_type_name(x));
    return false;
  }
  if (box->type == JV_DICT) {
    if (x->type == JV_SEQ && x->flavor == JS_LIST)
      jx_fail(c, ERR_FORMAT, "a dict key cannot be a list");
    return jd_get(&box->d, x) != NULL;
  }
  jval *items = jx_iter(c, box);
  for (size_t i = 0; items && i < items->seq.n; i++)
    if (jx_equal(c, x, items->seq.v[i])) return true;
  return false;
}

/* Merge sort of items and keys together; tmp holds 2n. */
static bool sort_range(jctx *c, jval **v, jval **k, jval **tmp, size_t n, bool reverse) {
  if (n < 2) return true;
  size_t half = n / 2, i = 0, j = half, o = 0;
  if (!sort_range(c, v, k, tmp, half, reverse) ||
      !sort_range(c, v + half, k + half, tmp, n - half, reverse))
    return false;
  while (i < half || j < n) {
    bool right = i == half;
    if (i < half && j < n) right = reverse ? jx_less(c, k[i], k[j]) : jx_less(c, k[j], k[i]);
    if (c->e) return false;
    size_t from = right ? j++ : i++;
    tmp[2 * o] = v[from];
    tmp[2 * o++ + 1] = k[from];
  }
  for (o = 0; o < n; o++) {
    v[o] = tmp[2 * o];
    k[o] = tmp[2 * o + 1];
  }
  return true;
}

jval *jx_sort(jctx *c, jval *items, jval *keys, bool reverse) {
  size_t n = items->seq.n;
  jval *out = jx_seq(c, JS_LIST), **tmp = jx_alloc(c, 2 * n + 1, sizeof *tmp);
  for (size_t i = 0; out && i < n; i++)
    if (!jx_push(c, out, items->seq.v[i])) return NULL;
  if (!out || !tmp) return NULL;
  return sort_range(c, out->seq.v, keys->seq.v, tmp, n, reverse) ? out : NULL;
}

/* ---- arithmetic ---- */

static jval *overflow(jctx *c) { return jx_fail(c, ERR_LIMIT, "an integer is over 64 bits"); }
static jval *by_zero(jctx *c) { return jx_fail(c, ERR_FORMAT, "division by zero"); }

static jval *int_pow(jctx *c, int64_t x, int64_t y) {
  int64_t r = 1;
  if (y < 0) return x ? jx_f64(c, pow((double)x, (double)y)) : by_zero(c);
  if (x == 0 || x == 1) return jx_int(c, y ? x : 1);
  if (x == -1) return jx_int(c, y & 1 ? -1 : 1);
  for (; y; y--)
    if (__builtin_mul_overflow(r, x, &r)) return overflow(c);
  return jx_int(c, r);
}

static jval *int_arith(jctx *c, char op, int64_t x, int64_t y) {
  int64_t r = 0;
  bool over = false;
  if (strchr("/f%", op) && y == 0) return by_zero(c);
  switch (op) {
  case '+': over = __builtin_add_overflow(x, y, &r); break;
  case '-': over = __builtin_sub_overflow(x, y, &r); break;
  case '*': over = __builtin_mul_overflow(x, y, &r); break;
  case '/': return jx_f64(c, (double)x / (double)y);
  case '^': return int_pow(c, x, y);
  case 'f':
    over = x == INT64_MIN && y == -1;
    if (!over) r = x / y - (x % y != 0 && (x < 0) != (y < 0));
    break;
  default: /* %: the sign of the divisor */
    r = y == -1 ? 0 : x % y;
    if (r && (r < 0) != (y < 0)) r += y;
  }
  return over ? overflow(c) : jx_int(c, r);
}

static jval *float_arith(jctx *c, char op, double x, double y) {
  double r;
  if (strchr("/f%", op) && y == 0) return by_zero(c);
  switch (op) {
  case '+': return jx_f64(c, x + y);
  case '-': return jx_f64(c, x - y);
  case '*': return jx_f64(c, x * y);
  case '/': return jx_f64(c, x / y);
  case '^': return jx_f64(c, pow(x, y));
  case 'f': return jx_f64(c, floor(x / y));
  default:
    r = fmod(x, y);
    if (r != 0 && (r < 0) != (y < 0)) r += y;
    return jx_f64(c, r);
  }
}

static jval *add_text(jctx *c, jval *a, jval *b) {
  bool safe = a->flavor || b->flavor;
  jval *v[2] = {safe ? jx_escape(c, a) : a, safe ? jx_escape(c, b) : b};
  jval *r = v[0] && v[1] ? jx_concat(c, v, 2) : NULL;
  if (r && safe) r->flavor = 1;
  return r;
}

/* n times the string or list v. */
static jval *repeat(jctx *c, jval *v, int64_t n) {
  size_t len = v->type == JV_STR ? v->s.n : v->seq.n;
  if (n <= 0 || !len) n = 0;
  if (n && (uint64_t)n > c->o.max_memory / len)
    return jx_fail(c, ERR_LIMIT, "the template needs more than %zu bytes", c->o.max_memory);
  if (v->type == JV_SEQ) {
    jval *r = jx_seq(c, v->flavor);
    for (int64_t k = 0; r && k < n; k++)
      for (size_t i = 0; i < len; i++)
        if (!jx_push(c, r, v->seq.v[i])) return NULL;
    return r;
  }
  size_t total = len * (size_t)n;
  char *p = jx_work(c, total / 16) ? jx_alloc(c, total + 1, 1) : NULL;
  for (int64_t k = 0; p && k < n; k++) memcpy(p + (size_t)k * len, v->s.p, len);
  return p ? jx_like(c, v, jx_substr(c, p, total)) : NULL;
}

static jval *add_seqs(jctx *c, const jval *a, const jval *b) {
  jval *r = jx_seq(c, a->flavor);
  for (size_t i = 0; r && i < a->seq.n + b->seq.n; i++)
    if (!jx_push(c, r, i < a->seq.n ? a->seq.v[i] : b->seq.v[i - a->seq.n])) return NULL;
  return r;
}

static bool listlike(const jval *v) { return v->type == JV_SEQ && v->flavor <= JS_TUPLE; }

jval *jx_arith(jctx *c, char op, jval *a, jval *b) {
  double x, y;
  int64_t i, j;
  if (jv_whole(a, &i) && jv_whole(b, &j)) return int_arith(c, op, i, j);
  if (jv_num(a, &x) && jv_num(b, &y)) return float_arith(c, op, x, y);
  if (a->type == JV_UNDEF || b->type == JV_UNDEF)
    return jx_fail(c, ERR_FORMAT, "%s", a->type == JV_UNDEF ? a->s.p : b->s.p);
  if (op == '+' && a->type == JV_STR && b->type == JV_STR) return add_text(c, a, b);
  if (op == '+' && listlike(a) && listlike(b) && a->flavor == b->flavor) return add_seqs(c, a, b);
  if (op == '*' && (a->type == JV_STR || listlike(a)) && jv_whole(b, &j)) return repeat(c, a, j);
  if (op == '*' && (b->type == JV_STR || listlike(b)) && jv_whole(a, &i)) return repeat(c, b, i);
  if (op == '%' && a->type == JV_STR)
    return jx_fail(c, ERR_UNSUPPORTED, "formatting with %% is not supported");
  const char *name = op == 'f' ? "//" : op == '^' ? "**" : NULL;
  char one[2] = {op, 0};
  return jx_fail(c, ERR_FORMAT, "operator %s does not take %s and %s", name ? name : one,
                 jv_type_name(a), jv_type_name(b));
}

jval *jx_concat(jctx *c, jval **v, size_t n) {
  buf b = {0};
  for (size_t i = 0; i < n; i++) {
    if (jx_print(c, &b, v[i], false)) continue;
    buf_free(&b);
    return NULL;
  }
  return jx_buf(c, &b);
}

jval *jx_escape(jctx *c, jval *v) {
  if (v->type == JV_STR && v->flavor) return v;
  jval *s = jx_tostr(c, v);
  buf b = {0};
  if (!s) return NULL;
  for (size_t i = 0; i < s->s.n && !c->e; i++) {
    char ch = s->s.p[i];
    const char *r = ch == '&'    ? "&amp;"
                    : ch == '<'  ? "&lt;"
                    : ch == '>'  ? "&gt;"
                    : ch == '\'' ? "&#39;"
                    : ch == '"'  ? "&#34;"
                                 : NULL;
    if (r) jx_put(c, &b, r, strlen(r));
    else buf_putc(&b, ch);
  }
  jval *r = jx_buf(c, &b);
  if (r) r->flavor = 1;
  return r;
}

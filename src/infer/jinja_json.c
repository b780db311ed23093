/* Owns JSON: reading it into values, and `tojson` with the layout of Python's json.dumps. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "infer/jinja_impl.h"

/* ---- reading ---- */

enum { MAX_JSON_DEPTH = 128 };

typedef struct reader {
  arena *a;
  const char *s;
  size_t n, pos;
  uint32_t depth;
} reader;

static err bad(const reader *r, const char *what) {
  return err_set(ERR_FORMAT, "JSON at byte %zu: %s", r->pos, what);
}
static err no_memory(void) { return mem_err("JSON value", sizeof(jval)); }

static char peek(reader *r) {
  while (r->pos < r->n && r->s[r->pos] && strchr(" \t\r\n", r->s[r->pos])) r->pos++;
  return r->pos < r->n ? r->s[r->pos] : 0;
}

static err read_hex(reader *r, uint32_t *out) {
  *out = 0;
  for (int i = 0; i < 4; i++, r->pos++) {
    char c = r->pos < r->n ? r->s[r->pos] : 0;
    const char *hex = "0123456789abcdefABCDEF", *p = c ? strchr(hex, c) : NULL;
    if (!p) return bad(r, "\\u needs four hexadecimal digits");
    uint32_t v = (uint32_t)(p - hex);
    *out = *out << 4 | (v > 15 ? v - 6 : v);
  }
  return ERR_NONE;
}

static err read_escape(reader *r, buf *b) {
  static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
  char c = r->pos < r->n ? r->s[r->pos] : 0;
  const char *p = c ? strchr(from, c) : NULL;
  if (!p && c != 'u') return bad(r, "an unknown escape in a string");
  r->pos++;
  if (p) return buf_putc(b, to[p - from]), ERR_NONE;
  uint32_t hi, lo;
  err e = read_hex(r, &hi);
  if (e) return e;
  if (hi >= 0xD800 && hi < 0xDC00 && r->n - r->pos >= 2 && r->s[r->pos] == '\\' &&
      r->s[r->pos + 1] == 'u') {
    r->pos += 2;
    if ((e = read_hex(r, &lo))) return e;
    if (lo < 0xDC00 || lo > 0xDFFF) return bad(r, "half a surrogate pair");
    hi = 0x10000 + ((hi - 0xD800) << 10) + (lo - 0xDC00);
  } else if (hi >= 0xD800 && hi < 0xE000) {
    return bad(r, "half a surrogate pair");
  }
  jt_put(b, hi);
  return ERR_NONE;
}

static err read_string(reader *r, jval **out) {
  buf b = {0};
  err e = ERR_NONE;
  size_t start = r->pos++;
  for (;;) {
    char c = r->pos < r->n ? r->s[r->pos] : 0;
    if (c == '"') break;
    if (r->pos >= r->n || (unsigned char)c < 0x20) {
      r->pos = r->pos >= r->n ? start : r->pos;
      e = bad(r, r->pos == start ? "a string has no end" : "a control character in a string");
      break;
    }
    r->pos++;
    if (c != '\\') buf_putc(&b, c);
    else if ((e = read_escape(r, &b))) break;
  }
  r->pos++;
  *out = e || b.failed ? NULL : jval_str(r->a, b.p, b.n);
  buf_free(&b);
  return e ? e : *out ? ERR_NONE : no_memory();
}

static size_t span(const reader *r, size_t i) {
  while (i < r->n && r->s[i] >= '0' && r->s[i] <= '9') i++;
  return i;
}

static err read_number(reader *r, jval **out) {
  size_t i = r->pos + (r->s[r->pos] == '-'), whole = i;
  bool real = false;
  char text[64];
  i = span(r, i);
  if (i == whole || (r->s[whole] == '0' && i > whole + 1)) return bad(r, "a malformed number");
  if (i < r->n && r->s[i] == '.') {
    real = true;
    size_t k = span(r, i + 1);
    if (k == i + 1) return bad(r, "a malformed number");
    i = k;
  }
  if (i < r->n && (r->s[i] == 'e' || r->s[i] == 'E')) {
    real = true;
    size_t k = i + 1 + (i + 1 < r->n && (r->s[i + 1] == '+' || r->s[i + 1] == '-'));
    i = span(r, k);
    if (i == k) return bad(r, "a malformed number");
  }
  size_t n = i - r->pos;
  if (n >= sizeof text) return err_set(ERR_LIMIT, "JSON at byte %zu: a number too long", r->pos);
  memcpy(text, r->s + r->pos, n);
  text[n] = 0;
  if (!real && (n > 19 || (n == 19 && text[0] != '-' && strcmp(text, "9223372036854775807") > 0)))
    return err_set(ERR_LIMIT, "JSON at byte %zu: an integer over 64 bits", r->pos);
  r->pos = i;
  *out = real ? jval_f64(r->a, strtod(text, NULL)) : jval_int(r->a, strtoll(text, NULL, 10));
  return *out ? ERR_NONE : no_memory();
}

static err read_value(reader *r, jval **out);

static err read_member(reader *r, jval *box, bool dict) {
  jval *key = NULL, *v = NULL;
  err e;
  if (dict) {
    if (peek(r) != '"') return bad(r, "expected a key");
    if ((e = read_string(r, &key))) return e;
    if (peek(r) != ':') return bad(r, "expected ':'");
    r->pos++;
  }
  if ((e = read_value(r, &v))) return e;
  return dict ? jd_set(&box->d, key, v) : jval_push(box, v);
}

static err read_box(reader *r, bool dict, jval **out) {
  char close = dict ? '}' : ']';
  err e;
  if (r->depth >= MAX_JSON_DEPTH)
    return err_set(ERR_LIMIT, "JSON at byte %zu: nesting over %d", r->pos, MAX_JSON_DEPTH);
  if (!(*out = dict ? jval_dict(r->a) : jval_list(r->a))) return no_memory();
  r->depth++;
  r->pos++;
  if (peek(r) == close) return r->pos++, r->depth--, ERR_NONE;
  for (;;) {
    if ((e = read_member(r, *out, dict))) return e;
    char c = peek(r);
    if (c != ',' && c != close) return bad(r, dict ? "expected ',' or '}'" : "expected ',' or ']'");
    r->pos++;
    if (c == close) break;
  }
  r->depth--;
  return ERR_NONE;
}

static err read_word(reader *r, const char *word, jval *v, jval **out) {
  size_t n = strlen(word);
  if (r->n - r->pos < n || memcmp(r->s + r->pos, word, n) != 0) return bad(r, "expected a value");
  r->pos += n;
  *out = v;
  return v ? ERR_NONE : no_memory();
}

static err read_value(reader *r, jval **out) {
  char c = peek(r);
  if (c == '{' || c == '[') return read_box(r, c == '{', out);
  if (c == '"') return read_string(r, out);
  if (c == 't') return read_word(r, "true", jval_bool(r->a, true), out);
  if (c == 'f') return read_word(r, "false", jval_bool(r->a, false), out);
  if (c == 'n') return read_word(r, "null", jval_none(r->a), out);
  if (c == '-' || (c >= '0' && c <= '9')) return read_number(r, out);
  return bad(r, r->pos >= r->n ? "the text ends" : "expected a value");
}

err jval_from_json(arena *a, const char *text, size_t n, jval **out) {
  reader r = {.a = a, .s = text, .n = n};
  *out = NULL;
  err e = read_value(&r, out);
  if (!e && (peek(&r) || r.pos < r.n)) e = bad(&r, "more text after the value");
  if (e) *out = NULL;
  return e;
}

/* ---- writing ---- */

typedef struct writer {
  jctx *c;
  buf b;
  const char *item, *key; /* separators */
  size_t nitem, nkey;
  const char *indent; /* NULL: on one line */
  size_t nindent;
  bool ascii, sorted;
} writer;

static bool put(writer *w, const char *s, size_t n) { return jx_put(w->c, &w->b, s, n); }

static bool write_string(writer *w, const char *p, size_t n) {
  static const char from[] = "\"\\\n\r\t\b\f", to[] = "\"\\nrtbf";
  buf_putc(&w->b, '"');
  for (size_t i = 0, k; i < n; i += k) {
    uint32_t cp;
    k = jt_decode(p + i, n - i, &cp);
    const char *f = cp && cp < 0x80 ? strchr(from, (int)cp) : NULL;
    if (f) buf_printf(&w->b, "\\%c", to[f - from]);
    else if (cp < 0x20 || (w->ascii && cp >= 0x7F && cp < 0x10000 && cp != 0x7F))
      buf_printf(&w->b, "\\u%04x", cp);
    else if (w->ascii && cp >= 0x10000)
      buf_printf(&w->b, "\\u%04x\\u%04x", 0xD7C0 + (cp >> 10), 0xDC00 + (cp & 0x3FF));
    else buf_put(&w->b, p + i, k);
    if (!put(w, "", 0)) return false;
  }
  return put(w, "\"", 1);
}

static bool write_value(writer *w, const jval *v, size_t depth);

static bool newline(writer *w, size_t depth) {
  if (!w->indent) return true;
  bool ok = put(w, "\n", 1);
  for (size_t i = 0; ok && i < depth; i++) ok = put(w, w->indent, w->nindent);
  return ok;
}

static bool write_float(writer *w, double f) {
  if (isnan(f)) return put(w, "NaN", 3);
  if (isinf(f)) return f < 0 ? put(w, "-Infinity", 9) : put(w, "Infinity", 8);
  jt_float(&w->b, f);
  return put(w, "", 0);
}

static bool write_key(writer *w, const jval *k) {
  if (k->type == JV_STR) return write_string(w, k->s.p, k->s.n);
  return put(w, "\"", 1) && write_value(w, k, 0) && put(w, "\"", 1);
}

static bool write_box(writer *w, const jval *v, size_t depth) {
  bool dict = v->type == JV_DICT;
  size_t n = dict ? v->d.n : v->seq.n;
  bool ok = put(w, dict ? "{" : "[", 1);
  jval *keys = NULL;
  if (dict && w->sorted) {
    jval *all = jx_iter(w->c, (jval *)v), *copy = all ? jx_iter(w->c, (jval *)v) : NULL;
    keys = copy ? jx_sort(w->c, all, copy, false) : NULL;
    if (!keys) return false;
  }
  for (size_t i = 0; ok && i < n; i++) {
    ok = (!i || put(w, w->item, w->nitem)) && newline(w, depth + 1);
    const jval *key = keys ? keys->seq.v[i] : dict ? v->d.v[i].key : NULL;
    if (ok && dict) ok = write_key(w, key) && put(w, w->key, w->nkey);
    const jval *item = keys ? jd_get(&v->d, key) : dict ? v->d.v[i].val : v->seq.v[i];
    ok = ok && write_value(w, item, depth + 1);
  }
  return ok && (!n || newline(w, depth)) && put(w, dict ? "}" : "]", 1);
}

static bool write_value(writer *w, const jval *v, size_t depth) {
  bool ok = true;
  switch (v->type) {
  case JV_NONE: return put(w, "null", 4);
  case JV_BOOL: return put(w, v->b ? "true" : "false", v->b ? 4 : 5);
  case JV_INT: buf_printf(&w->b, "%lld", (long long)v->i); return put(w, "", 0);
  case JV_FLOAT: return write_float(w, v->f);
  case JV_STR: return write_string(w, v->s.p, v->s.n);
  default: break;
  }
  if (v->type != JV_DICT && !(v->type == JV_SEQ && v->flavor <= JS_TUPLE))
    return jx_fail(w->c, ERR_FORMAT, "%s cannot be written as JSON", jv_type_name(v)), false;
  if (!jx_enter(w->c)) return false;
  ok = write_box(w, v, depth);
  w->c->depth--;
  return ok;
}

/* indent: none, an int of blanks or a str; seps: none or (item, key). */
jval *jx_json(jctx *c, jval *v, jval *indent, jval *seps, bool ascii, bool sorted) {
  writer w = {
      .c = c, .item = ", ", .nitem = 2, .key = ": ", .nkey = 2, .ascii = ascii, .sorted = sorted};
  int64_t n;
  if (indent && jv_whole(indent, &n)) {
    if (n > 64) return jx_fail(c, ERR_LIMIT, "tojson: an indent over 64");
    jval one = {.type = JV_STR, .s = {" ", 1}};
    indent = jx_arith(c, '*', &one, indent);
    if (!indent) return NULL;
  }
  if (indent && indent->type == JV_STR) {
    w.indent = indent->s.p;
    w.nindent = indent->s.n;
    w.nitem = 1; /* json.dumps: "," before a line break */
  }
  if (seps && seps->type == JV_SEQ && seps->seq.n == 2) {
    const jval *a = seps->seq.v[0], *b = seps->seq.v[1];
    if (a->type != JV_STR || b->type != JV_STR)
      return jx_fail(c, ERR_FORMAT, "tojson: separators are two strings");
    w.item = a->s.p, w.nitem = a->s.n;
    w.key = b->s.p, w.nkey = b->s.n;
  }
  if (write_value(&w, v, 0)) return jx_buf(c, &w.b);
  buf_free(&w.b);
  return NULL;
}

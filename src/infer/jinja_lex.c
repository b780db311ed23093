/* Owns the splitting of template text into tokens: tags, whitespace control, literals. Follows the
 * behaviour of jinja2 with trim_blocks and lstrip_blocks on and keep_trailing_newline off. */
#include <stdlib.h>
#include <string.h>

#include "infer/jinja_impl.h"

enum { MAX_TEXT = 4 << 20, MAX_NEST = 256 };

typedef struct lexer {
  arena *a;
  const char *s;
  size_t n, pos;
  uint32_t line;
  bool line_start;     /* the last piece ended with a line break, or nothing was read */
  char nest[MAX_NEST]; /* closing brackets that are due */
  size_t depth;
  jtok *t;
  size_t count, cap;
} lexer;

static err fail(const lexer *x, err code, const char *what) {
  return err_set(code, "chat template line %u: %s", x->line, what);
}

static err add(lexer *x, jtok t) {
  if (x->count == x->cap) {
    size_t cap = x->cap ? x->cap * 2 : 256;
    jtok *more = mem_realloc(x->t, x->count * sizeof *more, cap * sizeof *more);
    if (!more) return mem_err("chat template tokens", cap * sizeof *more);
    x->t = more;
    x->cap = cap;
  }
  t.line = x->line;
  x->t[x->count++] = t;
  return ERR_NONE;
}

static char at(const lexer *x, size_t i) { return i < x->n ? x->s[i] : 0; }
static bool two(const lexer *x, size_t i, const char *w) {
  return i + 1 < x->n && x->s[i] == w[0] && x->s[i + 1] == w[1];
}
static bool digit(char c) { return c >= '0' && c <= '9'; }
static bool name_char(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || digit(c) ||
         (unsigned char)c >= 0x80;
}

/* Moves to `to`, counting lines. */
static void advance(lexer *x, size_t to) {
  if (to > x->pos) x->line_start = x->s[to - 1] == '\n';
  for (; x->pos < to; x->pos++) x->line += x->s[x->pos] == '\n';
}

static size_t skip_blanks(const lexer *x, size_t i) {
  uint32_t cp;
  while (i < x->n) {
    size_t k = jt_decode(x->s + i, x->n - i, &cp);
    if (!jt_space(cp)) break;
    i += k;
  }
  return i;
}

/* Line breaks become \n; one at the end goes. */
static err normalise(lexer *x, const char *text, size_t n) {
  if (n > MAX_TEXT)
    return err_set(ERR_LIMIT, "chat template: %zu bytes, the limit is %d", n, MAX_TEXT);
  char *p = arena_alloc(x->a, n + 1, 1);
  if (!p) return mem_err("chat template", n);
  size_t k = 0;
  for (size_t i = 0; i < n; i++) {
    if (text[i] == '\r') {
      if (i + 1 < n && text[i + 1] == '\n') i++;
      p[k++] = '\n';
    } else {
      p[k++] = text[i];
    }
  }
  if (k && p[k - 1] == '\n') k--;
  x->s = p;
  x->n = k;
  return ERR_NONE;
}

/* The text from pos to `end`, before a tag with whitespace sign `sign`. */
static err add_text(lexer *x, size_t end, char sign, bool variable) {
  const char *p = x->s + x->pos;
  size_t n = end - x->pos;
  if (sign == '-') {
    jt_strip(&p, &n, NULL, false, true);
  } else if (sign != '+' && !variable) {
    size_t line = n;
    while (line && p[line - 1] != '\n') line--;
    const char *q = p + line;
    size_t left = n - line;
    jt_strip(&q, &left, NULL, false, true);
    if ((line || x->line_start) && left == 0) n = line;
  }
  err e = n ? add(x, (jtok){.kind = JT_TEXT, .s = p, .n = n}) : ERR_NONE;
  advance(x, end);
  return e;
}

/* The end of a block tag at i ("+%}", "-%}" and blanks, "%}" and a line break), or 0. */
static size_t block_end(const lexer *x, size_t i, const char *close) {
  if (at(x, i) == '+' && two(x, i + 1, close)) return i + 3;
  if (at(x, i) == '-' && two(x, i + 1, close)) return skip_blanks(x, i + 3);
  if (two(x, i, close)) return i + 2 + (at(x, i + 2) == '\n');
  return 0;
}

static err lex_comment(lexer *x) {
  for (size_t i = x->pos; i < x->n; i++) {
    size_t end = block_end(x, i, "#}");
    if (!end) continue;
    advance(x, end);
    return ERR_NONE;
  }
  return fail(x, ERR_FORMAT, "a comment {# has no end #}");
}

/* `{% raw %}` at i: where its text begins, or 0. */
static size_t raw_begin(const lexer *x, size_t i) {
  i += 2;
  if (at(x, i) == '-' || at(x, i) == '+') i++;
  i = skip_blanks(x, i);
  if (i + 3 > x->n || memcmp(x->s + i, "raw", 3) != 0) return 0;
  i = skip_blanks(x, i + 3);
  if (at(x, i) == '-' && two(x, i + 1, "%}")) return skip_blanks(x, i + 3);
  return two(x, i, "%}") ? i + 2 : 0;
}

static err lex_raw(lexer *x) {
  for (size_t i = x->pos; i + 1 < x->n; i++) {
    if (!two(x, i, "{%")) continue;
    char sign = at(x, i + 2) == '-' || at(x, i + 2) == '+' ? at(x, i + 2) : 0;
    size_t k = skip_blanks(x, i + 2 + (sign != 0));
    if (k + 6 > x->n || memcmp(x->s + k, "endraw", 6) != 0) continue;
    size_t end = block_end(x, skip_blanks(x, k + 6), "%}");
    if (!end) continue;
    err e = add_text(x, i, sign, false);
    advance(x, end);
    return e;
  }
  return fail(x, ERR_FORMAT, "{% raw %} has no {% endraw %}");
}

/* One escape after a backslash at *i (on the character after it); appends to b. */
static err unescape(lexer *x, buf *b, size_t *i, size_t end) {
  static const char from[] = "ntrabfv\\'\"", to[] = "\n\t\r\a\b\f\v\\'\"";
  char c = x->s[*i];
  const char *f = c ? strchr(from, c) : NULL;
  *i += 1;
  if (f) return buf_putc(b, to[f - from]), ERR_NONE;
  if (c == '\n') return ERR_NONE;
  if (c == 'N') return fail(x, ERR_UNSUPPORTED, "\\N{...} in a string is not supported");
  uint32_t cp = 0;
  if (c >= '0' && c <= '7') {
    *i -= 1;
    for (int k = 0; k < 3 && *i < end && x->s[*i] >= '0' && x->s[*i] <= '7'; k++)
      cp = cp * 8 + (uint32_t)(x->s[(*i)++] - '0');
    return jt_put(b, cp), ERR_NONE;
  }
  int digits = c == 'x' ? 2 : c == 'u' ? 4 : c == 'U' ? 8 : 0;
  if (!digits) { /* not an escape: the backslash stays */
    buf_putc(b, '\\');
    buf_putc(b, c);
    return ERR_NONE;
  }
  for (int k = 0; k < digits; k++, *i += 1) {
    char h = *i < end ? x->s[*i] : 0;
    uint32_t v = digit(h)               ? (uint32_t)(h - '0')
                 : h >= 'a' && h <= 'f' ? (uint32_t)(h - 'a' + 10)
                 : h >= 'A' && h <= 'F' ? (uint32_t)(h - 'A' + 10)
                                        : 16;
    if (v > 15) return fail(x, ERR_FORMAT, "a string has an escape with too few digits");
    cp = cp << 4 | v;
  }
  if (cp > 0x10FFFF || (cp >= 0xD800 && cp < 0xE000))
    return fail(x, ERR_FORMAT, "a string has an escape that is no character");
  return jt_put(b, cp), ERR_NONE;
}

static err lex_string(lexer *x) {
  char quote = x->s[x->pos];
  size_t end = x->pos + 1;
  while (end < x->n && x->s[end] != quote) end += x->s[end] == '\\' ? 2 : 1;
  if (end >= x->n) return fail(x, ERR_FORMAT, "a string has no end");
  buf b = {0};
  err e = ERR_NONE;
  for (size_t i = x->pos + 1; !e && i < end;) {
    if (x->s[i] != '\\') {
      buf_putc(&b, x->s[i++]);
    } else {
      i++;
      e = unescape(x, &b, &i, end);
    }
  }
  char *s = e ? NULL : arena_strndup(x->a, b.p, b.n);
  size_t n = b.n;
  if (!e && (b.failed || !s)) e = mem_err("chat template string", end - x->pos);
  buf_free(&b);
  if (!e) e = add(x, (jtok){.kind = JT_STR, .s = s, .n = n});
  advance(x, end + 1);
  return e;
}

/* Digits and single underscores between them; the end. */
static size_t digits(const lexer *x, size_t i) {
  while (digit(at(x, i)) || (at(x, i) == '_' && digit(at(x, i + 1)) && digit(at(x, i - 1)))) i++;
  return i;
}

static err lex_number(lexer *x) {
  size_t end = digits(x, x->pos);
  bool real = false;
  char text[64];
  bool dotted = x->pos && x->s[x->pos - 1] == '.'; /* a.0.1 is two lookups, not 0.1 */
  if (!dotted && at(x, end) == '.' && digit(at(x, end + 1))) {
    real = true;
    end = digits(x, end + 1);
  }
  if (!dotted && (at(x, end) == 'e' || at(x, end) == 'E')) {
    size_t k = end + 1 + (at(x, end + 1) == '+' || at(x, end + 1) == '-');
    if (digit(at(x, k))) {
      real = true;
      end = digits(x, k);
    }
  }
  size_t n = 0;
  for (size_t i = x->pos; i < end; i++) {
    if (n + 1 >= sizeof text) return fail(x, ERR_LIMIT, "a number has more than 62 digits");
    if (x->s[i] != '_') text[n++] = x->s[i];
  }
  text[n] = 0;
  if (name_char(at(x, end))) return fail(x, ERR_FORMAT, "a number is followed by letters");
  err e;
  if (real) {
    e = add(x, (jtok){.kind = JT_FLOAT, .f = strtod(text, NULL)});
  } else {
    int64_t v = 0;
    for (size_t i = 0; i < n; i++)
      if (__builtin_mul_overflow(v, 10, &v) || __builtin_add_overflow(v, text[i] - '0', &v))
        return fail(x, ERR_LIMIT, "an integer is over 64 bits");
    e = add(x, (jtok){.kind = JT_INT, .i = v});
  }
  advance(x, end);
  return e;
}

static err bracket(lexer *x, char c) {
  static const char open[] = "([{", close[] = ")]}";
  const char *o = strchr(open, c);
  if (o) {
    if (x->depth == MAX_NEST) return fail(x, ERR_LIMIT, "more than 256 brackets are open");
    x->nest[x->depth++] = close[o - open];
  } else if (strchr(close, c)) {
    if (!x->depth || x->nest[x->depth - 1] != c)
      return fail(x, ERR_FORMAT, "a closing bracket has no opening one");
    x->depth--;
  }
  return ERR_NONE;
}

static err lex_op(lexer *x) {
  static const struct {
    char text[3], op;
  } pairs[] = {{"//", 'f'}, {"**", '^'}, {"==", '='}, {"!=", '!'}, {"<=", 'l'}, {">=", 'g'}};
  for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
    if (!two(x, x->pos, pairs[i].text)) continue;
    err e = add(x, (jtok){.kind = JT_OP, .op = (uint8_t)pairs[i].op});
    advance(x, x->pos + 2);
    return e;
  }
  char c = x->s[x->pos];
  if (!c || !strchr("+-/*%~[](){}><=.:|,;", c))
    return (unsigned char)c < 0x20 || c == 0x7f
               ? fail(x, ERR_FORMAT, "a control character is in a tag")
               : err_set(ERR_FORMAT, "chat template line %u: character '%c' is in a tag", x->line,
                         c);
  err e = bracket(x, c);
  if (!e) e = add(x, (jtok){.kind = JT_OP, .op = (uint8_t)(c == '=' ? 'a' : c)});
  advance(x, x->pos + 1);
  return e;
}

/* Tokens up to and with the end of a tag; at the end of the text the parser complains. */
static err lex_tag(lexer *x, bool variable) {
  x->depth = 0;
  while (x->pos < x->n) {
    size_t end = 0;
    if (!x->depth && !variable) {
      end = block_end(x, x->pos, "%}");
    } else if (!x->depth) {
      if (two(x, x->pos, "}}")) end = x->pos + 2;
      if (at(x, x->pos) == '-' && two(x, x->pos + 1, "}}")) end = skip_blanks(x, x->pos + 3);
    }
    if (end) {
      err e = add(x, (jtok){.kind = variable ? JT_VAR_END : JT_BLOCK_END});
      advance(x, end);
      return e;
    }
    char c = x->s[x->pos];
    size_t blank = skip_blanks(x, x->pos);
    err e = ERR_NONE;
    if (blank > x->pos) {
      advance(x, blank);
    } else if (digit(c)) {
      e = lex_number(x);
    } else if (name_char(c)) {
      size_t k = x->pos;
      while (name_char(at(x, k))) k++;
      e = add(x, (jtok){.kind = JT_NAME, .s = x->s + x->pos, .n = k - x->pos});
      advance(x, k);
    } else {
      e = c == '\'' || c == '"' ? lex_string(x) : lex_op(x);
    }
    if (e) return e;
  }
  return ERR_NONE;
}

/* Text up to the next tag, and that tag. */
static err lex_piece(lexer *x) {
  size_t i = x->pos;
  while (i < x->n && !two(x, i, "{{") && !two(x, i, "{%") && !two(x, i, "{#")) i++;
  if (i >= x->n) {
    err e = add(x, (jtok){.kind = JT_TEXT, .s = x->s + x->pos, .n = x->n - x->pos});
    advance(x, x->n);
    return e;
  }
  bool variable = x->s[i + 1] == '{', block = x->s[i + 1] == '%';
  size_t raw = block ? raw_begin(x, i) : 0;
  char sign = at(x, i + 2) == '-' || at(x, i + 2) == '+' ? at(x, i + 2) : 0;
  err e = add_text(x, i, sign, variable);
  if (e) return e;
  if (raw) {
    advance(x, raw);
    return lex_raw(x);
  }
  advance(x, i + 2 + (sign != 0));
  if (!variable && !block) return lex_comment(x);
  e = add(x, (jtok){.kind = variable ? JT_VAR_BEGIN : JT_BLOCK_BEGIN});
  return e ? e : lex_tag(x, variable);
}

err jinja_lex(arena *a, const char *text, size_t n, jtok **out, size_t *count) {
  lexer x = {.a = a, .line = 1, .line_start = true};
  err e = normalise(&x, text, n);
  while (!e && x.pos < x.n) e = lex_piece(&x);
  if (!e) e = add(&x, (jtok){.kind = JT_EOF});
  if (e) {
    mem_free(x.t);
    return e;
  }
  *out = x.t;
  *count = x.count;
  return ERR_NONE;
}

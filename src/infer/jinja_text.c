/* Owns text: UTF-8, Python's idea of blanks and letter case, searching, the form of floats. Case
 * maps cover ASCII, Latin-1, Latin Extended-A, Greek and Cyrillic; other letters stay. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "infer/jinja_impl.h"

size_t jt_decode(const char *s, size_t n, uint32_t *cp) {
  const unsigned char *p = (const unsigned char *)s;
  uint32_t c = p[0];
  size_t k = c < 0x80                ? 1
             : c >= 0xC2 && c < 0xE0 ? 2
             : c >= 0xE0 && c < 0xF0 ? 3
             : c >= 0xF0 && c < 0xF5 ? 4
                                     : 0;
  if (k == 1) return *cp = c, 1;
  if (!k || k > n) return *cp = 0xDC00 + c, 1;
  uint32_t v = c & (0x7Fu >> k);
  for (size_t i = 1; i < k; i++) {
    if ((p[i] & 0xC0) != 0x80) return *cp = 0xDC00 + c, 1;
    v = v << 6 | (p[i] & 0x3Fu);
  }
  bool bad = (k == 3 && (v < 0x800 || (v >= 0xD800 && v < 0xE000))) ||
             (k == 4 && (v < 0x10000 || v > 0x10FFFF));
  if (bad) return *cp = 0xDC00 + c, 1;
  return *cp = v, k;
}

void jt_put(buf *b, uint32_t cp) {
  if (cp < 0x80) {
    buf_putc(b, (char)cp);
  } else if (cp < 0x800) {
    buf_putc(b, (char)(0xC0 | cp >> 6));
    buf_putc(b, (char)(0x80 | (cp & 0x3F)));
  } else if (cp >= 0xDC80 && cp < 0xDD00) { /* a byte that jt_decode could not read */
    buf_putc(b, (char)(cp - 0xDC00));
  } else if (cp < 0x10000) {
    buf_putc(b, (char)(0xE0 | cp >> 12));
    buf_putc(b, (char)(0x80 | (cp >> 6 & 0x3F)));
    buf_putc(b, (char)(0x80 | (cp & 0x3F)));
  } else {
    buf_putc(b, (char)(0xF0 | cp >> 18));
    buf_putc(b, (char)(0x80 | (cp >> 12 & 0x3F)));
    buf_putc(b, (char)(0x80 | (cp >> 6 & 0x3F)));
    buf_putc(b, (char)(0x80 | (cp & 0x3F)));
  }
}

size_t jt_count(const char *p, size_t n) {
  size_t count = 0;
  uint32_t cp;
  for (size_t i = 0; i < n; count++) i += jt_decode(p + i, n - i, &cp);
  return count;
}

bool jt_space(uint32_t c) {
  return (c >= 9 && c <= 13) || (c >= 0x1C && c <= 0x20) || c == 0x85 || c == 0xA0 || c == 0x1680 ||
         (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F ||
         c == 0x3000;
}

bool jt_alpha(uint32_t c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == 0xAA || c == 0xB5 || c == 0xBA ||
         (c >= 0xC0 && c != 0xD7 && c != 0xF7 && c < 0x2000 && !jt_space(c)) ||
         (c >= 0x2C00 && c < 0x2E00) || (c >= 0x3041 && c < 0xD7FC) || c >= 0x20000;
}

static bool between(uint32_t c, uint32_t a, uint32_t b) { return c >= a && c <= b; }
/* Latin Extended-A, and the parts of Cyrillic that alternate the same way: even is upper. */
static bool even_upper(uint32_t c) {
  return between(c, 0x100, 0x12F) || between(c, 0x132, 0x137) || between(c, 0x14A, 0x177) ||
         between(c, 0x460, 0x481) || between(c, 0x48A, 0x4BF) || between(c, 0x4D0, 0x52F) ||
         between(c, 0x1E00, 0x1E95) || between(c, 0x1EA0, 0x1EFF);
}
static bool odd_upper(uint32_t c) { return between(c, 0x139, 0x148) || between(c, 0x179, 0x17E); }

uint32_t jt_lower(uint32_t c) {
  if (between(c, 'A', 'Z') || (between(c, 0xC0, 0xDE) && c != 0xD7)) return c + 32;
  if (even_upper(c)) return c | 1;
  if (odd_upper(c)) return c + (c & 1);
  if (c == 0x178) return 0xFF;
  if (c == 0x386) return 0x3AC;
  if (between(c, 0x388, 0x38A)) return c + 37;
  if (between(c, 0x391, 0x3AB) && c != 0x3A2) return c + 32;
  if (between(c, 0x400, 0x40F)) return c + 80;
  if (between(c, 0x410, 0x42F)) return c + 32;
  return c;
}

uint32_t jt_upper(uint32_t c) {
  if (between(c, 'a', 'z') || (between(c, 0xE0, 0xFE) && c != 0xF7)) return c - 32;
  if (c == 0x131) return 'I';
  if (even_upper(c)) return c & ~1u;
  if (odd_upper(c)) return c - !(c & 1);
  if (c == 0xFF) return 0x178;
  if (c == 0xB5) return 0x39C;
  if (c == 0x3AC) return 0x386;
  if (between(c, 0x3AD, 0x3AF)) return c - 37;
  if (c == 0x3C2) return 0x3A3;
  if (between(c, 0x3B1, 0x3CB)) return c - 32;
  if (between(c, 0x450, 0x45F)) return c - 80;
  if (between(c, 0x430, 0x44F)) return c - 32;
  return c;
}

static bool in_set(uint32_t cp, const jval *set) {
  if (!set) return jt_space(cp);
  for (size_t i = 0; i < set->s.n;) {
    uint32_t x;
    i += jt_decode(set->s.p + i, set->s.n - i, &x);
    if (x == cp) return true;
  }
  return false;
}

void jt_strip(const char **p, size_t *n, const jval *set, bool left, bool right) {
  uint32_t cp;
  while (left && *n) {
    size_t k = jt_decode(*p, *n, &cp);
    if (!in_set(cp, set)) break;
    *p += k;
    *n -= k;
  }
  while (right && *n) {
    size_t k = 1; /* back to a byte from which a character ends exactly here */
    while (k < 4 && k < *n && ((unsigned char)(*p)[*n - k] & 0xC0) == 0x80) k++;
    if (jt_decode(*p + *n - k, k, &cp) != k) {
      k = 1;
      jt_decode(*p + *n - 1, 1, &cp);
    }
    if (!in_set(cp, set)) break;
    *n -= k;
  }
}

size_t jt_find(jctx *c, const jval *v, const jval *x, size_t from) {
  const char *p = v->s.p;
  size_t n = v->s.n, m = x->s.n;
  if (m > n || from > n - m) return SIZE_MAX;
  if (!m) return from;
  for (size_t i = from; i <= n - m; i++) {
    const char *q = memchr(p + i, x->s.p[0], n - m - i + 1);
    size_t next = q ? (size_t)(q - p) : n;
    if (!jx_work(c, (next - i) / 16 + m / 16 + 1)) return SIZE_MAX;
    if (!q) return SIZE_MAX;
    if (memcmp(q, x->s.p, m) == 0) return next;
    i = next;
  }
  return SIZE_MAX;
}

/* Length of the line break at p, 0 when there is none: those of Python's str.splitlines. */
static size_t line_break(const char *p, size_t n) {
  uint32_t cp;
  size_t k = jt_decode(p, n, &cp);
  if (cp == '\r') return n > 1 && p[1] == '\n' ? 2 : 1;
  bool is = (cp >= '\n' && cp <= '\f') || (cp >= 0x1C && cp <= 0x1E) || cp == 0x85 ||
            cp == 0x2028 || cp == 0x2029;
  return is ? k : 0;
}

jval *jx_lines(jctx *c, const jval *v, bool keep) {
  jval *out = jx_seq(c, JS_LIST);
  const char *p = v->s.p;
  size_t from = 0, n = v->s.n;
  if (!jx_work(c, n / 4)) return NULL;
  for (size_t i = 0; out && i < n;) {
    size_t k = line_break(p + i, n - i);
    i += k ? k : 1;
    if (!k && i < n) continue;
    if (!jx_push(c, out, jx_substr(c, p + from, i - from - (keep ? 0 : k)))) return NULL;
    from = i;
  }
  return out;
}

/* Shortest digits that read back as f; point after the first digit, or none up to 16 places. */
void jt_float(buf *b, double f) {
  if (isnan(f) || isinf(f)) {
    buf_puts(b, isnan(f) ? "nan" : f < 0 ? "-inf" : "inf");
    return;
  }
  char text[40];
  int digits = 1;
  for (; digits < 17; digits++) {
    snprintf(text, sizeof text, "%.*e", digits - 1, f);
    if (strtod(text, NULL) == f) break;
  }
  snprintf(text, sizeof text, "%.*e", digits - 1, f);
  int exp = atoi(strchr(text, 'e') + 1);
  if (exp < -4 || exp >= 16) {
    char *e = strchr(text, 'e');
    buf_put(b, text, (size_t)(e - text));
    buf_printf(b, "e%c%02d", exp < 0 ? '-' : '+', abs(exp));
  } else {
    int places = digits - 1 - exp;
    buf_printf(b, "%.*f", places > 1 ? places : 1, f);
  }
}

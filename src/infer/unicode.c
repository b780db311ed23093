/* Owns UTF-8 and the category look-up. unicode_runs is sorted and starts at code point 0. */
#include "infer/unicode.h"

#include "unicode_runs.h"

uclass unicode_class(uint32_t cp) {
  if (cp > 0x10FFFF) return UC_OTHER;
  size_t lo = 0, hi = sizeof unicode_runs / sizeof unicode_runs[0];
  while (hi - lo > 1) {
    size_t mid = lo + (hi - lo) / 2;
    if (unicode_runs[mid] >> 8 <= cp) lo = mid;
    else hi = mid;
  }
  return (uclass)(unicode_runs[lo] & 0xFF);
}

size_t unicode_read(const char *p, size_t n, uint32_t *cp) {
  const uint8_t *s = (const uint8_t *)p;
  uint32_t c = s[0];
  *cp = c;
  if (c < 0x80) return 1;
  size_t len = c < 0xC0 ? 0 : c < 0xE0 ? 2 : c < 0xF0 ? 3 : c < 0xF8 ? 4 : 0;
  *cp = 0xFFFD;
  if (len == 0 || len > n) return 1;
  uint32_t v = c & (0x7Fu >> len);
  for (size_t i = 1; i < len; i++) {
    if ((s[i] & 0xC0) != 0x80) return 1;
    v = v << 6 | (s[i] & 0x3Fu);
  }
  if (v > 0x10FFFF) return 1;
  *cp = v;
  return len;
}

size_t unicode_write(uint32_t cp, char out[4]) {
  if (cp < 0x80) {
    out[0] = (char)cp;
    return 1;
  }
  size_t len = cp < 0x800 ? 2 : cp < 0x10000 ? 3 : 4;
  for (size_t i = len - 1; i > 0; i--, cp >>= 6) out[i] = (char)(0x80 | (cp & 0x3F));
  out[0] = (char)((0xF00u >> len & 0xF0) | cp);
  return len;
}

static void put_replacement(buf *out) { buf_put(out, "\xEF\xBF\xBD", 3); }

/* Whether c may follow the bytes held back: the second byte's range depends on the first one, so
 * that overlong forms, surrogates and values above U+10FFFF never begin. */
static bool continues(const utf8_stream *s, uint8_t c) {
  uint8_t lo = 0x80, hi = 0xBF;
  if (s->n == 1) {
    if (s->part[0] == 0xE0) lo = 0xA0;
    if (s->part[0] == 0xED) hi = 0x9F;
    if (s->part[0] == 0xF0) lo = 0x90;
    if (s->part[0] == 0xF4) hi = 0x8F;
  }
  return c >= lo && c <= hi;
}

static void begin(utf8_stream *s, uint8_t c, buf *out) {
  s->need = c >= 0xC2 && c <= 0xDF   ? 2
            : c >= 0xE0 && c <= 0xEF ? 3
            : c >= 0xF0 && c <= 0xF4 ? 4
                                     : 0;
  if (s->need) {
    s->part[0] = c;
    s->n = 1;
  } else if (c < 0x80) {
    buf_putc(out, (char)c);
  } else {
    put_replacement(out);
  }
}

void utf8_stream_put(utf8_stream *s, const char *bytes, size_t n, buf *out) {
  for (size_t i = 0; i < n; i++) {
    uint8_t c = (uint8_t)bytes[i];
    if (s->n && continues(s, c)) {
      s->part[s->n++] = c;
      if (s->n < s->need) continue;
      buf_put(out, s->part, s->n);
      s->n = 0;
      continue;
    }
    utf8_stream_flush(s, out);
    begin(s, c, out);
  }
}

void utf8_stream_flush(utf8_stream *s, buf *out) {
  if (s->n) put_replacement(out);
  s->n = 0;
}

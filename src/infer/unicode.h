/* Characters: UTF-8 in and out, general categories, and a stream that never shows half a character.
 * The categories are those of Unicode 15.1, from a table that the build generates. */
#ifndef FRIT_INFER_UNICODE_H
#define FRIT_INFER_UNICODE_H

#include <stddef.h>
#include <stdint.h>

#include "base/mem.h"

/* What pre-tokenizers ask about a character: White_Space, else the first letter of its general
 * category (L, N, M, P, S), else other. */
typedef enum uclass {
  UC_OTHER,
  UC_SPACE,
  UC_LETTER,
  UC_NUMBER,
  UC_MARK,
  UC_PUNCT,
  UC_SYMBOL
} uclass;

uclass unicode_class(uint32_t cp);

/* Reads the character at p (n > 0 bytes left) and returns the bytes it takes. A byte that starts no
 * complete sequence is U+FFFD and takes one. As tokenizers have it, overlong forms and surrogates
 * are decoded, not refused; above U+10FFFF is U+FFFD. */
size_t unicode_read(const char *p, size_t n, uint32_t *cp);

/* Writes cp (at most U+10FFFF) and returns the bytes written, 1 to 4. */
size_t unicode_write(uint32_t cp, char out[4]);

/* Streaming: zero is empty. Text comes in pieces cut anywhere; only whole characters go out, and
 * each maximal piece of an invalid sequence becomes one U+FFFD, as the WHATWG decoder has it.
 * out->failed tells of an allocation failure. */
typedef struct utf8_stream {
  uint8_t part[4];
  uint8_t n;    /* bytes held back */
  uint8_t need; /* bytes of the character that they begin */
} utf8_stream;

void utf8_stream_put(utf8_stream *s, const char *bytes, size_t n, buf *out);
/* At the end: an incomplete character becomes U+FFFD. The stream is empty again. */
void utf8_stream_flush(utf8_stream *s, buf *out);

#endif

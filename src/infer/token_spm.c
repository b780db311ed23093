/* SentencePiece BPE: the adjacent pair whose joined text is the token of highest score joins first,
 * the leftmost of equals. Blanks are U+2581 in the vocabulary. */
#include <string.h>

#include "base/math.h"
#include "infer/token_impl.h"

#define BLANK "\xE2\x96\x81"

err spm_new(tokenizer *t, const token_desc *d) {
  t->score = mem_zalloc(d->n_vocab, sizeof *t->score);
  if (!t->score) return mem_err("token scores", (uint64_t)d->n_vocab * sizeof *t->score);
  for (uint32_t i = 0; i < d->n_vocab; i++) {
    if (d->score) t->score[i] = d->score[i] + 0.0f; /* -0 becomes 0, so that bits compare */
    t->max_len = max_u32(t->max_len, d->text_len[i]);
    err e = str_push(&t->str, d->text[i], d->text_len[i], d->text_len[i] > 0);
    if (e) return e;
  }
  for (uint32_t b = 0; b < 256; b++) {
    static const char hex[] = "0123456789ABCDEF";
    char name[6] = {'<', '0', 'x', hex[b >> 4], hex[b & 15], '>'}, c = (char)b;
    t->byte_id[b] = str_find(&t->str, name, sizeof name);
    if (t->byte_id[b] == NO_ID) t->byte_id[b] = str_find(&t->str, &c, 1);
    if (t->byte_id[b] == NO_ID && t->unk >= 0) t->byte_id[b] = (uint32_t)t->unk;
  }
  return ERR_NONE;
}

/* Highest score first as smallest number: an order-preserving map of floats to integers, negated.
 */
static uint32_t score_key(float score) {
  uint32_t u = f32_bits(score);
  return u & 0x80000000u ? u : ~u & 0x7FFFFFFFu;
}

static void offer(const tokenizer *t, scratch *s, uint32_t left) {
  const symbol *a = &s->sym[left];
  if (a->next == NO_ID) return;
  uint32_t size = a->n + s->sym[a->next].n;
  if (size > t->max_len) return;
  uint32_t id = str_find(&t->str, s->text.p + a->off, size);
  if (id == NO_ID) return;
  heap_push(s, (candidate){.key = (uint64_t)score_key(t->score[id]) << 32 | left, .size = size});
}

static void merge_all(const tokenizer *t, scratch *s) {
  for (uint32_t i = 0; i < s->n_sym; i++) offer(t, s, i);
  while (s->n_heap) {
    candidate c = heap_pop(s);
    uint32_t left = (uint32_t)c.key;
    symbol *a = &s->sym[left];
    if (a->n == 0 || a->next == NO_ID || a->n + s->sym[a->next].n != c.size) continue;
    symbol *b = &s->sym[a->next];
    a->n = c.size;
    a->next = b->next;
    b->n = 0;
    if (a->next != NO_ID) s->sym[a->next].prev = left;
    if (a->prev != NO_ID) offer(t, s, a->prev);
    offer(t, s, left);
  }
}

/* Characters by their first byte alone, valid or not. */
static uint32_t char_len(char c) {
  static const uint8_t len[16] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 2, 2, 3, 4};
  return len[(uint8_t)c >> 4];
}

err spm_encode(const tokenizer *t, scratch *s, const char *text, uint32_t n, bool prefix,
               token_ids *out) {
  buf_clear(&s->text);
  if (prefix) buf_puts(&s->text, BLANK);
  for (uint32_t i = 0; i < n;) {
    const char *gap = memchr(text + i, ' ', n - i);
    uint32_t len = gap ? (uint32_t)(gap - text) - i : n - i;
    buf_put(&s->text, text + i, len);
    if (gap) buf_puts(&s->text, BLANK);
    i += len + (gap != NULL);
  }
  if (s->text.failed) return mem_err("text", 3 * (uint64_t)n);
  uint32_t size = (uint32_t)s->text.n, k = 0;
  err e = scratch_symbols(s, size);
  if (e || !size) return e;
  for (uint32_t off = 0; off < size; k++) {
    uint32_t len = min_u32(char_len(s->text.p[off]), size - off);
    s->sym[k] = (symbol){.off = off, .n = len, .prev = k ? k - 1 : NO_ID, .next = k + 1};
    off += len;
  }
  s->sym[k - 1].next = NO_ID;
  s->n_sym = k;
  merge_all(t, s);
  for (uint32_t i = 0; i != NO_ID && !e; i = s->sym[i].next) {
    const symbol *a = &s->sym[i];
    uint32_t id = str_find(&t->str, s->text.p + a->off, a->n);
    if (id != NO_ID) {
      e = token_ids_put(out, id);
      continue;
    }
    for (uint32_t j = 0; j < a->n && !e; j++) {
      uint32_t b = t->byte_id[(uint8_t)s->text.p[a->off + j]];
      if (b != NO_ID) e = token_ids_put(out, b);
    }
  }
  return e;
}

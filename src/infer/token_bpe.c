/* Byte-level BPE: a word's bytes are symbols; the adjacent pair of lowest merge rank joins first,
 * the leftmost of equals. Works on strings by number: (left, right) -> rank -> joined string. */
#include <string.h>

#include "infer/token_impl.h"

/* The printable character that stands for a byte, and back: 33-126, 161-172 and 174-255 stand for
 * themselves, the other 68 bytes in order are U+0100 and up. */
static int byte_of(uint32_t cp) {
  if ((cp >= 33 && cp <= 126) || (cp >= 161 && cp <= 172) || (cp >= 174 && cp <= 255))
    return (int)cp;
  if (cp < 256 || cp >= 256 + 68) return -1;
  uint32_t k = cp - 256;
  if (k < 33) return (int)k;
  return k < 67 ? (int)(k - 33 + 127) : 173;
}

bool bpe_bytes(const char *text, size_t n, buf *out) {
  buf_clear(out);
  for (size_t i = 0; i < n;) {
    uint32_t cp;
    i += unicode_read(text + i, n - i, &cp);
    int b = byte_of(cp);
    if (b < 0) return false;
    buf_putc(out, (char)b);
  }
  return true;
}

/* ---- merges ---- */

static uint32_t merge_probe(const tokenizer *t, uint32_t left, uint32_t right) {
  uint64_t h = ((uint64_t)left << 32 | right) * 0x9E3779B97F4A7C15u;
  for (uint32_t i = (uint32_t)(h >> 32);; i++) {
    uint32_t at = i & (t->n_merge_slots - 1), k = t->merge_slot[at];
    if (k == 0 || (t->merges[k - 1].left == left && t->merges[k - 1].right == right)) return at;
  }
}

/* Rank of the pair, NO_ID when it does not merge. */
static uint32_t rank_of(const tokenizer *t, uint32_t left, uint32_t right) {
  if (left == NO_ID || right == NO_ID || !t->n_merge_slots) return NO_ID;
  return t->merge_slot[merge_probe(t, left, right)] - 1; /* empty: 0 - 1 is NO_ID */
}

static err intern(str_table *t, const char *s, size_t n, uint32_t *id) {
  *id = str_find(t, s, n);
  if (*id != NO_ID) return ERR_NONE;
  err e = str_push(t, s, n, true);
  if (!e) *id = t->n - 1;
  return e;
}

/* One line of the list. A line with no blank, or with characters that stand for no byte, can match
 * nothing and is left out; of two equal lines the first counts. */
static err add_merge(tokenizer *t, const char *line, uint32_t n, buf *left, buf *right) {
  const char *gap = n > 1 ? memchr(line + 1, ' ', n - 1) : NULL;
  if (!gap) return ERR_NONE;
  size_t n_left = (size_t)(gap - line);
  bool ok = bpe_bytes(line, n_left, left) && bpe_bytes(gap + 1, n - n_left - 1, right);
  if (left->failed || right->failed) return mem_err("merge", n);
  if (!ok || !right->n) return ERR_NONE;
  merge m;
  err e = intern(&t->str, left->p, left->n, &m.left);
  if (!e) e = intern(&t->str, right->p, right->n, &m.right);
  buf_put(left, right->p, right->n);
  if (left->failed) return mem_err("merge", n);
  if (!e) e = intern(&t->str, left->p, left->n, &m.to);
  if (e) return e;
  uint32_t at = merge_probe(t, m.left, m.right);
  if (t->merge_slot[at]) return ERR_NONE;
  t->merges[t->n_merges++] = m;
  t->merge_slot[at] = t->n_merges;
  return ERR_NONE;
}

static err read_merges(tokenizer *t, const token_desc *d) {
  err e = ERR_NONE;
  buf left = {0}, right = {0};
  if (d->n_merge > INT32_MAX / 2)
    return err_set(ERR_LIMIT, "%s: %u merges, at most %u", d->name, d->n_merge, INT32_MAX / 2u);
  uint32_t slots = 16;
  while (slots < d->n_merge * 2) slots *= 2;
  t->merges = mem_zalloc(d->n_merge + 1, sizeof *t->merges);
  t->merge_slot = mem_zalloc(slots, sizeof *t->merge_slot);
  if (!t->merges || !t->merge_slot) return mem_err("merges", (uint64_t)slots * sizeof(uint32_t));
  t->n_merge_slots = slots;
  for (uint32_t i = 0; i < d->n_merge; i++)
    TRY(add_merge(t, d->merge[i], d->merge_len[i], &left, &right));
done:
  buf_free(&left);
  buf_free(&right);
  return e;
}

err bpe_new(tokenizer *t, const token_desc *d) {
  err e = ERR_NONE;
  buf bytes = {0};
  for (uint32_t i = 0; i < d->n_vocab; i++) {
    bool ok = bpe_bytes(d->text[i], d->text_len[i], &bytes) && bytes.n;
    if (bytes.failed) TRY(mem_err("token", d->text_len[i]));
    TRY(str_push(&t->str, bytes.p, ok ? bytes.n : 0, ok));
  }
  for (uint32_t b = 0; b < 256; b++) {
    char c = (char)b;
    TRY(intern(&t->str, &c, 1, &t->byte_str[b]));
  }
  TRY(read_merges(t, d));
done:
  buf_free(&bytes);
  return e;
}

/* ---- encoding ---- */

static void offer(const tokenizer *t, scratch *s, uint32_t left) {
  symbol *a = &s->sym[left];
  a->key = a->next == NO_ID ? NO_ID : rank_of(t, a->id, s->sym[a->next].id);
  if (a->key != NO_ID) heap_push(s, (candidate){.key = (uint64_t)a->key << 32 | left});
}

/* A string that is no token: bytes that are printable ASCII may still be tokens by themselves, the
 * others are dropped, as llama.cpp does. Vocabularies that have all bytes never get here. */
static err put_bytes(const tokenizer *t, uint32_t str, token_ids *out) {
  uint32_t n;
  const char *bytes = str_at(&t->str, str, &n);
  for (uint32_t i = 0; i < n; i++) {
    uint32_t id = t->byte_str[(uint8_t)bytes[i]];
    if (bytes[i] < 33 || bytes[i] > 126 || id >= t->n_vocab) continue;
    err e = token_ids_put(out, id);
    if (e) return e;
  }
  return ERR_NONE;
}

static err encode_word(const tokenizer *t, scratch *s, const char *w, uint32_t n, token_ids *out) {
  if (pre_ignores_merges(t->pre)) {
    uint32_t id = str_find(&t->str, w, n);
    if (id < t->n_vocab) return token_ids_put(out, id);
  }
  err e = scratch_symbols(s, n);
  if (e) return e;
  for (uint32_t i = 0; i < n; i++) {
    s->sym[i] = (symbol){.id = t->byte_str[(uint8_t)w[i]],
                         .prev = i ? i - 1 : NO_ID,
                         .next = i + 1 < n ? i + 1 : NO_ID};
  }
  for (uint32_t i = 0; i < n; i++) offer(t, s, i);
  while (s->n_heap) {
    candidate c = heap_pop(s);
    uint32_t left = (uint32_t)c.key, rank = (uint32_t)(c.key >> 32);
    symbol *a = &s->sym[left];
    if (a->id == NO_ID || a->key != rank) continue; /* merged away, or the pair has changed */
    symbol *b = &s->sym[a->next];
    a->id = t->merges[rank].to;
    a->next = b->next;
    b->id = NO_ID;
    if (a->next != NO_ID) s->sym[a->next].prev = left;
    if (a->prev != NO_ID) offer(t, s, a->prev);
    offer(t, s, left);
  }
  for (uint32_t i = 0; i != NO_ID && !e; i = s->sym[i].next) {
    uint32_t id = s->sym[i].id;
    e = id < t->n_vocab ? token_ids_put(out, id) : put_bytes(t, id, out);
  }
  return e;
}

err bpe_encode(const tokenizer *t, scratch *s, const char *text, uint32_t n, token_ids *out) {
  err e = scratch_chars(s, n);
  if (e) return e;
  uint32_t n_cp = 0;
  for (uint32_t i = 0; i < n; n_cp++) {
    i += (uint32_t)unicode_read(text + i, n - i, &s->cp[n_cp]);
    s->cls[n_cp] = (uint8_t)unicode_class(s->cp[n_cp]);
  }
  memset(s->cut, 0, n_cp);
  pre_split(t->pre, &(pre_text){.cp = s->cp, .cls = s->cls}, n_cp, s->cut);
  for (uint32_t i = 0; i < n_cp && !e;) {
    buf_clear(&s->text);
    do {
      char c[4];
      buf_put(&s->text, c, unicode_write(s->cp[i++], c));
    } while (i < n_cp && !s->cut[i]);
    if (s->text.failed) return mem_err("word", s->text.n);
    e = encode_word(t, s, s->text.p, (uint32_t)s->text.n, out);
  }
  return e;
}

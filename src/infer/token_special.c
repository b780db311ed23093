/* Special tokens in a text. Longer texts claim before shorter ones, each from left to right in what
 * is still unclaimed. One walk of a trie finds every occurrence; a counting sort puts them in the
 * order of claiming; so the time does not grow with the number of special tokens. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "infer/token_impl.h"

static bool is_blank(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

/* ---- building ---- */

static bool name_contains(const char *name, const char *part) {
  size_t n = strlen(part);
  for (; *name; name++) {
    size_t i = 0;
    while (i < n && tolower((unsigned char)name[i]) == part[i]) i++;
    if (i == n) return true;
  }
  return false;
}

/* Phi-3's tokenizer has `rstrip` on its special tokens, which GGUF does not record. */
static bool eats_blanks(const token_desc *d, uint32_t id) {
  static const char *const keeps[] = {"<unk>", "<s>", "<|endoftext|>"};
  if (!d->title || !(name_contains(d->title, "phi-3") || name_contains(d->title, "phi3")))
    return false;
  for (size_t i = 0; i < sizeof keeps / sizeof keeps[0]; i++) {
    if (d->text_len[id] == strlen(keeps[i]) && memcmp(d->text[id], keeps[i], d->text_len[id]) == 0)
      return false;
  }
  return true;
}

static int by_length(const void *pa, const void *pb) {
  const special_token *a = pa, *b = pb;
  if (a->len != b->len) return a->len > b->len ? -1 : 1;
  return a->id < b->id ? -1 : a->id > b->id;
}

static uint32_t child_of(const specials *s, uint32_t node, uint8_t c) {
  if (node == 0) return s->first[c];
  uint32_t k = s->node[node].child;
  while (k && s->node[k].byte != c) k = s->node[k].next;
  return k;
}

/* The trie has room for every byte of every text. */
static void trie_add(specials *s, uint32_t index, const char *text) {
  uint32_t at = 0;
  for (uint32_t i = 0; i < s->list[index].len; i++) {
    uint8_t c = (uint8_t)text[i];
    uint32_t k = child_of(s, at, c);
    if (!k) {
      k = s->n_nodes++;
      s->node[k] = (special_node){.special = NO_ID, .byte = c};
      if (at == 0) {
        s->first[c] = k;
      } else {
        s->node[k].next = s->node[at].child;
        s->node[at].child = k;
      }
    }
    at = k;
  }
  if (s->node[at].special == NO_ID) s->node[at].special = index;
}

err specials_new(const tokenizer *t, const token_desc *d, specials *out) {
  uint64_t n = 0, bytes = 0;
  for (uint32_t i = 0; i < d->n_vocab; i++) {
    if (!(t->attr[i] & (ATTR_CONTROL | ATTR_USER | ATTR_UNKNOWN)) || !d->text_len[i]) continue;
    n++;
    bytes += d->text_len[i];
  }
  if (n == 0) return ERR_NONE;
  if (bytes >= UINT32_MAX) return err_set(ERR_LIMIT, "%s: special tokens over 4 GiB", d->name);
  out->list = mem_zalloc((size_t)n, sizeof *out->list);
  out->node = mem_zalloc((size_t)bytes + 1, sizeof *out->node);
  if (!out->list || !out->node) return mem_err("special tokens", bytes * sizeof *out->node);
  for (uint32_t i = 0; i < d->n_vocab; i++) {
    if (!(t->attr[i] & (ATTR_CONTROL | ATTR_USER | ATTR_UNKNOWN)) || !d->text_len[i]) continue;
    out->list[out->n++] = (special_token){.id = i,
                                          .len = d->text_len[i],
                                          .plain = !(t->attr[i] & (ATTR_CONTROL | ATTR_UNKNOWN)),
                                          .rstrip = eats_blanks(d, i)};
  }
  qsort(out->list, out->n, sizeof *out->list, by_length);
  out->n_nodes = 1;
  for (uint32_t i = 0; i < out->n; i++) trie_add(out, i, d->text[out->list[i].id]);
  return ERR_NONE;
}

void specials_free(specials *s) {
  mem_free(s->list);
  mem_free(s->node);
  *s = (specials){0};
}

uint32_t special_id(const specials *sp, const char *s, uint32_t n) {
  uint32_t at = 0;
  for (uint32_t i = 0; i < n; i++) at = child_of(sp, at, (uint8_t)s[i]);
  return sp->list[sp->node[at].special].id;
}

/* ---- finding ---- */

/* Calls of one walk: counts occurrences in count[special], or files their positions at
 * where[count[special]++]. Returns how many there are. */
static uint64_t walk(const specials *s, const char *text, uint32_t n, bool special_too,
                     uint64_t *count, uint32_t *where) {
  uint64_t found = 0;
  for (uint32_t i = 0; i < n; i++) {
    uint32_t at = s->first[(uint8_t)text[i]];
    for (uint32_t j = i + 1; at; j++) {
      uint32_t x = s->node[at].special;
      if (x != NO_ID && (special_too || s->list[x].plain)) {
        if (where) where[count[x]] = i;
        count[x]++;
        found++;
      }
      at = j < n ? child_of(s, at, (uint8_t)text[j]) : 0;
    }
  }
  return found;
}

static void claim(const special_token *x, uint32_t at, uint32_t n, const char *text,
                  uint8_t *marks) {
  for (uint32_t i = 0; i < x->len; i++) {
    if (marks[at + i] != MARK_TEXT) return;
  }
  memset(marks + at, MARK_INSIDE, x->len);
  marks[at] = MARK_START;
  for (uint32_t i = at + x->len; x->rstrip && i < n && marks[i] == MARK_TEXT && is_blank(text[i]);
       i++)
    marks[i] = MARK_DROPPED;
}

err special_mark(const specials *s, const char *text, uint32_t n, bool special, uint8_t **out) {
  err e = ERR_NONE;
  uint64_t *count = NULL, found;
  uint32_t *where = NULL;
  uint8_t *marks = NULL;
  *out = NULL;
  if (s->n == 0) return ERR_NONE;
  count = mem_zalloc(s->n, sizeof *count);
  if (!count) return mem_err("special token counts", s->n * sizeof *count);
  found = walk(s, text, n, special, count, NULL);
  if (found == 0) goto done;
  where = found < SIZE_MAX / sizeof *where ? mem_alloc((size_t)found * sizeof *where) : NULL;
  marks = mem_zalloc(n, 1);
  if (!where || !marks) {
    e = mem_err("special tokens of a text", found * sizeof *where + n);
    goto done;
  }
  for (uint64_t i = 0, sum = 0; i < s->n; i++) { /* counts become places */
    uint64_t here = count[i];
    count[i] = sum;
    sum += here;
  }
  walk(s, text, n, special, count, where);
  for (uint64_t i = 0, k = 0; i < s->n; i++) { /* and now each is the end of its range */
    for (; k < count[i]; k++) claim(&s->list[i], where[k], n, text, marks);
  }
  *out = marks;
  marks = NULL;
done:
  mem_free(marks);
  mem_free(where);
  mem_free(count);
  return e;
}

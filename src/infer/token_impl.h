/* Shared by the files of the tokenizer: the vocabulary in memory and the scratch of one encoding.
 */
#ifndef FRIT_INFER_TOKEN_IMPL_H
#define FRIT_INFER_TOKEN_IMPL_H

#include "infer/token.h"

#define NO_ID UINT32_MAX

/* ---- strings by number and number by string (token_str.c) ---- */

typedef struct str_table {
  buf bytes;
  uint32_t *off; /* [n + 1]: string i is bytes[off[i], off[i + 1]) */
  uint32_t n, cap;
  uint32_t *slot; /* open addressing, string + 1 or 0 */
  uint32_t n_slots, n_indexed;
} str_table;

/* Appends a string as number t->n. One that is not indexed, or whose bytes are there already, is
 * not found by str_find. */
err str_push(str_table *t, const char *s, size_t n, bool index);
uint32_t str_find(const str_table *t, const char *s, size_t n); /* NO_ID when not there */
static inline const char *str_at(const str_table *t, uint32_t i, uint32_t *n) {
  *n = t->off[i + 1] - t->off[i];
  return t->bytes.p + t->off[i];
}
void str_free(str_table *t);

/* ---- special tokens (token_special.c) ---- */

typedef struct special_node {
  uint32_t child, next; /* 0 is none */
  uint32_t special;     /* index, NO_ID when no text ends here */
  uint8_t byte;
} special_node;

typedef struct special_token {
  uint32_t id, len;
  bool plain;  /* user-defined: found in plain text too */
  bool rstrip; /* eats blanks after it */
} special_token;

typedef struct specials {
  special_token *list; /* longest first: the order in which they claim text */
  uint32_t n;
  special_node *node; /* node 0 is the root */
  uint32_t n_nodes;
  uint32_t first[256]; /* the root's children */
} specials;

/* Marks of text bytes after special_mark. */
enum { MARK_TEXT, MARK_START, MARK_INSIDE, MARK_DROPPED };

err specials_new(const tokenizer *t, const token_desc *d, specials *out);
void specials_free(specials *s);
/* marks[n]: where the special tokens are. *out is NULL (and nothing was allocated) when the text
 * has none; mem_free it. */
err special_mark(const specials *s, const char *text, uint32_t n, bool special, uint8_t **out);
/* The special token whose text is the n bytes at s. */
uint32_t special_id(const specials *sp, const char *s, uint32_t n);

/* ---- pre-tokenizer rules (token_pre.c) ---- */

typedef struct pre_text {
  const uint32_t *cp; /* characters */
  const uint8_t *cls; /* their uclass */
} pre_text;

typedef struct pre_rule pre_rule;
/* NULL when the name is unknown. */
const pre_rule *pre_find(const char *name);
bool pre_ignores_merges(const pre_rule *r); /* a word that is a token is not merged */
bool pre_adds_bos(const pre_rule *r);
bool pre_has_bos(const pre_rule *r); /* false: no BOS unless the file names one */
/* cut[0, n) (cleared by the caller): 1 where a word begins. cut[0] is always set. */
void pre_split(const pre_rule *r, const pre_text *t, uint32_t n, uint8_t *cut);

/* ---- merging (token_bpe.c, token_spm.c) ---- */

typedef struct symbol {
  uint32_t id;         /* string in the table */
  uint32_t prev, next; /* NO_ID at the ends */
  uint32_t key;        /* bpe: rank of the pair (this, next); spm: unused */
  uint32_t off, n;     /* spm: bytes of the text; n = 0 once merged into its left neighbour */
} symbol;

/* Smallest key first: priority << 32 | left symbol. */
typedef struct candidate {
  uint64_t key;
  uint32_t size; /* spm: bytes of the merged symbol */
} candidate;

/* Memory of one token_encode, grown as words need it. */
typedef struct scratch {
  symbol *sym;
  candidate *heap;
  uint32_t n_sym, n_heap, cap;
  uint32_t *cp;
  uint8_t *cls, *cut;
  uint32_t cap_cp;
  buf text;
} scratch;

/* Room for words of n symbols: n in sym, 3 n in heap (each merge adds at most two candidates). */
err scratch_symbols(scratch *s, uint32_t n);
err scratch_chars(scratch *s, uint32_t n);
void scratch_free(scratch *s);
void heap_push(scratch *s, candidate c);
candidate heap_pop(scratch *s);

typedef struct merge {
  uint32_t left, right, to; /* strings */
} merge;

typedef enum token_attr {
  ATTR_NORMAL = 1,
  ATTR_UNKNOWN = 2,
  ATTR_CONTROL = 4,
  ATTR_USER = 8,
  ATTR_UNUSED = 16,
  ATTR_BYTE = 32
} token_attr;

struct tokenizer {
  bool spm;
  bool add_bos, add_eos, add_space_prefix;
  int32_t bos, eos, unk, eot;
  uint32_t n_vocab;
  uint8_t *attr;   /* [n_vocab] token_attr bits */
  uint8_t *eog;    /* [n_vocab] */
  str_table piece; /* [n_vocab] what a token prints */
  str_table str;   /* string i < n_vocab is token i as encoding compares it; more: merge parts */
  specials special;
  /* bpe */
  const pre_rule *pre;
  merge *merges; /* by rank */
  uint32_t n_merges;
  uint32_t *merge_slot; /* open addressing by (left, right), rank + 1 or 0 */
  uint32_t n_merge_slots;
  uint32_t byte_str[256]; /* the string of one byte */
  /* spm */
  float *score;          /* [n_vocab] */
  uint32_t byte_id[256]; /* byte fall-back, NO_ID when there is none */
  uint32_t max_len;      /* longest token in bytes */
};

/* What a GPT-2 vocabulary writes for bytes (each byte is one printable character): bytes of text[n]
 * into out; false when a character is not of that alphabet. */
bool bpe_bytes(const char *text, size_t n, buf *out);

err bpe_new(tokenizer *t, const token_desc *d);
err bpe_encode(const tokenizer *t, scratch *s, const char *text, uint32_t n, token_ids *out);
err spm_new(tokenizer *t, const token_desc *d);
err spm_encode(const tokenizer *t, scratch *s, const char *text, uint32_t n, bool prefix,
               token_ids *out);

#endif

/* Owns a tokenizer's life: reads the description, finds the special and end tokens, and drives an
 * encoding: special tokens are cut out first, what lies between goes to token_bpe.c or
 * token_spm.c. */
#include "infer/token.h"

#include <string.h>

#include "infer/token_impl.h"

/* ---- growable ids, scratch, heap ---- */

err token_ids_put(token_ids *ids, uint32_t id) {
  if (ids->n == ids->cap) {
    size_t cap = ids->cap ? ids->cap * 2 : 64;
    uint32_t *p = cap < SIZE_MAX / sizeof *p
                      ? mem_realloc(ids->p, ids->n * sizeof *p, cap * sizeof *p)
                      : NULL;
    if (!p) return mem_err("token ids", (uint64_t)cap * sizeof *p);
    ids->p = p;
    ids->cap = cap;
  }
  ids->p[ids->n++] = id;
  return ERR_NONE;
}

void token_ids_free(token_ids *ids) {
  mem_free(ids->p);
  *ids = (token_ids){0};
}

err scratch_symbols(scratch *s, uint32_t n) {
  s->n_sym = n;
  s->n_heap = 0;
  if (n <= s->cap) return ERR_NONE;
  mem_free(s->sym);
  mem_free(s->heap);
  s->heap = NULL;
  s->cap = 0;
  size_t cap = n < 256 ? 256 : n + n / 2; /* most words are short */
  s->sym = mem_zalloc(cap, sizeof *s->sym);
  s->heap = cap < SIZE_MAX / 3 ? mem_zalloc(cap * 3, sizeof *s->heap) : NULL;
  if (!s->sym || !s->heap) return mem_err("symbols of a word", (uint64_t)cap * sizeof *s->sym);
  s->cap = (uint32_t)cap;
  return ERR_NONE;
}

err scratch_chars(scratch *s, uint32_t n) {
  if (n <= s->cap_cp) return ERR_NONE;
  mem_free(s->cp);
  mem_free(s->cls);
  mem_free(s->cut);
  s->cls = s->cut = NULL;
  s->cap_cp = 0;
  s->cp = mem_zalloc(n, sizeof *s->cp);
  s->cls = mem_zalloc(n, 1);
  s->cut = mem_zalloc(n, 1);
  if (!s->cp || !s->cls || !s->cut) return mem_err("characters of a text", 6 * (uint64_t)n);
  s->cap_cp = n;
  return ERR_NONE;
}

void scratch_free(scratch *s) {
  mem_free(s->sym);
  mem_free(s->heap);
  mem_free(s->cp);
  mem_free(s->cls);
  mem_free(s->cut);
  buf_free(&s->text);
}

void heap_push(scratch *s, candidate c) {
  uint32_t i = s->n_heap++;
  for (; i > 0 && s->heap[(i - 1) / 2].key > c.key; i = (i - 1) / 2)
    s->heap[i] = s->heap[(i - 1) / 2];
  s->heap[i] = c;
}

candidate heap_pop(scratch *s) {
  candidate top = s->heap[0], last = s->heap[--s->n_heap];
  uint32_t i = 0;
  for (;;) {
    uint32_t k = 2 * i + 1;
    if (k >= s->n_heap) break;
    if (k + 1 < s->n_heap && s->heap[k + 1].key < s->heap[k].key) k++;
    if (s->heap[k].key >= last.key) break;
    s->heap[i] = s->heap[k];
    i = k;
  }
  s->heap[i] = last;
  return top;
}

/* ---- tokens known by their text ---- */

typedef enum role {
  ROLE_END = 1,       /* ends a generation */
  ROLE_FILL = 2,      /* fill-in-the-middle: the first of each group is a control token */
  ROLE_SHOWN = 4,     /* always rendered: user-defined */
  ROLE_GROUP = 0xF00, /* which group of ROLE_FILL */
  ROLE_CALL = 0x1000,
  ROLE_RETURN = 0x2000,
  ROLE_FLUSH = 0x4000,
  ROLE_ENDED = 0x8000, /* "<|end|>" */
  ROLE_TOOL = 0x10000, /* "<|tool_response>" */
  ROLE_S = 0x20000     /* "</s>" */
} role;

/* The texts that llama.cpp goes by; GGUF has no key for most of these. */
static const struct {
  const char *text;
  uint32_t roles;
} known[] = {
    {"<|eot_id|>", ROLE_END},
    {"<|im_end|>", ROLE_END},
    {"<|end|>", ROLE_END | ROLE_ENDED},
    {"<|return|>", ROLE_END | ROLE_RETURN},
    {"<|call|>", ROLE_END | ROLE_CALL},
    {"<|calls|>", ROLE_END | ROLE_CALL},
    {"<|flush|>", ROLE_END | ROLE_FLUSH},
    {"<end_of_turn>", ROLE_END},
    {"<|endoftext|>", ROLE_END},
    {"</s>", ROLE_END | ROLE_S},
    {"<|eom_id|>", ROLE_END},
    {"<EOT>", ROLE_END},
    {"_<EOT>", ROLE_END},
    {"[EOT]", ROLE_END},
    {"[EOS]", ROLE_END},
    {"<|end_of_text|>", ROLE_END},
    {"<end_of_utterance>", ROLE_END},
    {"<eos>", ROLE_END},
    {"<turn|>", ROLE_END},
    {"<|tool_response>", ROLE_END | ROLE_TOOL},
    {"<\xEF\xBD\x9C"
     "end\xE2\x96\x81of\xE2\x96\x81sentence\xEF\xBD\x9C>",
     ROLE_END},
    {"[e~[", ROLE_END},
    {"<|fim_prefix|>", ROLE_FILL | 0x100},
    {"<fim-prefix>", ROLE_FILL | 0x100},
    {"<fim_prefix>", ROLE_FILL | 0x100},
    {"<\xEF\xBD\x9C"
     "fim\xE2\x96\x81"
     "begin\xEF\xBD\x9C>",
     ROLE_FILL | 0x100},
    {"<PRE>", ROLE_FILL | 0x100},
    {"\xE2\x96\x81<PRE>", ROLE_FILL | 0x100},
    {"<|code_prefix|>", ROLE_FILL | 0x100},
    {"<|prefix|>", ROLE_FILL | 0x100},
    {"<|fim_suffix|>", ROLE_FILL | 0x200},
    {"<fim-suffix>", ROLE_FILL | 0x200},
    {"<fim_suffix>", ROLE_FILL | 0x200},
    {"<\xEF\xBD\x9C"
     "fim\xE2\x96\x81hole\xEF\xBD\x9C>",
     ROLE_FILL | 0x200},
    {"<SUF>", ROLE_FILL | 0x200},
    {"\xE2\x96\x81<SUF>", ROLE_FILL | 0x200},
    {"<|code_suffix|>", ROLE_FILL | 0x200},
    {"<|suffix|>", ROLE_FILL | 0x200},
    {"<|fim_middle|>", ROLE_FILL | 0x300},
    {"<fim-middle>", ROLE_FILL | 0x300},
    {"<fim_middle>", ROLE_FILL | 0x300},
    {"<\xEF\xBD\x9C"
     "fim\xE2\x96\x81"
     "end\xEF\xBD\x9C>",
     ROLE_FILL | 0x300},
    {"<MID>", ROLE_FILL | 0x300},
    {"\xE2\x96\x81<MID>", ROLE_FILL | 0x300},
    {"<|code_middle|>", ROLE_FILL | 0x300},
    {"<|middle|>", ROLE_FILL | 0x300},
    {"<|fim_pad|>", ROLE_FILL | 0x400 | ROLE_END},
    {"<fim-pad>", ROLE_FILL | 0x400 | ROLE_END},
    {"<fim_pad>", ROLE_FILL | 0x400 | ROLE_END},
    {"<PAD>", ROLE_FILL | 0x400 | ROLE_END},
    {"[PAD]", ROLE_FILL | 0x400 | ROLE_END},
    {"<|fim_repo|>", ROLE_FILL | 0x500 | ROLE_END},
    {"<|repo_name|>", ROLE_FILL | 0x500 | ROLE_END},
    {"<fim-repo>", ROLE_FILL | 0x500 | ROLE_END},
    {"<REPO>", ROLE_FILL | 0x500 | ROLE_END},
    {"<reponame>", ROLE_FILL | 0x500 | ROLE_END},
    {"<|file_sep|>", ROLE_FILL | 0x600 | ROLE_END},
    {"<|channel|>", ROLE_SHOWN},
    {"<|message|>", ROLE_SHOWN},
    {"<|start|>", ROLE_SHOWN},
    {"<|constrain|>", ROLE_SHOWN},
};

static uint32_t roles_of(const char *text, uint32_t n) {
  if (n == 0 || !strchr("<_[\xE2", text[0])) return 0;
  for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
    if (strlen(known[i].text) == n && memcmp(known[i].text, text, n) == 0) return known[i].roles;
  }
  return 0;
}

/* Sets attr and eog of the tokens known by their text, then of the file's eos and eot. */
static void find_known(tokenizer *t, const token_desc *d) {
  uint32_t seen = 0, groups = 0, ended = NO_ID, plain_s = NO_ID;
  for (uint32_t i = 0; i < d->n_vocab; i++) {
    uint32_t r = roles_of(d->text[i], d->text_len[i]);
    if (!r) continue;
    uint32_t group = 1u << ((r & ROLE_GROUP) >> 8);
    if (r & ROLE_FILL && groups & group) continue;
    if (r & ROLE_FILL) groups |= group;
    seen |= r;
    t->eog[i] = (r & ROLE_END) != 0;
    if (r & ROLE_SHOWN) t->attr[i] = ATTR_USER;
    else t->attr[i] |= ATTR_CONTROL;
    if (r & ROLE_ENDED) ended = i;
    if (r & ROLE_S) plain_s = i;
  }
  if (t->eos >= 0) t->eog[t->eos] = 1;
  if (t->eot >= 0) t->eog[t->eot] = 1;
  /* gpt-oss and its like have messages within a turn that end in "<|end|>". */
  uint32_t other = seen & (ROLE_RETURN | ROLE_FLUSH);
  if (ended != NO_ID && seen & ROLE_CALL && other) {
    t->eog[ended] = 0;
    t->attr[ended] = ATTR_USER;
  }
  if (plain_s != NO_ID && seen & ROLE_TOOL) { /* an ordinary tag here */
    t->eog[plain_s] = 0;
    t->attr[plain_s] = ATTR_NORMAL;
  }
}

/* ---- life ---- */

static int32_t checked_id(const token_desc *d, const char *what, int32_t id) {
  if (id < 0) return -1;
  if ((uint32_t)id < d->n_vocab) return id;
  log_msg(LOG_WARN, "%s: %s token %d is beyond the vocabulary of %u tokens and is ignored", d->name,
          what, id, d->n_vocab);
  return -1;
}

void token_desc_defaults(token_desc *d) {
  bool spm = strcmp(d->model, "llama") == 0;
  const pre_rule *r = spm ? NULL : pre_find(d->pre && *d->pre ? d->pre : "default");
  d->bos = spm ? 1 : r && !pre_has_bos(r) ? -1 : 11;
  d->eos = spm ? 2 : 11;
  d->unk = spm ? 0 : -1;
  d->eot = -1;
  d->add_bos = spm || (r && pre_adds_bos(r));
  d->add_eos = false;
  d->add_space_prefix = spm;
}

static err set_attrs(tokenizer *t, const token_desc *d) {
  static const uint8_t of_type[] = {0,         ATTR_NORMAL, ATTR_UNKNOWN, ATTR_CONTROL,
                                    ATTR_USER, ATTR_UNUSED, ATTR_BYTE};
  t->attr = mem_zalloc(d->n_vocab, 1);
  t->eog = mem_zalloc(d->n_vocab, 1);
  if (!t->attr || !t->eog) return mem_err("token types", 2 * (uint64_t)d->n_vocab);
  for (uint32_t i = 0; i < d->n_vocab; i++) {
    int32_t type = d->type ? d->type[i] : 1;
    t->attr[i] = type >= 0 && type < (int32_t)sizeof of_type ? of_type[type] : 0;
  }
  find_known(t, d);
  return ERR_NONE;
}

static int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  c |= 32;
  return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Bytes that a token prints into *out: its text as it is for special tokens; the byte of <0xXX>;
 * else the text with the vocabulary's spelling of blanks and bytes undone. Other types print
 * nothing. */
static void piece_of(const tokenizer *t, const token_desc *d, uint32_t i, buf *out) {
  const char *s = d->text[i];
  uint32_t n = d->text_len[i];
  buf_clear(out);
  if (t->attr[i] & (ATTR_CONTROL | ATTR_UNKNOWN | ATTR_USER)) {
    buf_put(out, s, n);
  } else if (t->attr[i] & ATTR_BYTE) {
    int hi = n == 6 ? hex_digit(s[3]) : -1, lo = n == 6 ? hex_digit(s[4]) : -1;
    if (hi >= 0 && lo >= 0) buf_putc(out, (char)(hi << 4 | lo));
  } else if (t->attr[i] & ATTR_NORMAL && t->spm) {
    for (uint32_t k = 0; k < n; k++) {
      bool blank = n - k >= 3 && memcmp(s + k, "\xE2\x96\x81", 3) == 0;
      buf_putc(out, blank ? ' ' : s[k]);
      k += blank ? 2 : 0;
    }
  } else if (t->attr[i] & ATTR_NORMAL) {
    bool ok = bpe_bytes(s, n, out);
    if (!ok && !out->failed) {
      buf_clear(out);
      buf_put(out, s, n);
    }
  }
}

static err set_pieces(tokenizer *t, const token_desc *d) {
  err e = ERR_NONE;
  buf bytes = {0};
  for (uint32_t i = 0; i < d->n_vocab && !e; i++) {
    piece_of(t, d, i, &bytes);
    e = bytes.failed ? mem_err("token", d->text_len[i])
                     : str_push(&t->piece, bytes.p, bytes.n, false);
  }
  buf_free(&bytes);
  return e;
}

static err check_desc(const token_desc *d, tokenizer *t) {
  t->spm = strcmp(d->model, "llama") == 0;
  if (!t->spm && strcmp(d->model, "gpt2") != 0)
    return err_set(ERR_UNSUPPORTED,
                   "%s: the tokenizer model '%s' is not supported; 'gpt2' and 'llama' are", d->name,
                   d->model);
  const char *pre = d->pre && *d->pre ? d->pre : "default";
  t->pre = t->spm ? NULL : pre_find(pre);
  if (!t->spm && !t->pre)
    return err_set(ERR_UNSUPPORTED, "%s: the pre-tokenizer '%s' is not known", d->name, pre);
  if (d->n_vocab == 0 || d->n_vocab > INT32_MAX)
    return err_set(ERR_FORMAT, "%s: a vocabulary of %u tokens", d->name, d->n_vocab);
  t->n_vocab = d->n_vocab;
  t->add_bos = d->add_bos;
  t->add_eos = d->add_eos;
  t->add_space_prefix = d->add_space_prefix;
  t->bos = checked_id(d, "bos", d->bos);
  t->eos = checked_id(d, "eos", d->eos);
  t->unk = checked_id(d, "unk", d->unk);
  t->eot = checked_id(d, "eot", d->eot);
  return ERR_NONE;
}

err token_new(const token_desc *d, tokenizer **out) {
  err e = ERR_NONE;
  *out = NULL;
  tokenizer *t = mem_zalloc(1, sizeof *t);
  if (!t) return mem_err("tokenizer", sizeof *t);
  TRY(check_desc(d, t));
  TRY(set_attrs(t, d));
  TRY(set_pieces(t, d));
  TRY(specials_new(t, d, &t->special));
  TRY(t->spm ? spm_new(t, d) : bpe_new(t, d));
  *out = t;
  return ERR_NONE;
done:
  token_free(t);
  return e;
}

void token_free(tokenizer *t) {
  if (!t) return;
  mem_free(t->attr);
  mem_free(t->eog);
  mem_free(t->score);
  mem_free(t->merges);
  mem_free(t->merge_slot);
  str_free(&t->piece);
  str_free(&t->str);
  specials_free(&t->special);
  mem_free(t);
}

/* ---- encoding ---- */

static err encode_parts(const tokenizer *t, scratch *s, const char *text, uint32_t n,
                        const uint8_t *marks, token_ids *out) {
  bool after_special = true;
  for (uint32_t i = 0, j; i < n; i = j) {
    uint8_t kind = marks ? marks[i] : MARK_TEXT;
    uint8_t same = kind == MARK_START ? MARK_INSIDE : kind;
    for (j = i + 1; j < n && (marks ? marks[j] : MARK_TEXT) == same;) j++;
    err e = ERR_NONE;
    if (kind == MARK_START) {
      e = token_ids_put(out, special_id(&t->special, text + i, j - i));
      after_special = true;
    } else if (kind == MARK_TEXT) {
      e = t->spm ? spm_encode(t, s, text + i, j - i, t->add_space_prefix && after_special, out)
                 : bpe_encode(t, s, text + i, j - i, out);
      after_special = false;
    }
    if (e) return e;
  }
  return ERR_NONE;
}

err token_encode(const tokenizer *t, const char *text, size_t n, bool special, bool add,
                 token_ids *out) {
  const uint32_t limit = 256u << 20;
  size_t before = out->n;
  scratch s = {0};
  uint8_t *marks = NULL;
  err e = ERR_NONE;
  if (n > limit) return err_set(ERR_LIMIT, "a text of %zu bytes to tokenize, at most %u", n, limit);
  TRY(special_mark(&t->special, text, (uint32_t)n, special, &marks));
  if (add && t->add_bos && t->bos >= 0) TRY(token_ids_put(out, (uint32_t)t->bos));
  TRY(encode_parts(t, &s, text, (uint32_t)n, marks, out));
  if (add && t->add_eos && t->eos >= 0) TRY(token_ids_put(out, (uint32_t)t->eos));
done:
  if (e) out->n = before;
  scratch_free(&s);
  mem_free(marks);
  return e;
}

/* ---- questions ---- */

err token_piece(const tokenizer *t, uint32_t id, bool special, const char **bytes, size_t *n) {
  *bytes = "";
  *n = 0;
  if (id >= t->n_vocab)
    return err_set(ERR_ARG, "token %u: the vocabulary has %u tokens", id, t->n_vocab);
  if (!special && t->attr[id] & (ATTR_CONTROL | ATTR_UNKNOWN)) return ERR_NONE;
  uint32_t len;
  const char *p = str_at(&t->piece, id, &len);
  if (len) *bytes = p;
  *n = len;
  return ERR_NONE;
}

bool token_is_eog(const tokenizer *t, uint32_t id) { return id < t->n_vocab && t->eog[id]; }
uint32_t token_count(const tokenizer *t) { return t->n_vocab; }
int32_t token_bos(const tokenizer *t) { return t->bos; }
int32_t token_eos(const tokenizer *t) { return t->eos; }

/* Tokenizers: text to token ids and back, from a model file's own vocabulary.
 *
 * Two kinds: "gpt2" is byte-level BPE (text is cut into words by the file's pre-tokenizer rule,
 * then bytes are merged in the order of the merge list), "llama" is SentencePiece BPE (characters
 * are merged by the score of the token they form; what is no token falls back to bytes). Ids equal
 * those of llama.cpp, invalid UTF-8 included. A tokenizer does not change after token_new: threads
 * may share it. */
#ifndef FRIT_INFER_TOKEN_H
#define FRIT_INFER_TOKEN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/mem.h"
#include "infer/unicode.h"

typedef struct tokenizer tokenizer;

/* Plain data, as GGUF metadata has it; pointers need to be valid during token_new only. */
typedef struct token_desc {
  const char *model; /* "gpt2" or "llama" */
  const char *pre;   /* "smollm", "llama-bpe", ...; NULL or "" is "default"; unused by "llama" */
  uint32_t n_vocab;
  const char *const *text;  /* [n_vocab], may hold NUL bytes */
  const uint32_t *text_len; /* [n_vocab] */
  const float *score;       /* [n_vocab] or NULL */
  const int32_t *type;      /* [n_vocab] or NULL: 1 normal, 2 unknown, 3 control, 4 user-defined,
                             * 5 unused, 6 byte */
  const char *const *merge; /* "left right", in order of rank; unused by "llama" */
  const uint32_t *merge_len;
  uint32_t n_merge;
  int32_t bos, eos, unk, eot; /* ids, -1 when absent; one beyond n_vocab counts as absent */
  bool add_bos, add_eos;      /* with no such id, nothing is added */
  bool add_space_prefix;      /* "llama": a blank before the text and after each special token */
  const char *title; /* general.name or NULL: Phi-3's special tokens eat blanks after them */
  const char *name;  /* the file, for error messages */
} token_desc;

/* Fills in what holds when the file is silent: bos, eos, unk, eot, add_bos, add_eos and
 * add_space_prefix, from d->model and d->pre. To be called before the file's own keys are applied.
 *   "llama": bos 1, eos 2, unk 0; BOS is added, EOS not; blank prefix.
 *   "gpt2":  bos and eos 11; BOS added for the llama3 family and tekken only. */
void token_desc_defaults(token_desc *d);

/* Errors: ERR_UNSUPPORTED for a model or pre-tokenizer that is not known, ERR_FORMAT, ERR_LIMIT. */
err token_new(const token_desc *d, tokenizer **out);
void token_free(tokenizer *t);

/* Growable array of ids; zero is empty. */
typedef struct token_ids {
  uint32_t *p;
  size_t n, cap;
} token_ids;
err token_ids_put(token_ids *ids, uint32_t id);
void token_ids_free(token_ids *ids);

/* Appends the ids of text[n] (at most 256 MiB, else ERR_LIMIT). `special`: the texts of control
 * tokens ("<|im_start|>") stand for those tokens, else they are plain text; user-defined tokens are
 * found in either case. `add`: BOS and EOS as the file's rules say. On an error *out keeps what it
 * had. */
err token_encode(const tokenizer *t, const char *text, size_t n, bool special, bool add,
                 token_ids *out);

/* Bytes of one token, perhaps part of a character; valid with t. Control and unknown tokens give
 * their text when `special`, else nothing. ERR_ARG when there is no such id. */
err token_piece(const tokenizer *t, uint32_t id, bool special, const char **bytes, size_t *n);

/* Whether the token ends a generation: the file's eos and eot, and tokens known by their text
 * (<|im_end|>, <|eot_id|>, <end_of_turn>, <|endoftext|>, ...). */
bool token_is_eog(const tokenizer *t, uint32_t id);
uint32_t token_count(const tokenizer *t);
/* -1 when absent. */
int32_t token_bos(const tokenizer *t);
int32_t token_eos(const tokenizer *t);

#endif

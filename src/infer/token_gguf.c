/* Turns keys and arrays of a GGUF file into a token_desc; keeps nothing. */
#include "infer/token_gguf.h"

#include <string.h>

#define KEY(x) "tokenizer.ggml." x

typedef struct texts {
  const char **p;
  uint32_t *len;
  uint32_t n;
} texts;

static void texts_free(texts *t) {
  mem_free(t->p);
  mem_free(t->len);
}

static err read_texts(const gguf *g, const char *key, texts *out) {
  gguf_array a;
  err e = gguf_arr_strs(g, key, &a);
  if (e) return e;
  if (a.n > INT32_MAX)
    return err_set(ERR_LIMIT, "%s: key '%s' has %llu strings, at most %d", gguf_name(g), key,
                   (unsigned long long)a.n, INT32_MAX);
  out->n = (uint32_t)a.n;
  out->p = mem_zalloc(out->n + 1, sizeof *out->p);
  out->len = mem_zalloc(out->n + 1, sizeof *out->len);
  if (!out->p || !out->len) return mem_err(key, a.n * sizeof *out->p);
  for (uint32_t i = 0; i < out->n; i++) {
    gguf_text s = gguf_arr_text(&a, i);
    if (s.n > UINT32_MAX)
      return err_set(ERR_LIMIT, "%s: key '%s' has a string over 4 GiB", gguf_name(g), key);
    out->p[i] = s.p;
    out->len[i] = (uint32_t)s.n;
  }
  return ERR_NONE;
}

/* An array with one number a token; a->n is 0 when the file has none. */
static err read_numbers(const gguf *g, const char *key, uint32_t n, gguf_array *a) {
  a->n = 0;
  if (!gguf_has(g, key)) return ERR_NONE;
  err e = gguf_arr_nums(g, key, a);
  if (!e && a->n < n)
    e = err_set(ERR_FORMAT, "%s: key '%s' has %llu numbers for %u tokens", gguf_name(g), key,
                (unsigned long long)a->n, n);
  return e;
}

/* An id as the file has it; a number that is no id at all counts as beyond the vocabulary. */
static err read_id(const gguf *g, const char *key, int32_t *id) {
  uint32_t v;
  err e = gguf_u32_or(g, key, (uint32_t)*id, &v);
  if (!e && gguf_has(g, key)) *id = v > INT32_MAX ? INT32_MAX : (int32_t)v;
  return e;
}

static err read_rules(const gguf *g, token_desc *d) {
  err e = gguf_str(g, KEY("model"), &d->model, NULL);
  if (!e) e = gguf_str_or(g, KEY("pre"), NULL, &d->pre, NULL);
  if (!e) e = gguf_str_or(g, "general.name", NULL, &d->title, NULL);
  if (e) return e;
  token_desc_defaults(d);
  e = read_id(g, KEY("bos_token_id"), &d->bos);
  if (!e) e = read_id(g, KEY("eos_token_id"), &d->eos);
  if (!e) e = read_id(g, KEY("unknown_token_id"), &d->unk);
  if (!e) e = read_id(g, KEY("eot_token_id"), &d->eot);
  if (!e) e = gguf_bool_or(g, KEY("add_bos_token"), d->add_bos, &d->add_bos);
  if (!e) e = gguf_bool_or(g, KEY("add_eos_token"), d->add_eos, &d->add_eos);
  if (!e) e = gguf_bool_or(g, KEY("add_space_prefix"), d->add_space_prefix, &d->add_space_prefix);
  return e;
}

err token_from_gguf(const gguf *g, tokenizer **out) {
  err e = ERR_NONE;
  token_desc d = {.name = gguf_name(g)};
  texts tokens = {0}, merges = {0};
  gguf_array scores = {0}, types = {0};
  float *score = NULL;
  int32_t *type = NULL;
  *out = NULL;
  TRY(read_rules(g, &d));
  TRY(read_texts(g, KEY("tokens"), &tokens));
  if (strcmp(d.model, "gpt2") == 0) TRY(read_texts(g, KEY("merges"), &merges));
  TRY(read_numbers(g, KEY("scores"), tokens.n, &scores));
  TRY(read_numbers(g, KEY("token_type"), tokens.n, &types));
  score = mem_zalloc((size_t)tokens.n + 1, sizeof *score);
  type = mem_zalloc((size_t)tokens.n + 1, sizeof *type);
  if (!score || !type) {
    e = mem_err("token scores and types", 8 * (uint64_t)tokens.n);
    goto done;
  }
  for (uint32_t i = 0; i < tokens.n; i++) {
    if (scores.n) score[i] = (float)gguf_arr_f64(&scores, i);
    if (types.n) type[i] = (int32_t)gguf_arr_i64(&types, i);
  }
  d.n_vocab = tokens.n;
  d.text = tokens.p;
  d.text_len = tokens.len;
  d.score = score;
  d.type = types.n ? type : NULL;
  d.merge = merges.p;
  d.merge_len = merges.len;
  d.n_merge = merges.n;
  TRY(token_new(&d, out));
done:
  mem_free(score);
  mem_free(type);
  texts_free(&tokens);
  texts_free(&merges);
  return e;
}

/* Tokenizers against llama.cpp's ids (tools/vectors/token_vectors.py), and what must not go wrong.
 */
#include <stdlib.h>

#include "base/file.h"
#include "base/mem.h"
#include "infer/token.h"
#include "infer/token_gguf.h"
#include "test.h"

/* ---- escaped lines ---- */

typedef struct lines {
  char *text; /* owns everything */
  size_t size;
  char **p;
  size_t *len;
  size_t n;
} lines;

static int hex(char c) { return c <= '9' ? c - '0' : (c | 32) - 'a' + 10; }

/* In place; returns the length. */
static size_t unescape(char *s, size_t n) {
  size_t k = 0;
  for (size_t i = 0; i < n; i++) {
    if (s[i] != '\\' || i + 1 == n) {
      s[k++] = s[i];
      continue;
    }
    char c = s[++i];
    if (c == 'x' && i + 2 < n) {
      s[k++] = (char)(hex(s[i + 1]) << 4 | hex(s[i + 2]));
      i += 2;
    } else {
      s[k++] = c == 'n' ? '\n' : c == 'r' ? '\r' : c == 't' ? '\t' : c;
    }
  }
  return k;
}

static bool read_lines(const char *rel, lines *out) {
  *out = (lines){0};
  if (file_read(test_data(rel), 1 << 20, &out->text, &out->size)) {
    FAIL("%s", err_text());
    return false;
  }
  size_t n = 0;
  for (size_t i = 0; i < out->size; i++) n += out->text[i] == '\n';
  out->p = calloc(n + 1, sizeof *out->p);
  out->len = calloc(n + 1, sizeof *out->len);
  for (char *at = out->text; out->n < n; at += out->len[out->n++] + 1) {
    out->p[out->n] = at;
    out->len[out->n] = (size_t)(strchr(at, '\n') - at);
  }
  for (size_t i = 0; i < n; i++) out->p[i][out->len[i]] = 0;
  return true;
}

static void free_lines(lines *l) {
  mem_free(l->text);
  free(l->p);
  free(l->len);
}

/* nasty.txt, unescaped. */
static bool read_nasty(lines *out) {
  if (!read_lines("token/nasty.txt", out)) return false;
  for (size_t i = 0; i < out->n; i++) out->len[i] = unescape(out->p[i], out->len[i]);
  return true;
}

/* ---- vocabularies ---- */

typedef struct vocab {
  lines l;
  token_desc d;
  const char **text, **merge;
  uint32_t *text_len, *merge_len;
  float *score;
  int32_t *type;
  char (*dropped)[24];
} vocab;

static bool read_vocab(const char *rel, vocab *v) {
  *v = (vocab){0};
  if (!read_lines(rel, &v->l)) return false;
  size_t n = v->l.n;
  v->text = calloc(n, sizeof *v->text);
  v->merge = calloc(n, sizeof *v->merge);
  v->text_len = calloc(n, sizeof *v->text_len);
  v->merge_len = calloc(n, sizeof *v->merge_len);
  v->score = calloc(n, sizeof *v->score);
  v->type = calloc(n, sizeof *v->type);
  v->dropped = calloc(n, sizeof *v->dropped);
  for (size_t i = 0; i < n; i++) {
    char *s = v->l.p[i] + 2, *end = v->l.p[i] + v->l.len[i];
    if (v->l.p[i][0] == 't') {
      v->type[v->d.n_vocab] = (int32_t)strtol(s, &s, 10);
      v->score[v->d.n_vocab] = strtof(s, &s);
      v->text[v->d.n_vocab] = ++s;
      v->text_len[v->d.n_vocab++] = (uint32_t)unescape(s, (size_t)(end - s));
    } else {
      v->merge[v->d.n_merge] = s;
      v->merge_len[v->d.n_merge++] = (uint32_t)unescape(s, (size_t)(end - s));
    }
  }
  v->d.text = v->text;
  v->d.text_len = v->text_len;
  v->d.score = v->score;
  v->d.type = v->type;
  v->d.merge = v->merge;
  v->d.merge_len = v->merge_len;
  v->d.name = rel;
  v->d.model = v->d.n_merge ? "gpt2" : "llama";
  token_desc_defaults(&v->d);
  return true;
}

static void free_vocab(vocab *v) {
  free_lines(&v->l);
  free(v->text);
  free(v->merge);
  free(v->text_len);
  free(v->merge_len);
  free(v->score);
  free(v->type);
  free(v->dropped);
}

/* Value of "key=value" in a run line, "" when missing; valid until the next call. */
static const char *value(const char *run, const char *key) {
  static char out[64];
  size_t n = strlen(key);
  out[0] = 0;
  for (const char *p = strchr(run, ' '); p; p = strchr(p + 1, ' ')) {
    if (strncmp(p + 1, key, n) || p[n + 1] != '=') continue;
    snprintf(out, sizeof out, "%.*s", (int)strcspn(p + n + 2, " "), p + n + 2);
  }
  return out;
}

static int number(const char *run, const char *key, int otherwise) {
  const char *v = value(run, key);
  return *v ? atoi(v) : otherwise;
}

/* A tokenizer of the vocabulary under the settings of a run line. */
static tokenizer *open_run(vocab *v, const char *run) {
  char pre[64], title[64];
  token_desc d = v->d;
  snprintf(pre, sizeof pre, "%s", value(run, "pre"));
  snprintf(title, sizeof title, "%s", value(run, "title"));
  for (char *p = title; *p; p++) *p = *p == '_' ? ' ' : *p;
  d.pre = pre;
  d.title = title;
  token_desc_defaults(&d);
  d.bos = number(run, "bos", d.bos);
  d.eos = number(run, "eos", d.eos);
  d.add_bos = number(run, "add_bos", d.add_bos);
  d.add_eos = number(run, "add_eos", d.add_eos);
  d.add_space_prefix = number(run, "prefix", d.add_space_prefix);
  const char **text = calloc(d.n_vocab, sizeof *text);
  uint32_t *len = calloc(d.n_vocab, sizeof *len), drop = (uint32_t)number(run, "drop", 0);
  for (uint32_t i = 0; i < d.n_vocab; i++) {
    text[i] = v->text[i];
    len[i] = v->text_len[i];
    if (!drop || i % drop != 3 || v->type[i] == 6) continue;
    len[i] = (uint32_t)snprintf(v->dropped[i], sizeof v->dropped[i], "[DROP_%u]", i);
    text[i] = v->dropped[i];
  }
  d.text = text;
  d.text_len = len;
  tokenizer *t = NULL;
  CHECK_OK(token_new(&d, &t));
  free(text);
  free(len);
  return t;
}

/* ---- comparing with a run ---- */

static uint64_t fnv(const void *bytes, size_t n, uint64_t h) {
  for (size_t i = 0; i < n; i++) h = (h ^ ((const uint8_t *)bytes)[i]) * 0x100000001B3u;
  return h;
}
static const uint64_t fnv_start = 0xCBF29CE484222325u;

static void check_pieces(const tokenizer *t, const char *run, uint64_t want) {
  uint64_t h = fnv_start;
  for (uint32_t i = 0; i < 2 * token_count(t); i++) {
    const char *p;
    size_t n;
    CHECK_OK(token_piece(t, i / 2, i % 2 == 0, &p, &n));
    uint32_t len = (uint32_t)n;
    h = fnv(p, n, fnv(&len, 4, h));
  }
  if (h != want) FAIL("%s: the tokens print something else", run);
}

static void check_eog(const tokenizer *t, const char *run, char *want) {
  char *p = want;
  long next = strtol(p, &p, 10);
  bool any = *want;
  for (uint32_t i = 0; i < token_count(t); i++) {
    bool w = any && (uint32_t)next == i;
    if (token_is_eog(t, i) != w)
      FAIL("%s: token %u %s a generation", run, i, w ? "ends" : "ends not");
    if (w) next = strtol(p, &p, 10);
  }
}

/* One string; `want` is a hash or ids. */
static void check_ids(const token_ids *ids, const char *run, size_t line, const char *want) {
  buf got = {0};
  if (number(run, "ids", 0)) {
    for (size_t k = 0; k < ids->n; k++) buf_printf(&got, k ? " %u" : "%u", ids->p[k]);
  } else {
    uint64_t h = fnv(ids->p, ids->n * sizeof *ids->p, fnv_start);
    buf_printf(&got, "%08x", (uint32_t)(h ^ h >> 32));
  }
  if (strcmp(got.p ? got.p : "", want) != 0) {
    buf_clear(&got);
    for (size_t k = 0; k < ids->n; k++) buf_printf(&got, " %u", ids->p[k]);
    FAIL("%s: nasty.txt:%zu gives%s", run, line + 1, got.p ? got.p : "");
  }
  buf_free(&got);
}

/* One run; returns the line after it. */
static size_t check_run(const lines *ids, size_t at, const tokenizer *t, const lines *nasty) {
  const char *run = ids->p[at];
  token_ids got = {0};
  check_eog(t, run, ids->p[at + 1] + 3);
  check_pieces(t, run, strtoull(ids->p[at + 2] + 7, NULL, 16));
  for (size_t i = 0; i < nasty->n; i++) {
    got.n = 0;
    CHECK_OK(token_encode(t, nasty->p[i], nasty->len[i], number(run, "special", 0),
                          number(run, "add", 0), &got));
    check_ids(&got, run, i, ids->p[at + 3 + i]);
  }
  token_ids_free(&got);
  return at + 3 + nasty->n;
}

static void check_vocab(const char *vocab_file, const char *ids_file) {
  lines nasty, ids;
  vocab v;
  if (!read_nasty(&nasty) || !read_lines(ids_file, &ids) || !read_vocab(vocab_file, &v)) return;
  size_t runs = 0;
  for (size_t at = 0; at + 3 + nasty.n <= ids.n; runs++) {
    tokenizer *t = open_run(&v, ids.p[at]);
    if (!t) break;
    at = check_run(&ids, at, t, &nasty);
    token_free(t);
  }
  CHECK_EQ(runs * (3 + nasty.n), ids.n);
  CHECK(runs > 5 && nasty.n >= 200);
  free_vocab(&v);
  free_lines(&ids);
  free_lines(&nasty);
}

static void bpe_like_llama_cpp(void) { check_vocab("token/bpe.vocab", "token/bpe.ids"); }
static void spm_like_llama_cpp(void) { check_vocab("token/spm.vocab", "token/spm.ids"); }

static void smollm2_like_llama_cpp(void) {
  lines nasty, ids;
  if (!test_model()) SKIP("no demo model (make model): ids of SmolLM2 are not compared");
  if (!read_nasty(&nasty) || !read_lines("token/smollm2.ids", &ids)) return;
  gguf *g = NULL;
  tokenizer *t = NULL;
  CHECK_OK(gguf_open(test_model(), &g));
  if (g) CHECK_OK(token_from_gguf(g, &t));
  gguf_free(g);
  REQUIRE(t != NULL);
  for (size_t at = 0; at < ids.n;) at = check_run(&ids, at, t, &nasty);
  token_free(t);
  free_lines(&ids);
  free_lines(&nasty);
}

/* ---- what must not go wrong ---- */

static void errors_name_their_cause(void) {
  vocab v;
  tokenizer *t = NULL;
  if (!read_vocab("token/bpe.vocab", &v)) return;
  token_desc d = v.d;
  d.pre = "nonesuch-7b";
  CHECK_ERR(token_new(&d, &t), ERR_UNSUPPORTED, "token/bpe.vocab: the pre-tokenizer 'nonesuch-7b'");
  d.pre = "gpt-2 phi-2"; /* two names are none */
  CHECK_ERR(token_new(&d, &t), ERR_UNSUPPORTED, "gpt-2 phi-2");
  d.pre = NULL;
  d.model = "t5";
  CHECK_ERR(token_new(&d, &t), ERR_UNSUPPORTED, "token/bpe.vocab: the tokenizer model 't5'");
  d = v.d;
  d.n_vocab = 0;
  CHECK_ERR(token_new(&d, &t), ERR_FORMAT, "0 tokens");
  CHECK(t == NULL);
  const char *p;
  size_t n;
  CHECK_OK(token_new(&v.d, &t));
  if (t) CHECK_ERR(token_piece(t, v.d.n_vocab, true, &p, &n), ERR_ARG, "vocabulary has");
  if (t) CHECK(!token_is_eog(t, v.d.n_vocab));
  token_ids ids = {0};
  if (t) CHECK_ERR(token_encode(t, "", (size_t)1 << 30, true, true, &ids), ERR_LIMIT, "268435456");
  if (t) CHECK_OK(token_encode(t, NULL, 0, true, true, &ids));
  CHECK_EQ(ids.n, 0);
  token_free(t);
  free_vocab(&v);
}

/* A missing BOS is not added, and one beyond the vocabulary is ignored. */
static void absent_ids(void) {
  const char *text[] = {"a", "b", "<s>"}, *merge[] = {"a b"};
  uint32_t len[] = {1, 1, 3}, merge_len[] = {3};
  token_desc d = {.model = "gpt2",
                  .n_vocab = 3,
                  .text = text,
                  .text_len = len,
                  .merge = merge,
                  .merge_len = merge_len,
                  .n_merge = 1,
                  .name = "three"};
  tokenizer *t = NULL;
  token_ids ids = {0};
  token_desc_defaults(&d);
  d.add_bos = d.add_eos = true;
  d.eos = -1; /* bos is 11, which is warned of */
  CHECK_OK(token_new(&d, &t));
  REQUIRE(t != NULL);
  CHECK_EQ(token_bos(t), -1);
  CHECK_EQ(token_eos(t), -1);
  CHECK_OK(token_encode(t, "bac", 3, true, true, &ids));
  CHECK_EQ(ids.n, 2); /* no token for "c" */
  CHECK(ids.n == 2 && ids.p[0] == 1 && ids.p[1] == 0);
  token_ids_free(&ids);
  token_free(t);
}

/* Long runs of one thing under every rule: a quadratic step would take minutes. */
static void long_lines(void) {
  static const char *const pres[] = {
      "default",      "gpt-2",          "smollm",      "falcon",    "llama-bpe", "qwen2",
      "qwen35",       "seed-coder",     "minicpm5",    "laguna",    "gpt-4o",    "tekken",
      "deepseek-llm", "deepseek-coder", "deepseek-v3", "poro-chat", "viking"};
  static const char *const units[] = {"a", " ", "A", "\xD8\xA7", "1", "\n", " !", "<|tool|>"};
  enum { SIZE = 100000 };
  vocab bpe, spm;
  if (!read_vocab("token/bpe.vocab", &bpe) || !read_vocab("token/spm.vocab", &spm)) return;
  char *text = malloc(SIZE);
  token_ids ids = {0};
  double start = time_now();
  for (size_t i = 0; i <= sizeof pres / sizeof pres[0]; i++) {
    bool is_spm = i == sizeof pres / sizeof pres[0];
    token_desc d = is_spm ? spm.d : bpe.d;
    d.pre = is_spm ? NULL : pres[i];
    tokenizer *t = NULL;
    CHECK_OK(token_new(&d, &t));
    if (!t) break;
    for (size_t u = 0; u < sizeof units / sizeof units[0]; u++) {
      if (test_quick() && i % 4 != 0) continue;
      size_t n = strlen(units[u]);
      for (size_t k = 0; k < SIZE; k++) text[k] = units[u][k % n];
      memcpy(text + SIZE - 2, "\xD8\xA7", 2); /* blanks must not be the end of it */
      ids.n = 0;
      CHECK_OK(token_encode(t, text, SIZE, true, false, &ids));
      CHECK(ids.n > SIZE / 200);
    }
    token_free(t);
  }
  double took = time_now() - start;
  if (took > 60) FAIL("%g s for long lines", took);
  token_ids_free(&ids);
  free(text);
  free_vocab(&bpe);
  free_vocab(&spm);
}

/* Every allocation of building and encoding fails in turn. */
static void out_of_memory(void) {
  static const char text[] = "Hello <|tool|> w\xC3\xB6rld, 123\n\n\xF0\x9F\x98\x80 <|im_end|>";
  static const char *const files[] = {"token/bpe.vocab", "token/spm.vocab"};
  for (int k = 0; k < 2; k++) {
    vocab v;
    if (!read_vocab(files[k], &v)) return;
    uint64_t before = mem_live();
    bool worked = false;
    for (uint64_t n = 1; n < 5000 && !worked; n++) {
      tokenizer *t = NULL;
      token_ids ids = {0};
      mem_fail_at(n, n % 2);
      err e = token_new(&v.d, &t);
      if (!e) e = token_encode(t, text, sizeof text - 1, true, true, &ids);
      mem_fail_at(0, false);
      if (e && (e != ERR_NOMEM || ids.n)) FAIL("allocation %d: %s", (int)n, err_text());
      worked = !e;
      token_ids_free(&ids);
      token_free(t);
      if (mem_live() != before) FAIL("allocation %d leaks", (int)n);
    }
    CHECK(worked);
    free_vocab(&v);
  }
}

/* What is encoded prints as it was, where the text is valid. */
static void round_trip(void) {
  lines nasty;
  vocab v;
  tokenizer *t = NULL;
  if (!read_nasty(&nasty) || !read_vocab("token/bpe.vocab", &v)) return;
  CHECK_OK(token_new(&v.d, &t));
  REQUIRE(t != NULL);
  size_t compared = 0;
  for (size_t i = 0; i < nasty.n; i++) {
    buf strict = {0}, out = {0};
    utf8_stream s = {0};
    token_ids ids = {0};
    utf8_stream_put(&s, nasty.p[i], nasty.len[i], &strict);
    utf8_stream_flush(&s, &strict);
    bool valid = strict.n == nasty.len[i] && memcmp(strict.p, nasty.p[i], strict.n) == 0;
    CHECK_OK(token_encode(t, nasty.p[i], nasty.len[i], true, false, &ids));
    for (size_t k = 0; k < ids.n; k++) {
      const char *p;
      size_t n;
      CHECK_OK(token_piece(t, ids.p[k], true, &p, &n));
      utf8_stream_put(&s, p, n, &out);
    }
    utf8_stream_flush(&s, &out);
    if (valid && (out.n != strict.n || memcmp(out.p, strict.p, out.n) != 0))
      FAIL("nasty.txt:%zu prints as \"%s\"", i + 1, out.p);
    compared += valid;
    buf_free(&strict);
    buf_free(&out);
    token_ids_free(&ids);
  }
  CHECK(compared > 150);
  token_free(t);
  free_vocab(&v);
  free_lines(&nasty);
}

/* ---- streaming ---- */

#define R "\xEF\xBF\xBD"

static void stream_replaces_invalid_bytes(void) {
  static const struct {
    const char *in, *out;
  } rows[] = {
      {"plain", "plain"},
      {"\xC3\xA9\xE4\xB8\xAD\xF0\x9F\x98\x80", "\xC3\xA9\xE4\xB8\xAD\xF0\x9F\x98\x80"},
      {"\xFFz", R "z"},
      {"\x80\xBF", R R},
      {"\xC0\xAF", R R},                /* overlong */
      {"\xE0\x80\xAF", R R R},          /* overlong */
      {"\xED\xA0\x80", R R R},          /* a surrogate */
      {"\xED\x9F\xBF", "\xED\x9F\xBF"}, /* the last before them */
      {"\xF4\x90\x80\x80", R R R R},    /* above U+10FFFF */
      {"\xF4\x8F\xBF\xBF", "\xF4\x8F\xBF\xBF"},
      {"\xF0\x9F\x98x", R "x"}, /* cut short: one replacement for the part */
      {"\xE4\xB8\xE4\xB8\xAD", R "\xE4\xB8\xAD"},
      {"\xC3\xC3\xA9", R "\xC3\xA9"},
      {"ab\xF0\x9F\x98", "ab" R}, /* the end */
  };
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    for (size_t step = 1; step < 5; step++) {
      utf8_stream s = {0};
      buf out = {0};
      size_t n = strlen(rows[i].in);
      for (size_t k = 0; k < n; k += step)
        utf8_stream_put(&s, rows[i].in + k, n - k < step ? n - k : step, &out);
      utf8_stream_flush(&s, &out);
      CHECK_STR(out.p, rows[i].out);
      buf_free(&out);
    }
  }
}

static void stream_holds_half_characters_back(void) {
  static const char text[] = "a\xF0\x9F\x98\x80z\xC3\xA9";
  static const size_t whole[] = {1, 1, 1, 1, 5, 6, 6, 8};
  utf8_stream s = {0};
  buf out = {0};
  for (size_t i = 0; i < sizeof text - 1; i++) {
    utf8_stream_put(&s, text + i, 1, &out);
    CHECK_EQ(out.n, whole[i]);
  }
  buf_free(&out);
}

/* ---- characters ---- */

static void classes_of_unicode_15_1(void) {
  static const struct {
    uint32_t cp;
    uclass want;
  } rows[] = {
      {0, UC_OTHER},        {'\t', UC_SPACE},     {' ', UC_SPACE},      {'!', UC_PUNCT},
      {'$', UC_SYMBOL},     {'0', UC_NUMBER},     {'A', UC_LETTER},     {0x85, UC_SPACE},
      {0xAD, UC_OTHER},     {0x301, UC_MARK},     {0x378, UC_OTHER},    {0x2163, UC_NUMBER},
      {0x3000, UC_SPACE},   {0x4E00, UC_LETTER},  {0xE000, UC_OTHER},   {0xCF3, UC_MARK},
      {0x1F600, UC_SYMBOL}, {0x1FAE8, UC_SYMBOL}, {0x2EBF0, UC_LETTER}, {0x10FFFF, UC_OTHER}};
  uint32_t count[7] = {0};
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
    CHECK_EQ(unicode_class(rows[i].cp), rows[i].want);
  for (uint32_t cp = 0; cp < 0x110000; cp++) count[unicode_class(cp)]++;
  CHECK_EQ(count[UC_SPACE], 25);
  CHECK_EQ(unicode_class(UINT32_MAX), UC_OTHER);
  for (uint32_t cp = 0; cp < 0x110000; cp++) {
    char c[4];
    uint32_t back;
    size_t n = unicode_write(cp, c);
    if (unicode_read(c, n, &back) != n || back != cp) FAIL("U+%X comes back as U+%X", cp, back);
  }
}

void suite_token(void) {
  RUN(bpe_like_llama_cpp);
  RUN(spm_like_llama_cpp);
  RUN(smollm2_like_llama_cpp);
  RUN(errors_name_their_cause);
  RUN(absent_ids);
  RUN(long_lines);
  RUN(out_of_memory);
  RUN(round_trip);
  RUN(stream_replaces_invalid_bytes);
  RUN(stream_holds_half_characters_back);
  RUN(classes_of_unicode_15_1);
}

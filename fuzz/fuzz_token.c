/* Tokenizers on any text: the first byte picks the rule, the second the flags. Byte-level BPE must
 * give back a text that is valid UTF-8. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "infer/token.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *const pres[] = {
    "default", "gpt-2",        "smollm",     "falcon",      "llama-bpe", "qwen2",
    "qwen35",  "laguna",       "seed-coder", "gpt-4o",      "tekken",    "minicpm5",
    "viking",  "deepseek-llm", "bloom",      "deepseek-v3", "glm4",      "deepseek-coder"};
enum { N_BPE = sizeof pres / sizeof pres[0], N_BYTES = 256 };

/* Beyond the bytes: tokens that merges make, then special ones. */
static const char *const merges[] = {"a a",
                                     "aa aa",
                                     "t h",
                                     "th e",
                                     "\xC4\xA0 the",
                                     "\xC4\xA0 a",
                                     "1 2",
                                     "12 3",
                                     "\xC4\x8A \xC4\x8A",
                                     "\xC3\x83 \xC2\xA9",
                                     "' s",
                                     "\xC4\xA0 \xC4\xA0",
                                     "\xC4\xA0\xC4\xA0 \xC4\xA0\xC4\xA0"};
static const struct {
  const char *text;
  int32_t type;
} specials[] = {{"<|end|>", 3}, {"<|e", 4}, {"\n\n", 4}, {"  ", 4}, {"<unk>", 2}};
enum {
  N_MERGES = sizeof merges / sizeof merges[0],
  N_SPECIALS = sizeof specials / sizeof specials[0],
  N_VOCAB = N_BYTES + N_MERGES + N_SPECIALS
};

/* Printable stand-in of a byte in a GPT-2 vocabulary. */
static uint32_t stand_in(uint32_t b) {
  if ((b >= 33 && b <= 126) || (b >= 161 && b != 173)) return b;
  return 256 + (b < 33 ? b : b < 161 ? b - 127 + 33 : 67);
}

static tokenizer *make(const char *pre, bool spm) {
  static char text[N_VOCAB][32];
  const char *p[N_VOCAB];
  uint32_t len[N_VOCAB], merge_len[N_MERGES];
  int32_t type[N_VOCAB];
  float score[N_VOCAB];
  for (uint32_t i = 0; i < N_VOCAB; i++) {
    type[i] = 1;
    score[i] = -(float)i;
    if (i < N_BYTES) {
      text[i][unicode_write(stand_in(i), text[i])] = 0;
      if (spm) snprintf(text[i], sizeof text[i], "<0x%02X>", i);
      if (spm) type[i] = 6;
    } else if (i < N_BYTES + N_MERGES) {
      const char *m = merges[i - N_BYTES], *gap = strchr(m + 1, ' ');
      snprintf(text[i], sizeof text[i], "%.*s%s", (int)(gap - m), m, gap + 1);
    } else {
      snprintf(text[i], sizeof text[i], "%s", specials[i - N_BYTES - N_MERGES].text);
      type[i] = specials[i - N_BYTES - N_MERGES].type;
    }
    p[i] = text[i];
    len[i] = (uint32_t)strlen(text[i]);
  }
  for (uint32_t i = 0; i < N_MERGES; i++) merge_len[i] = (uint32_t)strlen(merges[i]);
  token_desc d = {.model = spm ? "llama" : "gpt2",
                  .pre = pre,
                  .n_vocab = N_VOCAB,
                  .text = p,
                  .text_len = len,
                  .score = score,
                  .type = type,
                  .merge = merges,
                  .merge_len = merge_len,
                  .n_merge = N_MERGES,
                  .name = "fuzz"};
  tokenizer *t = NULL;
  token_desc_defaults(&d);
  if (token_new(&d, &t)) abort();
  return t;
}

static bool is_valid(const char *text, size_t n) {
  utf8_stream s = {0};
  buf out = {0};
  utf8_stream_put(&s, text, n, &out);
  utf8_stream_flush(&s, &out);
  bool same = out.n == n && (n == 0 || memcmp(out.p, text, n) == 0);
  buf_free(&out);
  return same;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static tokenizer *all[N_BPE + 1];
  if (size < 2) return 0;
  uint32_t which = data[0] % (N_BPE + 1);
  bool spm = which == N_BPE, special = data[1] & 1, add = data[1] & 2;
  if (!all[which]) all[which] = make(spm ? NULL : pres[which], spm);
  const tokenizer *t = all[which];
  const char *text = (const char *)data + 2;
  size_t n = size - 2;
  token_ids ids = {0};
  buf out = {0};
  if (token_encode(t, text, n, special, add, &ids)) abort();
  for (size_t i = 0; i < ids.n; i++) {
    const char *p;
    size_t len;
    bool added = add && i == 0 && ids.n && token_bos(t) == (int32_t)ids.p[0];
    if (token_piece(t, ids.p[i], true, &p, &len)) abort();
    if (!added) buf_put(&out, p, len);
  }
  if (!spm && !add && is_valid(text, n) && (out.n != n || (n && memcmp(out.p, text, n) != 0)))
    abort();
  buf_free(&out);
  token_ids_free(&ids);
  return 0;
}

/* A byte-level BPE vocabulary ("gpt2") that encodes any text: three special tokens, the 256 bytes,
 * a few merges, and filler up to the size asked for. */
#include <stdio.h>
#include <string.h>

#include "import/gguf/synth_impl.h"

/* The ids of the special tokens are those of SmolLM2. */
static const char *const special[] = {"<|endoftext|>", "<|im_start|>", "<|im_end|>"};
enum { N_SPECIAL = 3, NORMAL = 1, CONTROL = 3 };

/* \304\240 is U+0120, the printable form of a space. */
static const char *const merges[] = {"\304\240 t",  "h e",        "\304\240t he", "i n",
                                     "a n",         "\304\240 a", "\304\240a n",  "an d",
                                     "\304\240 in", "e r",        "o n",          "l l"};
enum { N_MERGES = sizeof merges / sizeof merges[0] };
_Static_assert(N_SPECIAL + 256 + N_MERGES <= SYNTH_MIN_VOCAB, "the smallest vocabulary holds all");

static const char chatml[] =
    "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\n' + message['content'] "
    "+ "
    "'<|im_end|>' + '\n' }}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' "
    "}}{% endif %}";

/* GPT-2's printable stand-in for a byte: itself where printable, else U+0100 and up, in order.
 * Writes UTF-8, returns its length. */
static size_t byte_token(int byte, char *out) {
  int code = byte, shifted = 0;
  for (int b = 0; b <= byte; b++) {
    bool shows = (b >= 33 && b <= 126) || (b >= 161 && b <= 172) || b >= 174;
    code = shows ? b : 256 + shifted;
    shifted += !shows;
  }
  if (code < 128) {
    out[0] = (char)code;
    return 1;
  }
  out[0] = (char)(0xC0 | code >> 6);
  out[1] = (char)(0x80 | (code & 63));
  return 2;
}

static void write_tokens(gguf_writer *w, uint32_t vocab) {
  char text[32];
  gguf_write_arr_begin(w, "tokenizer.ggml.tokens", GGUF_STR, vocab);
  for (int i = 0; i < N_SPECIAL; i++) gguf_write_text(w, special[i], strlen(special[i]));
  for (int i = 0; i < 256; i++) gguf_write_text(w, text, byte_token(i, text));
  for (int i = 0; i < N_MERGES; i++) {
    size_t left = strcspn(merges[i], " ");
    int n = snprintf(text, sizeof text, "%.*s%s", (int)left, merges[i], merges[i] + left + 1);
    gguf_write_text(w, text, (size_t)n);
  }
  for (uint32_t i = N_SPECIAL + 256 + N_MERGES; i < vocab; i++) {
    int n = snprintf(text, sizeof text, "<fill_%u>", i);
    gguf_write_text(w, text, (size_t)n);
  }
}

void synth_vocab(gguf_writer *w, const synth_shape *s) {
  bool llama = strcmp(s->pre, "llama-bpe") == 0;
  gguf_write_str(w, "tokenizer.ggml.model", "gpt2");
  gguf_write_str(w, "tokenizer.ggml.pre", s->pre);
  write_tokens(w, s->vocab);
  gguf_write_arr_begin(w, "tokenizer.ggml.token_type", GGUF_I32, s->vocab);
  for (uint32_t i = 0; i < s->vocab; i++) {
    int32_t type = i < N_SPECIAL ? CONTROL : NORMAL;
    gguf_write_number(w, GGUF_I32, &type);
  }
  gguf_write_arr_begin(w, "tokenizer.ggml.merges", GGUF_STR, N_MERGES);
  for (int i = 0; i < N_MERGES; i++) gguf_write_text(w, merges[i], strlen(merges[i]));
  gguf_write_u32(w, "tokenizer.ggml.bos_token_id", llama ? 0 : 1);
  gguf_write_u32(w, "tokenizer.ggml.eos_token_id", 2);
  gguf_write_u32(w, "tokenizer.ggml.unknown_token_id", 0);
  gguf_write_u32(w, "tokenizer.ggml.padding_token_id", 2);
  gguf_write_bool(w, "tokenizer.ggml.add_bos_token", llama);
  gguf_write_str(w, "tokenizer.chat_template", chatml);
}

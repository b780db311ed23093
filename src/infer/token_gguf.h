/* The tokenizer that a GGUF file describes (its tokenizer.ggml.* keys). */
#ifndef FRIT_INFER_TOKEN_GGUF_H
#define FRIT_INFER_TOKEN_GGUF_H

#include "import/gguf/gguf.h"
#include "infer/token.h"

/* Errors: those of token_new; ERR_FORMAT for keys that are missing or of a wrong type. The file may
 * be closed afterwards. */
err token_from_gguf(const gguf *g, tokenizer **out);

#endif

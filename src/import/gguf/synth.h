/* Synthetic models: a GGUF file of architecture "llama" with random weights and a small working
 * tokenizer, for tests and measurements where no real model is at hand. The bytes are a function of
 * the description. Quantised weights are random blocks, not quantised floats: a 1B model takes
 * seconds. Their scale keeps activations finite: standard deviation 1 / sqrt(inputs), divided by
 * sqrt(2 * layers) where a matrix adds to the residual stream. */
#ifndef FRIT_IMPORT_GGUF_SYNTH_H
#define FRIT_IMPORT_GGUF_SYNTH_H

#include "import/gguf/gguf.h"

typedef struct synth_shape {
  uint32_t layers;
  uint32_t embd; /* model width */
  uint32_t heads, heads_kv, head_dim;
  uint32_t ffn;
  uint32_t vocab; /* at least SYNTH_MIN_VOCAB */
  uint32_t context;
  float rope_base;
  bool untied;     /* a separate output.weight */
  const char *pre; /* tokenizer.ggml.pre: "smollm", "llama-bpe" (which adds a BOS) */
  float llama3;    /* factor of Llama 3.x rope scaling, written as rope_freqs.weight; 0: none */
} synth_shape;

enum { SYNTH_MIN_VOCAB = 288 };

/* "smollm2-135m", "llama-3.2-1b", "phi-3-mini-shape", "tiny" (2 layers, width 64), "tiny-k" (2
 * layers, sizes that are multiples of 256). False for another name. */
bool synth_preset(const char *name, synth_shape *out);
/* Preset names separated by ", ". */
const char *synth_presets(void);

typedef struct synth_desc {
  const char *preset;       /* or: */
  const synth_shape *shape; /* wins over preset */
  const char *quant; /* type of matrices: "q4_0" (default), "f32", "q4_k", ... Where rows are not
                        multiples of 256, a K type becomes one of blocks of 32, as llama-quantize
                        does: q2_k, q3_k -> q4_0, q4_k -> q5_0, q5_k -> q5_1, q6_k -> q8_0 */
  const char *mix;   /* "PART=TYPE,...": matrices whose name contains PART have that type (the last
                        that fits), e.g. "token_embd=q6_k,attn_v=q8_0"; NULL: none */
  uint32_t seed;
  uint32_t context;         /* 0: the shape's */
  bool bias;                /* biases on q, k, v, attention output, gate, up, down */
  bool untied;              /* a separate output.weight in any case */
  const char *rope_scaling; /* metadata: NULL or "none", "linear", "yarn" */
  float rope_factor;        /* of these; 0: 4 */
} synth_desc;

/* Writes `path` (through PATH.part). ERR_ARG: unknown preset, type or scaling, or sizes that do not
 * fit each other; ERR_IO: e.g. disk full. */
err synth_write(const synth_desc *d, const char *path);

#endif

/* GGUF -> model graph: hyper-parameters, weights by name, the architecture's layers as ir nodes.
 *
 * An architecture is a row of the table in model.c (which rotation, which optional parts); a new
 * one that is built from the same parts is one more row. */
#ifndef FRIT_IMPORT_GGUF_MODEL_H
#define FRIT_IMPORT_GGUF_MODEL_H

#include "import/gguf/gguf.h"
#include "ir/ir.h"

typedef struct model_params {
  const char *arch; /* "llama" */
  uint32_t n_vocab, n_ctx /* trained for */, n_embd, n_layer, n_ff, n_head, n_kv, head_dim, rot;
  float eps;
  bool neox; /* rotation pairs (i, i + rot/2) instead of (2i, 2i+1) */
  float rope_base, rope_scale /* 1/factor */;
  const char *rope_scaling; /* "none", "linear", "yarn", "llama3" (factors in rope_freqs.weight) */
} model_params;

typedef struct model {
  model_params p;
  ir_graph graph;
} model;

/* Builds the graph; `g` must outlive the model (weights point into it). Errors name file, key or
 * tensor, and what was wanted. Returns ownership. */
err model_import(const gguf *g, model **out);
/* The i-th tensor whose values model_import itself reads; NULL beyond. Where the file came as a
 * header only, gguf_tensor_provide must have given them before. */
const gguf_tensor *model_needs(const gguf *g, uint32_t i);
void model_free(model *m);

#endif

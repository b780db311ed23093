/* Owns the presets, the metadata and the list of tensors; synth_data.c makes their bytes. */
#include "import/gguf/synth.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/math.h"
#include "base/mem.h"
#include "import/gguf/gguf_write.h"
#include "import/gguf/synth_impl.h"

/* ---- presets ---- */

static const struct {
  const char *name;
  synth_shape shape;
} presets[] = {
    {"smollm2-135m",
     {.layers = 30,
      .embd = 576,
      .heads = 9,
      .heads_kv = 3,
      .head_dim = 64,
      .ffn = 1536,
      .vocab = 49152,
      .context = 8192,
      .rope_base = 100000,
      .pre = "smollm"}},
    {"llama-3.2-1b",
     {.layers = 16,
      .embd = 2048,
      .heads = 32,
      .heads_kv = 8,
      .head_dim = 64,
      .ffn = 8192,
      .vocab = 128256,
      .context = 131072,
      .rope_base = 500000,
      .pre = "llama-bpe",
      .llama3 = 32}},
    {"phi-3-mini-shape",
     {.layers = 32,
      .embd = 3072,
      .heads = 32,
      .heads_kv = 32,
      .head_dim = 96,
      .ffn = 8192,
      .vocab = 32064,
      .context = 4096,
      .rope_base = 10000,
      .untied = true,
      .pre = "llama-bpe"}},
    {"tiny",
     {.layers = 2,
      .embd = 64,
      .heads = 2,
      .heads_kv = 1,
      .head_dim = 32,
      .ffn = 160,
      .vocab = 320,
      .context = 256,
      .rope_base = 10000,
      .pre = "smollm"}},
    {"tiny-k",
     {.layers = 2,
      .embd = 256,
      .heads = 4,
      .heads_kv = 2,
      .head_dim = 64,
      .ffn = 512,
      .vocab = 512,
      .context = 256,
      .rope_base = 10000,
      .pre = "llama-bpe"}},
};
enum { N_PRESETS = sizeof presets / sizeof presets[0] };

const char *synth_presets(void) {
  return "smollm2-135m, llama-3.2-1b, phi-3-mini-shape, tiny, tiny-k";
}

bool synth_preset(const char *name, synth_shape *out) {
  for (int i = 0; i < N_PRESETS; i++) {
    if (strcmp(presets[i].name, name) == 0) {
      *out = presets[i].shape;
      return true;
    }
  }
  return false;
}

/* ---- description -> shape and types ---- */

static err fill_shape(const synth_desc *d, synth_shape *s) {
  if (d->shape) *s = *d->shape;
  else if (!d->preset || !synth_preset(d->preset, s))
    return err_set(ERR_ARG, "no model preset '%s'; there are %s", d->preset ? d->preset : "",
                   synth_presets());
  if (d->context) s->context = d->context;
  s->untied = s->untied || d->untied;
  if (!s->layers || !s->embd || !s->heads || !s->heads_kv || !s->head_dim || !s->ffn ||
      !s->context || s->heads % s->heads_kv || s->head_dim % 2 || !s->pre)
    return err_set(
        ERR_ARG,
        "model shape: %u layers, width %u, %u heads (%u for keys) of %u, ffn %u, context "
        "%u do not fit each other",
        s->layers, s->embd, s->heads, s->heads_kv, s->head_dim, s->ffn, s->context);
  if (s->vocab < SYNTH_MIN_VOCAB)
    return err_set(ERR_ARG, "model shape: a vocabulary of %u tokens, at least %d are needed",
                   s->vocab, SYNTH_MIN_VOCAB);
  return ERR_NONE;
}

static err type_by_name(const char *name, size_t n, dtype *out) {
  char text[16];
  snprintf(text, sizeof text, "%.*s", (int)min_u64(n, 15), name);
  if (!dtype_by_name(text, out) || !synth_can(*out))
    return err_set(ERR_ARG, "no weights of type '%s' can be made", text);
  return ERR_NONE;
}

/* The last PART=TYPE in `mix` whose PART is in `name` replaces *type. */
static err apply_mix(const char *mix, const char *name, dtype *type) {
  for (const char *p = mix; p && *p;) {
    size_t n = strcspn(p, ",");
    const char *eq = memchr(p, '=', n);
    if (!eq) return err_set(ERR_ARG, "type mix '%s': '%.*s' is not PART=TYPE", mix, (int)n, p);
    char part[64];
    dtype t;
    snprintf(part, sizeof part, "%.*s", (int)min_u64((uint64_t)(eq - p), sizeof part - 1), p);
    err e = type_by_name(eq + 1, n - (size_t)(eq - p) - 1, &t);
    if (e) return e;
    if (strstr(name, part)) *type = t;
    p += n + (p[n] == ',');
  }
  return ERR_NONE;
}

static dtype fall_back(dtype t) {
  switch (t) {
  case DT_Q2_K:
  case DT_Q3_K: return DT_Q4_0;
  case DT_Q4_K: return DT_Q5_0;
  case DT_Q5_K: return DT_Q5_1;
  case DT_Q6_K: return DT_Q8_0;
  default: return t;
  }
}

/* ---- tensors ---- */

typedef struct item {
  char name[72];
  dtype type;
  uint32_t n_dims;
  uint64_t ne[2];
  synth_fill fill;
} item;

typedef struct plan {
  const synth_desc *d;
  synth_shape s;
  dtype base; /* of matrices */
  item *items;
  size_t n, cap;
} plan;

static item *add(plan *p, const char *name, int layer) {
  item *it = &p->items[p->n++];
  if (layer < 0) snprintf(it->name, sizeof it->name, "%s", name);
  else snprintf(it->name, sizeof it->name, "blk.%d.%s", layer, name);
  return it;
}

static void add_vector(plan *p, const char *name, int layer, uint64_t n, float mean, float std) {
  item *it = add(p, name, layer);
  it->type = DT_F32;
  it->n_dims = 1;
  it->ne[0] = n;
  it->ne[1] = 1;
  it->fill = (synth_fill){.mean = mean, .std = std};
}

/* [out, in] as rows of `in`; `gain` times 1 / sqrt(in). A bias beside it where the file has them.
 */
static err add_matrix(plan *p, const char *name, int layer, uint64_t in, uint64_t n_out, float gain,
                      bool bias) {
  char full[48];
  snprintf(full, sizeof full, "%s.weight", name);
  item *it = add(p, full, layer);
  it->type = p->base;
  err e = apply_mix(p->d->mix, it->name, &it->type);
  if (e) return e;
  if (in % dtype_get(it->type)->n) it->type = fall_back(it->type);
  it->n_dims = 2;
  it->ne[0] = in;
  it->ne[1] = n_out;
  it->fill = (synth_fill){.std = gain / sqrtf((float)in)};
  if (bias && p->d->bias) {
    snprintf(full, sizeof full, "%s.bias", name);
    add_vector(p, full, layer, n_out, 0, 0.1f);
  }
  return ERR_NONE;
}

static err add_layer(plan *p, int i) {
  const synth_shape *s = &p->s;
  uint64_t q = (uint64_t)s->heads * s->head_dim, kv = (uint64_t)s->heads_kv * s->head_dim;
  float back = 1 / sqrtf(2 * (float)s->layers);
  err e = ERR_NONE;
  add_vector(p, "attn_norm.weight", i, s->embd, 1, 0.1f);
  TRY(add_matrix(p, "attn_q", i, s->embd, q, 1, true));
  TRY(add_matrix(p, "attn_k", i, s->embd, kv, 1, true));
  TRY(add_matrix(p, "attn_v", i, s->embd, kv, 1, true));
  TRY(add_matrix(p, "attn_output", i, q, s->embd, back, true));
  add_vector(p, "ffn_norm.weight", i, s->embd, 1, 0.1f);
  TRY(add_matrix(p, "ffn_gate", i, s->embd, s->ffn, 1, true));
  TRY(add_matrix(p, "ffn_up", i, s->embd, s->ffn, 1, true));
  TRY(add_matrix(p, "ffn_down", i, s->ffn, s->embd, back, true));
done:
  return e;
}

static err list_tensors(plan *p) {
  err e = ERR_NONE;
  p->cap = 4 + (size_t)p->s.layers * 16;
  p->items = mem_zalloc(p->cap, sizeof *p->items);
  if (!p->items) return mem_err("list of tensors", p->cap * sizeof *p->items);
  TRY(add_matrix(p, "token_embd", -1, p->s.embd, p->s.vocab, 1, false));
  if (p->s.llama3 > 0) add_vector(p, "rope_freqs.weight", -1, p->s.head_dim / 2, 0, 0);
  for (uint32_t i = 0; i < p->s.layers; i++) TRY(add_layer(p, (int)i));
  add_vector(p, "output_norm.weight", -1, p->s.embd, 1, 0.1f);
  if (p->s.untied) TRY(add_matrix(p, "output", -1, p->s.embd, p->s.vocab, 1, false));
done:
  return e;
}

/* ---- metadata ---- */

static err write_rope_scaling(gguf_writer *w, const synth_desc *d, const synth_shape *s) {
  const char *kind = d->rope_scaling;
  if (!kind || strcmp(kind, "none") == 0) return ERR_NONE;
  bool yarn = strcmp(kind, "yarn") == 0;
  if (!yarn && strcmp(kind, "linear") != 0)
    return err_set(ERR_ARG, "rope scaling '%s'; there are none, linear, yarn", kind);
  float factor = d->rope_factor > 0 ? d->rope_factor : 4;
  uint32_t original = (uint32_t)((float)s->context / factor);
  gguf_write_str(w, "llama.rope.scaling.type", kind);
  gguf_write_f32(w, "llama.rope.scaling.factor", factor);
  if (yarn) gguf_write_u32(w, "llama.rope.scaling.original_context_length", max_u32(original, 1));
  return ERR_NONE;
}

static err write_model_keys(gguf_writer *w, const plan *p) {
  const synth_shape *s = &p->s;
  gguf_write_str(w, "general.architecture", "llama");
  gguf_write_str(w, "general.type", "model");
  gguf_write_str(w, "general.name", p->d->shape ? "synthetic" : p->d->preset);
  gguf_write_u32(w, "llama.block_count", s->layers);
  gguf_write_u32(w, "llama.context_length", s->context);
  gguf_write_u32(w, "llama.embedding_length", s->embd);
  gguf_write_u32(w, "llama.feed_forward_length", s->ffn);
  gguf_write_u32(w, "llama.attention.head_count", s->heads);
  gguf_write_u32(w, "llama.attention.head_count_kv", s->heads_kv);
  gguf_write_u32(w, "llama.attention.key_length", s->head_dim);
  gguf_write_u32(w, "llama.attention.value_length", s->head_dim);
  gguf_write_f32(w, "llama.attention.layer_norm_rms_epsilon", 1e-5f);
  gguf_write_u32(w, "llama.rope.dimension_count", s->head_dim);
  gguf_write_f32(w, "llama.rope.freq_base", s->rope_base);
  gguf_write_u32(w, "llama.vocab_size", s->vocab);
  return write_rope_scaling(w, p->d, s);
}

/* ---- data ---- */

/* Llama 3.x: frequencies are divided by `factor` where the wavelength is over the original context,
 * left where it is under a quarter of it, and interpolated between (the "llama3" rope type of the
 * published configuration: low_freq_factor 1, high_freq_factor 4, original context 8192). */
static void llama3_factors(const synth_shape *s, uint8_t *out) {
  for (uint32_t i = 0; i < s->head_dim / 2; i++) {
    double wave = 2 * 3.14159265358979 * pow((double)s->rope_base, 2.0 * i / s->head_dim);
    double smooth = (8192 / wave - 1) / (4 - 1);
    smooth = smooth < 0 ? 0 : smooth > 1 ? 1 : smooth;
    float factor = (float)(1 / ((1 - smooth) / (double)s->llama3 + smooth));
    memcpy(out + 4 * i, &factor, sizeof factor);
  }
}

static err write_tensor(gguf_writer *w, const plan *p, const item *it, uint32_t index,
                        uint8_t *chunk) {
  if (strcmp(it->name, "rope_freqs.weight") == 0) {
    llama3_factors(&p->s, chunk);
    return gguf_write_data(w, chunk, it->ne[0] * 4);
  }
  uint32_t block = dtype_get(it->type)->n, bytes = dtype_get(it->type)->bytes;
  uint64_t left = it->ne[0] / block * it->ne[1], first = 0;
  uint32_t seed = rng_u32(p->d->seed, index);
  while (left) {
    uint64_t n = min_u64(left, SYNTH_CHUNK / bytes / 64 * 64);
    synth_blocks(it->type, &it->fill, seed, first, n, chunk);
    err e = gguf_write_data(w, chunk, n * bytes);
    if (e) return e;
    first += n;
    left -= n;
  }
  return ERR_NONE;
}

err synth_write(const synth_desc *d, const char *path) {
  err e = ERR_NONE;
  plan p = {.d = d};
  gguf_writer *w = NULL;
  uint8_t *chunk = NULL;
  const char *quant = d->quant ? d->quant : "q4_0";
  TRY(fill_shape(d, &p.s));
  TRY(type_by_name(quant, strlen(quant), &p.base));
  TRY(list_tensors(&p));
  chunk = mem_alloc(SYNTH_CHUNK + 64);
  if (!chunk) {
    e = mem_err("synthetic weights", SYNTH_CHUNK);
    goto done;
  }
  TRY(gguf_writer_new(&(gguf_writer_desc){.path = path}, &w));
  TRY(write_model_keys(w, &p));
  synth_vocab(w, &p.s);
  for (size_t i = 0; i < p.n; i++)
    gguf_write_tensor(w, p.items[i].name, p.items[i].type, p.items[i].n_dims, p.items[i].ne);
  for (size_t i = 0; i < p.n; i++) TRY(write_tensor(w, &p, &p.items[i], (uint32_t)i, chunk));
  e = gguf_writer_finish(w);
done:
  gguf_writer_free(w);
  mem_free(chunk);
  mem_free(p.items);
  return e;
}

/* Owns the table of architectures, the reading of hyper-parameters, and the building of layers. */
#include "import/gguf/model.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/math.h"

typedef struct arch {
  const char *name;
  bool neox;
} arch;

static const arch archs[] = {
    {"llama", false},
};

enum { MAX_LAYERS = 1024, MAX_DIM = 1 << 20, MAX_CTX = 1 << 24 };

typedef struct builder {
  const gguf *g;
  model *m;
  const arch *a;
  err e; /* first error; builders below do nothing once it is set */
} builder;

/* ---- hyper-parameters ---- */

static uint32_t want_u32(builder *b, const char *key, bool required, uint32_t def, uint32_t max) {
  char full[128];
  uint32_t v = def;
  snprintf(full, sizeof full, "%s.%s", b->a->name, key);
  if (b->e) return def;
  const gguf_kv *kv = gguf_find(b->g, full);
  if (kv && kv->type == GGUF_ARR) { /* a value a layer: the same everywhere, or not ours */
    gguf_array arr;
    b->e = gguf_arr_nums(b->g, full, &arr);
    for (uint64_t i = 0; !b->e && i < arr.n; i++) {
      int64_t x = gguf_arr_i64(&arr, i);
      if (x < 0 || x > UINT32_MAX || (i && (uint32_t)x != v))
        b->e =
            err_set(ERR_UNSUPPORTED, "%s: '%s' differs from layer to layer", gguf_name(b->g), full);
      v = (uint32_t)x;
    }
  } else {
    b->e = required ? gguf_u32(b->g, full, &v) : gguf_u32_or(b->g, full, def, &v);
  }
  if (!b->e && (v > max || (required && v == 0)))
    b->e = err_set(ERR_FORMAT, "%s: '%s' is %u (1 to %u)", gguf_name(b->g), full, v, max);
  return v;
}

static float want_f32(builder *b, const char *key, bool required, float def) {
  char full[128];
  float v = def;
  snprintf(full, sizeof full, "%s.%s", b->a->name, key);
  if (b->e) return def;
  b->e = required ? gguf_f32(b->g, full, &v) : gguf_f32_or(b->g, full, def, &v);
  if (!b->e && !isfinite(v))
    b->e = err_set(ERR_FORMAT, "%s: '%s' is not finite", gguf_name(b->g), full);
  return v;
}

static void read_params(builder *b) {
  model_params *p = &b->m->p;
  p->arch = b->a->name;
  p->neox = b->a->neox;
  p->n_ctx = want_u32(b, "context_length", true, 0, MAX_CTX);
  p->n_embd = want_u32(b, "embedding_length", true, 0, MAX_DIM);
  p->n_layer = want_u32(b, "block_count", true, 0, MAX_LAYERS);
  p->n_ff = want_u32(b, "feed_forward_length", true, 0, MAX_DIM);
  p->n_head = want_u32(b, "attention.head_count", true, 0, MAX_DIM);
  p->n_kv = want_u32(b, "attention.head_count_kv", false, p->n_head, MAX_DIM);
  p->eps = want_f32(b, "attention.layer_norm_rms_epsilon", true, 0);
  if (b->e) return;
  const char *file = gguf_name(b->g);
  if (want_u32(b, "expert_count", false, 0, MAX_DIM))
    b->e = err_set(ERR_UNSUPPORTED, "%s: mixture of experts (%s.expert_count) is not supported",
                   file, b->a->name);
  else if (p->n_kv == 0 || p->n_head % p->n_kv)
    b->e = err_set(ERR_FORMAT, "%s: %u heads cannot share %u key/value heads", file, p->n_head,
                   p->n_kv);
  if (b->e) return;
  p->head_dim = want_u32(b, "attention.key_length", false, p->n_embd / p->n_head, 65536);
  uint32_t v_dim = want_u32(b, "attention.value_length", false, p->head_dim, 65536);
  p->rot = want_u32(b, "rope.dimension_count", false, p->head_dim, 65536);
  if (b->e) return;
  if (p->head_dim == 0 || v_dim != p->head_dim)
    b->e = err_set(ERR_UNSUPPORTED, "%s: key length %u and value length %u must be equal", file,
                   p->head_dim, v_dim);
  else if (p->rot == 0 || p->rot % 2 || p->rot > p->head_dim)
    b->e = err_set(ERR_FORMAT, "%s: %u rotated components do not fit a head of %u", file, p->rot,
                   p->head_dim);
  else if (p->eps < 0) b->e = err_set(ERR_FORMAT, "%s: negative norm epsilon", file);
}

/* ---- rope scalings ---- */

/* Where a component turns n_rot times within the original context (YaRN, Peng et al. 2023, eq. 21).
 */
static double yarn_dim(double n_rot, double rot, double ctx, double base) {
  return rot * log(ctx / (n_rot * 2 * 3.14159265358979323846)) / (2 * log(base));
}

/* The factors of rope_freqs.weight (Llama 3.x stores its scaling so), or NULL. */
static const uint8_t *rope_factors(builder *b, uint32_t pairs) {
  const gguf_tensor *t = gguf_tensor_find(b->g, "rope_freqs.weight");
  if (!t || b->e) return NULL;
  if (t->type != DT_F32 || t->ne[0] < pairs) {
    b->e = err_set(ERR_FORMAT, "%s: tensor 'rope_freqs.weight' must hold %u f32 factors",
                   gguf_name(b->g), pairs);
    return NULL;
  }
  if (!t->data)
    b->e =
        err_set(ERR_ARG, "%s: the values of tensor '%s' were not given", gguf_name(b->g), t->name);
  return t->data;
}

const gguf_tensor *model_needs(const gguf *g, uint32_t i) {
  return i == 0 ? gguf_tensor_find(g, "rope_freqs.weight") : NULL;
}

static void read_rope(builder *b) {
  if (b->e) return;
  model_params *p = &b->m->p;
  ir_rope *r = &b->m->graph.rope;
  const char *file = gguf_name(b->g), *type;
  char key[96];
  size_t n;
  p->rope_base = want_f32(b, "rope.freq_base", false, 10000.0f);
  float linear = want_f32(b, "rope.scale_linear", false, 0);
  float factor = want_f32(b, "rope.scaling.factor", false, linear);
  float attn = want_f32(b, "rope.scaling.attn_factor", false, 1);
  float ext = want_f32(b, "rope.scaling.yarn_ext_factor", false, 1);
  float fast = want_f32(b, "rope.scaling.yarn_beta_fast", false, 32);
  float slow = want_f32(b, "rope.scaling.yarn_beta_slow", false, 1);
  uint32_t orig = want_u32(b, "rope.scaling.original_context_length", false, p->n_ctx, MAX_CTX);
  if (b->e) return;
  snprintf(key, sizeof key, "%s.rope.scaling.type", b->a->name);
  b->e = gguf_str_or(b->g, key, "linear", &type, &n);
  if (b->e) return;
  bool yarn = n == 4 && memcmp(type, "yarn", 4) == 0, none = n == 4 && memcmp(type, "none", 4) == 0;
  if (!yarn && !none && !(n == 6 && memcmp(type, "linear", 6) == 0)) {
    b->e = err_set(ERR_UNSUPPORTED, "%s: rope scaling '%.*s' is not supported", file, (int)n, type);
    return;
  }
  if (!(p->rope_base > 1) || factor < 0 || (yarn && orig == 0)) {
    b->e = err_set(ERR_FORMAT, "%s: rope base %g or scaling factor %g is out of range", file,
                   (double)p->rope_base, (double)factor);
    return;
  }
  uint32_t pairs = p->rot / 2;
  double *freq = arena_alloc(&b->m->graph.mem, pairs, sizeof *freq);
  const uint8_t *factors = rope_factors(b, pairs);
  if (!freq && !b->e) b->e = mem_err("rope frequencies", pairs * sizeof *freq);
  if (b->e) return;
  double scale = none || factor == 0 ? 1 : 1 / (double)factor;
  double base = p->rope_base, low = 0, high = 0;
  if (yarn) {
    low = fmax(0, floor(yarn_dim(fast, p->rot, orig, base)));
    high = fmin(p->rot - 1, ceil(yarn_dim(slow, p->rot, orig, base)));
  }
  for (uint32_t i = 0; i < pairs; i++) {
    double f = pow(base, -2.0 * i / p->rot);
    if (factors) f /= (double)load_f32(factors + 4 * i);
    double ramp = yarn ? 1 - fmin(1, fmax(0, (i - low) / fmax(0.001, high - low))) : 0;
    double mix = ramp * (double)ext;
    freq[i] = f * scale * (1 - mix) + f * mix;
  }
  *r = (ir_rope){.rot = p->rot, .freq = freq, .mscale = (double)attn};
  if (yarn && ext != 0 && scale < 1) r->mscale *= 1 + 0.1 * log(1 / scale); /* YaRN, eq. 22 */
  p->rope_scale = (float)scale;
  p->rope_scaling = factors ? "llama3" : yarn ? "yarn" : scale != 1 ? "linear" : "none";
}

/* ---- weights ---- */

/* The tensor's id, checked to be [rows, cols]; IR_NONE when absent and optional. */
static ir_id weight(builder *b, bool required, uint32_t rows, uint32_t cols, const char *fmt,
                    uint32_t il) {
  char name[96];
  snprintf(name, sizeof name, fmt, il);
  if (b->e) return IR_NONE;
  const gguf_tensor *t = gguf_tensor_find(b->g, name);
  const char *file = gguf_name(b->g);
  if (!t) {
    if (required) b->e = err_set(ERR_FORMAT, "%s: tensor '%s' is missing", file, name);
    return IR_NONE;
  }
  if (t->type == DT_COUNT_) {
    b->e = err_set(ERR_UNSUPPORTED, "%s: tensor '%s' has type %s, which is not supported", file,
                   name, gguf_tensor_type_name(t->raw_type));
    return IR_NONE;
  }
  if (t->ne[0] != cols || t->ne[1] != rows || t->ne[2] != 1 || t->ne[3] != 1) {
    b->e = err_set(ERR_FORMAT, "%s: tensor '%s' is [%llu, %llu], not [%u, %u]", file, name,
                   (unsigned long long)t->ne[1], (unsigned long long)t->ne[0], rows, cols);
    return IR_NONE;
  }
  if (rows == 1 && t->type != DT_F32) {
    b->e = err_set(ERR_UNSUPPORTED, "%s: tensor '%s' is %s; norms and biases must be f32", file,
                   name, dtype_get(t->type)->name);
    return IR_NONE;
  }
  if (t->type == DT_I32 || t->type == DT_U32) {
    b->e = err_set(ERR_FORMAT, "%s: tensor '%s' holds integers", file, name);
    return IR_NONE;
  }
  ir_id id = ir_tensor_add(&b->m->graph, IR_WEIGHT, t->type, rows, cols, name);
  if (id == IR_NONE) return id;
  ir_tensor *w = &b->m->graph.tensors[id];
  w->data = t->data;
  w->size = t->size;
  w->file_off = t->file_off;
  w->part = t->part;
  return id;
}

/* ---- layers ---- */

static ir_id node(builder *b, ir_node n, const char *fmt, uint32_t il) {
  char name[64];
  snprintf(name, sizeof name, fmt, il);
  return b->e ? IR_NONE : ir_node_add(&b->m->graph, n, name);
}

static ir_id matmul(builder *b, ir_id x, uint32_t n, uint32_t k, const char *stem, const char *out,
                    uint32_t il) {
  char fmt[64];
  snprintf(fmt, sizeof fmt, "%s.weight", stem);
  ir_id w = weight(b, true, n, k, fmt, il);
  snprintf(fmt, sizeof fmt, "%s.bias", stem);
  ir_id bias = weight(b, false, 1, n, fmt, il);
  ir_id y = node(b, (ir_node){.op = IR_MATMUL, .in = {w, x}}, out, il);
  return bias == IR_NONE ? y : node(b, (ir_node){.op = IR_BIAS, .in = {y, bias}}, out, il);
}

static ir_id norm(builder *b, ir_id x, const char *tensor, const char *out, uint32_t il) {
  ir_id g = weight(b, true, 1, b->m->p.n_embd, tensor, il);
  return node(b, (ir_node){.op = IR_RMSNORM, .in = {x, g}, .f = b->m->p.eps}, out, il);
}

static ir_id layer(builder *b, ir_id x, ir_id table, uint32_t il) {
  const model_params *p = &b->m->p;
  ir_graph *g = &b->m->graph;
  uint32_t nq = p->n_head * p->head_dim, nk = p->n_kv * p->head_dim;
  char name[32];
  snprintf(name, sizeof name, "blk.%u/k_cache", il);
  ir_id kc = ir_tensor_add(g, IR_STATE, DT_F32, IR_CTX, nk, name);
  snprintf(name, sizeof name, "blk.%u/v_cache", il);
  ir_id vc = ir_tensor_add(g, IR_STATE, DT_F32, IR_CTX, nk, name);

  ir_id h = norm(b, x, "blk.%u.attn_norm.weight", "blk.%u/attn_norm", il);
  ir_id q = matmul(b, h, nq, p->n_embd, "blk.%u.attn_q", "blk.%u/q", il);
  ir_id k = matmul(b, h, nk, p->n_embd, "blk.%u.attn_k", "blk.%u/k", il);
  ir_id v = matmul(b, h, nk, p->n_embd, "blk.%u.attn_v", "blk.%u/v", il);
  uint32_t neox = p->neox;
  q = node(b, (ir_node){.op = IR_ROPE, .in = {q, table}, .a = {p->n_head, neox}}, "blk.%u/q_rope",
           il);
  k = node(b, (ir_node){.op = IR_ROPE, .in = {k, table}, .a = {p->n_kv, neox}}, "blk.%u/k_rope",
           il);
  node(b, (ir_node){.op = IR_KV_APPEND, .in = {k, kc}}, "", il);
  node(b, (ir_node){.op = IR_KV_APPEND, .in = {v, vc}}, "", il);
  ir_id a = node(b,
                 (ir_node){.op = IR_ATTENTION,
                           .in = {q, kc, vc},
                           .a = {p->n_head, p->n_kv},
                           .f = 1.0f / sqrtf((float)p->head_dim)},
                 "blk.%u/attn", il);
  ir_id o = matmul(b, a, p->n_embd, nq, "blk.%u.attn_output", "blk.%u/attn_out", il);
  x = node(b, (ir_node){.op = IR_ADD, .in = {o, x}}, "blk.%u/attn_res", il);

  h = norm(b, x, "blk.%u.ffn_norm.weight", "blk.%u/ffn_norm", il);
  ir_id gate = matmul(b, h, p->n_ff, p->n_embd, "blk.%u.ffn_gate", "blk.%u/gate", il);
  ir_id up = matmul(b, h, p->n_ff, p->n_embd, "blk.%u.ffn_up", "blk.%u/up", il);
  ir_id s = node(b, (ir_node){.op = IR_SILU_MUL, .in = {gate, up}}, "blk.%u/act", il);
  ir_id d = matmul(b, s, p->n_embd, p->n_ff, "blk.%u.ffn_down", "blk.%u/down", il);
  return node(b, (ir_node){.op = IR_ADD, .in = {d, x}}, "blk.%u/out", il);
}

static void build(builder *b) {
  if (b->e) return;
  model_params *p = &b->m->p;
  ir_graph *g = &b->m->graph;
  const gguf_tensor *embd = gguf_tensor_find(b->g, "token_embd.weight");
  p->n_vocab = embd && embd->ne[1] <= 1 << 24 ? (uint32_t)embd->ne[1] : 1;
  g->ids = ir_tensor_add(g, IR_INPUT, DT_U32, IR_M, 1, "ids");
  ir_id table = ir_tensor_add(g, IR_TABLE, DT_F32, IR_CTX, p->rot, "rope");
  ir_id tok = weight(b, true, p->n_vocab, p->n_embd, "token_embd.weight", 0);
  ir_id x = node(b, (ir_node){.op = IR_EMBED, .in = {tok, g->ids}}, "embd", 0);
  for (uint32_t il = 0; il < p->n_layer && !b->e; il++) x = layer(b, x, table, il);
  g->hidden = x;
  g->body_end = g->n_nodes;
  x = node(b, (ir_node){.op = IR_LAST_ROW, .in = {x}}, "last", 0);
  x = norm(b, x, "output_norm.weight", "output_norm", 0);
  ir_id out = weight(b, false, p->n_vocab, p->n_embd, "output.weight", 0);
  if (out == IR_NONE) out = tok; /* tied to the embedding */
  x = node(b, (ir_node){.op = IR_MATMUL, .in = {out, x}}, "logits", 0);
  ir_id bias = weight(b, false, 1, p->n_vocab, "output.bias", 0);
  if (bias != IR_NONE) x = node(b, (ir_node){.op = IR_BIAS, .in = {x, bias}}, "logits", 0);
  g->logits = x;
}

err model_import(const gguf *g, model **out) {
  *out = NULL;
  const char *name;
  size_t n;
  err e = gguf_str(g, "general.architecture", &name, &n);
  if (e) return e;
  model *m = mem_zalloc(1, sizeof *m);
  if (!m) return mem_err("model", sizeof *m);
  builder b = {.g = g, .m = m};
  for (size_t i = 0; i < sizeof archs / sizeof archs[0]; i++) {
    if (strlen(archs[i].name) == n && memcmp(archs[i].name, name, n) == 0) b.a = &archs[i];
  }
  if (!b.a)
    b.e = err_set(ERR_UNSUPPORTED, "%s: architecture '%.*s' is not supported", gguf_name(g),
                  (int)(n < 64 ? n : 64), name);
  m->graph.name = gguf_name(g);
  if (!b.e) read_params(&b);
  read_rope(&b);
  build(&b);
  if (!b.e) b.e = ir_check(&m->graph);
  if (b.e) {
    model_free(m);
    return b.e;
  }
  *out = m;
  return ERR_NONE;
}

void model_free(model *m) {
  if (!m) return;
  ir_free(&m->graph);
  mem_free(m);
}

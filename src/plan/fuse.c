/* The fusions of level `role`: a table of (name, rows, matcher). A matcher looks at the nodes from
 * i on; it returns how many it replaced, or 0, with a note of the reason where the pattern was
 * there but a condition failed. Each is tested equal to the chain that it replaces. */
#include <string.h>

#include "base/math.h"
#include "plan/plan_impl.h"

typedef struct fusion {
  const char *name;
  bool decode, prefill; /* for one row, for several */
  uint32_t (*match)(plan_builder *b, uint32_t i, uint32_t end, const char *name);
} fusion;

static void note(plan_builder *b, const char *fusion_name, uint32_t i, const char *reason) {
  plan *p = b->p;
  if (p->n_notes == b->cap_notes) {
    uint32_t cap = b->cap_notes ? b->cap_notes * 2 : 32;
    plan_note *q = arena_alloc(&p->mem, cap, sizeof *q);
    if (!q) {
      b->e = mem_err("plan", cap * sizeof *q);
      return;
    }
    if (p->n_notes) memcpy(q, p->notes, p->n_notes * sizeof *q);
    p->notes = q;
    b->cap_notes = cap;
  }
  const ir_node *n = &b->g->nodes[i];
  const char *where = b->g->tensors[n->out == IR_NONE ? n->in[1] : n->out].name;
  p->notes[p->n_notes++] = (plan_note){fusion_name, where, reason};
}

/* Notes why a kernel has no such specialisation; false when it has. */
static bool refused(plan_builder *b, const kernel_spec *k, const char *fusion_name, uint32_t i) {
  kernel_shape s;
  kernel_get(k->op)->shape(k, &s);
  if (s.refuse) note(b, fusion_name, i, s.refuse);
  return s.refuse != NULL;
}

/* Do the ops at i match, in order? */
static bool ops_are(const plan_builder *b, uint32_t i, uint32_t end, const ir_op *ops, uint32_t n) {
  if (end - i < n) return false;
  for (uint32_t j = 0; j < n; j++) {
    if (b->g->nodes[i + j].op != ops[j]) return false;
  }
  return true;
}

#define OPS(...)                                                                                   \
  ((const ir_op[]){__VA_ARGS__}), sizeof((const ir_op[]){__VA_ARGS__}) / sizeof(ir_op)

static bool used_once(const plan_builder *b, ir_id t) { return b->uses[t] == 1; }
static const char *name_of(const plan_builder *b, ir_id t) { return b->g->tensors[t].name; }

/* Three matmuls of one input, rope of the first two, appends: the common tail of both qkv fusions,
 * beginning at the first matmul. */
static bool is_qkv(const plan_builder *b, uint32_t i, uint32_t end) {
  const ir_node *n = &b->g->nodes[i];
  return ops_are(
             b, i, end,
             OPS(IR_MATMUL, IR_MATMUL, IR_MATMUL, IR_ROPE, IR_ROPE, IR_KV_APPEND, IR_KV_APPEND)) &&
         n[1].in[1] == n[0].in[1] && n[2].in[1] == n[0].in[1] && n[3].in[0] == n[0].out &&
         n[4].in[0] == n[1].out && n[5].in[0] == n[4].out && n[6].in[0] == n[2].out &&
         used_once(b, n[0].out) && used_once(b, n[1].out) && used_once(b, n[2].out) &&
         used_once(b, n[4].out);
}

/* Notes where `count` matmuls of one input, from node i on, would fuse but for a bias. Returns the
 * nodes that it fuses: none. */
static uint32_t biased(plan_builder *b, uint32_t i, uint32_t end, uint32_t count,
                       const char *fusion_name) {
  const ir_node *n = b->g->nodes;
  if (i >= end || n[i].op != IR_MATMUL || b->uses[n[i].in[1]] != count) return 0;
  for (uint32_t j = i; j < end && j < i + 2 * count; j++) {
    if (n[j].op == IR_BIAS) {
      note(b, fusion_name, i, "a projection has a bias");
      return 0;
    }
    if (n[j].op != IR_MATMUL) break;
  }
  return 0;
}
/* A fusion of several rows looks at each matmul in turn: only the first speaks. */
static bool after_norm(const plan_builder *b, uint32_t i) {
  return i && b->g->nodes[i - 1].op == IR_RMSNORM;
}

static uint32_t norm_qkv(plan_builder *b, uint32_t i, uint32_t end, const char *name) {
  const ir_node *n = &b->g->nodes[i];
  if (n->op != IR_RMSNORM) return 0;
  if (end - i < 8 || !is_qkv(b, i + 1, end) || n[1].in[1] != n->out)
    return biased(b, i + 1, end, 3, name);
  if (b->uses[n->out] != 3) return 0;
  const ir_node *q = n + 1, *rope = n + 4;
  const plan_part *part[3];
  for (int j = 0; j < 3; j++) {
    part[j] = plan_whole(b, q[j].in[0]);
    if (!part[j]) {
      note(b, name, i, "a weight is split over bindings");
      return 0;
    }
  }
  uint32_t head_dim = b->g->tensors[q[0].out].cols / rope->a[0];
  uint32_t nq = part[0]->rows, nk = part[1]->rows, off = 0;
  for (int j = 0; j < 3;
       j++) { /* each alone; a run of neighbours is refused for the same reasons */
    const plan_stack *s = &b->w->stacks[part[j]->stack];
    kernel_spec spec = {.op = KERNEL_QKV_MV,
                        .dim = {part[j]->rows, s->cols, part[j]->row0, s->rows, 0, nq, nk, head_dim,
                                b->g->rope.rot, rope->a[1]},
                        .f = {n->f},
                        .type = {s->type, b->o.kv}};
    if (refused(b, &spec, name, i)) return 0;
  }
  plan_ref x = plan_value(b, n->in[0]), g = plan_value(b, n->in[1]);
  for (int j = 0; j < 3;) { /* one dispatch a run of neighbours in a stack */
    const plan_stack *s = &b->w->stacks[part[j]->stack];
    uint32_t rows = part[j]->rows;
    int k = j + 1;
    while (k < 3 && part[k]->stack == part[j]->stack && part[k]->row0 == part[j]->row0 + rows)
      rows += part[k++]->rows;
    kernel_spec spec = {.op = KERNEL_QKV_MV,
                        .dim = {rows, s->cols, part[j]->row0, s->rows, off, nq, nk, head_dim,
                                b->g->rope.rot, rope->a[1]},
                        .f = {n->f},
                        .type = {s->type, b->o.kv}};
    plan_emit(b, spec, name_of(b, q[j].out), name,
              (plan_ref[]){{PLAN_REF_STACK, part[j]->stack},
                           x,
                           g,
                           {PLAN_REF_TABLE, 0},
                           plan_value(b, n[4].out),
                           plan_value(b, n[6].in[1]),
                           plan_value(b, n[7].in[1]),
                           PLAN_STEP});
    off += rows;
    j = k;
  }
  return 8;
}

/* On an NVIDIA H200 (driver 580), SmolLM2: 16 splits 1,243 tok/s against 1,105 with 8 at depth 512;
 * 32 splits 1,040 against 718 with 8 at depth 4,096. The grid is recorded, so the context decides.
 */
static uint32_t default_splits(uint32_t ctx) { return ctx <= 2048 ? 16 : ctx <= 16384 ? 32 : 64; }

static uint32_t attention_split(plan_builder *b, uint32_t i, uint32_t end, const char *name) {
  (void)end;
  const ir_node *n = &b->g->nodes[i];
  if (n->op != IR_ATTENTION) return 0;
  uint32_t h = n->a[0], d = b->g->tensors[n->in[0]].cols / h;
  uint32_t s = b->o.splits ? b->o.splits : default_splits(b->o.ctx);
  kernel_spec split = {
      .op = KERNEL_ATTN_SPLIT, .dim = {h, n->a[1], d, s}, .f = {n->f}, .type = {b->o.kv}};
  kernel_spec combine = {.op = KERNEL_ATTN_COMBINE, .dim = {h, d, s}};
  if (refused(b, &split, name, i) || refused(b, &combine, name, i)) return 0;
  const char *label = name_of(b, n->out);
  plan_ref part = plan_temp(b, 4ull * h * s * (d + 2));
  plan_emit(b, split, label, name,
            (plan_ref[]){plan_value(b, n->in[0]), plan_value(b, n->in[1]), plan_value(b, n->in[2]),
                         part, PLAN_STEP});
  plan_emit(b, combine, label, name, (plan_ref[]){part, plan_value(b, n->out), PLAN_STEP});
  return 1;
}

static uint32_t attention_flash(plan_builder *b, uint32_t i, uint32_t end, const char *name) {
  (void)end;
  const ir_node *n = &b->g->nodes[i];
  if (n->op != IR_ATTENTION) return 0;
  uint32_t h = n->a[0], d = b->g->tensors[n->in[0]].cols / h;
  kernel_spec k = {
      .op = KERNEL_ATTN_FLASH, .dim = {h, n->a[1], d, b->o.m}, .f = {n->f}, .type = {b->o.kv}};
  if (refused(b, &k, name, i)) return 0;
  plan_emit(b, k, name_of(b, n->out), name,
            (plan_ref[]){plan_value(b, n->in[0]), plan_value(b, n->in[1]), plan_value(b, n->in[2]),
                         plan_value(b, n->out), PLAN_STEP});
  return 1;
}

static uint32_t matmul_residual(plan_builder *b, uint32_t i, uint32_t end, const char *name) {
  const ir_node *n = &b->g->nodes[i];
  if (ops_are(b, i, end, OPS(IR_MATMUL, IR_BIAS, IR_ADD))) note(b, name, i, "it has a bias");
  if (!ops_are(b, i, end, OPS(IR_MATMUL, IR_ADD)) || n[1].in[0] != n->out || !used_once(b, n->out))
    return 0;
  const plan_part *p = plan_whole(b, n->in[0]);
  if (!p) {
    note(b, name, i, "the weight is split over bindings");
    return 0;
  }
  const plan_stack *s = &b->w->stacks[p->stack];
  kernel_spec k = {
      .op = KERNEL_MATVEC_RES, .dim = {p->rows, s->cols, p->row0, s->rows}, .type = {s->type}};
  if (b->o.m > 1)
    k = (kernel_spec){.op = KERNEL_MATMUL_RES,
                      .dim = {p->rows, s->cols, b->o.m, p->row0, s->rows},
                      .type = {s->type}};
  plan_emit(b, k, name_of(b, n[1].out), name,
            (plan_ref[]){{PLAN_REF_STACK, p->stack},
                         plan_value(b, n->in[1]),
                         plan_value(b, n[1].in[1]),
                         plan_value(b, n[1].out),
                         PLAN_STEP});
  return 2;
}

/* gate and up rows next to each other, alone in their stack */
static const plan_part *gate_up_stack(plan_builder *b, const ir_node *n) {
  const plan_part *gate = plan_whole(b, n[0].in[0]), *up = plan_whole(b, n[1].in[0]);
  if (!gate || !up || gate->stack != up->stack || gate->row0 || up->row0 != gate->rows ||
      b->w->stacks[gate->stack].rows != gate->rows + up->rows)
    return NULL;
  return gate;
}

static bool is_gate_up(const plan_builder *b, uint32_t i, uint32_t end) {
  const ir_node *n = &b->g->nodes[i];
  return ops_are(b, i, end, OPS(IR_MATMUL, IR_MATMUL, IR_SILU_MUL)) && n[0].in[1] == n[1].in[1] &&
         n[2].in[0] == n[0].out && n[2].in[1] == n[1].out && used_once(b, n[0].out) &&
         used_once(b, n[1].out);
}

static uint32_t norm_ffn(plan_builder *b, uint32_t i, uint32_t end, const char *name) {
  const ir_node *n = &b->g->nodes[i];
  if (n->op != IR_RMSNORM) return 0;
  if (end - i < 4 || !is_gate_up(b, i + 1, end) || n[1].in[1] != n->out || b->uses[n->out] != 2)
    return biased(b, i + 1, end, 2, name);
  const plan_part *p = gate_up_stack(b, n + 1);
  if (!p) {
    note(b, name, i, "gate and up differ in type or are split over bindings");
    return 0;
  }
  const plan_stack *s = &b->w->stacks[p->stack];
  kernel_spec k = {.op = KERNEL_FFN_MV, .dim = {p->rows, s->cols}, .f = {n->f}, .type = {s->type}};
  plan_emit(b, k, name_of(b, n[3].out), name,
            (plan_ref[]){{PLAN_REF_STACK, p->stack},
                         plan_value(b, n->in[0]),
                         plan_value(b, n->in[1]),
                         plan_value(b, n[3].out),
                         PLAN_STEP});
  return 4;
}

static uint32_t norm_matvec(plan_builder *b, uint32_t i, uint32_t end, const char *name) {
  const ir_node *n = &b->g->nodes[i];
  if (!ops_are(b, i, end, OPS(IR_RMSNORM, IR_MATMUL)) || n[1].in[1] != n->out ||
      !used_once(b, n->out))
    return 0;
  ir_id w = n[1].in[0];
  uint32_t yn = b->g->tensors[w].rows;
  for (uint32_t j = b->w->first_part[w]; j < b->w->first_part[w + 1]; j++) {
    const plan_part *p = &b->w->parts[j];
    const plan_stack *s = &b->w->stacks[p->stack];
    kernel_spec k = {.op = KERNEL_NORM_MV,
                     .dim = {p->rows, s->cols, p->row0, s->rows, yn, p->first},
                     .f = {n->f},
                     .type = {s->type}};
    plan_emit(b, k, name_of(b, n[1].out), name,
              (plan_ref[]){{PLAN_REF_STACK, p->stack},
                           plan_value(b, n->in[0]),
                           plan_value(b, n->in[1]),
                           plan_value(b, n[1].out),
                           PLAN_STEP});
  }
  return 2;
}

/* One matmul where the weights are neighbours in a stack, else one each into columns of y. */
static void stacked_matmuls(plan_builder *b, const ir_node *n, uint32_t count, plan_ref y,
                            uint32_t yn, const char *name) {
  plan_ref x = plan_value(b, n->in[1]);
  const plan_part *p0 = plan_whole(b, n->in[0]);
  bool together = p0 != NULL;
  uint32_t rows = together ? p0->rows : 0;
  for (uint32_t j = 1; j < count; j++) {
    const plan_part *p = plan_whole(b, n[j].in[0]);
    together = together && p && p->stack == p0->stack && p->row0 == p0->row0 + rows;
    if (p) rows += p->rows;
  }
  if (together) {
    const plan_stack *s = &b->w->stacks[p0->stack];
    kernel_spec k = {.op = KERNEL_MATMUL,
                     .dim = {yn, s->cols, b->o.m, p0->row0, s->rows, yn, 0},
                     .type = {s->type}};
    plan_emit(b, k, name_of(b, n->out), name,
              (plan_ref[]){{PLAN_REF_STACK, p0->stack}, x, y, PLAN_STEP});
    return;
  }
  uint32_t y0 = 0;
  for (uint32_t j = 0; j < count; j++) {
    plan_matmul(b, n[j].in[0], x, y, b->o.m, yn, y0, name_of(b, n[j].out), name);
    y0 += b->g->tensors[n[j].out].cols;
  }
}

static uint32_t qkv_stack(plan_builder *b, uint32_t i, uint32_t end, const char *name) {
  const ir_node *n = &b->g->nodes[i];
  if (!is_qkv(b, i, end)) return after_norm(b, i) ? biased(b, i, end, 3, name) : 0;
  uint32_t nq = b->g->tensors[n[0].out].cols, nk = b->g->tensors[n[1].out].cols;
  if (b->g->tensors[n[2].out].cols != nk) return 0;
  uint32_t yn = nq + 2 * nk, h = n[3].a[0];
  kernel_spec k = {.op = KERNEL_ROPE_APPEND,
                   .dim = {h, n[4].a[0], nq / h, b->g->rope.rot, n[3].a[1], b->o.m},
                   .type = {b->o.kv}};
  if (refused(b, &k, name, i)) return 0;
  plan_ref y = plan_temp(b, 4ull * b->o.m * yn);
  stacked_matmuls(b, n, 3, y, yn, name);
  plan_emit(b, k, name_of(b, n[3].out), name,
            (plan_ref[]){y,
                         {PLAN_REF_TABLE, 0},
                         plan_value(b, n[3].out),
                         plan_value(b, n[5].in[1]),
                         plan_value(b, n[6].in[1]),
                         PLAN_STEP});
  return 7;
}

static uint32_t gate_up_pair(plan_builder *b, uint32_t i, uint32_t end, const char *name) {
  const ir_node *n = &b->g->nodes[i];
  if (!is_gate_up(b, i, end)) return after_norm(b, i) ? biased(b, i, end, 2, name) : 0;
  uint32_t cols = b->g->tensors[n[0].out].cols;
  plan_ref y = plan_temp(b, 8ull * b->o.m * cols);
  stacked_matmuls(b, n, 2, y, 2 * cols, name);
  kernel_spec k = {.op = KERNEL_SILU_MUL_PAIR, .dim = {cols, b->o.m}};
  plan_emit(b, k, name_of(b, n[2].out), name, (plan_ref[]){y, plan_value(b, n[2].out), PLAN_STEP});
  return 3;
}

static const fusion fusions[] = {
    {"norm_qkv", true, false, norm_qkv},
    {"norm_ffn", true, false, norm_ffn},
    {"norm_matvec", true, false, norm_matvec},
    {"attention_split", true, false, attention_split},
    {"qkv_stack", false, true, qkv_stack},
    {"gate_up_pair", false, true, gate_up_pair},
    {"attention_flash", false, true, attention_flash},
    {"matmul_residual", true, true, matmul_residual},
};
enum { N_FUSIONS = sizeof fusions / sizeof fusions[0] };

const char *const plan_fusions[] = {"norm_qkv",
                                    "norm_ffn",
                                    "norm_matvec",
                                    "attention_split",
                                    "qkv_stack",
                                    "gate_up_pair",
                                    "attention_flash",
                                    "matmul_residual",
                                    "argmax_split", /* of the sampler: plan.c */
                                    NULL};
_Static_assert(sizeof plan_fusions / sizeof plan_fusions[0] == N_FUSIONS + 2, "one name a fusion");

bool plan_is_off(const plan_builder *b, const char *name) {
  size_t n = strlen(name);
  for (const char *p = b->o.off; p && *p; p += strcspn(p, ","), p += *p == ',') {
    if (strncmp(p, name, n) == 0 && (p[n] == 0 || p[n] == ',')) return true;
  }
  return false;
}

uint32_t plan_fuse(plan_builder *b, uint32_t i, uint32_t end) {
  /* The head of several rows is left plain: it serves perplexity only. */
  bool one = b->o.m == 1 || b->o.part == PLAN_HEAD;
  for (uint32_t j = 0; j < N_FUSIONS; j++) {
    const fusion *f = &fusions[j];
    if (!(one ? f->decode : f->prefill) || plan_is_off(b, f->name)) continue;
    uint32_t n = f->match(b, i, end, f->name);
    if (n || b->e) return n;
  }
  return 0;
}

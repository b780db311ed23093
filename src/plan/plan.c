/* Builds a plan: walks the nodes of the asked part, fusing where the level says so, then places the
 * values in slots. */
#include "plan/plan.h"

#include <stdio.h>
#include <string.h>

#include "base/math.h"
#include "plan/plan_impl.h"

/* ---- helpers of the builder ---- */

static void *grow(plan_builder *b, void *p, uint32_t n, uint32_t *cap, size_t size) {
  if (b->e) return NULL;
  if (n < *cap) return p;
  uint32_t want = *cap ? *cap * 2 : 64;
  void *q = arena_alloc(&b->p->mem, want, size);
  if (!q) {
    b->e = mem_err("plan", want * size);
    return NULL;
  }
  if (n) memcpy(q, p, n * size);
  *cap = want;
  return q;
}

static uint32_t count_words(const char *list) {
  uint32_t n = 0;
  for (const char *c = list; *c; c++) n += *c != ' ' && (c == list || c[-1] == ' ');
  return n;
}

/* SwiftShader runs the subgroups of a workgroup as fibers, and each barrier switches among them
 * all: with 8 threads instead of 256 the demo model's decode took 0.6 s a token there and not 10.9.
 */
enum { SOFTWARE_THREADS = 8 };

/* Texts of the role kernels reduce with subgroups where the device has one size of them. */
static bool has_subgroup_form(kernel_op op) {
  switch (op) {
  case KERNEL_QKV_MV:
  case KERNEL_MATVEC_RES:
  case KERNEL_FFN_MV:
  case KERNEL_NORM_MV:
  case KERNEL_ATTN_SPLIT: return true;
  default: return false;
  }
}

void plan_emit(plan_builder *b, kernel_spec spec, const char *label, const char *fusion,
               const plan_ref *bind) {
  plan_step *s = grow(b, b->p->steps, b->p->n_steps, &b->cap_steps, sizeof *s);
  if (!s) return;
  b->p->steps = s;
  const hw_caps *c = b->caps;
  if (has_subgroup_form(spec.op) && c->subgroups && c->subgroup_min == c->subgroup_max)
    spec.sg = c->subgroup_min;
  if (c->software && c->kind != HW_CPU) kernel_limit_threads(&spec, SOFTWARE_THREADS);
  spec.rounds = b->o.rounds && (spec.op == KERNEL_MATVEC || spec.op == KERNEL_MATMUL);
  s += b->p->n_steps++;
  *s = (plan_step){.spec = spec,
                   .label = label,
                   .fusion = fusion,
                   .n_bind = count_words(kernel_get(spec.op)->binds)};
  memcpy(s->bind, bind, s->n_bind * sizeof *bind);
}

static uint32_t add_value(plan_builder *b, uint64_t bytes) {
  uint64_t *v = grow(b, b->value_bytes, b->n_values, &b->cap_values, sizeof *v);
  if (!v) return 0;
  b->value_bytes = v;
  v[b->n_values] = bytes;
  return b->n_values++;
}

plan_ref plan_temp(plan_builder *b, uint64_t bytes) {
  return (plan_ref){PLAN_REF_SLOT, add_value(b, bytes)};
}

plan_ref plan_value(plan_builder *b, ir_id t) {
  t = b->alias[t];
  const ir_tensor *x = &b->g->tensors[t];
  switch (x->kind) {
  case IR_WEIGHT: return (plan_ref){PLAN_REF_STACK, b->w->parts[b->w->first_part[t]].stack};
  case IR_INPUT: return (plan_ref){PLAN_REF_IDS, 0};
  case IR_STATE: return (plan_ref){PLAN_REF_STATE, t};
  case IR_TABLE: return (plan_ref){PLAN_REF_TABLE, 0};
  default: break;
  }
  if (t == b->g->hidden) return (plan_ref){PLAN_REF_HIDDEN, 0};
  if (t == b->g->logits) return (plan_ref){PLAN_REF_LOGITS, 0};
  return (plan_ref){PLAN_REF_SLOT, t};
}

const plan_part *plan_whole(const plan_builder *b, ir_id w) {
  uint32_t first = b->w->first_part[w];
  return b->w->first_part[w + 1] - first == 1 ? &b->w->parts[first] : NULL;
}

/* ---- the plain form of each node ---- */

void plan_matmul(plan_builder *b, ir_id w, plan_ref x, plan_ref y, uint32_t rows, uint32_t yn,
                 uint32_t y0, const char *label, const char *fusion) {
  for (uint32_t i = b->w->first_part[w]; i < b->w->first_part[w + 1]; i++) {
    const plan_part *p = &b->w->parts[i];
    const plan_stack *s = &b->w->stacks[p->stack];
    kernel_spec k = {.op = rows == 1 ? KERNEL_MATVEC : KERNEL_MATMUL, .type = {s->type}};
    uint32_t vec[] = {p->rows, s->cols, p->row0, s->rows, yn, y0 + p->first};
    uint32_t mat[] = {p->rows, s->cols, rows, p->row0, s->rows, yn, y0 + p->first};
    if (rows == 1) memcpy(k.dim, vec, sizeof vec);
    else memcpy(k.dim, mat, sizeof mat);
    plan_emit(b, k, label, fusion, (plan_ref[]){{PLAN_REF_STACK, p->stack}, x, y, PLAN_STEP});
  }
}

static void emit_embed(plan_builder *b, const ir_node *n, uint32_t m, const char *label) {
  plan_ref y = plan_value(b, n->out), ids = plan_value(b, n->in[1]);
  for (uint32_t i = b->w->first_part[n->in[0]]; i < b->w->first_part[n->in[0] + 1]; i++) {
    const plan_part *p = &b->w->parts[i];
    const plan_stack *s = &b->w->stacks[p->stack];
    kernel_spec k = {.op = KERNEL_EMBED, .dim = {s->cols, s->rows, m, p->first}, .type = {s->type}};
    plan_emit(b, k, label, NULL, (plan_ref[]){{PLAN_REF_STACK, p->stack}, ids, y, PLAN_STEP});
  }
}

void plan_emit_node(plan_builder *b, uint32_t i) {
  const ir_node *n = &b->g->nodes[i];
  const ir_tensor *t0 = &b->g->tensors[n->in[0]];
  const ir_tensor *out = n->out == IR_NONE ? NULL : &b->g->tensors[n->out];
  uint32_t m =
      ir_rows(n->op == IR_MATMUL || n->op == IR_EMBED ? b->g->tensors[n->in[1]].rows : t0->rows,
              b->o.m, b->o.ctx);
  if (b->o.part == PLAN_HEAD_ALL) m = b->o.m;
  const char *label = out ? out->name : b->g->tensors[n->in[1]].name;
  plan_ref x = plan_value(b, n->in[0]), z = plan_value(b, n->in[1]);
  plan_ref y = out ? plan_value(b, n->out) : z;
  kernel_spec k = {.op = KERNEL_COUNT_};
  switch (n->op) {
  case IR_EMBED: emit_embed(b, n, m, label); return;
  case IR_MATMUL: plan_matmul(b, n->in[0], z, y, m, t0->rows, 0, label, NULL); return;
  case IR_RMSNORM:
    k = (kernel_spec){.op = KERNEL_RMSNORM, .dim = {t0->cols, m}, .f = {n->f}};
    break;
  case IR_BIAS: k = (kernel_spec){.op = KERNEL_BIAS, .dim = {t0->cols, m}}; break;
  case IR_ADD: k = (kernel_spec){.op = KERNEL_ADD, .dim = {t0->cols, m}}; break;
  case IR_SILU_MUL: k = (kernel_spec){.op = KERNEL_SILU_MUL, .dim = {t0->cols, m}}; break;
  case IR_ROPE:
    k = (kernel_spec){.op = KERNEL_ROPE,
                      .dim = {n->a[0], t0->cols / n->a[0], b->g->rope.rot, n->a[1], m}};
    break;
  case IR_KV_APPEND:
    k = (kernel_spec){.op = KERNEL_KV_APPEND, .dim = {t0->cols, m}, .type = {b->o.kv}};
    plan_emit(b, k, label, NULL, (plan_ref[]){x, z, PLAN_STEP});
    return;
  case IR_LAST_ROW:
    k = (kernel_spec){.op = KERNEL_LAST_ROW, .dim = {t0->cols, m}};
    plan_emit(b, k, label, NULL, (plan_ref[]){x, y, PLAN_STEP});
    return;
  case IR_ATTENTION:
    k = (kernel_spec){.op = KERNEL_ATTENTION,
                      .dim = {n->a[0], n->a[1], t0->cols / n->a[0], m},
                      .f = {n->f},
                      .type = {b->o.kv}};
    plan_emit(b, k, label, NULL, (plan_ref[]){x, z, plan_value(b, n->in[2]), y, PLAN_STEP});
    return;
  default: return;
  }
  plan_emit(b, k, label, NULL, (plan_ref[]){x, z, y, PLAN_STEP});
}

/* ---- parts ---- */

static void emit_sampler(plan_builder *b) {
  uint32_t n = b->g->tensors[b->g->logits].cols;
  plan_ref logits = {PLAN_REF_LOGITS, 0}, ids = {PLAN_REF_IDS, 0}, recent = {PLAN_REF_RECENT, 0};
  if (b->o.part == PLAN_GREEDY && b->o.level == PLAN_ROLE && !plan_is_off(b, "argmax_split")) {
    uint32_t parts = min_u32(256, div_up32(n, 512));
    plan_ref part = plan_temp(b, 8ull * parts);
    plan_emit(b, (kernel_spec){.op = KERNEL_ARGMAX_PART, .dim = {n, parts}}, "argmax",
              "argmax_split", (plan_ref[]){logits, part, PLAN_STEP});
    plan_emit(b, (kernel_spec){.op = KERNEL_ARGMAX_JOIN, .dim = {parts}}, "argmax", "argmax_split",
              (plan_ref[]){part, ids, PLAN_STEP});
    return;
  }
  if (b->o.part == PLAN_GREEDY) {
    plan_emit(b, (kernel_spec){.op = KERNEL_ARGMAX, .dim = {n}}, "argmax", NULL,
              (plan_ref[]){logits, ids, PLAN_STEP});
    return;
  }
  plan_emit(b, (kernel_spec){.op = KERNEL_PENALIZE, .dim = {n, PLAN_RING}}, "penalize", NULL,
            (plan_ref[]){recent, logits, PLAN_STEP});
  plan_emit(b, (kernel_spec){.op = KERNEL_SAMPLE, .dim = {n}}, "sample", NULL,
            (plan_ref[]){logits, ids, PLAN_STEP});
  plan_emit(b, (kernel_spec){.op = KERNEL_REMEMBER, .dim = {PLAN_RING}}, "remember", NULL,
            (plan_ref[]){ids, recent, PLAN_STEP});
}

static void emit_graph(plan_builder *b) {
  const ir_graph *g = b->g;
  uint32_t begin = b->o.part == PLAN_BODY ? 0 : g->body_end;
  uint32_t end = b->o.part == PLAN_BODY ? g->body_end : g->n_nodes;
  for (uint32_t i = begin; i < end; i++) {
    for (uint32_t j = 0; j < ir_op_inputs(g->nodes[i].op); j++) b->uses[g->nodes[i].in[j]]++;
  }
  if (b->o.part == PLAN_BODY) b->uses[g->hidden]++;
  for (uint32_t i = begin; i < end && !b->e;) {
    const ir_node *n = &g->nodes[i];
    if (n->op == IR_LAST_ROW && (b->o.m == 1 || b->o.part == PLAN_HEAD_ALL)) {
      b->alias[n->out] = b->alias[n->in[0]];
      i++;
      continue;
    }
    uint32_t n_fused = b->o.level == PLAN_ROLE ? plan_fuse(b, i, end) : 0;
    if (!n_fused) plan_emit_node(b, i);
    i += n_fused ? n_fused : 1;
  }
}

static err prepare(plan_builder *b) {
  const ir_graph *g = b->g;
  b->uses = mem_zalloc(g->n_tensors, sizeof *b->uses);
  b->alias = mem_zalloc(g->n_tensors, sizeof *b->alias);
  if (!b->uses || !b->alias) return mem_err("plan", g->n_tensors * sizeof *b->uses);
  for (uint32_t i = 0; i < g->n_tensors; i++) {
    const ir_tensor *t = &g->tensors[i];
    b->alias[i] = i;
    uint32_t rows = ir_rows(t->rows, b->o.m, b->o.ctx);
    if (b->o.part == PLAN_HEAD_ALL) rows = b->o.m;
    add_value(b, t->kind == IR_VALUE ? 4ull * rows * t->cols : 0);
  }
  return b->e;
}

err plan_new(const ir_graph *g, const plan_weights *w, const hw_caps *caps, const plan_opts *o,
             plan **out) {
  *out = NULL;
  plan_builder b = {.g = g, .w = w, .caps = caps, .o = *o, .p = mem_zalloc(1, sizeof *b.p)};
  if (!b.p) return mem_err("plan", sizeof *b.p);
  b.p->opts = *o;
  err e = prepare(&b);
  if (e) goto done;
  if (o->part == PLAN_GREEDY || o->part == PLAN_SAMPLE) {
    emit_sampler(&b);
  } else if (o->part == PLAN_NLL) {
    plan_emit(&b, (kernel_spec){.op = KERNEL_NLL, .dim = {g->tensors[g->logits].cols, o->m}}, "nll",
              NULL,
              (plan_ref[]){{PLAN_REF_LOGITS, 0}, {PLAN_REF_NEXT, 0}, {PLAN_REF_NLL, 0}, PLAN_STEP});
  } else {
    emit_graph(&b);
  }
  e = b.e;
  if (!e) e = plan_place(&b);
done:
  mem_free(b.uses);
  mem_free(b.alias);
  if (e) plan_free(b.p);
  else *out = b.p;
  return e;
}

void plan_free(plan *p) {
  if (!p) return;
  arena_free(&p->mem);
  mem_free(p);
}

/* ---- text ---- */

static void print_ref(plan_ref r, buf *out) {
  static const char *const names[] = {"w",      "slot",   "kv",     "rope", "ids", "step",
                                      "hidden", "logits", "recent", "next", "nll"};
  buf_puts(out, names[r.kind]);
  if (r.kind <= PLAN_REF_STATE) buf_printf(out, "%u", r.index);
}

void plan_print(const plan *p, buf *out) {
  uint64_t bytes = 0, flops = 0;
  for (uint32_t i = 0; i < p->n_steps; i++) {
    const plan_step *s = &p->steps[i];
    char label[HW_LABEL * 2];
    kernel_label(&s->spec, label, sizeof label);
    kernel_shape k;
    kernel_get(s->spec.op)->shape(&s->spec, &k);
    buf_printf(out, "%3u %-18s %s [", i, s->label, label);
    for (uint32_t j = 0; j < s->n_bind; j++) {
      if (j) buf_putc(out, ' ');
      print_ref(s->bind[j], out);
    }
    buf_printf(out, "] groups=%ux%ux%u bytes=%llu flops=%llu%s%s\n", k.groups[0], k.groups[1],
               k.groups[2], (unsigned long long)k.bytes, (unsigned long long)k.flops,
               s->fusion ? " fused=" : "", s->fusion ? s->fusion : "");
    bytes += k.bytes;
    flops += k.flops;
  }
  buf_printf(out, "%u dispatches, %llu bytes, %llu flops; slots:", p->n_steps,
             (unsigned long long)bytes, (unsigned long long)flops);
  for (uint32_t i = 0; i < p->n_slots; i++)
    buf_printf(out, " %llu", (unsigned long long)p->slots[i]);
  buf_putc(out, '\n');
  for (uint32_t i = 0; i < p->n_notes; i++)
    buf_printf(out, "not fused: %s at %s: %s\n", p->notes[i].fusion, p->notes[i].where,
               p->notes[i].reason);
}

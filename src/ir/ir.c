/* Owns the graph's lists, its checker and its text form. */
#include "ir/ir.h"

#include <math.h>
#include <string.h>

static const struct {
  const char *name;
  uint32_t n_in;
} ops[] = {
#define X(id, name, n) {name, n},
    IR_OPS(X)
#undef X
};

const char *ir_op_name(ir_op op) { return ops[op].name; }
uint32_t ir_op_inputs(ir_op op) { return ops[op].n_in; }

/* Arena arrays grow by copying: old copies stay until the graph is freed (twice the size in all).
 */
static void *grow(ir_graph *g, void *p, uint32_t n, uint32_t *cap, size_t size) {
  if (n < *cap) return p;
  uint32_t want = *cap ? *cap * 2 : 256;
  void *q = arena_alloc(&g->mem, want, size);
  if (!q) {
    g->failed = true;
    return NULL;
  }
  if (n) memcpy(q, p, n * size);
  *cap = want;
  return q;
}

ir_id ir_tensor_add(ir_graph *g, ir_kind kind, dtype t, uint32_t rows, uint32_t cols,
                    const char *name) {
  if (g->failed) return IR_NONE;
  ir_tensor *p = grow(g, g->tensors, g->n_tensors, &g->cap_tensors, sizeof *p);
  char *copy = p ? arena_strdup(&g->mem, name) : NULL;
  if (!copy) {
    g->failed = true;
    return IR_NONE;
  }
  g->tensors = p;
  p[g->n_tensors] = (ir_tensor){.name = copy, .kind = kind, .type = t, .rows = rows, .cols = cols};
  return g->n_tensors++;
}

static uint32_t out_rows(const ir_graph *g, const ir_node *n) {
  if (n->op == IR_EMBED) return g->tensors[n->in[1]].rows;
  if (n->op == IR_LAST_ROW) return 1;
  return g->tensors[n->in[n->op == IR_MATMUL ? 1 : 0]].rows;
}

static uint32_t out_cols(const ir_graph *g, const ir_node *n) {
  const ir_tensor *t = &g->tensors[n->in[0]];
  return n->op == IR_MATMUL ? t->rows : t->cols;
}

ir_id ir_node_add(ir_graph *g, ir_node n, const char *name) {
  for (uint32_t i = 0; i < ops[n.op].n_in; i++) g->failed = g->failed || n.in[i] >= g->n_tensors;
  if (g->failed) return IR_NONE;
  n.out = IR_NONE;
  if (n.op != IR_KV_APPEND)
    n.out = ir_tensor_add(g, IR_VALUE, DT_F32, out_rows(g, &n), out_cols(g, &n), name);
  ir_node *p = grow(g, g->nodes, g->n_nodes, &g->cap_nodes, sizeof *p);
  if (!p) return IR_NONE;
  g->nodes = p;
  p[g->n_nodes++] = n;
  return n.out;
}

/* ---- checker ---- */

static err bad(const ir_graph *g, uint32_t i, const char *what) {
  const ir_node *n = &g->nodes[i];
  return err_set(ERR_FORMAT, "%s: node %u (%s of '%s'): %s", g->name, i, ops[n->op].name,
                 g->tensors[n->in[0]].name, what);
}

static err check_shapes(const ir_graph *g, uint32_t i) {
  const ir_node *n = &g->nodes[i];
  const ir_tensor *a = &g->tensors[n->in[0]], *b = &g->tensors[n->in[1]];
  switch (n->op) {
  case IR_EMBED:
    if (a->kind != IR_WEIGHT || b->type != DT_U32) return bad(g, i, "wants a table and ids");
    break;
  case IR_RMSNORM:
  case IR_BIAS:
    if (b->rows != 1 || b->cols != a->cols) return bad(g, i, "its vector has another length");
    if (b->type != DT_F32) return bad(g, i, "its vector must be f32");
    break;
  case IR_MATMUL:
    if (a->kind != IR_WEIGHT || a->cols != b->cols)
      return bad(g, i, "columns of weight and input differ");
    break;
  case IR_ROPE:
    if (b->kind != IR_TABLE || !n->a[0] || a->cols % n->a[0] || g->rope.rot > a->cols / n->a[0] ||
        g->rope.rot % 2)
      return bad(g, i, "heads or table do not fit");
    break;
  case IR_KV_APPEND:
    if (b->kind != IR_STATE || a->cols != b->cols) return bad(g, i, "cache has another width");
    break;
  case IR_ATTENTION: {
    const ir_tensor *v = &g->tensors[n->in[2]];
    if (b->kind != IR_STATE || v->kind != IR_STATE || b->cols != v->cols)
      return bad(g, i, "caches differ");
    if (!n->a[0] || !n->a[1] || n->a[0] % n->a[1] || a->cols % n->a[0] ||
        a->cols / n->a[0] != b->cols / n->a[1])
      return bad(g, i, "head counts do not fit");
    break;
  }
  case IR_ADD:
  case IR_SILU_MUL:
    if (a->rows != b->rows || a->cols != b->cols) return bad(g, i, "operands differ in shape");
    break;
  default: break;
  }
  return ERR_NONE;
}

err ir_check(const ir_graph *g) {
  if (g->failed) return err_set(ERR_NOMEM, "%s: out of memory while building the graph", g->name);
  err e = ERR_NONE;
  bool *made = mem_zalloc(g->n_tensors + 1, sizeof *made);
  if (!made) return mem_err("graph check", g->n_tensors);
  for (uint32_t i = 0; i < g->n_tensors; i++) made[i] = g->tensors[i].kind != IR_VALUE;
  for (uint32_t i = 0; i < g->n_nodes; i++) {
    const ir_node *n = &g->nodes[i];
    for (uint32_t j = 0; j < ops[n->op].n_in; j++) {
      if (n->in[j] >= g->n_tensors || !made[n->in[j]]) {
        e = err_set(ERR_FORMAT, "%s: node %u (%s): input %u is not made before it", g->name, i,
                    ops[n->op].name, j);
        goto done;
      }
    }
    TRY(check_shapes(g, i));
    if (n->out != IR_NONE) made[n->out] = true;
  }
  if (g->hidden >= g->n_tensors || g->logits >= g->n_tensors || !made[g->logits] ||
      g->body_end > g->n_nodes)
    e = err_set(ERR_FORMAT, "%s: the graph has no logits", g->name);
done:
  mem_free(made);
  return e;
}

/* ---- text ---- */

static void print_shape(const ir_tensor *t, buf *out) {
  if (t->rows == IR_M) buf_puts(out, "[M");
  else if (t->rows == IR_CTX) buf_puts(out, "[CTX");
  else buf_printf(out, "[%u", t->rows);
  buf_printf(out, ", %u] %s", t->cols, dtype_get(t->type)->name);
}

void ir_print(const ir_graph *g, buf *out) {
  static const char *const kinds[] = {"weight", "input", "state", "table", "value"};
  for (uint32_t i = 0; i < g->n_tensors; i++) {
    const ir_tensor *t = &g->tensors[i];
    if (t->kind == IR_VALUE) continue;
    buf_printf(out, "%s %s ", kinds[t->kind], t->name);
    print_shape(t, out);
    buf_putc(out, '\n');
  }
  for (uint32_t i = 0; i < g->n_nodes; i++) {
    const ir_node *n = &g->nodes[i];
    if (i == g->body_end) buf_puts(out, "# logits\n");
    if (n->out != IR_NONE) {
      buf_printf(out, "%s ", g->tensors[n->out].name);
      print_shape(&g->tensors[n->out], out);
      buf_puts(out, " = ");
    }
    buf_puts(out, ops[n->op].name);
    for (uint32_t j = 0; j < ops[n->op].n_in; j++)
      buf_printf(out, "%s%s", j ? ", " : "(", g->tensors[n->in[j]].name);
    if (n->a[0]) buf_printf(out, "; %u, %u", n->a[0], n->a[1]);
    if (n->f != 0) buf_printf(out, "; %g", (double)n->f);
    buf_puts(out, ")\n");
  }
}

void ir_rope_row(const ir_rope *r, uint32_t pos, float *cs) {
  for (uint32_t i = 0; i < r->rot / 2; i++) {
    double angle = (double)pos * r->freq[i];
    cs[2 * i] = (float)(cos(angle) * r->mscale);
    cs[2 * i + 1] = (float)(sin(angle) * r->mscale);
  }
}

uint32_t ir_rows(uint32_t rows, uint32_t m, uint32_t ctx) {
  return rows == IR_M ? m : rows == IR_CTX ? ctx : rows;
}

void ir_free(ir_graph *g) {
  arena_free(&g->mem);
  *g = (ir_graph){0};
}

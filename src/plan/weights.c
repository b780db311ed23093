/* Decides the device buffers of weights: stacks of siblings, splits by the binding limit. */
#include "base/math.h"
#include "kernels/pack.h"
#include "plan/plan.h"

#include <string.h>

typedef struct wbuild {
  const ir_graph *g;
  const hw_caps *caps;
  plan_weights *w;
  uint32_t *first, *count; /* [n_tensors] parts of each, by index in `parts` in order of making */
} wbuild;

static bool is_vector(const ir_tensor *t) { return t->rows == 1 && t->type == DT_F32; }

static uint64_t bytes_of(const wbuild *b, dtype t, uint32_t cols, uint32_t rows) {
  return b->caps->native_weights ? dtype_row_bytes(t, cols) * rows : pack_bytes(t, cols, rows);
}

static uint32_t add_stack(wbuild *b, const ir_tensor *t, uint32_t rows, const char *label) {
  plan_stack *s = &b->w->stacks[b->w->n_stacks];
  *s = (plan_stack){
      .label = label, .type = t->type, .cols = t->cols, .rows = rows, .vector = is_vector(t)};
  s->bytes = s->vector ? 4ull * t->cols : bytes_of(b, t->type, t->cols, rows);
  return b->w->n_stacks++;
}

static void add_part(wbuild *b, ir_id t, uint32_t stack, uint32_t row0, uint32_t first,
                     uint32_t rows) {
  if (!b->count[t]) b->first[t] = b->w->n_parts;
  b->count[t]++;
  b->w->parts[b->w->n_parts++] = (plan_part){t, stack, row0, first, rows};
}

static uint64_t limit_of(const hw_caps *c) { return min_u64(c->max_binding, c->max_buffer); }

/* Rows a part: what fits a binding, in even shares of multiples of 64 rows (check_widths has seen
 * that 64 fit; bytes grow at least in proportion to rows). */
static uint32_t rows_a_part(const wbuild *b, const ir_tensor *t) {
  uint64_t limit = limit_of(b->caps);
  if (is_vector(t) || bytes_of(b, t->type, t->cols, t->rows) <= limit) return t->rows;
  uint64_t fit = max_u64(1, limit / bytes_of(b, t->type, t->cols, 64)) * 64;
  uint32_t n = (uint32_t)div_up(t->rows, fit);
  return (uint32_t)round_up(div_up32(t->rows, n), 64);
}

static err add_split(wbuild *b, ir_id id) {
  const ir_tensor *t = &b->g->tensors[id];
  uint32_t rows = rows_a_part(b, t), n = div_up32(t->rows, rows);
  for (uint32_t i = 0; i < n; i++) {
    uint32_t first = i * rows, here = min_u32(rows, t->rows - first);
    const char *label =
        n == 1 ? t->name
               : arena_printf(&b->w->mem, "%s rows %u..%u", t->name, first, first + here - 1);
    if (!label) return mem_err(t->name, 64);
    add_part(b, id, add_stack(b, t, here, label), 0, first, here);
  }
  return ERR_NONE;
}

/* The run of matmuls from node i that read the same input with weights of one type: q k v, gate up.
 */
static uint32_t siblings(const ir_graph *g, uint32_t i, ir_id *out, uint32_t max) {
  const ir_node *a = &g->nodes[i];
  uint32_t n = 0;
  for (; i < g->n_nodes && n < max && g->nodes[i].op == IR_MATMUL && g->nodes[i].in[1] == a->in[1];
       i++) {
    const ir_tensor *t = &g->tensors[g->nodes[i].in[0]], *t0 = &g->tensors[a->in[0]];
    if (t->type != t0->type || t->cols != t0->cols) break;
    out[n++] = g->nodes[i].in[0];
  }
  return n;
}

static err add_siblings(wbuild *b, const ir_id *ids, uint32_t n) {
  uint64_t rows = 0;
  for (uint32_t i = 0; i < n; i++) rows += b->g->tensors[ids[i]].rows;
  const ir_tensor *t = &b->g->tensors[ids[0]];
  bool taken = false;
  for (uint32_t i = 0; i < n; i++) taken = taken || b->count[ids[i]];
  if (taken || n < 2 || rows > UINT32_MAX ||
      bytes_of(b, t->type, t->cols, (uint32_t)rows) > limit_of(b->caps))
    return ERR_NONE; /* each on its own, later */
  const char *label = arena_printf(&b->w->mem, "%s +%u", t->name, n - 1);
  if (!label) return mem_err(t->name, 64);
  uint32_t stack = add_stack(b, t, (uint32_t)rows, label), row0 = 0;
  for (uint32_t i = 0; i < n; i++) {
    uint32_t here = b->g->tensors[ids[i]].rows;
    add_part(b, ids[i], stack, row0, 0, here);
    row0 += here;
  }
  return ERR_NONE;
}

static err place_all(wbuild *b) {
  const ir_graph *g = b->g;
  err e = ERR_NONE;
  for (uint32_t i = 0; !b->caps->native_weights && i < g->n_nodes; i++) {
    ir_id ids[4];
    if (g->nodes[i].op != IR_MATMUL) continue;
    uint32_t n = siblings(g, i, ids, 4);
    e = add_siblings(b, ids, n);
    if (e) return e;
    i += n - 1;
  }
  for (ir_id t = 0; t < g->n_tensors; t++) {
    if (g->tensors[t].kind != IR_WEIGHT || b->count[t]) continue;
    e = add_split(b, t);
    if (e) return e;
  }
  return ERR_NONE;
}

/* Upper bound on parts: how small the limit may be pretended. */
static uint64_t count_parts(const ir_graph *g, const hw_caps *caps) {
  uint64_t n = 0;
  for (uint32_t i = 0; i < g->n_tensors; i++) {
    const ir_tensor *t = &g->tensors[i];
    if (t->kind != IR_WEIGHT) continue;
    n += 2 + 2 * (4ull * t->rows * t->cols / max_u64(1, limit_of(caps)));
  }
  return n;
}

static err check_widths(const ir_graph *g, const hw_caps *caps) {
  wbuild b = {.g = g, .caps = caps};
  for (uint32_t i = 0; i < g->n_tensors; i++) {
    const ir_tensor *t = &g->tensors[i];
    if (t->kind != IR_WEIGHT || is_vector(t)) continue;
    if (!caps->native_weights && t->cols % 32)
      return err_set(ERR_UNSUPPORTED, "%s: tensor '%s' has %u columns; GPUs need a multiple of 32",
                     g->name, t->name, t->cols);
    if (bytes_of(&b, t->type, t->cols, 64) > limit_of(caps))
      return err_set(ERR_LIMIT,
                     "%s: 64 rows of tensor '%s' are over this device's binding limit of %llu",
                     g->name, t->name, (unsigned long long)limit_of(caps));
  }
  return ERR_NONE;
}

/* Parts in the order of tensors, so that first_part[] can index them. */
static err sort_parts(wbuild *b) {
  plan_weights *w = b->w;
  plan_part *sorted = arena_alloc(&w->mem, w->n_parts + 1, sizeof *sorted);
  if (!sorted) return mem_err("weights", w->n_parts);
  uint32_t n = 0;
  for (ir_id t = 0; t < b->g->n_tensors; t++) {
    w->first_part[t] = n;
    for (uint32_t i = 0; i < b->count[t]; i++) sorted[n++] = w->parts[b->first[t] + i];
  }
  w->first_part[b->g->n_tensors] = n;
  w->parts = sorted;
  return ERR_NONE;
}

err plan_weights_new(const ir_graph *g, const hw_caps *caps, plan_weights **out) {
  *out = NULL;
  err e = check_widths(g, caps);
  if (e) return e;
  wbuild b = {.g = g, .caps = caps, .w = mem_zalloc(1, sizeof *b.w)};
  if (!b.w) return mem_err("weights", sizeof *b.w);
  size_t max = (size_t)min_u64(count_parts(g, caps), SIZE_MAX);
  b.w->stacks = arena_alloc(&b.w->mem, max, sizeof *b.w->stacks);
  b.w->parts = arena_alloc(&b.w->mem, max, sizeof *b.w->parts);
  b.w->first_part = arena_alloc(&b.w->mem, g->n_tensors + 1, sizeof *b.w->first_part);
  b.first = mem_zalloc(g->n_tensors, sizeof *b.first);
  b.count = mem_zalloc(g->n_tensors, sizeof *b.count);
  if (!b.w->stacks || !b.w->parts || !b.w->first_part || !b.first || !b.count) {
    e = mem_err("weights", max * sizeof(plan_part));
    goto done;
  }
  TRY(place_all(&b));
  TRY(sort_parts(&b));
done:
  mem_free(b.first);
  mem_free(b.count);
  if (e) plan_weights_free(b.w);
  else *out = b.w;
  return e;
}

void plan_weights_free(plan_weights *w) {
  if (!w) return;
  arena_free(&w->mem);
  mem_free(w);
}

uint64_t plan_weights_bytes(const plan_weights *w) {
  uint64_t n = 0;
  for (uint32_t i = 0; i < w->n_stacks; i++) n += w->stacks[i].bytes;
  return n;
}

uint64_t plan_state_bytes(const ir_graph *g, uint32_t ctx, dtype kv) {
  uint64_t n = 0;
  for (uint32_t i = 0; i < g->n_tensors; i++) {
    const ir_tensor *t = &g->tensors[i];
    if (t->kind == IR_STATE) n += (uint64_t)ctx * t->cols * (kv == DT_F16 ? 2 : 4);
    if (t->kind == IR_TABLE) n += (uint64_t)ctx * t->cols * 4;
  }
  return n;
}

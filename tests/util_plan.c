/* Owns the symbolic run of plans. */
#include "util_plan.h"

#include <stdlib.h>

#include "base/math.h"
#include "test.h"

enum { MAX_PIECES = 16 };

/* Columns [at, at + n) hold columns [src, src + n) of the value h. */
typedef struct piece {
  uint32_t at, n, src;
  uint64_t h;
} piece;
typedef struct content {
  piece p[MAX_PIECES];
  uint32_t n;
} content;

typedef struct machine {
  const ir_graph *g;
  const plan_weights *w;
  const plan *p;
  const plan_step *at;
  content slots[64], hidden, logits;
  content *states; /* [n_tensors] */
  char why[400];   /* the first thing wrong */
} machine;

static void fail(machine *m, const char *why) {
  char label[HW_LABEL * 2] = "";
  if (m->why[0]) return;
  if (m->at) kernel_label(&m->at->spec, label, sizeof label);
  snprintf(m->why, sizeof m->why, "%s %s: %s", m->at ? m->at->label : "the end", label, why);
}

/* ---- values ---- */

static uint64_t mix(uint64_t h, uint64_t x) {
  h = (h ^ x) * 0x9E3779B97F4A7C15ull;
  return h ^ h >> 29;
}
static uint64_t value(ir_op op, uint64_t a, uint64_t b, uint64_t c) {
  return mix(mix(mix(mix(1469598103934665603ull, op), a), b), c);
}
static uint64_t leaf(ir_id t) { return mix(77, t); }
static uint64_t norm(uint64_t x, ir_id g, float eps) {
  return value(IR_RMSNORM, x, leaf(g), f32_bits(eps));
}
static uint64_t matmul(ir_id w, uint64_t x) { return value(IR_MATMUL, leaf(w), x, 0); }
static uint64_t rope(uint64_t x, uint32_t heads, uint32_t neox) {
  return value(IR_ROPE, x, heads, neox);
}
static uint64_t append(uint64_t x) { return value(IR_KV_APPEND, x, 0, 0); }
static uint64_t attention(uint64_t q, uint64_t k, uint64_t v, uint32_t h, uint32_t g, float scale) {
  return value(IR_ATTENTION, mix(q, f32_bits(scale)), mix(k, h), mix(v, g));
}
static const uint64_t hidden_symbol = 4711;

/* The value of each tensor after nodes [begin, end). */
static void graph_values(const ir_graph *g, uint32_t begin, uint32_t end, bool last, uint64_t *h) {
  for (ir_id t = 0; t < g->n_tensors; t++) h[t] = leaf(t);
  if (begin) h[g->hidden] = hidden_symbol;
  for (uint32_t i = begin; i < end; i++) {
    const ir_node *n = &g->nodes[i];
    uint64_t a = h[n->in[0]], b = h[n->in[1]], y;
    switch (n->op) {
    case IR_RMSNORM: y = norm(a, n->in[1], n->f); break;
    case IR_ROPE: y = rope(a, n->a[0], n->a[1]); break;
    case IR_KV_APPEND: h[n->in[1]] = append(a); continue;
    case IR_ATTENTION: y = attention(a, b, h[n->in[2]], n->a[0], n->a[1], n->f); break;
    case IR_LAST_ROW: y = last ? value(IR_LAST_ROW, a, 0, 0) : a; break;
    case IR_EMBED: y = value(IR_EMBED, a, 0, 0); break;
    default: y = value(n->op, a, b, 0); break;
    }
    h[n->out] = y;
  }
}

/* ---- buffers ---- */

static content *buffer(machine *m, uint32_t i) {
  plan_ref r = m->at->bind[i];
  switch (r.kind) {
  case PLAN_REF_SLOT:
    if (r.index >= m->p->n_slots) fail(m, "no such slot");
    return &m->slots[r.index % 64];
  case PLAN_REF_HIDDEN: return &m->hidden;
  case PLAN_REF_LOGITS: return &m->logits;
  case PLAN_REF_STATE: return &m->states[r.index];
  default: fail(m, "an operand of the wrong kind"); return &m->slots[0];
  }
}

static void add(machine *m, content *c, piece p) {
  if (!p.n) return;
  if (c->n == MAX_PIECES) {
    fail(m, "too many pieces");
    return;
  }
  c->p[c->n++] = p;
}

/* Overwrites columns; what was there outside them stays. */
static void put(machine *m, content *c, piece p) {
  content old = *c;
  c->n = 0;
  for (uint32_t i = 0; i < old.n; i++) {
    piece a = old.p[i];
    uint32_t end = a.at + a.n, to = p.at + p.n;
    if (a.at < p.at) add(m, c, (piece){a.at, min_u32(end, p.at) - a.at, a.src, a.h});
    if (end > to) {
      uint32_t from = max_u32(a.at, to);
      add(m, c, (piece){from, end - from, a.src + (from - a.at), a.h});
    }
  }
  add(m, c, p);
}

/* The same into binding `bind` of the step, which must have room. */
static void write(machine *m, uint32_t bind, piece p) {
  plan_ref r = m->at->bind[bind];
  uint64_t rows = m->p->opts.part == PLAN_HEAD ? 1 : m->p->opts.m;
  put(m, buffer(m, bind), p);
  if (r.kind == PLAN_REF_SLOT && r.index < m->p->n_slots &&
      4 * rows * (p.at + p.n) > m->p->slots[r.index])
    fail(m, "writes beyond its slot");
}

/* The value that columns [at, at + n) hold from its first column on; fails when they hold less, or
 * more than one. */
static uint64_t get(machine *m, const content *c, uint32_t at, uint32_t n) {
  uint64_t h = 0;
  uint32_t have = 0;
  for (bool more = true; more && have < n;) {
    more = false;
    for (uint32_t i = 0; i < c->n; i++) {
      piece p = c->p[i];
      if (at + have < p.at || at + have >= p.at + p.n || (have && p.h != h)) continue;
      uint32_t skip = at + have - p.at;
      if (p.src + skip != have) continue;
      h = p.h;
      have = min_u32(n, have + p.n - skip);
      more = true;
    }
  }
  if (have < n) fail(m, "reads what no step wrote, or another value");
  return h;
}

static uint64_t read_all(machine *m, uint32_t bind, uint32_t n) {
  return get(m, buffer(m, bind), 0, n);
}
static void write_all(machine *m, uint32_t bind, uint32_t n, uint64_t h) {
  write(m, bind, (piece){0, n, 0, h});
}

/* A norm or bias: a stack of one vector. */
static ir_id vector(machine *m, uint32_t bind, uint32_t n) {
  plan_ref r = m->at->bind[bind];
  for (uint32_t i = 0; i < m->w->n_parts; i++) {
    const plan_part *p = &m->w->parts[i];
    if (r.kind == PLAN_REF_STACK && p->stack == r.index && m->w->stacks[r.index].vector &&
        m->g->tensors[p->weight].cols == n)
      return p->weight;
  }
  fail(m, "no such vector");
  return 0;
}

typedef struct rows { /* a run of one weight's rows at virtual row `at` */
  ir_id weight;
  uint32_t at, first, n;
} rows;

/* The weights behind rows [row0, row0 + n) of the stack bound at 0. */
static uint32_t rows_of(machine *m, uint32_t row0, uint32_t n, uint32_t ntot, uint32_t k,
                        rows out[4]) {
  plan_ref r = m->at->bind[0];
  uint32_t count = 0, covered = 0;
  if (r.kind != PLAN_REF_STACK) {
    fail(m, "binding 0 is no weight");
    return 0;
  }
  const plan_stack *s = &m->w->stacks[r.index];
  if (s->rows != ntot || s->cols != k || s->type != m->at->spec.type[0])
    fail(m, "another stack than the spec says");
  for (uint32_t i = 0; i < m->w->n_parts; i++) {
    const plan_part *p = &m->w->parts[i];
    uint32_t from = max_u32(p->row0, row0), to = min_u32(p->row0 + p->rows, row0 + n);
    if (p->stack != r.index || from >= to || count == 4) continue;
    out[count++] = (rows){p->weight, from - row0, p->first + (from - p->row0), to - from};
    covered += to - from;
  }
  if (covered != n) fail(m, "rows beyond its stack");
  return count;
}

/* y[:, y0 ..] = rows of weights times x */
static void product(machine *m, uint32_t y, const uint32_t n_row0_ntot[3], uint32_t k,
                    const uint32_t yn_y0[2], uint64_t x) {
  rows r[4];
  uint32_t n = rows_of(m, n_row0_ntot[1], n_row0_ntot[0], n_row0_ntot[2], k, r);
  for (uint32_t i = 0; i < n; i++)
    write(m, y, (piece){yn_y0[1] + r[i].at, r[i].n, r[i].first, matmul(r[i].weight, x)});
  if (n_row0_ntot[0] + yn_y0[1] > yn_y0[0]) fail(m, "more columns than YN");
}

/* ---- kernels ---- */

static void embed(machine *m, const uint32_t *d) {
  rows r[4];
  content *y = buffer(m, 2);
  if (m->at->bind[1].kind != PLAN_REF_IDS) fail(m, "ids are bound elsewhere");
  if (rows_of(m, 0, d[1], d[1], d[0], r) != 1 || r[0].first != d[3])
    fail(m, "another range of the table than R0 says");
  /* One part after the other: the value is there when the last row of the table was. */
  uint64_t done = value(IR_EMBED, leaf(r[0].weight), 0, 0), part = mix(done, d[3]);
  if (d[3] && get(m, y, 0, d[0]) != part) fail(m, "a part of the table is left out");
  uint32_t next = d[3] + d[1];
  bool last = next == m->g->tensors[r[0].weight].rows;
  write_all(m, 2, d[0], last ? done : mix(done, next));
}

static void qkv(machine *m, const uint32_t *d) {
  rows r[4];
  uint64_t h = norm(read_all(m, 1, d[1]), vector(m, 2, d[1]), m->at->spec.f[0]);
  uint32_t n = rows_of(m, d[2], d[0], d[3], d[1], r), nq = d[5], nk = d[6];
  if (m->at->bind[3].kind != PLAN_REF_TABLE) fail(m, "no rope table");
  for (uint32_t i = 0; i < n; i++) {
    uint32_t at = d[4] + r[i].at, part = at < nq ? 0 : at < nq + nk ? 1 : 2;
    uint32_t base = part == 0 ? 0 : part == 1 ? nq : nq + nk;
    uint64_t y = matmul(r[i].weight, h);
    if (at + r[i].n > base + (part ? nk : nq)) fail(m, "a weight lies across q, k and v");
    if (part < 2) y = rope(y, (part ? nk : nq) / d[7], d[9]);
    write(m, 4 + part, (piece){at - base, r[i].n, r[i].first, part ? append(y) : y});
  }
}

static void attend(machine *m, const uint32_t *d, uint32_t out, uint32_t n, uint64_t tag) {
  uint32_t kv = d[1] * d[2];
  uint64_t y = attention(read_all(m, 0, d[0] * d[2]), read_all(m, 1, kv), read_all(m, 2, kv), d[0],
                         d[1], m->at->spec.f[0]);
  write_all(m, out, n, tag ? mix(y, tag) : y);
}

static void rope_append(machine *m, const uint32_t *d) {
  const content *x = buffer(m, 0);
  uint32_t nq = d[0] * d[2], nk = d[1] * d[2];
  write_all(m, 2, nq, rope(get(m, x, 0, nq), d[0], d[4]));
  write_all(m, 3, nk, append(rope(get(m, x, nq, nk), d[1], d[4])));
  write_all(m, 4, nk, append(get(m, x, nq + nk, nk)));
}

/* Combining undoes the splitting: what the splits hold is remembered by number of splits. */
static void combine(machine *m, const uint32_t *d) {
  const plan_step *split = m->at - 1;
  if (split < m->p->steps || split->spec.op != KERNEL_ATTN_SPLIT) {
    fail(m, "no split before it");
    return;
  }
  uint64_t got = read_all(m, 0, d[0] * d[2] * (d[1] + 2));
  const plan_step *self = m->at;
  m->at = split;
  content keep = *buffer(m, 3);
  attend(m, split->spec.dim, 3, d[0] * d[2] * (d[1] + 2), 0);
  uint64_t whole = read_all(m, 3, d[0] * d[2] * (d[1] + 2));
  *buffer(m, 3) = keep;
  m->at = self;
  if (got != mix(whole, d[2])) fail(m, "the splits of another attention");
  write_all(m, 1, d[0] * d[1], whole);
}

static void ffn(machine *m, const uint32_t *d) {
  rows r[4];
  uint64_t h = norm(read_all(m, 1, d[1]), vector(m, 2, d[1]), m->at->spec.f[0]);
  if (rows_of(m, 0, 2 * d[0], 2 * d[0], d[1], r) != 2 || r[1].at != d[0] || r[0].first ||
      r[1].first)
    fail(m, "not gate and up");
  write_all(m, 3, d[0], value(IR_SILU_MUL, matmul(r[0].weight, h), matmul(r[1].weight, h), 0));
}

static void with_residual(machine *m, const uint32_t *d, uint32_t row0) {
  rows r[4];
  if (rows_of(m, d[row0], d[0], d[row0 + 1], d[1], r) != 1 || r[0].first ||
      m->g->tensors[r[0].weight].rows != d[0])
    fail(m, "not one whole weight");
  write_all(m, 3, d[0],
            value(IR_ADD, matmul(r[0].weight, read_all(m, 1, d[1])), read_all(m, 2, d[0]), 0));
}

static void pair(machine *m, const uint32_t *d) {
  const content *x = buffer(m, 0);
  write_all(m, 1, d[0], value(IR_SILU_MUL, get(m, x, 0, d[0]), get(m, x, d[0], d[0]), 0));
}

static void run_step(machine *m) {
  const kernel_spec *s = &m->at->spec;
  const uint32_t *d = s->dim;
  switch (s->op) {
  case KERNEL_EMBED: embed(m, d); break;
  case KERNEL_RMSNORM:
    write_all(m, 2, d[0], norm(read_all(m, 0, d[0]), vector(m, 1, d[0]), s->f[0]));
    break;
  case KERNEL_MATVEC:
    product(m, 2, (uint32_t[]){d[0], d[2], d[3]}, d[1], d + 4, read_all(m, 1, d[1]));
    break;
  case KERNEL_MATMUL:
    product(m, 2, (uint32_t[]){d[0], d[3], d[4]}, d[1], d + 5, read_all(m, 1, d[1]));
    break;
  case KERNEL_NORM_MV:
    product(m, 3, (uint32_t[]){d[0], d[2], d[3]}, d[1], d + 4,
            norm(read_all(m, 1, d[1]), vector(m, 2, d[1]), s->f[0]));
    break;
  case KERNEL_BIAS:
    write_all(m, 2, d[0], value(IR_BIAS, read_all(m, 0, d[0]), leaf(vector(m, 1, d[0])), 0));
    break;
  case KERNEL_ROPE:
    write_all(m, 2, d[0] * d[1], rope(read_all(m, 0, d[0] * d[1]), d[0], d[3]));
    break;
  case KERNEL_KV_APPEND: write_all(m, 1, d[0], append(read_all(m, 0, d[0]))); break;
  case KERNEL_ADD:
  case KERNEL_SILU_MUL:
    write_all(m, 2, d[0],
              value(s->op == KERNEL_ADD ? IR_ADD : IR_SILU_MUL, read_all(m, 0, d[0]),
                    read_all(m, 1, d[0]), 0));
    break;
  case KERNEL_LAST_ROW:
    write_all(m, 1, d[0], value(IR_LAST_ROW, read_all(m, 0, d[0]), 0, 0));
    break;
  case KERNEL_ATTENTION:
  case KERNEL_ATTN_FLASH: attend(m, d, 3, d[0] * d[2], 0); break;
  case KERNEL_ATTN_SPLIT: attend(m, d, 3, d[0] * d[3] * (d[2] + 2), d[3]); break;
  case KERNEL_ATTN_COMBINE: combine(m, d); break;
  case KERNEL_QKV_MV: qkv(m, d); break;
  case KERNEL_ROPE_APPEND: rope_append(m, d); break;
  case KERNEL_FFN_MV: ffn(m, d); break;
  case KERNEL_MATVEC_RES: with_residual(m, d, 2); break;
  case KERNEL_MATMUL_RES: with_residual(m, d, 3); break;
  case KERNEL_SILU_MUL_PAIR: pair(m, d); break;
  default: fail(m, "a kernel that the check does not know"); break;
  }
}

/* No buffer is bound twice where one binding writes. */
static void check_bindings(machine *m) {
  bool writes[HW_MAX_BINDINGS] = {0};
  uint32_t n = 0;
  for (const char *p = kernel_get(m->at->spec.op)->binds; *p; p += *p == ' ') {
    size_t len = strcspn(p, " ");
    if (n < HW_MAX_BINDINGS) writes[n++] = p[len - 1] == 'w';
    p += len;
  }
  if (n != m->at->n_bind) fail(m, "bindings are missing");
  if (m->at->bind[n - 1].kind != PLAN_REF_STEP) fail(m, "its last binding is not the step");
  for (uint32_t i = 0; i < n; i++) {
    for (uint32_t j = 0; j < i; j++) {
      plan_ref a = m->at->bind[i], b = m->at->bind[j];
      if ((writes[i] || writes[j]) && a.kind == b.kind && a.index == b.index)
        fail(m, "one buffer is bound twice and written");
    }
  }
}

const char *tp_verify(const ir_graph *g, const plan_weights *w, const plan *p) {
  static machine m;
  m = (machine){.g = g, .w = w, .p = p};
  bool body = p->opts.part == PLAN_BODY, last = p->opts.part == PLAN_HEAD && p->opts.m > 1;
  uint64_t *want = calloc(g->n_tensors, sizeof *want);
  m.states = calloc(g->n_tensors, sizeof *m.states);
  if (!want || !m.states) {
    fail(&m, "out of memory");
    goto done;
  }
  graph_values(g, body ? 0 : g->body_end, body ? g->body_end : g->n_nodes, last, want);
  uint32_t width = g->tensors[g->hidden].cols, vocab = g->tensors[g->logits].cols;
  if (!body) put(&m, &m.hidden, (piece){0, width, 0, hidden_symbol});
  for (uint32_t i = 0; i < p->n_steps && !m.why[0]; i++) {
    m.at = &p->steps[i];
    check_bindings(&m);
    run_step(&m);
  }
  m.at = NULL;
  if (m.why[0]) goto done;
  if (body && get(&m, &m.hidden, 0, width) != want[g->hidden]) fail(&m, "another hidden state");
  if (!body && get(&m, &m.logits, 0, vocab) != want[g->logits]) fail(&m, "other logits");
  for (ir_id t = 0; body && t < g->n_tensors; t++) {
    if (g->tensors[t].kind == IR_STATE && get(&m, &m.states[t], 0, g->tensors[t].cols) != want[t])
      fail(&m, "another KV cache");
  }
done:
  free(want);
  free(m.states);
  return m.why[0] ? m.why : NULL;
}

void tp_verify_weights(const ir_graph *g, const plan_weights *w, const hw_caps *c) {
  for (ir_id t = 0; t < g->n_tensors; t++) {
    if (g->tensors[t].kind != IR_WEIGHT) continue;
    uint32_t next = 0;
    for (uint32_t i = w->first_part[t]; i < w->first_part[t + 1]; i++) {
      const plan_part *p = &w->parts[i];
      CHECK(p->weight == t && p->first == next && p->rows);
      CHECK(w->stacks[p->stack].type == g->tensors[t].type);
      CHECK(w->stacks[p->stack].cols == g->tensors[t].cols);
      next += p->rows;
    }
    CHECK_EQ(next, g->tensors[t].rows);
  }
  CHECK_EQ(w->first_part[g->n_tensors], w->n_parts);
  for (uint32_t s = 0; s < w->n_stacks; s++) {
    uint64_t sum = 0;
    CHECK(w->stacks[s].bytes && w->stacks[s].bytes <= c->max_binding);
    for (uint32_t i = 0; i < w->n_parts; i++) {
      const plan_part *p = &w->parts[i];
      if (p->stack != s) continue;
      sum += p->rows;
      for (uint32_t j = 0; j < i; j++) {
        const plan_part *q = &w->parts[j];
        CHECK(q->stack != s || q->row0 + q->rows <= p->row0 || p->row0 + p->rows <= q->row0);
      }
    }
    CHECK_EQ(sum, w->stacks[s].rows);
  }
}

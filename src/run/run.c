/* Owns the run's plans, the binding of plan references to buffers, and submits. */
#include "run/run.h"

#include <stdio.h>

#include "base/math.h"
#include "run/run_impl.h"

/* ---- plans ---- */

static uint32_t n_vocab(const run *r) { return r->g->tensors[r->g->logits].cols; }

static err add_plan(run *r, uint32_t i, plan_part_kind part, uint32_t m) {
  plan_opts o = {.part = part,
                 .level = r->o.level,
                 .m = m,
                 .ctx = r->o.ctx,
                 .kv = r->o.kv,
                 .rounds = r->o.rounds,
                 .splits = r->o.splits,
                 .off = r->o.off};
  run_program *p = &r->programs[i];
  *p = (run_program){.part = part, .m = m, .used = true};
  err e = plan_new(r->g, r->weights, r->caps, &o, &p->plan);
  if (e) return e;
  if (p->plan->n_slots > RUN_MAX_SLOTS)
    return err_set(ERR_LIMIT, "a plan of %u slots", p->plan->n_slots);
  for (uint32_t s = 0; s < p->plan->n_slots; s++)
    r->slot_bytes[s] = max_u64(r->slot_bytes[s], p->plan->slots[s]);
  return ERR_NONE;
}

/* A cache or an activation that no binding can hold: say which knob is too large. */
static err check_limits(const run *r) {
  const hw_caps *c = r->caps;
  uint64_t limit = min_u64(c->max_binding, c->max_buffer);
  for (uint32_t i = 0; i < r->g->n_tensors; i++) {
    const ir_tensor *t = &r->g->tensors[i];
    uint64_t bytes =
        (uint64_t)r->o.ctx * t->cols * (t->kind == IR_STATE && r->o.kv == DT_F16 ? 2 : 4);
    if ((t->kind == IR_STATE || t->kind == IR_TABLE) && bytes > limit)
      return err_set(
          ERR_LIMIT,
          "%s: '%s' at a context of %u needs %llu bytes, over this device's limit of %llu",
          r->g->name, t->name, r->o.ctx, (unsigned long long)bytes, (unsigned long long)limit);
  }
  for (uint32_t i = 0; i < RUN_MAX_SLOTS; i++) {
    if (r->slot_bytes[i] > limit)
      return err_set(
          ERR_LIMIT,
          "%s: activations at a batch of %u need %llu bytes, over this device's limit of %llu",
          r->g->name, r->o.batch, (unsigned long long)r->slot_bytes[i], (unsigned long long)limit);
  }
  return ERR_NONE;
}

/* All that needs no device but what is known of it: h may be NULL. */
static err plan_all(hw *h, const hw_caps *c, const ir_graph *g, const run_opts *o, run **out) {
  *out = NULL;
  run *r = mem_zalloc(1, sizeof *r);
  if (!r) return mem_err("run", sizeof *r);
  *r = (run){.h = h, .caps = c, .g = g, .o = *o};
  uint64_t row = 4ull * n_vocab(r), limit = min_u64(c->max_binding, 256 << 20);
  r->nll_rows = (uint32_t)max_u64(1, min_u64(o->batch, limit / row));
  err e = ERR_NONE;
  TRY(plan_weights_new(g, c, &r->weights));
  TRY(add_plan(r, 0, PLAN_BODY, 1));
  TRY(add_plan(r, 1, PLAN_BODY, o->batch));
  TRY(add_plan(r, 2, PLAN_HEAD, 1));
  TRY(add_plan(r, 3, PLAN_HEAD, o->batch));
  TRY(add_plan(r, 4, PLAN_GREEDY, 1));
  TRY(add_plan(r, 5, PLAN_SAMPLE, 1));
  if (o->nll) {
    TRY(add_plan(r, 6, PLAN_HEAD_ALL, r->nll_rows));
    TRY(add_plan(r, 7, PLAN_NLL, r->nll_rows));
  }
  TRY(check_limits(r));
  r->stacks = arena_alloc(&r->mem, r->weights->n_stacks, sizeof *r->stacks);
  r->order = arena_alloc(&r->mem, r->weights->n_stacks, sizeof *r->order);
  r->pack_kernel = arena_alloc(&r->mem, r->weights->n_stacks, sizeof *r->pack_kernel);
  r->pack_rows = arena_alloc(&r->mem, r->weights->n_stacks, sizeof *r->pack_rows);
  r->states = arena_alloc(&r->mem, g->n_tensors, sizeof *r->states);
  if (!r->stacks || !r->order || !r->pack_kernel || !r->pack_rows || !r->states)
    e = mem_err("run", g->n_tensors * sizeof(hw_buf));
  for (uint32_t i = 0; i < r->weights->n_parts; i++) {
    const ir_tensor *t = &g->tensors[r->weights->parts[i].weight];
    r->upload_total += t->size / t->rows * r->weights->parts[i].rows;
  }
  if (!e) run_sort(r);
done:
  if (e) run_free(r);
  else *out = r;
  return e;
}

err run_new(hw *h, const ir_graph *g, const run_opts *o, run **out) {
  return plan_all(h, hw_get_caps(h), g, o, out);
}

err run_estimate(const hw_caps *caps, const ir_graph *g, const run_opts *o, run_memory *out) {
  run *r;
  err e = plan_all(NULL, caps, g, o, &r);
  if (e) return e;
  *out = run_need(r);
  run_free(r);
  return ERR_NONE;
}

void run_free(run *r) {
  if (!r) return;
  for (uint32_t i = 0; i < RUN_N_PROGRAMS; i++) {
    hw_program_free(r->h, r->programs[i].program);
    plan_free(r->programs[i].plan);
  }
  hw_program_free(r->h, r->pack_program);
  for (uint32_t i = 0; i < r->n_kernels; i++) hw_kernel_free(r->h, r->kernels[i].kernel);
  for (uint32_t i = 0; r->stacks && i < r->weights->n_stacks; i++) hw_buf_free(r->h, r->stacks[i]);
  for (uint32_t i = 0; r->states && i < r->g->n_tensors; i++) hw_buf_free(r->h, r->states[i]);
  for (uint32_t i = 0; i < RUN_MAX_SLOTS; i++) hw_buf_free(r->h, r->slots[i]);
  hw_buf all[] = {r->table,  r->ids,  r->step, r->hidden, r->logits,
                  r->recent, r->next, r->nll,  r->staging};
  for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) hw_buf_free(r->h, all[i]);
  plan_weights_free(r->weights);
  arena_free(&r->mem);
  mem_free(r);
}

run_memory run_need(const run *r) {
  run_memory m = {.weights = plan_weights_bytes(r->weights),
                  .kv = plan_state_bytes(r->g, r->o.ctx, r->o.kv)};
  for (uint32_t i = 0; i < RUN_MAX_SLOTS; i++) m.work += r->slot_bytes[i];
  m.work += 4ull * r->o.batch * r->g->tensors[r->g->hidden].cols;
  m.work += 4ull * n_vocab(r) * (r->o.nll ? r->nll_rows : 1);
  return m;
}

const plan *run_plan(const run *r, plan_part_kind part, uint32_t m) {
  for (uint32_t i = 0; i < RUN_N_PROGRAMS; i++) {
    const run_program *p = &r->programs[i];
    if (p->used && p->part == part && (p->m == m || part >= PLAN_HEAD_ALL)) return p->plan;
  }
  return NULL;
}

hw *run_device(const run *r) { return r->h; }
const run_opts *run_get_opts(const run *r) { return &r->o; }
uint32_t run_vocab(const run *r) { return n_vocab(r); }

/* ---- recording ---- */

static hw_buf resolve(const run *r, plan_ref ref) {
  switch (ref.kind) {
  case PLAN_REF_STACK: return r->stacks[ref.index];
  case PLAN_REF_SLOT: return r->slots[ref.index];
  case PLAN_REF_STATE: return r->states[ref.index];
  case PLAN_REF_TABLE: return r->table;
  case PLAN_REF_IDS: return r->ids;
  case PLAN_REF_STEP: return r->step;
  case PLAN_REF_HIDDEN: return r->hidden;
  case PLAN_REF_LOGITS: return r->logits;
  case PLAN_REF_RECENT: return r->recent;
  case PLAN_REF_NEXT: return r->next;
  case PLAN_REF_NLL: return r->nll;
  }
  return (hw_buf){0};
}

err run_record(run *r, run_program *p) {
  err e = ERR_NONE;
  hw_step *steps = mem_zalloc(p->plan->n_steps, sizeof *steps);
  arena labels = {0};
  if (!steps) return mem_err("program", p->plan->n_steps * sizeof *steps);
  for (uint32_t i = 0; i < p->plan->n_steps; i++) {
    const plan_step *s = &p->plan->steps[i];
    uint32_t k;
    TRY(run_kernel_get(r, &s->spec, &k));
    kernel_shape shape;
    kernel_get(s->spec.op)->shape(&s->spec, &shape);
    steps[i] = (hw_step){.label = arena_printf(&labels, "%s %s", s->label, r->kernels[k].label),
                         .kernel = r->kernels[k].kernel,
                         .n_bind = s->n_bind,
                         .groups = {shape.groups[0], shape.groups[1], shape.groups[2]}};
    if (!steps[i].label) {
      e = mem_err("program", 64);
      goto done;
    }
    for (uint32_t j = 0; j < s->n_bind; j++) steps[i].bind[j].buf = resolve(r, s->bind[j]);
  }
  static const char *const names[] = {"body",   "head",   "head of all rows",
                                      "greedy", "sample", "nll"};
  char label[64];
  snprintf(label, sizeof label, "%s of %u", names[p->part], p->m);
  e = hw_program_new(r->h, label, steps, p->plan->n_steps, &p->program);
done:
  arena_free(&labels);
  mem_free(steps);
  return e;
}

/* ---- running ---- */

static hw_program program_of(const run *r, plan_part_kind part, uint32_t m) {
  for (uint32_t i = 0; i < RUN_N_PROGRAMS; i++) {
    const run_program *p = &r->programs[i];
    if (p->used && p->part == part && (part >= PLAN_HEAD_ALL || p->m == m)) return p->program;
  }
  return (hw_program){0};
}

err run_submit(run *r, uint32_t what, const step_params *p, run_read read, bool timestamps,
               hw_ticket *t) {
  uint32_t m = what & RUN_BODY_ONE ? 1 : r->o.batch, n = 0;
  hw_submit_desc d = {
      .params = r->step, .params_data = p, .params_size = sizeof *p, .timestamps = timestamps};
  if (p->n_tok > m || p->pos > r->o.ctx || p->n_tok > r->o.ctx - p->pos)
    return err_set(ERR_LIMIT, "%u tokens at position %u do not fit a context of %u", p->n_tok,
                   p->pos, r->o.ctx);
  if (what & (RUN_BODY_ONE | RUN_BODY_BATCH)) d.program[n++] = program_of(r, PLAN_BODY, m);
  if (what & RUN_HEAD) d.program[n++] = program_of(r, PLAN_HEAD, m);
  if (what & RUN_HEAD_ALL) {
    if (!r->o.nll || p->n_tok > r->nll_rows)
      return err_set(ERR_LIMIT, "%u rows of logits, at most %u", p->n_tok,
                     r->o.nll ? r->nll_rows : 0);
    d.program[n++] = program_of(r, PLAN_HEAD_ALL, r->nll_rows);
    d.program[n++] = program_of(r, PLAN_NLL, r->nll_rows);
  }
  if (what & RUN_GREEDY) d.program[n++] = program_of(r, PLAN_GREEDY, 1);
  if (what & RUN_SAMPLE) d.program[n++] = program_of(r, PLAN_SAMPLE, 1);
  if (read == RUN_READ_ID) {
    d.read = r->ids;
    d.read_size = 4;
  } else if (read == RUN_READ_NLL) {
    d.read = r->nll;
    d.read_size = 4 * p->n_tok;
  }
  return hw_submit(r->h, &d, t);
}

uint32_t run_nll_rows(const run *r) { return r->nll_rows; }

err run_write_ids(run *r, const uint32_t *ids, uint32_t n) {
  return hw_buf_write(r->h, r->ids, 0, ids, 4ull * n);
}

err run_write_next(run *r, const uint32_t *ids, uint32_t n) {
  return hw_buf_write(r->h, r->next, 0, ids, 4ull * n);
}

err run_write_recent(run *r, const uint32_t ring[PLAN_RING]) {
  return hw_buf_write(r->h, r->recent, 0, ring, 4ull * PLAN_RING);
}

err run_read_logits(run *r, uint32_t first, uint32_t n, hw_ticket *t) {
  hw_submit_desc d = {.read = r->logits, .read_off = 4ull * first, .read_size = 4 * n};
  return hw_submit(r->h, &d, t);
}

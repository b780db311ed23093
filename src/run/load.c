/* Owns loading: buffers, kernels, the upload of weights (file bytes -> staging buffer -> packed
 * stack), the recording of programs, the rope table, a warm-up. One small step a call. */
#include <stdlib.h>
#include <string.h>

#include "base/math.h"
#include "kernels/pack.h"
#include "run/run_impl.h"

enum { STAGING = 4 << 20, TABLE_CHUNK = 1 << 16 };

static uint64_t staging_size(const run *r) {
  return min_u64(STAGING, hw_get_caps(r->h)->max_binding) & ~3ull;
}

static bool is_cpu(const run *r) { return hw_get_caps(r->h)->kind == HW_CPU; }

static err make(run *r, const char *label, uint64_t size, hw_buf_use use, const void *host,
                hw_buf *out) {
  return hw_buf_new(r->h, &(hw_buf_desc){.label = label, .size = size, .use = use, .host = host},
                    out);
}

static err make_buffers(run *r) {
  err e = ERR_NONE;
  const ir_graph *g = r->g;
  uint64_t batch = r->o.batch, vocab = run_vocab(r);
  TRY(make(r, "step", sizeof(step_params), HW_UNIFORM, NULL, &r->step));
  TRY(make(r, "ids", 4 * batch, HW_STORAGE, NULL, &r->ids));
  TRY(make(r, "hidden", 4 * batch * g->tensors[g->hidden].cols, HW_STORAGE, NULL, &r->hidden));
  TRY(make(r, "logits", 4 * vocab * (r->o.nll ? r->nll_rows : 1), HW_STORAGE, NULL, &r->logits));
  TRY(make(r, "recent", 4 * PLAN_RING, HW_STORAGE, NULL, &r->recent));
  TRY(make(r, "next", 4 * batch, HW_STORAGE, NULL, &r->next));
  TRY(make(r, "nll", 4 * batch, HW_STORAGE, NULL, &r->nll));
  TRY(make(r, "rope", 4ull * r->o.ctx * g->rope.rot, HW_STORAGE, NULL, &r->table));
  for (uint32_t i = 0; i < RUN_MAX_SLOTS; i++) {
    char label[16] = "slot ?";
    label[5] = (char)('0' + i % 10);
    if (i > 9)
      memcpy(label, (char[]){'s', 'l', 'o', 't', (char)('0' + i / 10), (char)('0' + i % 10), 0}, 7);
    if (r->slot_bytes[i]) TRY(make(r, label, r->slot_bytes[i], HW_STORAGE, NULL, &r->slots[i]));
  }
  for (uint32_t i = 0; i < g->n_tensors; i++) {
    const ir_tensor *t = &g->tensors[i];
    uint64_t bytes = (uint64_t)r->o.ctx * t->cols * (r->o.kv == DT_F16 ? 2 : 4);
    if (t->kind == IR_STATE) TRY(make(r, t->name, bytes, HW_STORAGE, NULL, &r->states[i]));
  }
  if (!is_cpu(r)) TRY(make(r, "staging", staging_size(r), HW_STORAGE, NULL, &r->staging));
done:
  return e;
}

/* ---- kernels ---- */

err run_kernel_get(run *r, const kernel_spec *s, uint32_t *index) {
  for (uint32_t i = 0; i < r->n_kernels; i++) {
    if (!kernel_spec_equal(&r->kernels[i].spec, s)) continue;
    *index = i;
    return ERR_NONE;
  }
  if (r->n_kernels == RUN_MAX_KERNELS)
    return err_set(ERR_LIMIT, "more than %d kernels", RUN_MAX_KERNELS);
  run_kernel *k = &r->kernels[r->n_kernels];
  char label[HW_LABEL * 2];
  kernel_label(s, label, sizeof label);
  *k = (run_kernel){.spec = *s, .label = arena_strdup(&r->mem, label)};
  if (!k->label) return mem_err(label, sizeof label);
  err e = kernel_new(r->h, s, false, &r->mem, &k->kernel);
  if (e) return e;
  *index = r->n_kernels++;
  return ERR_NONE;
}

static uint64_t file_row_bytes(const plan_stack *s) { return dtype_row_bytes(s->type, s->cols); }

static err make_kernels(run *r) {
  err e = ERR_NONE;
  uint32_t k;
  for (uint32_t i = 0; i < r->weights->n_stacks && !is_cpu(r); i++) {
    const plan_stack *s = &r->weights->stacks[i];
    if (s->vector) continue;
    uint64_t room = staging_size(r);
    uint32_t rows = (uint32_t)min_u64(s->rows, room / file_row_bytes(s));
    if (!rows)
      return err_set(ERR_LIMIT, "%s: a row of '%s' is over %llu bytes", r->g->name, s->label,
                     (unsigned long long)room);
    kernel_spec spec = {.op = KERNEL_PACK, .dim = {s->cols, rows, s->rows}, .type = {s->type}};
    TRY(run_kernel_get(r, &spec, &k));
    r->pack_kernel[i] = k;
    r->pack_rows[i] = rows;
  }
  for (uint32_t i = 0; i < RUN_N_PROGRAMS; i++) {
    const plan *p = r->programs[i].plan;
    for (uint32_t j = 0; p && j < p->n_steps; j++) TRY(run_kernel_get(r, &p->steps[j].spec, &k));
  }
done:
  return e;
}

/* ---- upload ---- */

static const plan_part *part_of_stack(const run *r, uint32_t stack, uint32_t nth) {
  for (uint32_t i = 0; i < r->weights->n_parts; i++) {
    if (r->weights->parts[i].stack == stack && nth-- == 0) return &r->weights->parts[i];
  }
  return NULL;
}

/* Bytes to a buffer whose writes come in multiples of 4. */
static err write_any(run *r, hw_buf b, const uint8_t *data, uint64_t size) {
  uint64_t whole = size & ~3ull;
  err e = hw_buf_write(r->h, b, 0, data, whole);
  if (e || whole == size) return e;
  uint8_t tail[4] = {0};
  memcpy(tail, data + whole, (size_t)(size - whole));
  return hw_buf_write(r->h, b, whole, tail, 4);
}

/* A weight's bytes in memory, or NULL when they must be fetched. */
static const uint8_t *weight_data(const run *r, const plan_part *p, uint32_t row) {
  const ir_tensor *t = &r->g->tensors[p->weight];
  uint64_t off = file_row_bytes(&r->weights->stacks[p->stack]) * ((uint64_t)p->first + row);
  return t->data ? (const uint8_t *)t->data + off : NULL;
}

/* Rows [at_row, at_row + rows) of a part into `dst` at 0; *done when they are there. */
static err bring(run *r, const plan_part *p, uint32_t rows, hw_buf dst, bool *done) {
  const ir_tensor *t = &r->g->tensors[p->weight];
  uint64_t row = file_row_bytes(&r->weights->stacks[p->stack]);
  const uint8_t *data = weight_data(r, p, r->at_row);
  *done = data != NULL;
  if (data) return write_any(r, dst, data, row * rows);
  err e = ERR_NONE;
  if (!r->o.fetch) return err_set(ERR_ARG, "%s: '%s' has no data to load", r->g->name, t->name);
  if (!r->fetching) {
    e = r->o.fetch(r->o.user, t->part, t->file_off + row * ((uint64_t)p->first + r->at_row),
                   row * rows, dst, 0);
    r->fetching = !e;
    return e;
  }
  *done = r->o.fetched(r->o.user, &e);
  if (*done) r->fetching = false;
  return e;
}

static err begin_stack(run *r, uint32_t i) {
  const plan_stack *s = &r->weights->stacks[i];
  const void *host = is_cpu(r) ? weight_data(r, part_of_stack(r, i, 0), 0) : NULL;
  err e = make(r, s->label, s->bytes, HW_STORAGE, host, &r->stacks[i]);
  if (e || is_cpu(r) || s->vector) return e;
  const run_kernel *k = &r->kernels[r->pack_kernel[i]];
  kernel_shape shape;
  kernel_get(KERNEL_PACK)->shape(&k->spec, &shape);
  hw_step step = {.label = k->label,
                  .kernel = k->kernel,
                  .n_bind = 3,
                  .bind = {{.buf = r->staging}, {.buf = r->stacks[i]}, {.buf = r->step}},
                  .groups = {shape.groups[0], shape.groups[1], shape.groups[2]}};
  return hw_program_new(r->h, s->label, &step, 1, &r->pack_program);
}

static int by_place(const void *a, const void *b) {
  const run_order *x = a, *y = b;
  if (x->part != y->part) return x->part < y->part ? -1 : 1;
  return x->off < y->off ? -1 : x->off > y->off;
}

/* Near enough to the file's own order that fetched windows and pages are used up at once. */
void run_sort(run *r) {
  for (uint32_t i = 0; i < r->weights->n_stacks; i++) {
    const ir_tensor *t = &r->g->tensors[part_of_stack(r, i, 0)->weight];
    r->order[i] = (run_order){.off = t->file_off, .part = t->part, .stack = i};
  }
  qsort(r->order, r->weights->n_stacks, sizeof *r->order, by_place);
}

static void next_stack(run *r) {
  hw_program_free(r->h, r->pack_program);
  r->pack_program = (hw_program){0};
  r->at_stack++;
  r->at_part = r->at_row = 0;
}

/* A stack that needs no packing: a vector, or any on the cpu. */
static err upload_direct(run *r, const plan_part *p) {
  const plan_stack *s = &r->weights->stacks[p->stack];
  bool done = true;
  bool in_place = is_cpu(r) && weight_data(r, p, 0);
  err e = in_place ? ERR_NONE : bring(r, p, p->rows, r->stacks[p->stack], &done);
  if (e || !done) return e;
  r->uploaded_bytes += s->bytes;
  if (!in_place && r->o.uploaded) r->o.uploaded(r->o.user, &r->g->tensors[p->weight]);
  next_stack(r);
  return ERR_NONE;
}

/* One chunk of the part at hand through the staging buffer. Writes are ordered with submits, so the
 * buffer can be filled again while the chunk before is being packed. */
static err upload_chunk(run *r, const plan_part *p, hw_ticket *t) {
  uint32_t rows = min_u32(r->pack_rows[p->stack], p->rows - r->at_row);
  bool done;
  err e = bring(r, p, rows, r->staging, &done);
  if (e || !done) return e;
  step_params step = {.pos = p->row0 + r->at_row, .n_tok = rows};
  hw_submit_desc d = {.program = {r->pack_program},
                      .params = r->step,
                      .params_data = &step,
                      .params_size = sizeof step};
  e = hw_submit(r->h, &d, t);
  r->at_row += rows;
  r->uploaded_bytes += file_row_bytes(&r->weights->stacks[p->stack]) * rows;
  if (e || r->at_row < p->rows) return e;
  if (r->o.uploaded) r->o.uploaded(r->o.user, &r->g->tensors[p->weight]);
  r->at_row = 0;
  r->at_part++;
  if (!part_of_stack(r, p->stack, r->at_part)) next_stack(r);
  return ERR_NONE;
}

static err end_upload(run *r) {
  for (int i = 0; i < RUN_UPLOADS; i++) {
    if (!hw_done(r->h, r->uploads[i])) return ERR_NONE;
  }
  hw_buf_free(r->h, r->staging);
  r->staging = (hw_buf){0};
  r->stage = STAGE_COMPILE;
  return hw_error(r->h);
}

/* Packing is ready when its kernel is; at most RUN_UPLOADS chunks are under way. */
static err upload_some(run *r) {
  if (r->at_stack == r->weights->n_stacks) return end_upload(r);
  const uint32_t at = r->order[r->at_stack].stack;
  const plan_stack *s = &r->weights->stacks[at];
  bool direct = is_cpu(r) || s->vector;
  err e = ERR_NONE;
  if (!direct && !hw_kernel_ready(r->h, r->kernels[r->pack_kernel[at]].kernel, &e)) {
    hw_poll(r->h);
    return e;
  }
  if (!e && !r->stacks[at].id) e = begin_stack(r, at);
  if (e) return e;
  const plan_part *p = part_of_stack(r, at, r->at_part);
  if (direct) return upload_direct(r, p);
  for (int i = 0; i < RUN_UPLOADS; i++) {
    if (hw_done(r->h, r->uploads[i])) return upload_chunk(r, p, &r->uploads[i]);
  }
  return ERR_NONE;
}

/* ---- the rest ---- */

static err compile_some(run *r) {
  err e = ERR_NONE;
  hw_poll(r->h);
  while (r->at_kernel < r->n_kernels) {
    if (!hw_kernel_ready(r->h, r->kernels[r->at_kernel].kernel, &e)) return e;
    if (e) return e;
    r->at_kernel++;
  }
  r->stage = STAGE_PROGRAMS;
  return hw_error(r->h);
}

static err record_one(run *r) {
  while (r->at_program < RUN_N_PROGRAMS && !r->programs[r->at_program].used) r->at_program++;
  if (r->at_program == RUN_N_PROGRAMS) {
    r->stage = STAGE_TABLE;
    return ERR_NONE;
  }
  return run_record(r, &r->programs[r->at_program++]);
}

static err fill_table(run *r) {
  uint32_t rot = r->g->rope.rot, rows = max_u32(1, TABLE_CHUNK / (4 * rot));
  rows = min_u32(rows, r->o.ctx - r->at_table);
  float *cs = mem_alloc(4ull * rows * rot);
  if (!cs) return mem_err("rope table", 4ull * rows * rot);
  for (uint32_t i = 0; i < rows; i++)
    ir_rope_row(&r->g->rope, r->at_table + i, cs + (size_t)i * rot);
  err e = hw_buf_write(r->h, r->table, 4ull * r->at_table * rot, cs, 4ull * rows * rot);
  mem_free(cs);
  r->at_table += rows;
  if (r->at_table == r->o.ctx) r->stage = STAGE_WARMUP;
  return e;
}

/* One token through both shapes, so that the driver's own work is done before the first answer. */
static err warm_up(run *r, bool *done) {
  err e = ERR_NONE;
  if (!r->uploads[0].n) {
    step_params p = {.n_tok = 1, .temp = 1, .top_k = 1, .top_p = 1, .penalty = 1};
    TRY(run_submit(r, RUN_BODY_BATCH | RUN_HEAD | RUN_GREEDY, &p, RUN_READ_NONE, false,
                   &r->uploads[0]));
    TRY(run_submit(r, RUN_BODY_ONE | RUN_HEAD | RUN_SAMPLE, &p, RUN_READ_NONE, false,
                   &r->uploads[1]));
  }
  if (!hw_done(r->h, r->uploads[0]) || !hw_done(r->h, r->uploads[1])) return ERR_NONE;
  r->stage = STAGE_READY;
  *done = true;
  e = hw_error(r->h);
done:
  return e;
}

static run_progress progress(const run *r) {
  if (r->stage > STAGE_UPLOAD && r->stage <= STAGE_PROGRAMS)
    return (run_progress){RUN_COMPILE, r->at_kernel, r->n_kernels};
  return (run_progress){r->stage <= STAGE_UPLOAD   ? RUN_UPLOAD
                        : r->stage <= STAGE_WARMUP ? RUN_WARMUP
                                                   : RUN_READY,
                        r->uploaded_bytes, r->upload_total};
}

err run_load(run *r, run_progress *p, bool *done) {
  err e = hw_error(r->h);
  *done = false;
  *p = progress(r);
  if (e) return e;
  switch (r->stage) {
  case STAGE_BUFFERS:
    e = make_buffers(r);
    r->stage = STAGE_KERNELS;
    break;
  case STAGE_KERNELS:
    e = make_kernels(r);
    r->stage = STAGE_UPLOAD;
    break;
  case STAGE_UPLOAD:
    e = upload_some(r);
    if (r->stage != STAGE_UPLOAD) memset(r->uploads, 0, sizeof r->uploads);
    break;
  case STAGE_COMPILE: e = compile_some(r); break;
  case STAGE_PROGRAMS: e = record_one(r); break;
  case STAGE_TABLE: e = fill_table(r); break;
  case STAGE_WARMUP: e = warm_up(r, done); break;
  case STAGE_READY: *done = true; break;
  }
  if (!e) e = hw_error(r->h);
  *p = progress(r);
  return e;
}

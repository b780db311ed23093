#include "util_kernels.h"

#include <stdlib.h>

#include "base/math.h"
#include "kernels/pack.h"
#include "kernels/quant.h"
#include "test.h"
#include "util_hw.h"

const dtype kt_types[] = {DT_F32,  DT_F16,  DT_BF16, DT_Q4_0, DT_Q4_1, DT_Q5_0, DT_Q5_1,
                          DT_Q8_0, DT_Q2_K, DT_Q3_K, DT_Q4_K, DT_Q5_K, DT_Q6_K};
const uint32_t kt_n_types = sizeof kt_types / sizeof kt_types[0];

enum { GUARD = 16, POISON = 0x7FC0DEAD };

void kt_put_nan(dtype t, uint8_t *block) {
  static const uint8_t scale_at[DT_COUNT_] = {[DT_Q2_K] = 80, [DT_Q3_K] = 108, [DT_Q6_K] = 208};
  const uint32_t nan = 0x7FC00000;
  const uint16_t half = 0x7E00, brain = 0x7FC0;
  if (t == DT_F32) memcpy(block, &nan, sizeof nan);
  else memcpy(block + scale_at[t], t == DT_BF16 ? &brain : &half, sizeof half);
}

/* One binding: words as the twin and as the device see them. */
typedef struct mem {
  uint32_t *host, *device;   /* the same memory unless packed */
  uint64_t host_n, device_n; /* words, guard included */
  bool out;
  hw_buf buf;
} mem;

typedef struct run {
  const kt_case *c;
  const kernel_spec *spec; /* c's, or c's for few threads */
  hw *h;
  uint32_t n;
  mem m[HW_MAX_BINDINGS];
  char label[192];
} run;

static uint32_t *words_new(uint64_t n) {
  uint32_t *p = malloc(n * 4);
  if (!p) abort();
  for (uint64_t i = 0; i < n; i++) p[i] = POISON;
  return p;
}

static uint64_t words_of(uint64_t bytes) { return (bytes + 3) / 4 + GUARD; }

static float uniform(uint32_t seed, uint64_t i) { return rng_f32(seed, (uint32_t)i) * 2 - 1; }

static void fill_floats(const kt_bind *b, uint64_t n, uint32_t seed, uint32_t *out) {
  const float *data = b->data;
  for (uint64_t i = 0; i < n; i++) {
    float v = data ? data[i] : uniform(seed, i);
    if (b->type == DT_F16) ((uint16_t *)(void *)out)[i] = f32_to_f16(v);
    else out[i] = f32_bits(v);
  }
}

static void fill_ids(const kt_bind *b, uint64_t n, uint32_t seed, uint32_t *out) {
  const uint32_t *data = b->data;
  for (uint64_t i = 0; i < n; i++) out[i] = data ? data[i] : rng_u32(seed, (uint32_t)i) % b->limit;
}

static void fill_angles(uint64_t n, uint32_t seed, uint32_t *out) {
  for (uint64_t i = 0; i < n; i++) {
    float a = 7 * uniform(seed, i / 2);
    out[i] = f32_bits(i % 2 ? sinf(a) : cosf(a));
  }
}

static void fill_weights(const kt_bind *b, uint64_t rows, uint32_t seed, uint32_t *out) {
  float *row = malloc(b->cols * sizeof *row);
  if (!row) abort();
  for (uint64_t r = 0; r < rows; r++) {
    for (uint64_t i = 0; i < b->cols; i++) row[i] = uniform(seed, r * b->cols + i);
    quant_quantize_row(b->type, row, (uint8_t *)out + r * dtype_row_bytes(b->type, b->cols),
                       b->cols);
  }
  free(row);
}

static void mem_fill(run *r, uint32_t i, bool native) {
  const kt_bind *b = &r->c->bind[i];
  mem *m = &r->m[i];
  const uint64_t rows = b->valid ? b->valid : b->rows, n = rows * b->cols;
  const uint32_t seed = r->c->seed * 16 + i;
  uint64_t bytes = b->rows * dtype_row_bytes(b->type, b->cols);
  if (b->fill == KT_STEP) bytes = sizeof(step_params);
  m->host_n = words_of(bytes);
  m->device = m->host = words_new(m->host_n);
  switch (b->fill) {
  case KT_POISON: break;
  case KT_FLOATS: fill_floats(b, n, seed, m->host); break;
  case KT_IDS: fill_ids(b, n, seed, m->host); break;
  case KT_ANGLES: fill_angles(n, seed, m->host); break;
  case KT_STEP: memcpy(m->host, &r->c->step, sizeof r->c->step); break;
  case KT_FILE:
  case KT_WEIGHTS: fill_weights(b, rows, seed, m->host); break;
  }
  m->device_n = m->host_n;
  if (b->fill != KT_WEIGHTS || native) return;
  m->device_n = words_of(pack_bytes(b->type, b->cols, b->rows));
  m->device = words_new(m->device_n);
  pack_rows(b->type, b->cols, rows, 0, b->rows, m->host, m->device);
}

static void run_twin(const run *r) {
  void *data[HW_MAX_BINDINGS];
  uint64_t size[HW_MAX_BINDINGS];
  for (uint32_t i = 0; i < r->n; i++) {
    data[i] = r->m[i].host;
    size[i] = 4 * r->m[i].host_n;
  }
  kernel_shape shape;
  kernel_get(r->c->spec.op)->shape(&r->c->spec, &shape);
  hw_cpu_call call = {.ctx = &r->c->spec,
                      .buf = data,
                      .size = size,
                      .n_threads = 1,
                      .scratch = malloc(shape.cpu_scratch + 1)};
  if (!call.scratch) abort();
  kernel_get(r->c->spec.op)->twin(&call);
  free(call.scratch);
}

/* Makes the buffers, runs, reads the outputs into `got`. */
static err run_device(run *r, hw_kernel kernel, uint32_t **got) {
  kernel_shape shape;
  kernel_get(r->spec->op)->shape(r->spec, &shape);
  hw_step step = {.label = r->label, .kernel = kernel, .n_bind = r->n};
  memcpy(step.groups, shape.groups, sizeof step.groups);
  hw_program program = {0};
  hw_ticket ticket;
  err e;
  for (uint32_t i = 0; i < r->n; i++) {
    mem *m = &r->m[i];
    hw_buf_desc d = {.label = "test",
                     .size = 4 * m->device_n,
                     .use = r->c->bind[i].fill == KT_STEP ? HW_UNIFORM : HW_STORAGE};
    TRY(hw_buf_new(r->h, &d, &m->buf));
    TRY(hw_buf_write(r->h, m->buf, 0, m->device, d.size));
    step.bind[i].buf = m->buf;
  }
  TRY(hw_program_new(r->h, "test", &step, 1, &program));
  TRY(hw_submit(r->h, &(hw_submit_desc){.program = {program}}, &ticket));
  if (!test_wait(r->h, ticket)) e = ERR_DEVICE;
  for (uint32_t i = 0; !e && i < r->n; i++) {
    if (r->m[i].out) TRY(test_read(r->h, r->m[i].buf, 0, got[i], 4 * r->m[i].device_n));
  }
done:
  hw_program_free(r->h, program);
  for (uint32_t i = 0; i < r->n; i++) hw_buf_free(r->h, r->m[i].buf);
  return e;
}

static double value(dtype t, const uint32_t *p, uint64_t i) {
  return (double)(t == DT_F16 ? f16_to_f32(((const uint16_t *)(const void *)p)[i])
                              : bits_f32(p[i]));
}

/* Outputs before the guard: near by value. The rest, and types without a tolerance: equal bits. */
static bool compare(const run *r, uint32_t i, const uint32_t *got, const uint32_t *want) {
  const kt_case *c = r->c;
  const kt_bind *b = &c->bind[i];
  const uint64_t per = b->type == DT_F16 ? 2 : 1, all = r->m[i].host_n;
  const bool floats = b->type == DT_F32 || b->type == DT_F16;
  double sum = 0;
  uint64_t n = 0;
  for (uint64_t j = 0; floats && j < (all - GUARD) * per; j++) {
    double v = value(b->type, want, j);
    if (v == v && fabs(v) < 1e30) sum += v * v, n++;
  }
  const double rms = n ? sqrt(sum / (double)n) : 0;
  for (uint64_t w = 0; w < all; w++) {
    if (got[w] == want[w]) continue;
    bool near = floats && c->tol > 0 && w < all - GUARD;
    for (uint64_t j = w * per; near && j < (w + 1) * per; j++) {
      double g = value(b->type, got, j), v = value(b->type, want, j);
      near = fabs(g - v) <= c->tol * (fabs(v) + rms);
    }
    if (near) continue;
    FAIL("%s: binding %u, word %llu of %llu: %08x (%g), the twin has %08x (%g); %s%s", r->label, i,
         (unsigned long long)w, (unsigned long long)(all - GUARD), got[w],
         value(b->type, got, w * per), want[w], value(b->type, want, w * per),
         want[w] == POISON ? "must stay as it was; " : "", c->why ? c->why : "exact");
    return false;
  }
  return true;
}

static bool run_case(hw *h, hw_kernel kernel, const kernel_spec *spec, const kt_case *c) {
  run r = {.c = c, .spec = spec, .h = h};
  kernel_label(spec, r.label, sizeof r.label);
  const char *binds = kernel_get(c->spec.op)->binds;
  uint32_t *got[HW_MAX_BINDINGS] = {0};
  for (const char *p = strchr(binds, ':'); p; p = strchr(p + 1, ':')) {
    mem *m = &r.m[r.n];
    m->out = p[1] == 'w';
    mem_fill(&r, r.n, hw_get_caps(h)->native_weights);
    if (m->out) got[r.n] = words_new(m->device_n);
    r.n++;
  }
  err e = run_device(&r, kernel, got); /* first: the twin writes into the same memory */
  if (e) FAIL("%s: %s: %s", r.label, err_name(e), err_text());
  else run_twin(&r);
  bool ok = !e;
  for (uint32_t i = 0; i < r.n; i++) {
    if (!e && r.m[i].out) ok &= compare(&r, i, got[i], r.m[i].host);
    if (r.m[i].device != r.m[i].host) free(r.m[i].device);
    free(r.m[i].host);
    free(got[i]);
  }
  return ok;
}

static bool run_spec(hw *h, const kernel_spec *spec, const kt_case *c, uint32_t n) {
  hw_kernel kernel = {0};
  arena keep = {0};
  bool ok = true;
  err e = kernel_new(h, spec, false, &keep, &kernel);
  if (!e) e = test_kernel_wait(h, kernel);
  if (e) {
    char label[192];
    kernel_label(spec, label, sizeof label);
    FAIL("%s: %s: %s", label, err_name(e), err_text());
    ok = false;
  }
  for (uint32_t i = 0; ok && i < n; i++) ok = run_case(h, kernel, spec, &c[i]);
  hw_kernel_free(h, kernel);
  arena_free(&keep);
  return ok;
}

/* With the workgroups of a GPU, and with the few threads that suit a CPU that plays one. */
bool kt_run_all(const kt_case *c, uint32_t n) {
  hw *h = test_open();
  if (!h) return false;
  kernel_spec few = c->spec;
  if (hw_get_caps(h)->kind != HW_CPU) kernel_limit_threads(&few, 8);
  bool ok = run_spec(h, &c->spec, c, n);
  return (!few.wg || run_spec(h, &few, c, n)) && ok;
}

bool kt_run(const kt_case *c) { return kt_run_all(c, 1); }

/* The back end of the wasm build: WebGPU as JavaScript has it (web/core/hw_browser.ts).
 *
 * Handles are integers, JS holds the objects; sizes cross as f64, exact up to 2^53. A whole submit
 * is one call. Promises settle between our calls: they set what poll, done and kernel_ready ask. */
#include <stdio.h>
#include <string.h>

#include "base/math.h"
#include "base/mem.h"
#include "hw/hw_impl.h"

#define IMPORT(name) __attribute__((import_module("frit"), import_name(#name))) extern

enum { NO_F16 = 1, NO_SUBGROUPS = 2, NO_DOT4I8 = 4, ADAPTER_ONLY = 8 };

/* What gpu_caps writes. */
typedef struct browser_caps {
  uint32_t software, f16, subgroups, dot4i8, timestamps, subgroup_min, subgroup_max;
  uint32_t max_storage_buffers, max_groups, max_invocations, max_workgroup_mem, offset_align;
  double max_binding, max_buffer;
  char name[128], vendor[64], arch[64], driver[128], api[32], library[128];
} browser_caps;
_Static_assert(sizeof(browser_caps) == 608 && offsetof(browser_caps, name) == 64,
               "web/core/hw_browser.ts writes it");

/* What gpu_submit reads. */
typedef struct browser_submit {
  uint32_t device, n_programs, program[4];
  uint32_t params, params_data, params_size;
  uint32_t read, read_size, timestamps;
  double read_off, ticket;
} browser_submit;
_Static_assert(sizeof(browser_submit) == 64, "web/core/hw_browser.ts reads it");

/* Each handle is above 0; 0 is a failure whose error gpu_error tells. */
IMPORT(gpu_open) uint32_t gpu_open(uint32_t index, uint32_t flags, double limit_binding);
IMPORT(gpu_close) void gpu_close(uint32_t d);
IMPORT(gpu_poll) uint32_t gpu_poll(uint32_t d, uint32_t *error); /* hw_state; *error: an err */
IMPORT(gpu_error) void gpu_error(uint32_t d, char *text, uint32_t room); /* NUL-terminated */
IMPORT(gpu_caps) void gpu_caps(uint32_t d, browser_caps *out);
IMPORT(gpu_buf_new)
uint32_t gpu_buf_new(uint32_t d, const char *label, uint32_t n, double size, uint32_t use);
IMPORT(gpu_buf_free) void gpu_buf_free(uint32_t b);
IMPORT(gpu_buf_write) void gpu_buf_write(uint32_t b, double off, const void *data, uint32_t size);
IMPORT(gpu_kernel_new)
uint32_t gpu_kernel_new(uint32_t d, const char *label, uint32_t n, const char *wgsl,
                        uint32_t wgsl_n, const uint32_t *bind, uint32_t n_bind);
/* 0 pending, 1 ready, 2 failed with the compiler's words in text. */
IMPORT(gpu_kernel_ready) uint32_t gpu_kernel_ready(uint32_t k, char *text, uint32_t room);
IMPORT(gpu_kernel_free) void gpu_kernel_free(uint32_t k);
IMPORT(gpu_program_new)
uint32_t gpu_program_new(uint32_t d, const char *label, uint32_t n, const uint32_t *words,
                         uint32_t steps);
IMPORT(gpu_program_free) void gpu_program_free(uint32_t p);
IMPORT(gpu_submit) uint32_t gpu_submit(const browser_submit *s); /* an err; gpu_error tells */
IMPORT(gpu_done) uint32_t gpu_done(uint32_t d, double ticket);
IMPORT(gpu_read) uint32_t gpu_read(uint32_t d, double ticket, void *dst, uint32_t size);
/* Steps timed, or -1 and less. */
IMPORT(gpu_times) int32_t gpu_times(uint32_t d, double ticket, uint64_t *ns, uint32_t room);
IMPORT(gpu_lose) void gpu_lose(uint32_t d);

typedef struct browser_device {
  hw *h;
  uint32_t id;
  bool ready;
} browser_device;

static uint32_t length(const char *s) { return (uint32_t)strlen(s); }
static uint32_t address(const void *p) { return (uint32_t)(uintptr_t)p; }
static uint32_t handle(const void *obj) { return address(obj); }
static void *object(uint32_t h) { return (void *)(uintptr_t)h; } /* NULL for 0 */

static err keep_error(const browser_device *b, err code) {
  char text[480];
  gpu_error(b->id, text, sizeof text);
  return err_set(code, "%s", text);
}

/* The device's first error, if there is one: sticky. */
static err flush_error(const browser_device *b) {
  uint32_t code = ERR_NONE;
  gpu_poll(b->id, &code);
  if (code) hw_set_error(b->h, keep_error(b, (err)code));
  return (err)code;
}

/* What a call that gave handle 0 returns. */
static err failed(const browser_device *b) {
  err e = flush_error(b);
  return e ? e : err_set(ERR_DEVICE, "the browser made no object");
}

static err browser_open(hw *h, const hw_open_desc *d, void **self) {
  browser_device *b = mem_zalloc(1, sizeof *b);
  if (!b) return mem_err("device", sizeof *b);
  b->h = h;
  uint32_t flags = (d->no_f16 ? NO_F16 : 0) | (d->no_subgroups ? NO_SUBGROUPS : 0) |
                   (d->no_dot4i8 ? NO_DOT4I8 : 0);
  b->id = gpu_open(d->index, flags, (double)d->limit_binding);
  if (!b->id) {
    mem_free(b);
    return err_set(ERR_NO_DEVICE, "this browser has no WebGPU (navigator.gpu is missing)");
  }
  *self = b;
  return ERR_NONE;
}

static void browser_close(void *self) {
  browser_device *b = self;
  gpu_close(b->id);
  mem_free(b);
}

static void read_caps(uint32_t id, hw_caps *c) {
  browser_caps j;
  gpu_caps(id, &j);
  *c = (hw_caps){.kind = HW_BROWSER,
                 .software = j.software,
                 .max_binding = (uint64_t)j.max_binding,
                 .max_buffer = (uint64_t)j.max_buffer,
                 .max_storage_buffers = j.max_storage_buffers,
                 .max_groups = j.max_groups,
                 .max_invocations = j.max_invocations,
                 .max_workgroup_mem = j.max_workgroup_mem,
                 .offset_align = j.offset_align,
                 .f16 = j.f16,
                 .subgroups = j.subgroups,
                 .dot4i8 = j.dot4i8,
                 .timestamps = j.timestamps,
                 .subgroup_min = j.subgroup_min,
                 .subgroup_max = j.subgroup_max};
  memcpy(c->name, j.name, sizeof c->name);
  memcpy(c->vendor, j.vendor, sizeof c->vendor);
  memcpy(c->arch, j.arch, sizeof c->arch);
  memcpy(c->driver, j.driver, sizeof c->driver);
  memcpy(c->api, j.api, sizeof c->api);
  memcpy(c->library, j.library, sizeof c->library);
}

static hw_state browser_poll(void *self, hw_caps *caps) {
  browser_device *b = self;
  uint32_t code = ERR_NONE;
  hw_state s = (hw_state)gpu_poll(b->id, &code);
  if (code) {
    hw_set_error(b->h, keep_error(b, (err)code));
    return HW_FAILED;
  }
  if (s == HW_READY && !b->ready) {
    read_caps(b->id, caps);
    b->ready = true;
  }
  return s;
}

/* ---- buffers ---- */

static err browser_buf_new(void *self, const hw_buf_desc *d, void **out) {
  const browser_device *b = self;
  *out = object(gpu_buf_new(b->id, d->label, length(d->label), (double)d->size, d->use));
  return *out ? ERR_NONE : failed(b);
}

static void browser_buf_free(void *self, void *buf) {
  (void)self;
  gpu_buf_free(handle(buf));
}

static err browser_buf_write(void *self, void *buf, uint64_t off, const void *data, uint64_t size) {
  (void)self;
  gpu_buf_write(handle(buf), (double)off, data, (uint32_t)size);
  return ERR_NONE;
}

/* ---- kernels ---- */

static err browser_kernel_new(void *self, const hw_kernel_desc *d, void **out) {
  const browser_device *b = self;
  uint32_t bind[HW_MAX_BINDINGS];
  for (uint32_t i = 0; i < d->n_bind; i++) bind[i] = d->bind[i];
  *out = object(
      gpu_kernel_new(b->id, d->label, length(d->label), d->wgsl, length(d->wgsl), bind, d->n_bind));
  return *out ? ERR_NONE : failed(b);
}

static bool browser_kernel_ready(void *self, void *k, err *e) {
  char text[480];
  uint32_t state = gpu_kernel_ready(handle(k), text, sizeof text);
  if (state == 2) *e = err_set(ERR_DEVICE, "%s", text);
  if (state == 0) {
    *e = flush_error(self);
    return *e != ERR_NONE;
  }
  return true;
}

static void browser_kernel_free(void *self, void *k) {
  (void)self;
  gpu_kernel_free(handle(k));
}

/* ---- programs ---- */

/* A step as words: kernel, groups[3], label, its length, n_bind; then for each binding the buffer,
 * offset and size (two words each, low first). */
static uint32_t *put_step(uint32_t *w, const hw_step_impl *s) {
  *w++ = handle(s->kernel);
  for (int i = 0; i < 3; i++) *w++ = s->groups[i];
  *w++ = address(s->label);
  *w++ = length(s->label);
  *w++ = s->n_bind;
  for (uint32_t i = 0; i < s->n_bind; i++) {
    const hw_bound *b = &s->bind[i];
    *w++ = handle(b->obj);
    *w++ = (uint32_t)b->off;
    *w++ = (uint32_t)(b->off >> 32);
    *w++ = (uint32_t)b->size;
    *w++ = (uint32_t)(b->size >> 32);
  }
  return w;
}

static err browser_program_new(void *self, const char *label, const hw_step_impl *s, uint32_t n,
                               void **out) {
  const browser_device *b = self;
  size_t most = 7 + 5 * HW_MAX_BINDINGS;
  uint32_t *words = mem_zalloc(n, most * sizeof *words), *w = words;
  if (!words) return mem_err(label, n * most * sizeof *words);
  for (uint32_t i = 0; i < n; i++) w = put_step(w, &s[i]);
  *out = object(gpu_program_new(b->id, label, length(label), words, n));
  mem_free(words);
  return *out ? ERR_NONE : failed(b);
}

static void browser_program_free(void *self, void *p) {
  (void)self;
  gpu_program_free(handle(p));
}

/* ---- submits ---- */

static err browser_submit_one(void *self, const hw_submit_impl *s) {
  const browser_device *b = self;
  browser_submit j = {.device = b->id,
                      .n_programs = s->n_programs,
                      .params = handle(s->params),
                      .params_data = address(s->params_data),
                      .params_size = s->params_size,
                      .read = handle(s->read),
                      .read_size = s->read_size,
                      .timestamps = s->timestamps,
                      .read_off = (double)s->read_off,
                      .ticket = (double)s->ticket};
  for (uint32_t i = 0; i < s->n_programs; i++) j.program[i] = handle(s->program[i]);
  err e = (err)gpu_submit(&j);
  if (!e) return ERR_NONE;
  return e == ERR_LIMIT
             ? err_set(e, "more than %d read-backs or timed submits in flight", HW_IN_FLIGHT)
             : failed(b);
}

static bool browser_done(void *self, uint64_t ticket) {
  const browser_device *b = self;
  return gpu_done(b->id, (double)ticket);
}

static err browser_read(void *self, uint64_t ticket, void *dst, uint32_t size) {
  const browser_device *b = self;
  err e = (err)gpu_read(b->id, (double)ticket, dst, size);
  unsigned long long n = ticket;
  if (e == ERR_ARG) return err_set(e, "read: submit %llu is not done or has no read-back", n);
  err first = e ? flush_error(b) : ERR_NONE; /* the device's own words, where it has any */
  if (first) return first;
  return e ? err_set(e, "read: the data of submit %llu is gone", n) : ERR_NONE;
}

static err browser_times(void *self, uint64_t ticket, uint64_t *ns, uint32_t *n) {
  const browser_device *b = self;
  int32_t got = gpu_times(b->id, (double)ticket, ns, *n);
  if (got == -1) return err_set(ERR_ARG, "times: that submit was not timed or is not done");
  if (got < 0) return err_set(ERR_DEVICE, "times: none arrived");
  *n = (uint32_t)got;
  return ERR_NONE;
}

static void browser_lose(void *self) {
  const browser_device *b = self;
  gpu_lose(b->id);
}

/* ---- adapters: pages are given one ---- */

static err browser_list_begin(const char *library, void **state) {
  (void)library;
  uint32_t id = gpu_open(0, ADAPTER_ONLY, 0);
  if (!id) return err_set(ERR_NO_DEVICE, "this browser has no WebGPU (navigator.gpu is missing)");
  *state = object(id);
  return ERR_NONE;
}

static bool browser_list_poll(void *state, hw_caps *out, uint32_t max, uint32_t *n) {
  uint32_t error;
  hw_state s = (hw_state)gpu_poll(handle(state), &error);
  *n = s == HW_READY && max ? 1 : 0;
  if (*n) read_caps(handle(state), out);
  return s != HW_OPENING;
}

static void browser_list_end(void *state) { gpu_close(handle(state)); }

const hw_backend hw_backend_browser = {
    .open = browser_open,
    .close = browser_close,
    .poll = browser_poll,
    .buf_new = browser_buf_new,
    .buf_free = browser_buf_free,
    .buf_write = browser_buf_write,
    .kernel_new = browser_kernel_new,
    .kernel_ready = browser_kernel_ready,
    .kernel_free = browser_kernel_free,
    .program_new = browser_program_new,
    .program_free = browser_program_free,
    .submit = browser_submit_one,
    .done = browser_done,
    .read = browser_read,
    .times = browser_times,
    .lose = browser_lose,
    .list_begin = browser_list_begin,
    .list_poll = browser_list_poll,
    .list_end = browser_list_end,
};

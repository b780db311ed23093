/* The cpu back end: runs the C form of each kernel. A submit runs at once, so a ticket is done when
 * hw_submit returns; its read-back waits in a ring until taken. */
#include "hw/cpu.h"

#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/math.h"
#include "base/mem.h"
#include "hw/hw_impl.h"

typedef struct cpu_buf {
  void *data;
  uint64_t size;
  bool owned;
} cpu_buf;

typedef struct cpu_kernel {
  hw_cpu_fn fn;
  const void *ctx;
  uint64_t own_at, own; /* in the scratch: where the threads' own parts begin, bytes of each */
  bool single;
} cpu_kernel;

typedef struct cpu_step {
  const cpu_kernel *kernel;
  void *buf[HW_MAX_BINDINGS];
  uint64_t size[HW_MAX_BINDINGS];
  uint32_t groups[3];
} cpu_step;

typedef struct cpu_program {
  uint32_t n;
  cpu_step steps[];
} cpu_program;

typedef struct cpu_read {
  uint64_t ticket; /* 0: free */
  uint32_t size;
  uint64_t cap;
  void *data;
} cpu_read;

enum { MAX_TIMED = 4096 };

typedef struct cpu_device {
  hw *h;
  hw_cpu_pool *pool;
  uint64_t limit_binding;
  uint64_t scratch_size;
  void *scratch; /* as large as the largest kernel asks */
  cpu_read reads[HW_IN_FLIGHT];
  uint64_t timed_ticket;
  uint32_t n_timed;
  uint64_t timed[MAX_TIMED]; /* ns */
} cpu_device;

static err cpu_open(hw *h, const hw_open_desc *d, void **self) {
  cpu_device *c = mem_zalloc(1, sizeof *c);
  if (!c) return mem_err("cpu device", sizeof *c);
  c->h = h;
  c->limit_binding = d->limit_binding;
  err e = hw_cpu_pool_new(d->threads ? d->threads : hw_cpu_cores(), &c->pool);
  if (e) {
    mem_free(c);
    return e;
  }
  *self = c;
  return ERR_NONE;
}

static void cpu_close(void *self) {
  cpu_device *c = self;
  hw_cpu_pool_free(c->pool);
  for (int i = 0; i < HW_IN_FLIGHT; i++) mem_free(c->reads[i].data);
  mem_free(c->scratch);
  mem_free(c);
}

static void fill_caps(hw_caps *caps, uint32_t threads) {
  *caps = (hw_caps){
      .kind = HW_CPU,
      .api = "cpu",
      .native_weights = true,
      .max_binding = (uint64_t)1 << 46,
      .max_buffer = (uint64_t)1 << 46,
      .max_storage_buffers = HW_MAX_BINDINGS,
      .max_groups = 65535,
      .max_invocations = 1024,
      .max_workgroup_mem = 1 << 20,
      .offset_align = 32,
      .timestamps = true,
      .threads = threads,
  };
  hw_cpu_name(caps->name, sizeof caps->name);
}

static hw_state cpu_poll(void *self, hw_caps *caps) {
  cpu_device *c = self;
  if (!caps->threads) {
    fill_caps(caps, hw_cpu_pool_threads(c->pool));
    if (c->limit_binding) caps->max_binding = min_u64(caps->max_binding, c->limit_binding);
  }
  return HW_READY;
}

static err cpu_buf_new(void *self, const hw_buf_desc *d, void **out) {
  (void)self;
  cpu_buf *b = mem_zalloc(1, sizeof *b);
  if (!b) return mem_err(d->label, sizeof *b);
  b->size = d->size;
  b->owned = !d->host;
  /* Kernels take non-const addresses; hw.c refuses to bind host memory for writing. */
  b->data = d->host              ? (void *)(uintptr_t)d->host
            : d->size > SIZE_MAX ? NULL
                                 : mem_zalloc(1, (size_t)d->size);
  if (!b->data) {
    mem_free(b);
    return mem_err(d->label, d->size);
  }
  *out = b;
  return ERR_NONE;
}

static void cpu_buf_free(void *self, void *p) {
  (void)self;
  cpu_buf *b = p;
  if (b->owned) mem_free(b->data);
  mem_free(b);
}

static err cpu_buf_write(void *self, void *p, uint64_t off, const void *data, uint64_t size) {
  (void)self;
  cpu_buf *b = p;
  memcpy((char *)b->data + off, data, (size_t)size);
  return ERR_NONE;
}

static void *cpu_buf_host(void *p) {
  cpu_buf *b = p;
  return b->data;
}

static err cpu_kernel_new(void *self, const hw_kernel_desc *d, void **out) {
  cpu_device *c = self;
  const uint64_t own_at = round_up(d->cpu_scratch, 64), own = round_up(d->cpu_own, 64);
  const uint64_t scratch = own_at + own * hw_cpu_pool_threads(c->pool);
  if (scratch > c->scratch_size) {
    void *p = scratch > SIZE_MAX ? NULL : mem_alloc((size_t)scratch);
    if (!p) return mem_err(d->label, scratch);
    mem_free(c->scratch);
    c->scratch = p;
    c->scratch_size = scratch;
  }
  cpu_kernel *k = mem_zalloc(1, sizeof *k);
  if (!k) return mem_err(d->label, sizeof *k);
  *k = (cpu_kernel){
      .fn = d->cpu, .ctx = d->cpu_ctx, .own_at = own_at, .own = own, .single = d->cpu_single};
  *out = k;
  return ERR_NONE;
}

static bool cpu_kernel_ready(void *self, void *k, err *e) {
  (void)self, (void)k;
  *e = ERR_NONE;
  return true;
}

static void cpu_free(void *self, void *p) {
  (void)self;
  mem_free(p);
}

static err cpu_program_new(void *self, const char *label, const hw_step_impl *s, uint32_t n,
                           void **out) {
  (void)self;
  cpu_program *p = mem_zalloc(1, sizeof *p + n * sizeof(cpu_step));
  if (!p) return mem_err(label, n * sizeof(cpu_step));
  p->n = n;
  for (uint32_t i = 0; i < n; i++) {
    cpu_step *st = &p->steps[i];
    st->kernel = s[i].kernel;
    memcpy(st->groups, s[i].groups, sizeof st->groups);
    for (uint32_t j = 0; j < s[i].n_bind; j++) {
      const cpu_buf *b = s[i].bind[j].obj;
      st->buf[j] = (char *)b->data + s[i].bind[j].off;
      st->size[j] = s[i].bind[j].size;
    }
  }
  *out = p;
  return ERR_NONE;
}

typedef struct run_ctx {
  cpu_device *device;
  const hw_submit_impl *submit;
} run_ctx;

static void run_step(const cpu_device *c, const cpu_step *st, uint32_t thread, uint32_t n) {
  const cpu_kernel *k = st->kernel;
  if (k->single && thread) return;
  hw_cpu_call call = {.ctx = k->ctx,
                      .buf = st->buf,
                      .size = st->size,
                      .groups = {st->groups[0], st->groups[1], st->groups[2]},
                      .thread = thread,
                      .n_threads = k->single ? 1 : n,
                      .scratch = c->scratch,
                      .own = (char *)c->scratch + k->own_at + thread * k->own,
                      .pool = c->pool};
  k->fn(&call);
}

static void note_time(cpu_device *c, double *t0) {
  double t1 = time_now();
  if (c->n_timed < MAX_TIMED) c->timed[c->n_timed++] = (uint64_t)((t1 - *t0) * 1e9);
  *t0 = t1;
}

/* Every thread walks the whole list. They meet between two steps unless both are for one thread:
 * thread 0 then goes on alone, which on a busy machine saves waiting for threads that do nothing.
 */
static void run_programs(void *ctx, uint32_t thread) {
  const run_ctx *r = ctx;
  cpu_device *c = r->device;
  uint32_t n = hw_cpu_pool_threads(c->pool);
  bool timed = r->submit->timestamps, after_single = true;
  double t0 = timed && !thread ? time_now() : 0;
  for (uint32_t i = 0; i < r->submit->n_programs; i++) {
    const cpu_program *p = r->submit->program[i];
    for (uint32_t j = 0; j < p->n; j++) {
      bool single = p->steps[j].kernel->single;
      if (!single || !after_single) hw_cpu_pool_barrier(c->pool);
      after_single = single;
      run_step(c, &p->steps[j], thread, n);
      if (!timed) continue;
      if (!single) hw_cpu_pool_barrier(c->pool);
      if (!thread) note_time(c, &t0);
    }
  }
}

static err keep_read(cpu_device *c, const hw_submit_impl *s) {
  for (int i = 0; i < HW_IN_FLIGHT; i++) {
    cpu_read *r = &c->reads[i];
    if (r->ticket) continue;
    if (r->cap < s->read_size) {
      void *p = mem_alloc(s->read_size);
      if (!p) return mem_err("read-back", s->read_size);
      mem_free(r->data);
      r->data = p;
      r->cap = s->read_size;
    }
    r->ticket = s->ticket;
    r->size = s->read_size;
    const cpu_buf *b = s->read;
    memcpy(r->data, (const char *)b->data + s->read_off, s->read_size);
    return ERR_NONE;
  }
  return err_set(ERR_LIMIT, "more than %d read-backs in flight", HW_IN_FLIGHT);
}

static err cpu_submit(void *self, const hw_submit_impl *s) {
  cpu_device *c = self;
  if (s->params) memcpy(((cpu_buf *)s->params)->data, s->params_data, s->params_size);
  run_ctx r = {c, s};
  if (s->timestamps) {
    c->n_timed = 0;
    c->timed_ticket = s->ticket;
  }
  if (s->n_programs) hw_cpu_pool_run(c->pool, run_programs, &r);
  return s->read ? keep_read(c, s) : ERR_NONE;
}

static bool cpu_done(void *self, uint64_t ticket) {
  (void)self, (void)ticket;
  return true;
}

static err cpu_read_back(void *self, uint64_t ticket, void *dst, uint32_t size) {
  cpu_device *c = self;
  for (int i = 0; i < HW_IN_FLIGHT; i++) {
    cpu_read *r = &c->reads[i];
    if (r->ticket != ticket) continue;
    r->ticket = 0;
    if (dst) memcpy(dst, r->data, min_u32(size, r->size));
    return ERR_NONE;
  }
  return err_set(ERR_ARG, "read: submit %llu has no read-back", (unsigned long long)ticket);
}

static err cpu_times(void *self, uint64_t ticket, uint64_t *ns, uint32_t *n) {
  cpu_device *c = self;
  if (ticket != c->timed_ticket) return err_set(ERR_ARG, "times: that submit was not timed");
  *n = min_u32(*n, c->n_timed);
  memcpy(ns, c->timed, *n * sizeof *ns);
  return ERR_NONE;
}

static err cpu_list_begin(const char *library, void **state) {
  (void)library;
  *state = NULL;
  return ERR_NONE;
}
static bool cpu_list_poll(void *state, hw_caps *out, uint32_t max, uint32_t *n) {
  (void)state;
  *n = max ? 1 : 0;
  if (max) fill_caps(out, hw_cpu_cores());
  return true;
}
static void cpu_list_end(void *state) { (void)state; }

const hw_backend hw_backend_cpu = {
    .open = cpu_open,
    .close = cpu_close,
    .poll = cpu_poll,
    .buf_new = cpu_buf_new,
    .buf_free = cpu_buf_free,
    .buf_write = cpu_buf_write,
    .buf_host = cpu_buf_host,
    .kernel_new = cpu_kernel_new,
    .kernel_ready = cpu_kernel_ready,
    .kernel_free = cpu_free,
    .program_new = cpu_program_new,
    .program_free = cpu_free,
    .submit = cpu_submit,
    .done = cpu_done,
    .read = cpu_read_back,
    .times = cpu_times,
    .list_begin = cpu_list_begin,
    .list_poll = cpu_list_poll,
    .list_end = cpu_list_end,
};

/* Owns handles (slot + generation), labels, the sticky error, counters, and the checks that every
 * call passes before a back end sees it. */
#include "hw/hw.h"

#include <stdio.h>
#include <string.h>

#include "base/math.h"
#include "base/mem.h"
#include "hw/hw_impl.h"

typedef enum slot_kind { SLOT_FREE, SLOT_BUF, SLOT_KERNEL, SLOT_PROGRAM } slot_kind;

typedef struct slot {
  slot_kind kind;
  uint32_t generation; /* 1..4095 */
  void *obj;
  char *label;
  uint64_t size; /* buffer: bytes; program: dispatches */
  bool host;     /* buffer wraps memory of ours: read-only */
  hw_buf_use use;
  uint32_t n_bind; /* kernel */
  hw_bind bind[HW_MAX_BINDINGS];
  uint32_t *uses; /* program: ids of its buffers and kernels, n_uses of them */
  uint32_t n_uses;
  uint64_t checked; /* program: hw.frees when all of them were last seen alive */
} slot;

struct hw {
  const hw_backend *be;
  void *self;
  hw_caps caps;
  bool as_gpu;
  hw_state state;
  slot *slots;
  uint32_t n_slots, free_hint;
  err sticky;
  char sticky_text[512];
  hw_counts counts;
  uint64_t next_ticket;
  uint64_t frees; /* buffers and kernels freed so far */
  uint64_t fail_in;
  err fail_code;
};

enum { SLOT_BITS = 20, SLOT_MASK = (1 << SLOT_BITS) - 1 };
enum { MAX_UNIFORM = 65536 }; /* bytes of a uniform binding that every WebGPU device has */

static const hw_backend *backend_of(hw_kind kind) {
  switch (kind) {
  case HW_CPU: return &hw_backend_cpu;
#ifdef __wasm__
  case HW_BROWSER: return &hw_backend_browser;
#else
  case HW_WEBGPU: return &hw_backend_webgpu;
#endif
  default: return NULL;
  }
}

void hw_set_error(hw *h, err code) {
  if (h->sticky || !code) return;
  h->sticky = code;
  snprintf(h->sticky_text, sizeof h->sticky_text, "%s", err_text());
  log_msg(LOG_WARN, "%s", h->sticky_text);
}

err hw_error(const hw *h) {
  return h->sticky ? err_set(h->sticky, "%s", h->sticky_text) : ERR_NONE;
}

/* Every call that can fail starts here. */
static err enter(hw *h, const char *what) {
  if (h->sticky) return hw_error(h);
  const bool last = h->fail_in == 1;
  if (h->fail_in) h->fail_in--;
  if (last) {
    err_set(h->fail_code, "%s: %s (forced by a test)", what, err_name(h->fail_code));
    if (h->fail_code != ERR_DEVICE_NOMEM) hw_set_error(h, h->fail_code);
    return h->fail_code;
  }
  if (h->state != HW_READY) return err_set(ERR_DEVICE, "%s: the device is not open yet", what);
  return ERR_NONE;
}

static err keep(hw *h, err e) {
  if (e == ERR_DEVICE || e == ERR_DEVICE_LOST) hw_set_error(h, e);
  return e;
}

err hw_open(const hw_open_desc *d, hw **out) {
  *out = NULL;
  const hw_backend *be = backend_of(d->kind);
  if (!be) return err_set(ERR_NO_DEVICE, "this build has no such back end");
  hw *h = mem_zalloc(1, sizeof *h);
  if (!h) return mem_err("device", sizeof *h);
  h->be = be;
  h->as_gpu = d->as_gpu;
  h->state = HW_OPENING;
  h->next_ticket = 1;
  err e = be->open(h, d, &h->self);
  if (e) {
    mem_free(h);
    return e;
  }
  *out = h;
  return ERR_NONE;
}

void hw_close(hw *h) {
  if (!h) return;
  for (slot_kind kind = SLOT_PROGRAM; kind > SLOT_FREE; kind--) {
    for (uint32_t i = 0; i < h->n_slots; i++) {
      slot *s = &h->slots[i];
      if (s->kind != kind) continue;
      if (kind == SLOT_PROGRAM) h->be->program_free(h->self, s->obj);
      if (kind == SLOT_KERNEL) h->be->kernel_free(h->self, s->obj);
      if (kind == SLOT_BUF) h->be->buf_free(h->self, s->obj);
      mem_free(s->uses);
      mem_free(s->label);
    }
  }
  h->be->close(h->self);
  mem_free(h->slots);
  mem_free(h);
}

hw_state hw_poll(hw *h) {
  if (h->sticky) return HW_FAILED;
  hw_state s = h->be->poll(h->self, &h->caps);
  if (h->as_gpu) h->caps.software = false;
  if (h->sticky) s = HW_FAILED;
  return h->state = s;
}

const hw_caps *hw_get_caps(const hw *h) { return &h->caps; }
hw_counts hw_get_counts(const hw *h) { return h->counts; }

void hw_fail_at(hw *h, uint64_t n, err code) {
  h->fail_in = n;
  h->fail_code = code;
}

void hw_lose(hw *h) {
  if (h->be->lose) h->be->lose(h->self);
  else hw_set_error(h, err_set(ERR_DEVICE_LOST, "device lost (forced by a test)"));
}

/* ---- slots ---- */

static slot *slot_new(hw *h, slot_kind kind, const char *label, uint32_t *id) {
  uint32_t i = h->free_hint;
  while (i < h->n_slots && h->slots[i].kind) i++;
  if (i == h->n_slots) {
    uint32_t n = h->n_slots ? h->n_slots * 2 : 256;
    if (n > SLOT_MASK) return NULL;
    slot *p = mem_realloc(h->slots, h->n_slots * sizeof *p, n * sizeof *p);
    if (!p) return NULL;
    memset(p + h->n_slots, 0, (n - h->n_slots) * sizeof *p);
    h->slots = p;
    h->n_slots = n;
  }
  slot *s = &h->slots[i];
  char *copy = mem_strdup(label);
  if (!copy) return NULL;
  uint32_t generation = s->generation % 4095 + 1;
  *s = (slot){.kind = kind, .generation = generation, .label = copy};
  h->free_hint = i + 1;
  *id = generation << SLOT_BITS | i;
  return s;
}

static slot *slot_get(const hw *h, slot_kind kind, uint32_t id) {
  uint32_t i = id & SLOT_MASK;
  if (!id || i >= h->n_slots) return NULL;
  slot *s = &h->slots[i];
  return s->kind == kind && s->generation == id >> SLOT_BITS ? s : NULL;
}

static void slot_free(hw *h, slot *s) {
  uint32_t i = (uint32_t)(s - h->slots);
  mem_free(s->uses);
  mem_free(s->label);
  h->frees += s->kind == SLOT_BUF || s->kind == SLOT_KERNEL;
  *s = (slot){.generation = s->generation};
  h->free_hint = min_u32(h->free_hint, i);
}

/* ---- buffers ---- */

err hw_buf_new(hw *h, const hw_buf_desc *d, hw_buf *out) {
  *out = (hw_buf){0};
  err e = enter(h, d->label ? d->label : "buffer");
  if (e) return e;
  if (!d->label || !d->label[0]) return err_set(ERR_ARG, "a buffer needs a label");
  if (!d->size) return err_set(ERR_ARG, "buffer '%s' has size 0", d->label);
  if (d->size > h->caps.max_buffer)
    return err_set(ERR_LIMIT, "buffer '%s' of %llu bytes is over this device's limit of %llu",
                   d->label, (unsigned long long)d->size, (unsigned long long)h->caps.max_buffer);
  if (d->host && h->caps.kind != HW_CPU)
    return err_set(ERR_ARG, "buffer '%s': host memory in place needs the cpu back end", d->label);
  uint32_t id;
  slot *s = slot_new(h, SLOT_BUF, d->label, &id);
  if (!s) return mem_err(d->label, sizeof *s);
  hw_buf_desc desc = *d;
  if (!d->host) desc.size = round_up(d->size, 4);
  e = keep(h, h->be->buf_new(h->self, &desc, &s->obj));
  if (e) {
    slot_free(h, s);
    return e;
  }
  s->size = desc.size;
  s->host = d->host != NULL;
  s->use = d->use;
  h->counts.made_buffers++;
  h->counts.live_buffers++;
  if (!s->host) h->counts.live_bytes += s->size;
  h->counts.peak_bytes = max_u64(h->counts.peak_bytes, h->counts.live_bytes);
  *out = (hw_buf){id};
  return ERR_NONE;
}

void hw_buf_free(hw *h, hw_buf b) {
  slot *s = slot_get(h, SLOT_BUF, b.id);
  if (!s) return;
  h->be->buf_free(h->self, s->obj);
  h->counts.live_buffers--;
  if (!s->host) h->counts.live_bytes -= s->size;
  slot_free(h, s);
}

err hw_buf_write(hw *h, hw_buf b, uint64_t off, const void *data, uint64_t size) {
  err e = enter(h, "write");
  if (e) return e;
  slot *s = slot_get(h, SLOT_BUF, b.id);
  if (!s) return err_set(ERR_ARG, "write to a buffer that is not alive");
  if (s->host) return err_set(ERR_ARG, "buffer '%s' is read-only host memory", s->label);
  if (off % 4 || size % 4 || off > s->size || size > s->size - off)
    return err_set(ERR_ARG, "buffer '%s': write of %llu bytes at %llu (size %llu, multiples of 4)",
                   s->label, (unsigned long long)size, (unsigned long long)off,
                   (unsigned long long)s->size);
  return size ? keep(h, h->be->buf_write(h->self, s->obj, off, data, size)) : ERR_NONE;
}

void *hw_buf_host(const hw *h, hw_buf b) {
  const slot *s = slot_get(h, SLOT_BUF, b.id);
  return s && !s->host && h->be->buf_host ? h->be->buf_host(s->obj) : NULL;
}

uint32_t hw_buf_js(const hw *h, hw_buf b) {
  const slot *s = slot_get(h, SLOT_BUF, b.id);
  return s && h->caps.kind == HW_BROWSER ? (uint32_t)(uintptr_t)s->obj : 0;
}

/* ---- kernels ---- */

static err check_kernel(const hw *h, const hw_kernel_desc *d) {
  const hw_caps *c = &h->caps;
  if (!d->label || !d->label[0]) return err_set(ERR_ARG, "a kernel needs a label");
  if (d->n_bind > HW_MAX_BINDINGS)
    return err_set(ERR_LIMIT, "kernel '%s': %u bindings, at most %d", d->label, d->n_bind,
                   HW_MAX_BINDINGS);
  uint32_t storage = 0;
  for (uint32_t i = 0; i < d->n_bind; i++) storage += d->bind[i] != HW_BIND_UNIFORM;
  if (storage > c->max_storage_buffers)
    return err_set(ERR_LIMIT, "kernel '%s': %u storage buffers, this device allows %u", d->label,
                   storage, c->max_storage_buffers);
  uint64_t threads = (uint64_t)d->workgroup[0] * d->workgroup[1] * d->workgroup[2];
  if (!threads || threads > c->max_invocations)
    return err_set(ERR_LIMIT, "kernel '%s': workgroup of %llu threads, this device allows %u",
                   d->label, (unsigned long long)threads, c->max_invocations);
  if (d->workgroup_mem > c->max_workgroup_mem)
    return err_set(ERR_LIMIT, "kernel '%s': %u bytes of workgroup memory, this device allows %u",
                   d->label, d->workgroup_mem, c->max_workgroup_mem);
  if (c->kind == HW_CPU ? !d->cpu : !d->wgsl)
    return err_set(ERR_ARG, "kernel '%s' has no form for this back end", d->label);
  return ERR_NONE;
}

err hw_kernel_new(hw *h, const hw_kernel_desc *d, hw_kernel *out) {
  *out = (hw_kernel){0};
  err e = enter(h, d->label ? d->label : "kernel");
  if (!e) e = check_kernel(h, d);
  if (e) return e;
  uint32_t id;
  slot *s = slot_new(h, SLOT_KERNEL, d->label, &id);
  if (!s) return mem_err(d->label, sizeof *s);
  e = keep(h, h->be->kernel_new(h->self, d, &s->obj));
  if (e) {
    slot_free(h, s);
    return e;
  }
  s->n_bind = d->n_bind;
  memcpy(s->bind, d->bind, sizeof s->bind);
  h->counts.made_kernels++;
  h->counts.live_kernels++;
  *out = (hw_kernel){id};
  return ERR_NONE;
}

void hw_kernel_free(hw *h, hw_kernel k) {
  slot *s = slot_get(h, SLOT_KERNEL, k.id);
  if (!s) return;
  h->be->kernel_free(h->self, s->obj);
  h->counts.live_kernels--;
  slot_free(h, s);
}

bool hw_kernel_ready(hw *h, hw_kernel k, err *e) {
  *e = ERR_NONE;
  slot *s = slot_get(h, SLOT_KERNEL, k.id);
  if (!s) *e = err_set(ERR_ARG, "a kernel that is not alive");
  else if (h->sticky) *e = hw_error(h);
  if (*e) return true;
  return h->be->kernel_ready(h->self, s->obj, e);
}

/* ---- programs ---- */

static err check_binding(const hw *h, const hw_step *st, const slot *k, uint32_t i, hw_bound *out) {
  const hw_binding *b = &st->bind[i];
  const slot *s = slot_get(h, SLOT_BUF, b->buf.id);
  if (!s) return err_set(ERR_ARG, "step '%s': binding %u is not a live buffer", st->label, i);
  if (b->off >= s->size || b->size > s->size - b->off)
    return err_set(ERR_ARG, "step '%s': binding %u (%s): %llu bytes at %llu of %llu", st->label, i,
                   s->label, (unsigned long long)b->size, (unsigned long long)b->off,
                   (unsigned long long)s->size);
  uint64_t size = b->size ? b->size : s->size - b->off;
  bool uniform = k->bind[i] == HW_BIND_UNIFORM;
  if (uniform != (s->use == HW_UNIFORM))
    return err_set(ERR_ARG, "step '%s': binding %u (%s) is %suniform", st->label, i, s->label,
                   uniform ? "not " : "");
  uint32_t align = h->caps.offset_align;
  if (b->off % (align ? align : 256))
    return err_set(ERR_ARG, "step '%s': binding %u (%s): offset %llu is not a multiple of %u",
                   st->label, i, s->label, (unsigned long long)b->off, align);
  uint64_t limit = uniform ? min_u64(h->caps.max_binding, MAX_UNIFORM) : h->caps.max_binding;
  if (size > limit)
    return err_set(ERR_LIMIT, "step '%s': binding %u (%s) of %llu bytes is over this device's %llu",
                   st->label, i, s->label, (unsigned long long)size, (unsigned long long)limit);
  if (size % 4 && !s->host)
    return err_set(ERR_ARG, "step '%s': binding %u (%s): %llu bytes, not a multiple of 4",
                   st->label, i, s->label, (unsigned long long)size);
  if (k->bind[i] == HW_BIND_WRITE && s->host)
    return err_set(ERR_ARG, "step '%s': writes '%s', which is read-only", st->label, s->label);
  for (uint32_t j = 0; j < i; j++) {
    if (st->bind[j].buf.id != b->buf.id) continue;
    if (k->bind[i] != HW_BIND_READ || k->bind[j] != HW_BIND_READ)
      return err_set(ERR_ARG, "step '%s': '%s' is bound twice (%u and %u) and written", st->label,
                     s->label, j, i);
  }
  *out = (hw_bound){s->obj, b->off, size};
  return ERR_NONE;
}

static err check_step(const hw *h, const hw_step *st, uint32_t n, hw_step_impl *out,
                      hw_bound *bound) {
  if (!st->label || !st->label[0]) return err_set(ERR_ARG, "step %u needs a label", n);
  const slot *k = slot_get(h, SLOT_KERNEL, st->kernel.id);
  if (!k) return err_set(ERR_ARG, "step '%s': its kernel is not alive", st->label);
  if (st->n_bind != k->n_bind)
    return err_set(ERR_ARG, "step '%s': %u bindings for kernel '%s', which has %u", st->label,
                   st->n_bind, k->label, k->n_bind);
  for (int i = 0; i < 3; i++) {
    if (!st->groups[i] || st->groups[i] > h->caps.max_groups)
      return err_set(ERR_LIMIT, "step '%s': %u workgroups in dimension %d (1 to %u)", st->label,
                     st->groups[i], i, h->caps.max_groups);
  }
  for (uint32_t i = 0; i < st->n_bind; i++) {
    err e = check_binding(h, st, k, i, &bound[i]);
    if (e) return e;
  }
  *out = (hw_step_impl){.label = st->label,
                        .kernel = k->obj,
                        .bind = bound,
                        .n_bind = st->n_bind,
                        .groups = {st->groups[0], st->groups[1], st->groups[2]}};
  return ERR_NONE;
}

/* What a program holds on to, so that a submit can tell when a part of it was freed. */
static err keep_uses(slot *s, const hw_step *steps, uint32_t n) {
  size_t total = n;
  for (uint32_t i = 0; i < n; i++) total += steps[i].n_bind;
  s->uses = mem_alloc(total * sizeof *s->uses);
  if (!s->uses) return mem_err(s->label, total * sizeof *s->uses);
  for (uint32_t i = 0; i < n; i++) {
    s->uses[s->n_uses++] = steps[i].kernel.id;
    for (uint32_t j = 0; j < steps[i].n_bind; j++) s->uses[s->n_uses++] = steps[i].bind[j].buf.id;
  }
  return ERR_NONE;
}

/* Looks again only when something was freed since. */
static err check_uses(const hw *h, slot *p) {
  for (uint32_t i = 0; p->checked != h->frees && i < p->n_uses; i++) {
    if (slot_get(h, SLOT_BUF, p->uses[i]) || slot_get(h, SLOT_KERNEL, p->uses[i])) continue;
    return err_set(ERR_ARG, "submit: a buffer or kernel of program '%s' was freed", p->label);
  }
  p->checked = h->frees;
  return ERR_NONE;
}

err hw_program_new(hw *h, const char *label, const hw_step *steps, uint32_t n, hw_program *out) {
  *out = (hw_program){0};
  err e = enter(h, label ? label : "program");
  if (e) return e;
  if (!label || !label[0] || !n) return err_set(ERR_ARG, "a program needs a label and steps");
  slot *s = NULL;
  hw_step_impl *impl = mem_zalloc(n, sizeof *impl);
  hw_bound *bound = mem_zalloc((size_t)n * HW_MAX_BINDINGS, sizeof *bound);
  if (!impl || !bound) {
    e = mem_err(label, n * sizeof *impl);
    goto done;
  }
  for (uint32_t i = 0; i < n; i++)
    TRY(check_step(h, &steps[i], i, &impl[i], bound + (size_t)i * HW_MAX_BINDINGS));
  uint32_t id;
  s = slot_new(h, SLOT_PROGRAM, label, &id);
  if (!s) {
    e = mem_err(label, sizeof *s);
    goto done;
  }
  e = keep_uses(s, steps, n);
  if (!e) e = keep(h, h->be->program_new(h->self, label, impl, n, &s->obj));
  if (e) {
    slot_free(h, s);
    goto done;
  }
  s->size = n;
  s->checked = h->frees;
  h->counts.live_programs++;
  h->counts.made_bindgroups += n;
  *out = (hw_program){id};
done:
  mem_free(bound);
  mem_free(impl);
  return e;
}

void hw_program_free(hw *h, hw_program p) {
  slot *s = slot_get(h, SLOT_PROGRAM, p.id);
  if (!s) return;
  h->be->program_free(h->self, s->obj);
  h->counts.live_programs--;
  slot_free(h, s);
}

/* ---- submits ---- */

err hw_submit(hw *h, const hw_submit_desc *d, hw_ticket *out) {
  *out = (hw_ticket){0};
  err e = enter(h, "submit");
  if (e) return e;
  hw_submit_impl s = {.timestamps = d->timestamps && h->caps.timestamps, .ticket = h->next_ticket};
  uint64_t dispatches = 0;
  for (int i = 0; i < 4 && d->program[i].id; i++) {
    slot *p = slot_get(h, SLOT_PROGRAM, d->program[i].id);
    if (!p) return err_set(ERR_ARG, "submit: program %d is not alive", i);
    e = check_uses(h, p);
    if (e) return e;
    s.program[s.n_programs++] = p->obj;
    dispatches += p->size;
  }
  if (d->params.id) {
    slot *p = slot_get(h, SLOT_BUF, d->params.id);
    if (!p || p->host || d->params_size % 4 || d->params_size > p->size)
      return err_set(ERR_ARG, "submit: parameter block of %u bytes does not fit", d->params_size);
    s.params = p->obj;
    s.params_data = d->params_data;
    s.params_size = d->params_size;
  }
  if (d->read.id) {
    slot *p = slot_get(h, SLOT_BUF, d->read.id);
    if (!p || d->read_size > HW_READ_MAX || d->read_size % 4 || d->read_off % 4 || !d->read_size ||
        d->read_off > p->size || d->read_size > p->size - d->read_off)
      return err_set(ERR_ARG, "submit: read-back of %u bytes does not fit", d->read_size);
    s.read = p->obj;
    s.read_off = d->read_off;
    s.read_size = d->read_size;
  }
  e = keep(h, h->be->submit(h->self, &s));
  if (e) return e;
  h->counts.submits++;
  h->counts.dispatches += dispatches;
  *out = (hw_ticket){h->next_ticket++};
  return ERR_NONE;
}

bool hw_done(hw *h, hw_ticket t) {
  if (h->sticky || !t.n) return true;
  if (h->be->done(h->self, t.n)) return true;
  hw_poll(h);
  return h->sticky || h->be->done(h->self, t.n);
}

err hw_read(hw *h, hw_ticket t, void *dst, uint32_t size) {
  err e = enter(h, "read");
  if (e) return e;
  if (!t.n || t.n >= h->next_ticket) return err_set(ERR_ARG, "read: no such submit");
  return keep(h, h->be->read(h->self, t.n, dst, size));
}

err hw_times(hw *h, hw_ticket t, uint64_t *ns, uint32_t *n) {
  err e = enter(h, "times");
  return e ? e : h->be->times(h->self, t.n, ns, n);
}

/* ---- adapters ---- */

struct hw_list_state {
  const hw_backend *be;
  void *state;
};

err hw_list_begin(hw_kind kind, const char *library, hw_list_state **out) {
  *out = NULL;
  const hw_backend *be = backend_of(kind);
  if (!be) return err_set(ERR_NO_DEVICE, "this build has no such back end");
  hw_list_state *s = mem_zalloc(1, sizeof *s);
  if (!s) return mem_err("adapter list", sizeof *s);
  s->be = be;
  err e = be->list_begin(library, &s->state);
  if (e) {
    mem_free(s);
    return e;
  }
  *out = s;
  return ERR_NONE;
}

bool hw_list_poll(hw_list_state *s, hw_caps *out, uint32_t max, uint32_t *n) {
  return s->be->list_poll(s->state, out, max, n);
}

void hw_list_end(hw_list_state *s) {
  if (!s) return;
  s->be->list_end(s->state);
  mem_free(s);
}

/* Programs and submits of the WebGPU back end. A replay makes an encoder, a pass and a command
 * buffer (they are single-use) and nothing else: bind groups belong to the program, staging buffers
 * to the ring of read-backs. */
#ifdef FRIT_HAVE_WEBGPU_H
#include <stdio.h>
#include <string.h>

#include "base/math.h"
#include "base/mem.h"
#include "hw/webgpu_impl.h"

/* ---- programs ---- */

void wg_program_free(void *self, void *p) {
  wg_device *d = self;
  wg_program *prog = p;
  if (!prog) return;
  for (uint32_t i = 0; i < prog->n; i++) {
    wg_step *st = &prog->steps[i];
    if (st->group) d->lib.BindGroupRelease(st->group);
    if (st->pipeline) d->lib.ComputePipelineRelease(st->pipeline);
    mem_free(st->label);
  }
  mem_free(prog->label);
  mem_free(prog);
}

static err step_new(wg_device *d, const hw_step_impl *s, wg_step *out) {
  const wg_kernel *k = s->kernel;
  if (!k->pipeline)
    return err_set(ERR_ARG, "step '%s': kernel '%s' is not ready", s->label, k->label);
  WGPUBindGroupEntry entries[HW_MAX_BINDINGS] = {0};
  for (uint32_t i = 0; i < s->n_bind; i++)
    entries[i] = (WGPUBindGroupEntry){
        .binding = i, .buffer = s->bind[i].obj, .offset = s->bind[i].off, .size = s->bind[i].size};
  WGPUBindGroupDescriptor desc = {
      .label = wg_str(s->label), .layout = k->layout, .entryCount = s->n_bind, .entries = entries};
  memcpy(out->groups, s->groups, sizeof out->groups);
  out->label = mem_strdup(s->label);
  if (!out->label) return mem_err(s->label, strlen(s->label));
  out->group = d->lib.DeviceCreateBindGroup(d->device, &desc);
  if (!out->group) return err_set(ERR_DEVICE, "step '%s': no bind group could be made", s->label);
  d->lib.ComputePipelineAddRef(k->pipeline);
  out->pipeline = k->pipeline;
  return ERR_NONE;
}

err wg_program_new(void *self, const char *label, const hw_step_impl *s, uint32_t n, void **out) {
  wg_device *d = self;
  err e = ERR_NONE;
  wg_program *p = mem_zalloc(1, sizeof *p + n * sizeof(wg_step));
  if (!p) return mem_err(label, n * sizeof(wg_step));
  p->n = n;
  p->label = mem_strdup(label);
  if (!p->label) e = mem_err(label, strlen(label));
  for (uint32_t i = 0; !e && i < n; i++) e = step_new(d, &s[i], &p->steps[i]);
  if (!e) e = wg_flush_error(d);
  if (e) wg_program_free(d, p);
  else *out = p;
  return e;
}

/* ---- read-backs ---- */

enum { SMALL_READ = 256 }; /* bytes: token ids, a few statistics */

static bool slot_grow(wg_device *d, wg_slot *s, uint32_t cap) {
  if (s->buf) {
    d->lib.BufferDestroy(s->buf);
    d->lib.BufferRelease(s->buf);
  }
  s->buf = wg_buffer(d, "read-back", WGPUBufferUsage_MapRead | WGPUBufferUsage_CopyDst, cap);
  s->cap = s->buf ? cap : 0;
  return s->buf != NULL;
}

err wg_run_open(wg_device *d) {
  for (int i = 0; i < HW_IN_FLIGHT; i++) {
    if (!slot_grow(d, &d->slots[i], SMALL_READ))
      return err_set(ERR_DEVICE_NOMEM, "no memory for read-backs");
  }
  return ERR_NONE;
}

void wg_run_close(wg_device *d) {
  for (int i = 0; i < HW_IN_FLIGHT; i++) {
    if (!d->slots[i].buf) continue;
    d->lib.BufferDestroy(d->slots[i].buf);
    d->lib.BufferRelease(d->slots[i].buf);
  }
}

static void slot_give(wg_device *d, wg_slot *s) {
  if (s->state == WG_MAPPED) d->lib.BufferUnmap(s->buf);
  s->state = WG_FREE;
  s->dropped = false;
}

/* The smallest free slot that is large enough, else the largest free one, grown. */
static err slot_take(wg_device *d, uint32_t size, wg_slot **out) {
  wg_slot *fit = NULL, *large = NULL;
  for (int i = 0; i < HW_IN_FLIGHT; i++) {
    wg_slot *s = &d->slots[i];
    if (s->dropped && s->state != WG_PENDING) slot_give(d, s);
    if (s->state != WG_FREE) continue;
    if (s->cap >= size && (!fit || s->cap < fit->cap)) fit = s;
    if (!large || s->cap > large->cap) large = s;
  }
  if (!large) return err_set(ERR_LIMIT, "more than %d read-backs in flight", HW_IN_FLIGHT);
  if (!fit) {
    uint32_t cap = SMALL_READ;
    while (cap < size) cap *= 2;
    if (!slot_grow(d, large, cap))
      return err_set(ERR_DEVICE_NOMEM, "no memory to read %u bytes", size);
    fit = large;
  }
  *out = fit;
  return ERR_NONE;
}

static void on_mapped(WGPUMapAsyncStatus status, WGPUStringView message, void *user, void *slot) {
  (void)message; /* what went wrong with the device is reported by itself */
  wg_device *d = user;
  wg_slot *s = slot;
  bool ok = status == WGPUMapAsyncStatus_Success;
  s->state = ok ? WG_MAPPED : WG_BROKEN;
  if (ok) d->completed = max_u64(d->completed, s->ticket); /* the queue runs in order */
}

static void slot_map(wg_device *d, wg_slot *s, const hw_submit_impl *sub) {
  s->ticket = sub->ticket;
  s->size = sub->read_size;
  s->state = WG_PENDING;
  WGPUBufferMapCallbackInfo cb = {.mode = WGPUCallbackMode_AllowProcessEvents,
                                  .callback = on_mapped,
                                  .userdata1 = d,
                                  .userdata2 = s};
  d->lib.BufferMapAsync(s->buf, WGPUMapMode_Read, 0, s->size, cb);
}

static wg_slot *slot_of(wg_device *d, uint64_t ticket) {
  for (int i = 0; i < HW_IN_FLIGHT; i++) {
    wg_slot *s = &d->slots[i];
    if (s->state != WG_FREE && !s->dropped && s->ticket == ticket) return s;
  }
  return NULL;
}

/* Mappings end early with the device only, whose own words may come later. */
static err gone(wg_device *d, uint64_t ticket) {
  err e = wg_flush_error(d);
  return e ? e
           : err_set(ERR_DEVICE_LOST, "device lost: the data of submit %llu is gone",
                     (unsigned long long)ticket);
}

err wg_read(void *self, uint64_t ticket, void *dst, uint32_t size) {
  wg_device *d = self;
  wg_slot *s = slot_of(d, ticket);
  if (!s) return err_set(ERR_ARG, "read: submit %llu has no read-back", (unsigned long long)ticket);
  if (s->state == WG_PENDING && !dst) {
    s->dropped = true;
    return ERR_NONE;
  }
  if (s->state == WG_PENDING)
    return err_set(ERR_ARG, "read: submit %llu is not done", (unsigned long long)ticket);
  err e = ERR_NONE;
  const void *p =
      s->state == WG_MAPPED ? d->lib.BufferGetConstMappedRange(s->buf, 0, s->size) : NULL;
  if (!p) e = gone(d, ticket);
  else if (dst) memcpy(dst, p, min_u32(size, s->size));
  slot_give(d, s);
  return e;
}

/* ---- submits ---- */

static void encode_step(const wg_lib *lib, WGPUComputePassEncoder pass, const wg_step *st,
                        WGPUComputePipeline *bound) {
  if (st->pipeline != *bound) lib->ComputePassEncoderSetPipeline(pass, st->pipeline);
  *bound = st->pipeline;
  lib->ComputePassEncoderSetBindGroup(pass, 0, st->group, 0, NULL);
  lib->ComputePassEncoderDispatchWorkgroups(pass, st->groups[0], st->groups[1], st->groups[2]);
}

/* All programs in one pass. */
static void encode(const wg_lib *lib, WGPUCommandEncoder enc, const hw_submit_impl *s) {
  const wg_program *first = s->program[0];
  WGPUComputePassDescriptor desc = {.label = wg_str(first->label)};
  WGPUComputePassEncoder pass = lib->CommandEncoderBeginComputePass(enc, &desc);
  WGPUComputePipeline bound = NULL;
  for (uint32_t i = 0; i < s->n_programs; i++) {
    const wg_program *p = s->program[i];
    for (uint32_t j = 0; j < p->n; j++) encode_step(lib, pass, &p->steps[j], &bound);
  }
  lib->ComputePassEncoderEnd(pass);
  lib->ComputePassEncoderRelease(pass);
}

/* A pass a step, since timestamps are written at the ends of passes. */
static void encode_timed(wg_device *d, WGPUCommandEncoder enc, const hw_submit_impl *s,
                         wg_timer *t) {
  const wg_lib *lib = &d->lib;
  uint32_t n = 0;
  for (uint32_t i = 0; i < s->n_programs; i++) {
    const wg_program *p = s->program[i];
    for (uint32_t j = 0; j < p->n; j++) {
      WGPUPassTimestampWrites w = wg_timer_step(t, n++);
      WGPUComputePassDescriptor desc = {.label = wg_str(p->steps[j].label), .timestampWrites = &w};
      WGPUComputePassEncoder pass = lib->CommandEncoderBeginComputePass(enc, &desc);
      WGPUComputePipeline bound = NULL;
      encode_step(lib, pass, &p->steps[j], &bound);
      lib->ComputePassEncoderEnd(pass);
      lib->ComputePassEncoderRelease(pass);
    }
  }
  wg_timer_resolve(d, t, enc);
}

static void send(wg_device *d, const hw_submit_impl *s, const wg_slot *slot, wg_timer *timer) {
  const wg_lib *lib = &d->lib;
  const wg_program *first = s->n_programs ? s->program[0] : NULL;
  WGPUStringView label = wg_str(first ? first->label : "read-back");
  WGPUCommandEncoder enc =
      lib->DeviceCreateCommandEncoder(d->device, &(WGPUCommandEncoderDescriptor){.label = label});
  if (timer) encode_timed(d, enc, s, timer);
  else if (s->n_programs) encode(lib, enc, s);
  if (slot)
    lib->CommandEncoderCopyBufferToBuffer(enc, s->read, s->read_off, slot->buf, 0, s->read_size);
  WGPUCommandBuffer cmd =
      lib->CommandEncoderFinish(enc, &(WGPUCommandBufferDescriptor){.label = label});
  lib->CommandEncoderRelease(enc);
  if (!cmd) return; /* an error was reported */
  lib->QueueSubmit(d->queue, 1, &cmd);
  lib->CommandBufferRelease(cmd);
  d->unflushed = 0;
}

err wg_submit(void *self, const hw_submit_impl *s) {
  wg_device *d = self;
  wg_slot *slot = NULL;
  wg_timer *timer = NULL;
  uint32_t steps = 0;
  for (uint32_t i = 0; i < s->n_programs; i++) steps += ((const wg_program *)s->program[i])->n;
  err e = s->read ? slot_take(d, s->read_size, &slot) : ERR_NONE;
  if (!e && s->timestamps && steps) e = wg_timer_take(d, s->ticket, steps, &timer);
  if (e) return e;
  if (s->params_size)
    d->lib.QueueWriteBuffer(d->queue, s->params, 0, s->params_data, s->params_size);
  send(d, s, slot, timer);
  d->submitted = s->ticket;
  e = wg_flush_error(d);
  if (e) return e; /* a rejected submit must not look like a fast one */
  if (slot) slot_map(d, slot, s);
  if (timer) wg_timer_map(d, timer);
  return wg_flush_error(d);
}

static void on_work_done(WGPUQueueWorkDoneStatus status, WGPUStringView message, void *user,
                         void *unused) {
  (void)message, (void)unused;
  wg_device *d = user;
  if (status == WGPUQueueWorkDoneStatus_Success) d->completed = max_u64(d->completed, d->asked);
  d->asked = 0;
}

/* A read-back or its times finish with their mapping. Of other submits the end is only asked for
 * when somebody wants to know. */
bool wg_done(void *self, uint64_t ticket) {
  wg_device *d = self;
  for (int i = 0; i < WG_TIMERS; i++) {
    if (d->timers[i].ticket == ticket && d->timers[i].state == WG_PENDING) return false;
  }
  const wg_slot *s = slot_of(d, ticket);
  if (s) return s->state != WG_PENDING;
  if (ticket <= d->completed) return true;
  if (!d->asked) {
    d->asked = d->submitted;
    WGPUQueueWorkDoneCallbackInfo cb = {
        .mode = WGPUCallbackMode_AllowProcessEvents, .callback = on_work_done, .userdata1 = d};
    d->lib.QueueOnSubmittedWorkDone(d->queue, cb);
  }
  return ticket <= d->completed;
}
#else
typedef int webgpu_run_absent; /* built without webgpu.h: see webgpu.c */
#endif

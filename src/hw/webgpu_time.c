/* Times of steps: query sets, their resolved values, and the copy on the host. */
#ifdef FRIT_HAVE_WEBGPU_H
#include <string.h>

#include "base/math.h"
#include "base/mem.h"
#include "hw/webgpu_impl.h"

enum { SET_BYTES = WG_SET_STEPS * 2 * 8 }; /* of one query set, resolved */

static void timer_clear(wg_device *d, wg_timer *t) {
  for (uint32_t i = 0; i < t->n_sets; i++) {
    /* Only released: in wgpu-native a destroyed set must not be released. */
    if (t->sets[i]) d->lib.QuerySetRelease(t->sets[i]);
  }
  WGPUBuffer bufs[2] = {t->resolve, t->staging};
  for (int i = 0; i < 2; i++) {
    if (!bufs[i]) continue;
    d->lib.BufferDestroy(bufs[i]);
    d->lib.BufferRelease(bufs[i]);
  }
  mem_free(t->ns);
  *t = (wg_timer){0};
}

static err timer_grow(wg_device *d, wg_timer *t, uint32_t sets) {
  timer_clear(d, t);
  t->ns = mem_alloc((size_t)sets * SET_BYTES / 2);
  if (!t->ns) return mem_err("step times", (uint64_t)sets * SET_BYTES / 2);
  uint64_t size = (uint64_t)sets * SET_BYTES;
  t->resolve =
      wg_buffer(d, "step times", WGPUBufferUsage_QueryResolve | WGPUBufferUsage_CopySrc, size);
  t->staging = wg_buffer(d, "step times, read-back",
                         WGPUBufferUsage_MapRead | WGPUBufferUsage_CopyDst, size);
  WGPUQuerySetDescriptor desc = {
      .label = wg_str("step times"), .type = WGPUQueryType_Timestamp, .count = WG_SET_STEPS * 2};
  bool all = t->resolve && t->staging;
  for (t->n_sets = 0; all && t->n_sets < sets; t->n_sets++) {
    t->sets[t->n_sets] = d->lib.DeviceCreateQuerySet(d->device, &desc);
    all = t->sets[t->n_sets] != NULL;
  }
  if (all) return ERR_NONE;
  timer_clear(d, t);
  return err_set(ERR_DEVICE_NOMEM, "no memory to time %u steps", sets * WG_SET_STEPS);
}

/* The oldest one that is not in flight. */
err wg_timer_take(wg_device *d, uint64_t ticket, uint32_t steps, wg_timer **out) {
  wg_timer *t = NULL;
  for (int i = 0; i < WG_TIMERS; i++) {
    wg_timer *c = &d->timers[i];
    if (c->state != WG_PENDING && (!t || c->ticket < t->ticket)) t = c;
  }
  if (!t) return err_set(ERR_LIMIT, "more than %d timed submits in flight", WG_TIMERS);
  uint32_t sets = div_up32(steps, WG_SET_STEPS);
  if (sets > WG_MAX_SETS)
    return err_set(ERR_LIMIT, "%u steps to time, at most %d", steps, WG_MAX_SETS * WG_SET_STEPS);
  err e = sets > t->n_sets ? timer_grow(d, t, sets) : ERR_NONE;
  if (e) return e;
  t->ticket = ticket;
  t->n = steps;
  t->state = WG_BROKEN; /* until the copy has arrived */
  *out = t;
  return ERR_NONE;
}

WGPUPassTimestampWrites wg_timer_step(const wg_timer *t, uint32_t step) {
  uint32_t i = step % WG_SET_STEPS * 2;
  return (WGPUPassTimestampWrites){.querySet = t->sets[step / WG_SET_STEPS],
                                   .beginningOfPassWriteIndex = i,
                                   .endOfPassWriteIndex = i + 1};
}

void wg_timer_resolve(wg_device *d, const wg_timer *t, WGPUCommandEncoder enc) {
  for (uint32_t done = 0, i = 0; done < t->n; done += WG_SET_STEPS, i++) {
    uint32_t n = min_u32(t->n - done, WG_SET_STEPS) * 2;
    d->lib.CommandEncoderResolveQuerySet(enc, t->sets[i], 0, n, t->resolve,
                                         (uint64_t)i * SET_BYTES);
  }
  d->lib.CommandEncoderCopyBufferToBuffer(enc, t->resolve, 0, t->staging, 0, (uint64_t)t->n * 16);
}

static void on_times(WGPUMapAsyncStatus status, WGPUStringView message, void *user, void *timer) {
  (void)message;
  wg_device *d = user;
  wg_timer *t = timer;
  t->state = WG_BROKEN;
  if (status != WGPUMapAsyncStatus_Success || d->closing) return;
  const uint64_t *tick = d->lib.BufferGetConstMappedRange(t->staging, 0, (size_t)t->n * 16);
  for (uint32_t i = 0; tick && i < t->n; i++) {
    uint64_t begin = tick[2 * i], end = tick[2 * i + 1];
    t->ns[i] = end > begin ? (uint64_t)((double)(end - begin) * (double)d->tick_ns) : 0;
  }
  d->lib.BufferUnmap(t->staging);
  if (tick) t->state = WG_FREE;
  d->completed = max_u64(d->completed, t->ticket);
}

void wg_timer_map(wg_device *d, wg_timer *t) {
  t->state = WG_PENDING;
  WGPUBufferMapCallbackInfo cb = {.mode = WGPUCallbackMode_AllowProcessEvents,
                                  .callback = on_times,
                                  .userdata1 = d,
                                  .userdata2 = t};
  d->lib.BufferMapAsync(t->staging, WGPUMapMode_Read, 0, (size_t)t->n * 16, cb);
}

void wg_timers_close(wg_device *d) {
  for (int i = 0; i < WG_TIMERS; i++) timer_clear(d, &d->timers[i]);
}

err wg_times(void *self, uint64_t ticket, uint64_t *ns, uint32_t *n) {
  wg_device *d = self;
  for (int i = 0; ticket && i < WG_TIMERS; i++) {
    const wg_timer *t = &d->timers[i];
    if (t->ticket != ticket) continue;
    if (t->state == WG_PENDING) return err_set(ERR_ARG, "times: that submit is not done");
    if (t->state == WG_BROKEN) return err_set(ERR_DEVICE, "times: none arrived");
    *n = min_u32(*n, t->n);
    memcpy(ns, t->ns, *n * sizeof *ns);
    return ERR_NONE;
  }
  return err_set(ERR_ARG, "times: that submit was not timed");
}
#else
typedef int webgpu_time_absent; /* built without webgpu.h: see webgpu.c */
#endif

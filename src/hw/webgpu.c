/* The native WebGPU back end: opening and closing a device, its errors, the list of adapters.
 *
 * All callbacks come from wg_pump, on the caller's thread, except uncaptured errors, which may come
 * from any: they are noted first and made sticky on our thread. Without webgpu.h at build time this
 * is a back end that says so. */
#include "hw/hw_impl.h"

#ifdef FRIT_HAVE_WEBGPU_H
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/math.h"
#include "base/mem.h"
#include "hw/webgpu_impl.h"

/* ---- errors ---- */

void wg_note_error(wg_device *d, err code, const char *label, WGPUStringView text) {
  int none = 0;
  if (d->closing || !atomic_compare_exchange_strong(&d->error_state, &none, 1)) return;
  char words[400];
  wg_copy(words, sizeof words, text);
  d->error = code;
  snprintf(d->error_text, sizeof d->error_text, "%s%s%s", label ? label : "", label ? ": " : "",
           words);
  atomic_store(&d->error_state, 2);
}

err wg_flush_error(wg_device *d) {
  if (atomic_load(&d->error_state) != 2) return ERR_NONE;
  hw_set_error(d->h, err_set(d->error, "%s", d->error_text));
  return d->error;
}

void wg_pump(wg_device *d) {
  d->lib.InstanceProcessEvents(d->scan.instance);
  wg_flush_error(d);
}

static void on_error(WGPUDevice const *device, WGPUErrorType type, WGPUStringView message,
                     void *user, void *unused) {
  (void)device, (void)unused;
  wg_device *d = user;
  char words[400];
  wg_copy(words, sizeof words, message);
  err e = type == WGPUErrorType_OutOfMemory ? ERR_DEVICE_NOMEM : ERR_DEVICE;
  /* wgpu-native says it in words only. */
  if (d->lib.wgpu_native && strstr(words, "device is lost")) e = ERR_DEVICE_LOST;
  wg_note_error(d, e, NULL, message);
}

static void on_lost(WGPUDevice const *device, WGPUDeviceLostReason reason, WGPUStringView message,
                    void *user, void *unused) {
  (void)device, (void)unused;
  wg_device *d = user;
  if (d->device && reason != WGPUDeviceLostReason_FailedCreation)
    wg_note_error(d, ERR_DEVICE_LOST, "device lost", message);
}

/* ---- opening ---- */

static void on_device(WGPURequestDeviceStatus status, WGPUDevice device, WGPUStringView message,
                      void *user, void *unused) {
  (void)unused;
  wg_device *d = user;
  if (d->closing) {
    if (device) d->lib.DeviceRelease(device);
  } else if (status == WGPURequestDeviceStatus_Success && device) {
    d->device = device;
  } else {
    wg_note_error(d, ERR_NO_DEVICE, "the adapter gave no device", message);
  }
}

/* The adapter's own limits, lowered where the caller pretends; and what is optional. */
static void request_device(wg_device *d, const wg_adapter *a) {
  WGPULimits limits = WGPU_LIMITS_INIT;
  d->lib.AdapterGetLimits(a->adapter, &limits);
  limits.nextInChain = NULL;
  limits.maxImmediateSize =
      WGPU_LIMIT_U32_UNDEFINED; /* needs a feature of its own in wgpu-native */
  if (d->limit_binding)
    limits.maxStorageBufferBindingSize =
        min_u64(limits.maxStorageBufferBindingSize, d->limit_binding);
  WGPUFeatureName features[3];
  size_t n = 0;
  if (a->caps.f16 && !d->no_f16) features[n++] = WGPUFeatureName_ShaderF16;
  if (a->caps.subgroups && !d->no_subgroups) features[n++] = WGPUFeatureName_Subgroups;
  if (a->caps.timestamps) features[n++] = WGPUFeatureName_TimestampQuery;
  wg_toggles toggles = wg_toggles_of(d->no_robustness);
  WGPUDeviceDescriptor desc = {
      .nextInChain = d->lib.dawn ? &toggles.chain : NULL,
      .label = wg_str("frit"),
      .requiredFeatureCount = n,
      .requiredFeatures = features,
      .requiredLimits = &limits,
      .defaultQueue = {.label = wg_str("frit queue")},
      .deviceLostCallbackInfo = {.mode = WGPUCallbackMode_AllowProcessEvents,
                                 .callback = on_lost,
                                 .userdata1 = d},
      .uncapturedErrorCallbackInfo = {.callback = on_error, .userdata1 = d},
  };
  WGPURequestDeviceCallbackInfo cb = {
      .mode = WGPUCallbackMode_AllowProcessEvents, .callback = on_device, .userdata1 = d};
  d->phase = WG_REQUESTING;
  d->lib.AdapterRequestDevice(a->adapter, &desc, cb);
}

static void choose(wg_device *d) {
  const wg_scan *s = &d->scan;
  if (d->index < s->n) {
    d->caps = s->found[d->index].caps;
    request_device(d, &s->found[d->index]);
    return;
  }
  const char *why = s->refusal[0] ? s->refusal : "no driver of a GPU was found";
  if (s->n)
    hw_set_error(d->h, err_set(ERR_NO_DEVICE, "gpu:%u: only %u adapter%s here (%s)", d->index, s->n,
                               s->n == 1 ? "" : "s", d->lib.name));
  else
    hw_set_error(d->h,
                 err_set(ERR_NO_DEVICE, "gpu:%u: no adapter (%s): %s", d->index, d->lib.name, why));
}

static err finish_open(wg_device *d) {
  const wg_lib *lib = &d->lib;
  WGPULimits l = WGPU_LIMITS_INIT;
  hw_caps *c = &d->caps;
  d->queue = lib->DeviceGetQueue(d->device);
  if (!d->queue || lib->DeviceGetLimits(d->device, &l) != WGPUStatus_Success)
    return err_set(ERR_DEVICE, "%s: the device has no queue or limits", c->name);
  c->max_binding = l.maxStorageBufferBindingSize;
  if (d->limit_binding) c->max_binding = min_u64(c->max_binding, d->limit_binding);
  c->max_buffer = l.maxBufferSize;
  c->f16 = lib->DeviceHasFeature(d->device, WGPUFeatureName_ShaderF16);
  c->timestamps = lib->DeviceHasFeature(d->device, WGPUFeatureName_TimestampQuery);
  c->subgroups = lib->DeviceHasFeature(d->device, WGPUFeatureName_Subgroups);
  if (!c->subgroups) c->subgroup_min = c->subgroup_max = 0;
  if (c->dot4i8 && !lib->dawn)
    c->dot4i8 =
        wg_compiles(d, "@compute @workgroup_size(1) fn main() { let a = dot4I8Packed(1u, 2u); }");
  if (d->no_dot4i8) c->dot4i8 = false;
  d->tick_ns = lib->queue_timestamp_period ? lib->queue_timestamp_period(d->queue) : 1;
  return wg_run_open(d);
}

static err wg_open(hw *h, const hw_open_desc *desc, void **self) {
  wg_device *d = mem_zalloc(1, sizeof *d);
  if (!d) return mem_err("device", sizeof *d);
  d->h = h;
  d->index = desc->index;
  d->no_f16 = desc->no_f16;
  d->no_subgroups = desc->no_subgroups;
  d->no_dot4i8 = desc->no_dot4i8;
  d->limit_binding = desc->limit_binding;
  const char *env = getenv("FRIT_NO_ROBUSTNESS");
  d->no_robustness = desc->no_robustness || (env && env[0] == '1');
  err e = wg_lib_open(desc->library, &d->lib);
  if (!e) e = wg_scan_begin(&d->scan, &d->lib);
  if (e) {
    wg_lib_close(&d->lib);
    mem_free(d);
    return e;
  }
  *self = d;
  return ERR_NONE;
}

static hw_state wg_poll(void *self, hw_caps *caps) {
  wg_device *d = self;
  wg_pump(d);
  if (d->phase == WG_SCANNING && wg_scan_step(&d->scan)) choose(d);
  if (d->phase == WG_REQUESTING && d->device) {
    err e = finish_open(d);
    if (e) {
      hw_set_error(d->h, e);
      return HW_FAILED;
    }
    d->phase = WG_READY;
    *caps = d->caps;
  }
  wg_flush_error(d);
  return d->phase == WG_READY ? HW_READY : HW_OPENING;
}

static void wg_close(void *self) {
  wg_device *d = self;
  d->closing = true;
  wg_run_close(d);
  wg_timers_close(d);
  wg_objects_close(d, false);
  if (d->queue) d->lib.QueueRelease(d->queue);
  if (d->device) {
    d->lib.DeviceDestroy(d->device);
    d->lib.DeviceRelease(d->device);
  }
  wg_scan_drop(&d->scan);
  /* Callbacks still to come are cancelled here at the latest: d outlives them. */
  d->lib.InstanceProcessEvents(d->scan.instance);
  d->lib.InstanceRelease(d->scan.instance);
  wg_objects_close(d, true);
  wg_lib_close(&d->lib);
  mem_free(d);
}

static void wg_lose(void *self) {
  wg_device *d = self;
  if (!d->device) return;
  d->lib.DeviceDestroy(d->device);
  /* wgpu-native does not call back for a device that was destroyed on purpose. */
  if (d->lib.wgpu_native) wg_note_error(d, ERR_DEVICE_LOST, "device lost", wg_str("destroyed"));
}

/* ---- list ---- */

typedef struct wg_list {
  wg_lib lib;
  wg_scan scan;
} wg_list;

static err wg_list_begin(const char *library, void **state) {
  wg_list *s = mem_zalloc(1, sizeof *s);
  if (!s) return mem_err("adapter list", sizeof *s);
  err e = wg_lib_open(library, &s->lib);
  if (!e) e = wg_scan_begin(&s->scan, &s->lib);
  if (e) {
    wg_lib_close(&s->lib);
    mem_free(s);
    return e;
  }
  *state = s;
  return ERR_NONE;
}

static bool wg_list_poll(void *state, hw_caps *out, uint32_t max, uint32_t *n) {
  wg_list *s = state;
  s->lib.InstanceProcessEvents(s->scan.instance);
  *n = 0;
  if (!wg_scan_step(&s->scan)) return false;
  *n = min_u32(max, s->scan.n);
  for (uint32_t i = 0; i < *n; i++) out[i] = s->scan.found[i].caps;
  return true;
}

static void wg_list_end(void *state) {
  wg_list *s = state;
  wg_scan_drop(&s->scan);
  s->lib.InstanceRelease(s->scan.instance);
  wg_scan_drop(&s->scan); /* one that arrived while the instance ended */
  wg_lib_close(&s->lib);
  mem_free(s);
}

const hw_backend hw_backend_webgpu = {
    .open = wg_open,
    .close = wg_close,
    .poll = wg_poll,
    .buf_new = wg_buf_new,
    .buf_free = wg_buf_free,
    .buf_write = wg_buf_write,
    .kernel_new = wg_kernel_new,
    .kernel_ready = wg_kernel_ready,
    .kernel_free = wg_kernel_free,
    .program_new = wg_program_new,
    .program_free = wg_program_free,
    .submit = wg_submit,
    .done = wg_done,
    .read = wg_read,
    .times = wg_times,
    .lose = wg_lose,
    .list_begin = wg_list_begin,
    .list_poll = wg_list_poll,
    .list_end = wg_list_end,
};
#else
static err no_open(hw *h, const hw_open_desc *d, void **self) {
  (void)h, (void)d, (void)self;
  return err_set(ERR_NO_DEVICE,
                 "this build has no WebGPU back end (it was built without webgpu.h)");
}
static err no_list(const char *library, void **state) {
  (void)library, (void)state;
  return err_set(ERR_NO_DEVICE,
                 "this build has no WebGPU back end (it was built without webgpu.h)");
}
const hw_backend hw_backend_webgpu = {.open = no_open, .list_begin = no_list};
#endif

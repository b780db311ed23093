/* Buffers and kernels of the WebGPU back end. A buffer is the library's own object; a kernel keeps
 * its error, since a text that does not compile is no failure of the device. */
#ifdef FRIT_HAVE_WEBGPU_H
#include <stdio.h>
#include <string.h>

#include "base/math.h"
#include "base/mem.h"
#include "hw/webgpu_impl.h"

/* ---- error scopes ---- */

/* The answer to one error scope. Natively it is there as soon as callbacks are driven; where it
 * comes later, the error is the device's. */
typedef struct scope {
  wg_device *d;
  char label[HW_LABEL];
  bool done, left; /* left: nobody waits any more, the callback frees */
  err e;
  char text[320];
} scope;

static void on_scope(WGPUPopErrorScopeStatus status, WGPUErrorType type, WGPUStringView message,
                     void *user, void *unused) {
  (void)unused;
  scope *s = user;
  s->done = true;
  if (status == WGPUPopErrorScopeStatus_Success && type != WGPUErrorType_NoError) {
    s->e = type == WGPUErrorType_OutOfMemory ? ERR_DEVICE_NOMEM : ERR_DEVICE;
    wg_copy(s->text, sizeof s->text, message);
    if (s->left) wg_note_error(s->d, s->e, s->label, message);
  }
  if (s->left) mem_free(s);
}

static scope *scope_push(wg_device *d, const char *label, WGPUErrorFilter filter) {
  scope *s = mem_zalloc(1, sizeof *s);
  if (!s) return NULL;
  s->d = d;
  snprintf(s->label, sizeof s->label, "%s", label);
  d->lib.DevicePushErrorScope(d->device, filter);
  return s;
}

/* Ends the scope; *known says whether the answer is there already. */
static err scope_pop(scope *s, bool *known) {
  wg_device *d = s->d;
  WGPUPopErrorScopeCallbackInfo cb = {
      .mode = WGPUCallbackMode_AllowProcessEvents, .callback = on_scope, .userdata1 = s};
  d->lib.DevicePopErrorScope(d->device, cb);
  if (!s->done) wg_pump(d);
  *known = s->done;
  if (!s->done) {
    s->left = true;
    return ERR_NONE;
  }
  err e = s->e ? err_set(s->e, "%s: %s", s->label, s->text) : ERR_NONE;
  mem_free(s);
  return e;
}

/* ---- buffers ---- */

WGPUBuffer wg_buffer(wg_device *d, const char *label, WGPUBufferUsage usage, uint64_t size) {
  WGPUBufferDescriptor desc = {.label = wg_str(label), .usage = usage, .size = size};
  return d->lib.DeviceCreateBuffer(d->device, &desc);
}

err wg_buf_new(void *self, const hw_buf_desc *desc, void **out) {
  wg_device *d = self;
  /* wgpu-native reports exhausted memory as a validation error. */
  scope *s =
      scope_push(d, desc->label,
                 d->lib.wgpu_native ? WGPUErrorFilter_Validation : WGPUErrorFilter_OutOfMemory);
  if (!s) return mem_err(desc->label, sizeof *s);
  WGPUBufferUsage use = desc->use == HW_UNIFORM ? WGPUBufferUsage_Uniform : WGPUBufferUsage_Storage;
  WGPUBuffer b = wg_buffer(d, desc->label, use | WGPUBufferUsage_CopyDst | WGPUBufferUsage_CopySrc,
                           desc->size);
  bool known;
  err e = scope_pop(s, &known);
  bool exhausted = e == ERR_DEVICE_NOMEM || (e && strstr(err_text(), "Not enough memory"));
  if (exhausted || (!e && !b))
    e = err_set(ERR_DEVICE_NOMEM, "buffer '%s': %llu bytes of device memory are not to be had",
                desc->label, (unsigned long long)desc->size);
  if (!e) e = wg_flush_error(d);
  if (e) {
    if (b) wg_buf_free(d, b);
    return e;
  }
  *out = b;
  return ERR_NONE;
}

void wg_buf_free(void *self, void *b) {
  wg_device *d = self;
  d->lib.BufferDestroy(b); /* memory back now, even while bind groups still hold the object */
  d->lib.BufferRelease(b);
}

err wg_buf_write(void *self, void *b, uint64_t off, const void *data, uint64_t size) {
  wg_device *d = self;
  d->lib.QueueWriteBuffer(d->queue, b, off, data, (size_t)size);
  /* The library stages what was written until a submit: keep that pile low while weights load. */
  d->unflushed += size;
  if (d->unflushed >= 32u << 20) {
    d->lib.QueueSubmit(d->queue, 0, NULL);
    d->unflushed = 0;
    wg_pump(d);
  }
  return wg_flush_error(d);
}

/* ---- layouts ---- */

static WGPUBufferBindingType binding_type(hw_bind b) {
  switch (b) {
  case HW_BIND_READ: return WGPUBufferBindingType_ReadOnlyStorage;
  case HW_BIND_WRITE: return WGPUBufferBindingType_Storage;
  default: return WGPUBufferBindingType_Uniform;
  }
}

static void layout_release(wg_device *d, wg_layout *l) {
  if (l->pipeline) d->lib.PipelineLayoutRelease(l->pipeline);
  if (l->group) d->lib.BindGroupLayoutRelease(l->group);
}

/* One layout per signature: kernels with the same bindings share it. */
static err layout_of(wg_device *d, const hw_kernel_desc *k, wg_layout *out) {
  uint32_t signature = k->n_bind << 2 * HW_MAX_BINDINGS;
  for (uint32_t i = 0; i < k->n_bind; i++) signature |= (uint32_t)k->bind[i] << 2 * i;
  for (uint32_t i = 0; i < d->n_layouts; i++) {
    if (d->layouts[i].signature != signature) continue;
    *out = d->layouts[i];
    return ERR_NONE;
  }
  if (d->n_layouts == d->cap_layouts) {
    uint32_t cap = d->cap_layouts ? d->cap_layouts * 2 : 16;
    wg_layout *p = mem_realloc(d->layouts, d->cap_layouts * sizeof *p, cap * sizeof *p);
    if (!p) return mem_err("bind group layouts", cap * sizeof *p);
    d->layouts = p;
    d->cap_layouts = cap;
  }
  WGPUBindGroupLayoutEntry entries[HW_MAX_BINDINGS] = {0};
  char label[HW_MAX_BINDINGS + 16] = "bindings ";
  for (uint32_t i = 0; i < k->n_bind; i++) {
    entries[i] = (WGPUBindGroupLayoutEntry){.binding = i,
                                            .visibility = WGPUShaderStage_Compute,
                                            .buffer = {.type = binding_type(k->bind[i])}};
    label[9 + i] = "rwu"[k->bind[i]];
  }
  WGPUBindGroupLayoutDescriptor gd = {
      .label = wg_str(label), .entryCount = k->n_bind, .entries = entries};
  wg_layout l = {.signature = signature};
  l.group = d->lib.DeviceCreateBindGroupLayout(d->device, &gd);
  WGPUPipelineLayoutDescriptor pd = {
      .label = wg_str(label), .bindGroupLayoutCount = 1, .bindGroupLayouts = &l.group};
  if (l.group) l.pipeline = d->lib.DeviceCreatePipelineLayout(d->device, &pd);
  if (!l.pipeline) {
    layout_release(d, &l);
    return err_set(ERR_DEVICE, "%s: no bind group layout could be made", k->label);
  }
  d->layouts[d->n_layouts++] = *out = l;
  return ERR_NONE;
}

/* ---- kernels ---- */

static void kernel_error(wg_kernel *k, err e, WGPUStringView text) {
  if (k->e) return; /* the first says why, the rest follow from it */
  k->e = e;
  wg_copy(k->text, sizeof k->text, text);
}

static void kernel_delete(wg_kernel *k) {
  wg_device *d = k->d;
  if (k->pipeline) d->lib.ComputePipelineRelease(k->pipeline);
  if (k->module) d->lib.ShaderModuleRelease(k->module);
  if (k->prev) k->prev->next = k->next;
  else d->kernels = k->next;
  if (k->next) k->next->prev = k->prev;
  mem_free(k);
}

/* One callback fewer to come; the module is only needed until the last. */
static void kernel_settle(wg_kernel *k) {
  if (--k->pending) return;
  if (k->module) k->d->lib.ShaderModuleRelease(k->module);
  k->module = NULL;
  if (k->orphan) kernel_delete(k);
}

static void on_compiled(WGPUPopErrorScopeStatus status, WGPUErrorType type, WGPUStringView message,
                        void *user, void *unused) {
  (void)unused;
  wg_kernel *k = user;
  if (status == WGPUPopErrorScopeStatus_Success && type != WGPUErrorType_NoError)
    kernel_error(k, type == WGPUErrorType_OutOfMemory ? ERR_DEVICE_NOMEM : ERR_DEVICE, message);
  kernel_settle(k);
}

static void on_pipeline(WGPUCreatePipelineAsyncStatus status, WGPUComputePipeline pipeline,
                        WGPUStringView message, void *user, void *unused) {
  (void)unused;
  wg_kernel *k = user;
  k->pipeline = pipeline;
  if (status != WGPUCreatePipelineAsyncStatus_Success) kernel_error(k, ERR_DEVICE, message);
  kernel_settle(k);
}

static WGPUShaderModule module_new(wg_device *d, const char *label, const char *wgsl) {
  WGPUShaderSourceWGSL source = {.chain = {.sType = WGPUSType_ShaderSourceWGSL},
                                 .code = wg_str(wgsl)};
  WGPUShaderModuleDescriptor desc = {.nextInChain = &source.chain, .label = wg_str(label)};
  return d->lib.DeviceCreateShaderModule(d->device, &desc);
}

/* Text and pipeline in error scopes: what goes wrong is the kernel's own error. */
static void compile(wg_device *d, wg_kernel *k, const char *wgsl, WGPUPipelineLayout layout) {
  const wg_lib *lib = &d->lib;
  WGPUPopErrorScopeCallbackInfo scope_cb = {
      .mode = WGPUCallbackMode_AllowProcessEvents, .callback = on_compiled, .userdata1 = k};
  k->pending = 2; /* one is ours until all is under way */
  lib->DevicePushErrorScope(d->device, WGPUErrorFilter_Validation);
  k->module = module_new(d, k->label, wgsl);
  WGPUComputePipelineDescriptor desc = {
      .label = wg_str(k->label),
      .layout = layout,
      .compute = {.module = k->module, .entryPoint = wg_str("main")}};
  if (!k->module) {
    kernel_error(k, ERR_DEVICE, wg_str("the text does not compile"));
    k->e = ERR_NONE; /* the scope says it better */
  } else if (lib->wgpu_native) {
    k->pipeline = lib->DeviceCreateComputePipeline(d->device, &desc);
  }
  lib->DevicePopErrorScope(d->device, scope_cb);
  if (k->module && !lib->wgpu_native) {
    WGPUCreateComputePipelineAsyncCallbackInfo cb = {
        .mode = WGPUCallbackMode_AllowProcessEvents, .callback = on_pipeline, .userdata1 = k};
    k->pending++;
    lib->DeviceCreateComputePipelineAsync(d->device, &desc, cb);
  }
  kernel_settle(k);
}

err wg_kernel_new(void *self, const hw_kernel_desc *desc, void **out) {
  wg_device *d = self;
  wg_layout layout = {0};
  err e = layout_of(d, desc, &layout);
  if (e) return e;
  wg_kernel *k = mem_zalloc(1, sizeof *k);
  if (!k) return mem_err(desc->label, sizeof *k);
  k->d = d;
  k->layout = layout.group;
  snprintf(k->label, sizeof k->label, "%s", desc->label);
  k->next = d->kernels;
  if (k->next) k->next->prev = k;
  d->kernels = k;
  compile(d, k, desc->wgsl, layout.pipeline);
  e = wg_flush_error(d);
  if (e) wg_kernel_free(d, k);
  else *out = k;
  return e;
}

bool wg_kernel_ready(void *self, void *p, err *e) {
  wg_kernel *k = p;
  if (k->pending) wg_pump(self);
  if (k->pending) return false;
  if (k->e || !k->pipeline)
    *e = err_set(k->e ? k->e : ERR_DEVICE, "kernel '%s' does not compile: %s", k->label, k->text);
  return true;
}

void wg_kernel_free(void *self, void *p) {
  (void)self;
  wg_kernel *k = p;
  if (k->pending) k->orphan = true;
  else kernel_delete(k);
}

bool wg_compiles(wg_device *d, const char *wgsl) {
  scope *s = scope_push(d, "probe", WGPUErrorFilter_Validation);
  if (!s) return false;
  WGPUShaderModule m = module_new(d, "probe", wgsl);
  bool known;
  err e = scope_pop(s, &known);
  if (m) d->lib.ShaderModuleRelease(m);
  return m && known && !e;
}

/* Before the device goes: what it made. After the instance is gone: what waited for a callback. */
void wg_objects_close(wg_device *d, bool after_instance) {
  if (after_instance) {
    while (d->kernels) {
      wg_kernel *k = d->kernels;
      d->kernels = k->next;
      mem_free(k);
    }
    return;
  }
  for (uint32_t i = 0; i < d->n_layouts; i++) layout_release(d, &d->layouts[i]);
  mem_free(d->layouts);
  d->layouts = NULL;
  d->n_layouts = 0;
}
#else
typedef int webgpu_object_absent; /* built without webgpu.h: see webgpu.c */
#endif

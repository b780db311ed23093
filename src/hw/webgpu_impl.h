/* The native WebGPU back end's own declarations: the library's functions as one table, the search
 * for adapters, and the device. Only webgpu*.c include this; it is the only place that sees
 * webgpu.h. Dawn's additions to that header, which it does not have, are declared here by number.
 */
#ifndef FRIT_HW_WEBGPU_IMPL_H
#define FRIT_HW_WEBGPU_IMPL_H

#include <stdatomic.h>
#include <webgpu.h>

#include "hw/hw_impl.h"

/* Every function that the back end calls; X(name without "wgpu"). */
#define WG_FUNCTIONS(X)                                                                            \
  X(CreateInstance)                                                                                \
  X(InstanceRequestAdapter)                                                                        \
  X(InstanceProcessEvents)                                                                         \
  X(InstanceHasWGSLLanguageFeature)                                                                \
  X(InstanceRelease)                                                                               \
  X(AdapterGetInfo)                                                                                \
  X(AdapterInfoFreeMembers)                                                                        \
  X(AdapterGetLimits)                                                                              \
  X(AdapterHasFeature)                                                                             \
  X(AdapterRequestDevice)                                                                          \
  X(AdapterRelease)                                                                                \
  X(DeviceGetLimits)                                                                               \
  X(DeviceHasFeature)                                                                              \
  X(DeviceGetQueue)                                                                                \
  X(DeviceCreateBuffer)                                                                            \
  X(DeviceCreateShaderModule)                                                                      \
  X(DeviceCreateBindGroupLayout)                                                                   \
  X(DeviceCreatePipelineLayout)                                                                    \
  X(DeviceCreateComputePipeline)                                                                   \
  X(DeviceCreateComputePipelineAsync)                                                              \
  X(DeviceCreateBindGroup)                                                                         \
  X(DeviceCreateQuerySet)                                                                          \
  X(DeviceCreateCommandEncoder)                                                                    \
  X(DevicePushErrorScope)                                                                          \
  X(DevicePopErrorScope)                                                                           \
  X(DeviceDestroy)                                                                                 \
  X(DeviceRelease)                                                                                 \
  X(QueueWriteBuffer)                                                                              \
  X(QueueSubmit)                                                                                   \
  X(QueueOnSubmittedWorkDone)                                                                      \
  X(QueueRelease)                                                                                  \
  X(BufferMapAsync)                                                                                \
  X(BufferGetConstMappedRange)                                                                     \
  X(BufferUnmap)                                                                                   \
  X(BufferDestroy)                                                                                 \
  X(BufferRelease)                                                                                 \
  X(ShaderModuleRelease)                                                                           \
  X(BindGroupLayoutRelease)                                                                        \
  X(PipelineLayoutRelease)                                                                         \
  X(ComputePipelineAddRef)                                                                         \
  X(ComputePipelineRelease)                                                                        \
  X(BindGroupRelease)                                                                              \
  X(QuerySetRelease)                                                                               \
  X(CommandEncoderBeginComputePass)                                                                \
  X(CommandEncoderCopyBufferToBuffer)                                                              \
  X(CommandEncoderResolveQuerySet)                                                                 \
  X(CommandEncoderFinish)                                                                          \
  X(CommandEncoderRelease)                                                                         \
  X(CommandBufferRelease)                                                                          \
  X(ComputePassEncoderSetPipeline)                                                                 \
  X(ComputePassEncoderSetBindGroup)                                                                \
  X(ComputePassEncoderDispatchWorkgroups)                                                          \
  X(ComputePassEncoderEnd)                                                                         \
  X(ComputePassEncoderRelease)                                                                     \
  /* never called: present since the revision of the header that this file is built with */        \
  X(ComputePassEncoderSetImmediates)

typedef struct wg_lib {
  void *handle;
  bool dawn;        /* has Dawn's additions */
  bool wgpu_native; /* aborts in what it leaves unimplemented: async pipelines, WGSL features */
  char name[128];   /* for caps and errors */
  float (*queue_timestamp_period)(WGPUQueue); /* wgpu-native: ns a tick; else NULL (already ns) */
#define X(name) WGPUProc##name name;
  WG_FUNCTIONS(X)
#undef X
} wg_lib;

/* path NULL: $FRIT_WEBGPU, else the usual places. ERR_NO_DEVICE names what was tried or lacks. */
err wg_lib_open(const char *path, wg_lib *out);
void wg_lib_close(wg_lib *lib); /* the code stays mapped: its threads may outlive the handle */

/* ---- Dawn's additions ---- */

enum { WG_STYPE_DAWN_TOGGLES = 0x0005000A };
typedef struct wg_toggles {
  WGPUChainedStruct chain;
  size_t n_enabled;
  const char *const *enabled;
  size_t n_disabled;
  const char *const *disabled;
} wg_toggles;
/* One list serves instance, adapter and device: each stage takes its own. */
wg_toggles wg_toggles_of(bool no_robustness);

/* ---- adapters (webgpu_scan.c) ---- */

enum { WG_MAX_ADAPTERS = 4 };
typedef struct wg_adapter {
  WGPUAdapter adapter;
  uint32_t vendor_id, device_id;
  hw_caps caps;
} wg_adapter;

/* Asks for one adapter after the other, in a fixed order that numbers gpu:0, gpu:1, ... */
typedef struct wg_scan {
  const wg_lib *lib;
  WGPUInstance instance;
  uint32_t asked;
  bool waiting;
  uint32_t n;
  wg_adapter found[WG_MAX_ADAPTERS];
  char refusal[256]; /* the library's words for the last adapter that was not given */
} wg_scan;
err wg_scan_begin(wg_scan *s, const wg_lib *lib);
bool wg_scan_step(wg_scan *s); /* true: done; the caller drives ProcessEvents in between */
void wg_scan_drop(wg_scan *s); /* releases the adapters, not the instance */

/* ---- small things shared ---- */

WGPUStringView wg_str(const char *s);
void wg_copy(char *dst, size_t size, WGPUStringView s); /* cut to fit, NUL-terminated */

/* ---- device ---- */

typedef enum wg_map { WG_FREE, WG_PENDING, WG_MAPPED, WG_BROKEN } wg_map;

/* One read-back in flight. The staging buffer stays and grows. */
typedef struct wg_slot {
  uint64_t ticket;
  wg_map state;
  bool dropped; /* nobody will read it: free once it is no longer pending */
  WGPUBuffer buf;
  uint32_t cap, size;
} wg_slot;

/* Times of one submit. A query set holds at most 4,096 queries, so 2,048 steps. */
enum { WG_TIMERS = 4, WG_SET_STEPS = 2048, WG_MAX_SETS = 16 };
typedef struct wg_timer {
  uint64_t ticket;
  wg_map state; /* never WG_MAPPED: the callback copies and unmaps */
  uint32_t n, n_sets;
  WGPUQuerySet sets[WG_MAX_SETS];
  WGPUBuffer resolve, staging;
  uint64_t *ns; /* [n_sets * WG_SET_STEPS] */
} wg_timer;

typedef struct wg_layout {
  uint32_t signature; /* 2 bits a binding, count above */
  WGPUBindGroupLayout group;
  WGPUPipelineLayout pipeline;
} wg_layout;

typedef struct wg_kernel {
  struct wg_device *d;
  WGPUShaderModule module;
  WGPUComputePipeline pipeline;
  WGPUBindGroupLayout layout; /* the cache's */
  int pending;                /* callbacks to come */
  bool orphan;                /* freed by the caller: goes with the last callback */
  err e;
  char label[HW_LABEL], text[400];
  struct wg_kernel *prev, *next; /* all of the device's */
} wg_kernel;

typedef struct wg_step {
  WGPUComputePipeline pipeline;
  WGPUBindGroup group;
  uint32_t groups[3];
  char *label;
} wg_step;
typedef struct wg_program {
  char *label;
  uint32_t n;
  wg_step steps[];
} wg_program;

typedef enum wg_phase { WG_SCANNING, WG_REQUESTING, WG_READY } wg_phase;

typedef struct wg_device {
  hw *h;
  wg_lib lib;
  wg_scan scan;
  uint32_t index;
  bool no_f16, no_subgroups, no_dot4i8, no_robustness, closing;
  uint64_t limit_binding;
  wg_phase phase;
  hw_caps caps;
  WGPUDevice device;
  WGPUQueue queue;
  /* Written once by whichever thread reports first (0 none, 1 being written, 2 there), then made
   * sticky by wg_flush_error on ours. */
  atomic_int error_state;
  err error;
  char error_text[480];
  wg_layout *layouts;
  uint32_t n_layouts, cap_layouts;
  wg_kernel *kernels;
  wg_slot slots[HW_IN_FLIGHT];
  wg_timer timers[WG_TIMERS];
  uint64_t submitted, completed; /* tickets */
  uint64_t asked;                /* the ticket whose end was asked for; 0: none */
  uint64_t unflushed;            /* bytes written since the last submit */
  float tick_ns;
} wg_device;

void wg_note_error(wg_device *d, err code, const char *label, WGPUStringView text);
err wg_flush_error(wg_device *d); /* the noted error, made sticky */
void wg_pump(wg_device *d);       /* callbacks that are due; never waits */

/* webgpu_object.c */
err wg_buf_new(void *self, const hw_buf_desc *d, void **out);
void wg_buf_free(void *self, void *b);
err wg_buf_write(void *self, void *b, uint64_t off, const void *data, uint64_t size);
err wg_kernel_new(void *self, const hw_kernel_desc *d, void **out);
bool wg_kernel_ready(void *self, void *k, err *e);
void wg_kernel_free(void *self, void *k);
bool wg_compiles(wg_device *d, const char *wgsl); /* false where error scopes answer later */
void wg_objects_close(wg_device *d, bool after_instance);
WGPUBuffer wg_buffer(wg_device *d, const char *label, WGPUBufferUsage usage, uint64_t size);

/* webgpu_run.c */
err wg_program_new(void *self, const char *label, const hw_step_impl *s, uint32_t n, void **out);
void wg_program_free(void *self, void *p);
err wg_run_open(wg_device *d); /* the ring of read-backs */
void wg_run_close(wg_device *d);
err wg_submit(void *self, const hw_submit_impl *s);
bool wg_done(void *self, uint64_t ticket);
err wg_read(void *self, uint64_t ticket, void *dst, uint32_t size);

/* webgpu_time.c */
err wg_timer_take(wg_device *d, uint64_t ticket, uint32_t steps, wg_timer **out);
WGPUPassTimestampWrites wg_timer_step(const wg_timer *t, uint32_t step);
void wg_timer_resolve(wg_device *d, const wg_timer *t, WGPUCommandEncoder enc);
void wg_timer_map(wg_device *d, wg_timer *t);
void wg_timers_close(wg_device *d);
err wg_times(void *self, uint64_t ticket, uint64_t *ns, uint32_t *n);

#endif

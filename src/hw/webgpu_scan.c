/* Adapters: asks for them in a fixed order, tells them apart, and describes each without opening
 * it. */
#ifdef FRIT_HAVE_WEBGPU_H
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/math.h"
#include "base/mem.h"
#include "hw/webgpu_impl.h"

WGPUStringView wg_str(const char *s) { return (WGPUStringView){s, strlen(s)}; }

void wg_copy(char *dst, size_t size, WGPUStringView s) {
  size_t n = !s.data ? 0 : s.length == WGPU_STRLEN ? strlen(s.data) : s.length;
  if (n >= size) n = size - 1;
  if (n) memcpy(dst, s.data, n);
  dst[n] = 0;
}

wg_toggles wg_toggles_of(bool no_robustness) {
  /* Timestamps unquantised; f16 on NVIDIA under Linux. The last is left out unless asked for. */
  static const char *const on[] = {"allow_unsafe_apis", "vulkan_enable_f16_on_nvidia",
                                   "disable_robustness"};
  static const char *const off[] = {"timestamp_quantization"};
  return (wg_toggles){.chain = {.sType = (WGPUSType)WG_STYPE_DAWN_TOGGLES},
                      .n_enabled = no_robustness ? 3 : 2,
                      .enabled = on,
                      .n_disabled = 1,
                      .disabled = off};
}

static const char *api_name(WGPUBackendType t) {
  switch (t) {
  case WGPUBackendType_D3D11: return "d3d11";
  case WGPUBackendType_D3D12: return "d3d12";
  case WGPUBackendType_Metal: return "metal";
  case WGPUBackendType_Vulkan: return "vulkan";
  case WGPUBackendType_OpenGL: return "opengl";
  case WGPUBackendType_OpenGLES: return "opengles";
  default: return "webgpu";
  }
}

/* Numbers of another revision of the header show here first: then the library is refused, since
 * with a mismatched pair wrong features are asked for in silence. */
static bool plausible(const WGPUAdapterInfo *info, const WGPULimits *l) {
  uint32_t align = l->minStorageBufferOffsetAlignment;
  return info->backendType >= WGPUBackendType_Null &&
         info->backendType <= WGPUBackendType_OpenGLES &&
         info->adapterType >= WGPUAdapterType_DiscreteGPU &&
         info->adapterType <= WGPUAdapterType_Unknown && align >= 4 && align <= 256 &&
         !(align & (align - 1)) && l->maxBufferSize >= 1 << 20 &&
         l->maxComputeWorkgroupsPerDimension >= 256 && l->maxComputeInvocationsPerWorkgroup >= 64;
}

static void describe(const wg_scan *s, WGPUAdapter adapter, const WGPUAdapterInfo *info,
                     const WGPULimits *l, hw_caps *c) {
  const wg_lib *lib = s->lib;
  *c = (hw_caps){
      .kind = HW_WEBGPU,
      .software = info->adapterType == WGPUAdapterType_CPU,
      .max_binding = l->maxStorageBufferBindingSize,
      .max_buffer = l->maxBufferSize,
      .max_storage_buffers = l->maxStorageBuffersPerShaderStage,
      .max_groups = l->maxComputeWorkgroupsPerDimension,
      .max_invocations = l->maxComputeInvocationsPerWorkgroup,
      .max_workgroup_mem = l->maxComputeWorkgroupStorageSize,
      .offset_align =
          max_u32(l->minStorageBufferOffsetAlignment, l->minUniformBufferOffsetAlignment),
      .f16 = lib->AdapterHasFeature(adapter, WGPUFeatureName_ShaderF16),
      .subgroups = lib->AdapterHasFeature(adapter, WGPUFeatureName_Subgroups),
      .timestamps = lib->AdapterHasFeature(adapter, WGPUFeatureName_TimestampQuery),
      /* wgpu-native aborts when asked; an open device finds out by compiling. */
      .dot4i8 = lib->wgpu_native ||
                lib->InstanceHasWGSLLanguageFeature(
                    s->instance, WGPUWGSLLanguageFeatureName_Packed4x8IntegerDotProduct),
  };
  if (c->subgroups) {
    c->subgroup_min = info->subgroupMinSize;
    c->subgroup_max = info->subgroupMaxSize;
  }
  wg_copy(c->name, sizeof c->name, info->device);
  wg_copy(c->vendor, sizeof c->vendor, info->vendor);
  wg_copy(c->arch, sizeof c->arch, info->architecture);
  wg_copy(c->driver, sizeof c->driver, info->description);
  snprintf(c->api, sizeof c->api, "%s", api_name(info->backendType));
  snprintf(c->library, sizeof c->library, "%s", lib->name);
  if (!c->name[0]) snprintf(c->name, sizeof c->name, "%s", c->driver[0] ? c->driver : c->api);
}

static bool known(const wg_scan *s, const wg_adapter *a) {
  for (uint32_t i = 0; i < s->n; i++) {
    const wg_adapter *b = &s->found[i];
    if (a->vendor_id == b->vendor_id && a->device_id == b->device_id &&
        strcmp(a->caps.name, b->caps.name) == 0 && strcmp(a->caps.api, b->caps.api) == 0)
      return true;
  }
  return false;
}

/* Takes over `adapter`. */
static void add(wg_scan *s, WGPUAdapter adapter) {
  WGPUAdapterInfo info = WGPU_ADAPTER_INFO_INIT;
  WGPULimits limits = WGPU_LIMITS_INIT;
  bool told = s->lib->AdapterGetInfo(adapter, &info) == WGPUStatus_Success;
  told = s->lib->AdapterGetLimits(adapter, &limits) == WGPUStatus_Success && told;
  wg_adapter a = {.adapter = adapter, .vendor_id = info.vendorID, .device_id = info.deviceID};
  if (!told || !plausible(&info, &limits)) {
    snprintf(s->refusal, sizeof s->refusal,
             "%s answers with numbers of another revision of webgpu.h than this build's",
             s->lib->name);
  } else {
    describe(s, adapter, &info, &limits, &a.caps);
    if (s->n < WG_MAX_ADAPTERS && !known(s, &a)) {
      s->found[s->n++] = a;
      adapter = NULL;
    }
  }
  s->lib->AdapterInfoFreeMembers(info);
  if (adapter) s->lib->AdapterRelease(adapter);
}

static void on_adapter(WGPURequestAdapterStatus status, WGPUAdapter adapter, WGPUStringView message,
                       void *user, void *unused) {
  (void)unused;
  wg_scan *s = user;
  s->waiting = false;
  if (status == WGPURequestAdapterStatus_Success && adapter) add(s, adapter);
  else if (message.data) wg_copy(s->refusal, sizeof s->refusal, message);
}

static void on_kept(WGPURequestAdapterStatus status, WGPUAdapter adapter, WGPUStringView message,
                    void *user, void *unused) {
  (void)status, (void)adapter, (void)message, (void)user, (void)unused;
}

/* A driver that is loaded and unloaded with each instance can run out of what the system gives once
 * (NVIDIA's of 580 fails at about the twelfth time: "cannot allocate memory in static TLS block").
 * From the fourth instance of a process on, one more is kept with an adapter, so that it stays. */
static void keep_driver(const wg_lib *lib) {
  static atomic_uint begun;
  static WGPUInstance kept;
  if (atomic_fetch_add(&begun, 1) != 3) return;
  wg_toggles toggles = wg_toggles_of(false);
  WGPUInstanceDescriptor d = WGPU_INSTANCE_DESCRIPTOR_INIT;
  if (lib->dawn) d.nextInChain = &toggles.chain;
  kept = lib->CreateInstance(&d);
  WGPURequestAdapterOptions o = {.featureLevel = WGPUFeatureLevel_Core};
  if (lib->dawn) o.nextInChain = &toggles.chain;
  WGPURequestAdapterCallbackInfo cb = {.mode = WGPUCallbackMode_AllowSpontaneous,
                                       .callback = on_kept};
  if (kept) lib->InstanceRequestAdapter(kept, &o, cb);
}

err wg_scan_begin(wg_scan *s, const wg_lib *lib) {
  *s = (wg_scan){.lib = lib};
  keep_driver(lib);
  wg_toggles toggles = wg_toggles_of(false);
  WGPUInstanceDescriptor d = WGPU_INSTANCE_DESCRIPTOR_INIT;
  if (lib->dawn) d.nextInChain = &toggles.chain;
  s->instance = lib->CreateInstance(&d);
  if (!s->instance) return err_set(ERR_NO_DEVICE, "%s: no instance", lib->name);
  return ERR_NONE;
}

bool wg_scan_step(wg_scan *s) {
  static const WGPURequestAdapterOptions asks[] = {
      {.featureLevel = WGPUFeatureLevel_Core,
       .powerPreference = WGPUPowerPreference_HighPerformance},
      {.featureLevel = WGPUFeatureLevel_Core, .powerPreference = WGPUPowerPreference_LowPower},
      {.featureLevel = WGPUFeatureLevel_Core, .forceFallbackAdapter = WGPU_TRUE},
  };
  if (s->waiting) return false;
  if (s->asked == sizeof asks / sizeof *asks) return true;
  WGPURequestAdapterOptions o = asks[s->asked++];
  wg_toggles toggles = wg_toggles_of(false);
  if (s->lib->dawn) o.nextInChain = &toggles.chain;
  WGPURequestAdapterCallbackInfo cb = {
      .mode = WGPUCallbackMode_AllowProcessEvents, .callback = on_adapter, .userdata1 = s};
  s->waiting = true;
  s->lib->InstanceRequestAdapter(s->instance, &o, cb);
  return false;
}

void wg_scan_drop(wg_scan *s) {
  for (uint32_t i = 0; i < s->n; i++) {
    if (s->found[i].adapter) s->lib->AdapterRelease(s->found[i].adapter);
    s->found[i].adapter = NULL;
  }
}
#else
typedef int webgpu_scan_absent; /* built without webgpu.h: see webgpu.c */
#endif

/* Finds and opens a WebGPU library, loads every function that the back end calls, and says which
 * implementation it is. */
#ifdef FRIT_HAVE_WEBGPU_H
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hw/webgpu_impl.h"

#ifdef __APPLE__
#define LIB_SUFFIX ".dylib"
#define LIB_BESIDE "@loader_path/"
#else
#define LIB_SUFFIX ".so"
#define LIB_BESIDE "$ORIGIN/" /* the dynamic loader reads it as the executable's folder */
#endif

/* A function of the library as a function pointer; false when it is not there. */
static bool load(void *handle, const char *name, void *fn) {
  void *p = dlsym(handle, name);
  memcpy(fn, &p, sizeof p);
  return p != NULL;
}

static void identify(wg_lib *lib, const char *path) {
  const char *file = strrchr(path, '/');
  file = file ? file + 1 : path;
  uint32_t (*version)(void) = NULL;
  lib->dawn = dlsym(lib->handle, "wgpuDeviceTick") && dlsym(lib->handle, "wgpuAdapterCreateDevice");
  lib->wgpu_native =
      load(lib->handle, "wgpuGetVersion", &version) && dlsym(lib->handle, "wgpuDevicePoll");
  if (lib->wgpu_native) {
    uint32_t v = version();
    load(lib->handle, "wgpuQueueGetTimestampPeriod", &lib->queue_timestamp_period);
    snprintf(lib->name, sizeof lib->name, "wgpu-native %u.%u.%u.%u (%.60s)", v >> 24, v >> 16 & 255,
             v >> 8 & 255, v & 255, file);
  } else {
    snprintf(lib->name, sizeof lib->name, "%s (%.80s)", lib->dawn ? "Dawn" : "WebGPU", file);
  }
}

static err load_all(wg_lib *lib, const char *path) {
  const char *missing = NULL;
#define X(name)                                                                                    \
  if (!load(lib->handle, "wgpu" #name, &lib->name)) missing = "wgpu" #name;
  WG_FUNCTIONS(X)
#undef X
  if (missing)
    return err_set(ERR_NO_DEVICE,
                   "%s has no %s: not a WebGPU library, or of another revision than "
                   "this build's webgpu.h",
                   path, missing);
  identify(lib, path);
  return ERR_NONE;
}

static err open_one(const char *path, wg_lib *out) {
  *out = (wg_lib){0};
  out->handle = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (!out->handle) {
    const char *why = dlerror();
    return err_set(ERR_NO_DEVICE, "WebGPU library %s: %s", path, why ? why : "cannot be opened");
  }
  err e = load_all(out, path);
  if (e) wg_lib_close(out);
  return e;
}

err wg_lib_open(const char *path, wg_lib *out) {
  const char *env = getenv("FRIT_WEBGPU");
  if (!path && env && env[0]) path = env;
  if (path && !strchr(path, '/')) { /* the loader knows its own folders only */
    char here[600];
    snprintf(here, sizeof here, "./%s", path);
    FILE *f = fopen(here, "rb");
    if (f) {
      fclose(f);
      return open_one(here, out);
    }
  }
  if (path) return open_one(path, out);
  static const char *const folders[] = {LIB_BESIDE, LIB_BESIDE "../lib/",
#ifdef FRIT_WEBGPU_DIR
                                        FRIT_WEBGPU_DIR "/",
#endif
                                        ""};
  static const char *const names[] = {"libwebgpu_dawn", "libwgpu_native"};
  for (size_t n = 0; n < sizeof names / sizeof *names; n++) {
    for (size_t f = 0; f < sizeof folders / sizeof *folders; f++) {
      char full[600];
      snprintf(full, sizeof full, "%s%s" LIB_SUFFIX, folders[f], names[n]);
      if (!open_one(full, out)) return ERR_NONE;
    }
  }
  return err_set(ERR_NO_DEVICE, "no WebGPU library found: looked for libwebgpu_dawn" LIB_SUFFIX
                                " and libwgpu_native" LIB_SUFFIX
                                " beside the program, in ../lib and in the system's "
                                "folders; FRIT_WEBGPU names one");
}

void wg_lib_close(wg_lib *lib) {
  if (lib->handle) dlclose(lib->handle);
  *lib = (wg_lib){0};
}
#else
typedef int webgpu_lib_absent; /* built without webgpu.h: see webgpu.c */
#endif

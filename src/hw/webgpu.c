/* The native WebGPU back end (placeholder until the library loader lands in this file). */
#include "hw/hw_impl.h"

static err no_open(hw *h, const hw_open_desc *d, void **self) {
  (void)h, (void)d, (void)self;
  return err_set(ERR_NO_DEVICE, "this build has no WebGPU back end");
}
static err no_list(const char *library, void **state) {
  (void)library, (void)state;
  return err_set(ERR_NO_DEVICE, "this build has no WebGPU back end");
}
const hw_backend hw_backend_webgpu = {.open = no_open, .list_begin = no_list};

/* Owns the device that the suites share. */
#include "util_hw.h"

#include <stdlib.h>
#include <time.h>

#include "base/file.h"
#include "test.h"

static hw *shared;
static bool registered;
static const double open_limit = 60, wait_limit = 60; /* seconds; software adapters are slow */

static void nap(void) {
  struct timespec t = {.tv_nsec = 50000};
  nanosleep(&t, NULL);
}

#ifdef __wasm__
enum { GPU_KIND = HW_BROWSER };
#else
enum { GPU_KIND = HW_WEBGPU };
#endif
hw_kind test_kind(void) { return strcmp(test_device(), "cpu") == 0 ? HW_CPU : (hw_kind)GPU_KIND; }

hw *test_open_desc(hw_open_desc d) {
  hw *h = NULL;
  d.kind = test_kind();
  err e = hw_open(&d, &h);
  if (!e) {
    double start = time_now();
    while (hw_poll(h) == HW_OPENING && time_now() - start < open_limit) nap();
    hw_state s = hw_poll(h);
    if (s == HW_READY) return h;
    e = s == HW_FAILED ? hw_error(h)
                       : err_set(ERR_DEVICE, "opening took more than %g s", open_limit);
    hw_close(h);
  }
  if (e == ERR_NO_DEVICE) test_skip("device %s: %s", test_device(), err_text());
  else FAIL("device %s: %s", test_device(), err_text());
  return NULL;
}

void test_close(void) {
  hw_close(shared);
  shared = NULL;
}

hw *test_open(void) {
  if (shared && hw_error(shared)) test_close();
  if (!shared) shared = test_open_desc((hw_open_desc){0});
  if (shared && !registered) registered = atexit(test_close) == 0;
  return shared;
}

bool test_wait(hw *h, hw_ticket t) {
  double start = time_now();
  while (!hw_done(h, t)) {
    if (time_now() - start > wait_limit) {
      FAIL("submit %llu was not done after %g s", (unsigned long long)t.n, wait_limit);
      return false;
    }
    nap();
  }
  return true;
}

err test_kernel_wait(hw *h, hw_kernel k) {
  err e = ERR_NONE;
  double start = time_now();
  while (!hw_kernel_ready(h, k, &e)) {
    if (time_now() - start > wait_limit) return err_set(ERR_DEVICE, "a kernel never became ready");
    hw_poll(h);
    nap();
  }
  return e;
}

err test_read(hw *h, hw_buf b, uint64_t off, void *dst, uint64_t size) {
  for (uint64_t done = 0; done < size;) {
    uint64_t n = size - done < HW_READ_MAX ? size - done : HW_READ_MAX;
    hw_ticket t;
    err e = hw_submit(
        h, &(hw_submit_desc){.read = b, .read_off = off + done, .read_size = (uint32_t)n}, &t);
    if (!e && !test_wait(h, t)) e = err_set(ERR_DEVICE, "the read-back took too long");
    if (!e) e = hw_read(h, t, (char *)dst + done, (uint32_t)n);
    if (e) return e;
    done += n;
  }
  return ERR_NONE;
}

/* What a back end implements; internal to src/hw. hw.c owns handles, labels, validation, the sticky
 * error and the counters; a back end owns only its objects. */
#ifndef FRIT_HW_IMPL_H
#define FRIT_HW_IMPL_H

#include "hw/hw.h"

typedef struct hw_bound {
  void *obj; /* back end's buffer */
  uint64_t off, size;
} hw_bound;
typedef struct hw_step_impl {
  const char *label;
  void *kernel;
  const hw_bound *bind;
  uint32_t n_bind;
  uint32_t groups[3];
} hw_step_impl;
typedef struct hw_submit_impl {
  void *program[4];
  uint32_t n_programs;
  void *params;
  const void *params_data;
  uint32_t params_size;
  void *read;
  uint64_t read_off;
  uint32_t read_size;
  bool timestamps;
  uint64_t ticket; /* counts up from 1 */
} hw_submit_impl;

/* `self` is the back end's device. Objects come back through *out and are freed through the
 * matching _free. A back end reports an error that arrives later with hw_set_error. */
typedef struct hw_backend {
  err (*open)(hw *h, const hw_open_desc *d, void **self);
  void (*close)(void *self);
  hw_state (*poll)(void *self, hw_caps *caps); /* fills caps when it turns HW_READY */
  err (*buf_new)(void *self, const hw_buf_desc *d, void **out);
  void (*buf_free)(void *self, void *b);
  err (*buf_write)(void *self, void *b, uint64_t off, const void *data, uint64_t size);
  void *(*buf_host)(void *b); /* NULL where buffers are not in host memory */
  err (*kernel_new)(void *self, const hw_kernel_desc *d, void **out);
  bool (*kernel_ready)(void *self, void *k, err *e);
  void (*kernel_free)(void *self, void *k);
  err (*program_new)(void *self, const char *label, const hw_step_impl *s, uint32_t n, void **out);
  void (*program_free)(void *self, void *p);
  err (*submit)(void *self, const hw_submit_impl *s);
  bool (*done)(void *self, uint64_t ticket);
  err (*read)(void *self, uint64_t ticket, void *dst, uint32_t size); /* dst NULL: drop */
  err (*times)(void *self, uint64_t ticket, uint64_t *ns, uint32_t *n);
  void (*lose)(void *self); /* NULL: hw.c pretends */
  err (*list_begin)(const char *library, void **state);
  bool (*list_poll)(void *state, hw_caps *out, uint32_t max, uint32_t *n);
  void (*list_end)(void *state);
} hw_backend;

extern const hw_backend hw_backend_cpu, hw_backend_webgpu, hw_backend_browser;

/* Keeps the first error of the device (code and the current err_text). */
void hw_set_error(hw *h, err code);

#endif

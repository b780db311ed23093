/* Devices: buffers, kernels, programs, submits. No function names an operation.
 *
 * Three back ends behind one table: `cpu` (runs the C form of each kernel), `webgpu` (native, the
 * library opened at run time), `browser` (wasm: JavaScript's WebGPU). Every call is checked here
 * against WebGPU's rules before a back end sees it, so what passes on `cpu` is legal on a GPU.
 *
 * Nothing blocks: opening, compiling and reading back are polled with hw_poll. The first error of a
 * device is kept (hw_error): afterwards every call returns it. Device lost and out of memory are
 * ordinary results. One thread at a time uses a device. */
#ifndef FRIT_HW_H
#define FRIT_HW_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

enum { HW_MAX_BINDINGS = 10, HW_LABEL = 96, HW_MAX_THREADS = 256 };

typedef struct hw hw;
typedef struct hw_buf {
  uint32_t id;
} hw_buf; /* {0} is "none" */
typedef struct hw_kernel {
  uint32_t id;
} hw_kernel;
typedef struct hw_program {
  uint32_t id;
} hw_program;
typedef struct hw_ticket {
  uint64_t n;
} hw_ticket; /* one submit; {0} is "none" */

typedef enum hw_kind { HW_CPU, HW_WEBGPU, HW_BROWSER } hw_kind;
typedef enum hw_state { HW_OPENING, HW_READY, HW_FAILED } hw_state;

/* What a device is and can do. Sizes in bytes. */
typedef struct hw_caps {
  hw_kind kind;
  char name[128], vendor[64], arch[64], driver[128], api[32]; /* api: "vulkan", "cpu", ... */
  char library[128];   /* which WebGPU implementation, "" on cpu */
  bool software;       /* a CPU that plays GPU */
  bool native_weights; /* kernels read weights as the file has them (cpu back end) */
  uint64_t max_binding, max_buffer;
  uint32_t max_storage_buffers; /* a dispatch */
  uint32_t max_groups;          /* workgroups in one dimension */
  uint32_t max_invocations;     /* threads a workgroup */
  uint32_t max_workgroup_mem;
  uint32_t offset_align; /* of a storage binding's offset */
  bool f16, subgroups, dot4i8, timestamps;
  uint32_t subgroup_min, subgroup_max;
  uint32_t threads; /* cpu back end: worker threads */
} hw_caps;

typedef struct hw_open_desc {
  hw_kind kind;
  uint32_t index;      /* which adapter (gpu:N) */
  const char *library; /* path of the WebGPU library; NULL: FRIT_WEBGPU's, then the usual places */
  uint32_t threads;    /* cpu; 0: one a core */
  bool no_f16, no_subgroups, no_dot4i8; /* pretend that the adapter lacks these */
  bool as_gpu; /* pretend that a software adapter is none: plans and kernel shapes are a GPU's */
  uint64_t limit_binding; /* pretend a smaller max_binding; 0: the adapter's own */
  bool no_robustness; /* no bounds checks in kernels, where the library can: for kernels proven in
                       * bounds. Also FRIT_NO_ROBUSTNESS=1. */
} hw_open_desc;

/* Begins opening; returns ownership. Poll until HW_READY. ERR_NO_DEVICE when there is no library or
 * adapter (maybe only found by a later poll: then HW_FAILED and hw_error says so). */
err hw_open(const hw_open_desc *d, hw **out);
void hw_close(hw *h); /* frees everything made on it; NULL is fine */
/* Drives callbacks and pending work; never waits. */
hw_state hw_poll(hw *h);
const hw_caps *hw_get_caps(const hw *h); /* valid until hw_close, meaningful once HW_READY */
err hw_error(const hw *h);               /* sticky; sets err_text to the first error's sentence */

/* Each adapter that kind can reach, without opening a device: begins with *state 0, call again
 * until it returns true. At most `max` rows into out; *n is how many. */
typedef struct hw_list_state hw_list_state;
err hw_list_begin(hw_kind kind, const char *library, hw_list_state **out);
bool hw_list_poll(hw_list_state *s, hw_caps *out, uint32_t max, uint32_t *n); /* true: done */
void hw_list_end(hw_list_state *s);

/* ---- buffers ---- */

typedef enum hw_buf_use { HW_STORAGE, HW_UNIFORM } hw_buf_use;
typedef struct hw_buf_desc {
  const char *label; /* required */
  uint64_t size;     /* > 0; rounded up to 4 */
  hw_buf_use use;
  const void *host; /* cpu back end only: read-only memory to use in place, valid until freed */
} hw_buf_desc;
err hw_buf_new(hw *h, const hw_buf_desc *d, hw_buf *out); /* cleared unless `host` */
void hw_buf_free(hw *h, hw_buf b);
/* Takes effect before the submits that follow. off and size: multiples of 4 (size is rounded up by
 * the back end only at the buffer's end). */
err hw_buf_write(hw *h, hw_buf b, uint64_t off, const void *data, uint64_t size);
/* For bytes that arrive by another way than hw_buf_write (a browser's fetches). host: the memory of
 * a buffer of the cpu back end, valid until freed, NULL elsewhere and for `host` buffers. js: the
 * integer by which the browser back end's JavaScript knows the buffer, 0 elsewhere. */
void *hw_buf_host(const hw *h, hw_buf b);
uint32_t hw_buf_js(const hw *h, hw_buf b);

/* ---- kernels ---- */

typedef enum hw_bind { HW_BIND_READ, HW_BIND_WRITE /* read_write */, HW_BIND_UNIFORM } hw_bind;

/* What the C form of a kernel is called with, once by each thread of the pool. */
typedef struct hw_cpu_call {
  const void *ctx;      /* hw_kernel_desc.cpu_ctx */
  void *const *buf;     /* [n_bind] host addresses (offset applied) */
  const uint64_t *size; /* [n_bind] bytes */
  uint32_t groups[3];
  uint32_t thread, n_threads;
  void *scratch; /* shared by the threads; hw_kernel_desc.cpu_scratch bytes */
  void *own;     /* this thread's; cpu_own bytes, 64-byte aligned */
  struct hw_cpu_pool *pool;
} hw_cpu_call;
typedef void (*hw_cpu_fn)(const hw_cpu_call *c);
/* All threads of the call meet here (each must call it the same number of times). */
void hw_cpu_barrier(const hw_cpu_call *c);

typedef struct hw_kernel_desc {
  const char *label; /* required */
  const char *wgsl;  /* whole text; entry point `main`; needed by GPU back ends */
  uint32_t n_bind;
  hw_bind bind[HW_MAX_BINDINGS]; /* @group(0) @binding(i) */
  uint32_t workgroup[3];         /* the text's own workgroup size, for validation */
  uint32_t workgroup_mem;        /* bytes of var<workgroup>, for validation */
  hw_cpu_fn cpu;                 /* needed by the cpu back end */
  const void *cpu_ctx;           /* valid until the kernel is freed */
  uint64_t cpu_scratch, cpu_own; /* bytes: shared by the threads, of each */
  bool cpu_single;               /* small: one thread runs it alone (n_threads is 1) */
} hw_kernel_desc;
/* Compiles asynchronously; the text need not outlive the call. */
err hw_kernel_new(hw *h, const hw_kernel_desc *d, hw_kernel *out);
void hw_kernel_free(hw *h, hw_kernel k);
/* True once compiled; false while pending. A failed compilation is the kernel's own error, returned
 * by *e (ERR_DEVICE with the compiler's words), and not sticky: the caller may use another kernel.
 */
bool hw_kernel_ready(hw *h, hw_kernel k, err *e);

/* ---- programs ---- */

typedef struct hw_binding {
  hw_buf buf;
  uint64_t off, size; /* size 0: to the end */
} hw_binding;
typedef struct hw_step {
  const char *label; /* required: the plan step's text */
  hw_kernel kernel;
  hw_binding bind[HW_MAX_BINDINGS];
  uint32_t n_bind;
  uint32_t groups[3];
} hw_step;
/* Records: bind groups and all else is made here, a replay makes nothing. Kernels must be ready.
 * Buffers and kernels freed before the program make its submits fail (ERR_ARG). */
err hw_program_new(hw *h, const char *label, const hw_step *steps, uint32_t n, hw_program *out);
void hw_program_free(hw *h, hw_program p);

typedef struct hw_submit_desc {
  hw_program program[4]; /* run one after the other; unused: {0} */
  hw_buf params;         /* written with params_data before the programs run; {0}: none */
  const void *params_data;
  uint32_t params_size;
  hw_buf read; /* read back afterwards: hw_read; {0}: none */
  uint64_t read_off;
  uint32_t read_size; /* at most HW_READ_MAX */
  bool timestamps;    /* time each step: hw_times */
} hw_submit_desc;
enum { HW_READ_MAX = 4 << 20, HW_IN_FLIGHT = 32 }; /* read-backs in flight at most */
err hw_submit(hw *h, const hw_submit_desc *d, hw_ticket *out);
/* True once the submit and its read-back are finished (or the device failed: see hw_error). Polls.
 */
bool hw_done(hw *h, hw_ticket t);
/* After hw_done: the bytes asked for. Each ticket with a read-back is read once, or dropped with
 * dst NULL, which need not wait for hw_done. */
err hw_read(hw *h, hw_ticket t, void *dst, uint32_t size);
/* After hw_done of a submit with timestamps: nanoseconds of each step, in order; *n in: room, out:
 * steps. */
err hw_times(hw *h, hw_ticket t, uint64_t *ns, uint32_t *n);

/* ---- for tests and reports ---- */

typedef struct hw_counts {
  uint64_t submits, dispatches;                         /* done since open */
  uint64_t made_buffers, made_kernels, made_bindgroups; /* made since open */
  uint64_t live_buffers, live_kernels, live_programs, live_bytes, peak_bytes;
} hw_counts;
hw_counts hw_get_counts(const hw *h);
/* The n-th call from now that can fail does, with `code` (ERR_DEVICE_NOMEM: not sticky, else
 * sticky); 0 switches it off. */
void hw_fail_at(hw *h, uint64_t n, err code);
/* Loses the device as a driver might; ERR_DEVICE_LOST follows, maybe only after some polls. */
void hw_lose(hw *h);

#endif

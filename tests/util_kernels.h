/* Kernel tests as rows: a spec, the run's parameters, what each binding holds, a tolerance and its
 * reason. kt_run makes the data from a fixed seed, runs the op's twin directly on the host and the
 * kernel on the shared device, and compares every output word: also the ones that must stay as they
 * were (poison in outputs, in rows past `valid`, and in guard words after each buffer; poison is a
 * NaN, so that reading it shows too). */
#ifndef FRIT_UTIL_KERNELS_H
#define FRIT_UTIL_KERNELS_H

#include "hw/hw.h"
#include "kernels/kernel.h"

typedef enum kt_fill {
  KT_POISON = 0, /* an output */
  KT_FLOATS,     /* uniform in [-1, 1), as f32 or f16; `data` may give f32 values instead */
  KT_IDS,        /* u32 below `limit`; `data` may give them */
  KT_ANGLES,     /* (cos, sin) pairs of random angles: cols / 2 pairs a row */
  KT_WEIGHTS,    /* quantised from uniform [-1, 1); packed where the device wants it so */
  KT_FILE,       /* the same in the file's layout on every device (input of pack) */
  KT_STEP        /* kt_case.step */
} kt_fill;

typedef struct kt_bind {
  kt_fill fill;
  uint64_t rows, cols; /* the buffer is [rows, cols] of `type` */
  uint64_t valid;      /* rows that hold data, the rest is poison; 0: all */
  dtype type;          /* DT_F32 is 0, the default */
  uint32_t limit;
  const void *data; /* [rows, cols]; NULL: random */
} kt_bind;

typedef struct kt_case {
  kernel_spec spec;
  step_params step;
  kt_bind bind[HW_MAX_BINDINGS]; /* in the order of the catalog line */
  double tol;      /* of f32 and f16 outputs: |a - b| <= tol (|b| + rms of b); 0: equal bits */
  const char *why; /* the tolerance's reason; printed with a failure */
  uint32_t seed;
} kt_case;

/* False, and the test fails with label, index and values, when anything differs. Without a device:
 * false, and the case is skipped. */
bool kt_run(const kt_case *c);
/* Rows with one spec (c[0]'s) that differ in the rest: the kernel is compiled once. */
bool kt_run_all(const kt_case *c, uint32_t n);

/* Makes the scale of a block of weights (or its first element) NaN. */
void kt_put_nan(dtype t, uint8_t *block);

/* Every type that weights can have, and its number of elements a block. */
extern const dtype kt_types[];
extern const uint32_t kt_n_types;

#endif

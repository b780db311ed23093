/* Shared by run.c (programs, submits) and load.c (buffers, kernels, upload). */
#ifndef FRIT_RUN_RUN_IMPL_H
#define FRIT_RUN_RUN_IMPL_H

#include "run/run.h"

enum { RUN_N_PROGRAMS = 8, RUN_MAX_SLOTS = 64, RUN_MAX_KERNELS = 256, RUN_UPLOADS = 3 };

typedef struct run_program {
  plan_part_kind part;
  uint32_t m;
  bool used;
  plan *plan;
  hw_program program;
} run_program;

typedef struct run_kernel {
  kernel_spec spec;
  const char *label;
  hw_kernel kernel;
} run_kernel;

typedef enum run_stage {
  STAGE_BUFFERS,
  STAGE_KERNELS,
  STAGE_UPLOAD,
  STAGE_COMPILE,
  STAGE_PROGRAMS,
  STAGE_TABLE,
  STAGE_WARMUP,
  STAGE_READY
} run_stage;

typedef struct run_order {
  uint64_t off; /* of the stack's first weight */
  uint32_t part, stack;
} run_order;

struct run {
  hw *h;
  const hw_caps *caps; /* h's, or what an estimate is for */
  const ir_graph *g;
  run_opts o;
  arena mem;
  plan_weights *weights;
  run_program programs[RUN_N_PROGRAMS];
  uint32_t nll_rows; /* rows of the all-rows head */

  run_kernel kernels[RUN_MAX_KERNELS];
  uint32_t n_kernels;
  uint32_t *pack_kernel; /* [n_stacks] index in kernels; GPUs only */
  uint32_t *pack_rows;   /* [n_stacks] rows of an upload chunk */

  hw_buf *stacks; /* [n_stacks] */
  hw_buf *states; /* [n_tensors] */
  hw_buf slots[RUN_MAX_SLOTS];
  uint64_t slot_bytes[RUN_MAX_SLOTS];
  hw_buf table, ids, step, hidden, logits, recent, next, nll, staging;

  run_stage stage;
  run_order *order;                   /* [n_stacks] of upload: as the file has them */
  uint32_t at_stack, at_part, at_row; /* upload position; at_stack is an index of order */
  uint32_t at_kernel, at_program, at_table;
  hw_program pack_program; /* of the stack being uploaded */
  bool fetching;           /* opts.fetch is under way for the chunk at hand */
  hw_ticket uploads[RUN_UPLOADS];
  uint64_t uploaded_bytes, upload_total;
};

/* The kernel of a spec, made on first asking. */
err run_kernel_get(run *r, const kernel_spec *s, uint32_t *index);
/* Fills r->order. */
void run_sort(run *r);
/* Records the program of a plan whose kernels are ready. */
err run_record(run *r, run_program *p);

#endif

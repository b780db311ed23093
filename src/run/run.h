/* A model on a device: its buffers, kernels and recorded programs. Loading is a state machine;
 * running is one submit that replays programs. Allocates nothing once loaded. */
#ifndef FRIT_RUN_RUN_H
#define FRIT_RUN_RUN_H

#include "hw/hw.h"
#include "ir/ir.h"
#include "plan/plan.h"

typedef struct run run;

typedef struct run_opts {
  plan_level level;
  uint32_t ctx;   /* rows of the KV cache */
  uint32_t batch; /* rows of a prefill chunk, > 1 */
  dtype kv;
  bool rounds;
  bool nll; /* programs for perplexity too (logits of `batch` rows) */
  uint32_t splits;
  const char *off; /* fusions switched off */
  /* Called when a weight is on the device, so that its file pages may go; may be NULL. */
  void (*uploaded)(void *user, const ir_tensor *t);
  /* For weights whose bytes are not in memory (ir_tensor.data NULL; a browser): begins putting
   * `size` bytes at `off` of file part `part` into buffer `dst` at dst_off (multiples of 4, or
   * dst's end); `fetched` then tells when that is done, or failed. One at a time. */
  err (*fetch)(void *user, uint32_t part, uint64_t off, uint64_t size, hw_buf dst,
               uint64_t dst_off);
  bool (*fetched)(void *user, err *e);
  void *user;
} run_opts;

typedef enum run_phase { RUN_COMPILE, RUN_UPLOAD, RUN_WARMUP, RUN_READY } run_phase;
typedef struct run_progress {
  run_phase phase;
  uint64_t done, total; /* bytes while uploading, kernels while compiling */
} run_progress;

/* Plans; makes nothing on the device yet. The graph must outlive the run; weights need their data.
 */
err run_new(hw *h, const ir_graph *g, const run_opts *o, run **out);
/* Loads a little; call until *done. p and done are set whatever comes of it. */
err run_load(run *r, run_progress *p, bool *done);
void run_free(run *r);

/* Bytes on the device: weights, KV cache and table, activations and the rest. Known after run_new.
 */
typedef struct run_memory {
  uint64_t weights, kv, work;
} run_memory;
run_memory run_need(const run *r);
/* The same for a device that is not open, from what it is said to be. Errors as run_new. */
err run_estimate(const hw_caps *caps, const ir_graph *g, const run_opts *o, run_memory *out);

/* What one submit does, in this order. */
enum {
  RUN_BODY_ONE = 1,   /* ids[0] -> hidden */
  RUN_BODY_BATCH = 2, /* ids[0 .. n_tok) -> hidden */
  RUN_HEAD = 4,       /* hidden's last row -> logits; of the body in the same submit */
  RUN_HEAD_ALL = 8,   /* hidden -> logits of all rows -> nll (needs opts.nll) */
  RUN_GREEDY = 16,    /* logits -> ids[0] */
  RUN_SAMPLE = 32
};
typedef enum run_read { RUN_READ_NONE, RUN_READ_ID, RUN_READ_NLL } run_read;
err run_submit(run *r, uint32_t what, const step_params *p, run_read read, bool timestamps,
               hw_ticket *t);
/* Ids of the chunk (n <= batch); the ids that follow, for nll; the ring of recent ids. */
err run_write_ids(run *r, const uint32_t *ids, uint32_t n);
err run_write_next(run *r, const uint32_t *ids, uint32_t n);
err run_write_recent(run *r, const uint32_t ring[PLAN_RING]);
/* Begins reading the logits of the last head: columns [first, first + n), n <= HW_READ_MAX / 4. */
err run_read_logits(run *r, uint32_t first, uint32_t n, hw_ticket *t);

/* The plans of a part, for explain and profiles; m 1 or batch. */
const plan *run_plan(const run *r, plan_part_kind part, uint32_t m);
hw *run_device(const run *r);
const run_opts *run_get_opts(const run *r);
uint32_t run_vocab(const run *r);
uint32_t run_nll_rows(const run *r); /* rows at most of a submit with RUN_HEAD_ALL */

#endif

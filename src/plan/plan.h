/* The planner: graph + device caps + options -> steps and slots. Pure: no device is touched, so its
 * output is compared with golden text.
 *
 * A step is one dispatch: a kernel spec and what it binds. Values between steps live in slots; two
 * values share a slot when their lifetimes do not meet. Each slot is a buffer of its own, bound
 * whole (one buffer cannot be bound for reading and writing in one dispatch). */
#ifndef FRIT_PLAN_PLAN_H
#define FRIT_PLAN_PLAN_H

#include "ir/ir.h"
#include "kernels/kernel.h"

typedef enum plan_level {
  PLAN_NONE /* a dispatch an op */,
  PLAN_ROLE /* the fused roles */
} plan_level;

/* ---- where weights live: decided once for a model on a device ---- */

typedef struct plan_stack { /* one buffer; several weights of one type and width stacked by rows */
  const char *label;
  dtype type;
  uint32_t cols, rows;
  uint64_t bytes;
  bool vector; /* a norm or bias: plain f32 */
} plan_stack;

typedef struct plan_part { /* rows [first, first + rows) of a weight are rows [row0, ..) of a stack
                            */
  ir_id weight;
  uint32_t stack, row0, first, rows;
} plan_part;

typedef struct plan_weights {
  arena mem;
  plan_stack *stacks;
  uint32_t n_stacks;
  plan_part *parts; /* in the order of weights */
  uint32_t n_parts;
  uint32_t
      *first_part; /* [n_tensors + 1]: parts of tensor t are first_part[t] .. first_part[t+1] */
} plan_weights;

/* With caps->native_weights each weight is its own stack in the file's layout; else same-type
 * siblings (q k v; gate up) are stacked, and what is over caps->max_binding is split by rows.
 * ERR_UNSUPPORTED when a width does not fit the packed layout. */
err plan_weights_new(const ir_graph *g, const hw_caps *caps, plan_weights **out);
void plan_weights_free(plan_weights *w);

/* ---- programs ---- */

typedef enum plan_part_kind {
  PLAN_BODY,     /* ids -> hidden, m rows */
  PLAN_HEAD,     /* hidden -> logits of the last row */
  PLAN_HEAD_ALL, /* hidden -> logits of all m rows */
  PLAN_GREEDY,   /* logits -> ids[0] */
  PLAN_SAMPLE,   /* logits -> penalties, draw -> ids[0] */
  PLAN_NLL       /* logits of m rows, next ids -> nll [m] */
} plan_part_kind;

typedef struct plan_opts {
  plan_part_kind part;
  plan_level level;
  uint32_t m;      /* rows of a chunk */
  uint32_t ctx;    /* rows of the KV cache */
  dtype kv;        /* DT_F32 or DT_F16 */
  bool rounds;     /* activations may be rounded to 8 bits */
  uint32_t splits; /* of decode attention; 0: chosen from ctx */
  const char *off; /* names of fusions not to use, separated by commas; NULL: none */
} plan_opts;

typedef enum plan_ref_kind {
  PLAN_REF_STACK,
  PLAN_REF_SLOT,
  PLAN_REF_STATE /* index: ir_id */,
  PLAN_REF_TABLE,
  PLAN_REF_IDS,
  PLAN_REF_STEP,
  PLAN_REF_HIDDEN,
  PLAN_REF_LOGITS,
  PLAN_REF_RECENT,
  PLAN_REF_NEXT,
  PLAN_REF_NLL
} plan_ref_kind;
typedef struct plan_ref {
  plan_ref_kind kind;
  uint32_t index;
} plan_ref;

typedef struct plan_step {
  kernel_spec spec;
  const char *label;  /* "blk.0/qkv" */
  const char *fusion; /* the fusion that made it, or NULL */
  plan_ref bind[HW_MAX_BINDINGS];
  uint32_t n_bind;
} plan_step;

typedef struct plan_note { /* a fusion that did not apply, and why */
  const char *fusion, *where, *reason;
} plan_note;

typedef struct plan {
  arena mem;
  plan_opts opts;
  plan_step *steps;
  uint32_t n_steps;
  uint64_t *slots; /* [n_slots] bytes */
  uint32_t n_slots;
  plan_note *notes;
  uint32_t n_notes;
} plan;

err plan_new(const ir_graph *g, const plan_weights *w, const hw_caps *caps, const plan_opts *o,
             plan **out);
void plan_free(plan *p);
/* One line a step: label, kernel, bindings, bytes, flops; then slots and notes. */
void plan_print(const plan *p, buf *out);

enum { PLAN_RING = 64 /* recent ids that a repetition penalty can look at */ };

/* The names of the fusions, for --help and `off`: NULL-terminated. */
extern const char *const plan_fusions[];

/* Bytes that a model needs on the device with these settings: weights, KV cache, tables, and the
 * slots of the given plans are added by the caller. */
uint64_t plan_weights_bytes(const plan_weights *w);
uint64_t plan_state_bytes(const ir_graph *g, uint32_t ctx, dtype kv);

#endif

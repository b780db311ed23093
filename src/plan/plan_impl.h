/* Shared by the files of src/plan: the builder that turns nodes into steps over virtual values,
 * which plan_slots.c then places in slots. */
#ifndef FRIT_PLAN_PLAN_IMPL_H
#define FRIT_PLAN_PLAN_IMPL_H

#include "plan/plan.h"

typedef struct plan_builder {
  const ir_graph *g;
  const plan_weights *w;
  const hw_caps *caps;
  plan_opts o;
  plan *p;
  uint32_t cap_steps, cap_notes;
  uint32_t *uses;        /* [n_tensors] how many nodes of this part read a tensor */
  uint64_t *value_bytes; /* [n_values] virtual values: the graph's tensors, then temporaries */
  uint32_t n_values, cap_values;
  ir_id *alias; /* [n_tensors] last_row of one row is its input */
  err e;
} plan_builder;

/* Appends a step; the spec's subgroup and rounding fields are set here. */
void plan_emit(plan_builder *b, kernel_spec spec, const char *label, const char *fusion,
               const plan_ref *bind);
/* A temporary value of so many bytes. */
plan_ref plan_temp(plan_builder *b, uint64_t bytes);
/* What a tensor is bound as. */
plan_ref plan_value(plan_builder *b, ir_id t);
/* The only part of a weight; NULL when it is split. */
const plan_part *plan_whole(const plan_builder *b, ir_id weight);
/* Emits y[:, y0 ..] = x W^T, one dispatch a part. yn: columns of y. */
void plan_matmul(plan_builder *b, ir_id w, plan_ref x, plan_ref y, uint32_t rows, uint32_t yn,
                 uint32_t y0, const char *label, const char *fusion);
/* The plain form of node i. */
void plan_emit_node(plan_builder *b, uint32_t i);
/* Tries the fusions at node i; returns how many nodes were consumed, 0 when none applies. */
uint32_t plan_fuse(plan_builder *b, uint32_t i, uint32_t end);
/* Whether the caller switched the fusion of that name off. */
bool plan_is_off(const plan_builder *b, const char *name);
/* Virtual values -> slots. */
err plan_place(plan_builder *b);

#define PLAN_STEP ((plan_ref){PLAN_REF_STEP, 0})

#endif

/* An independent check of plans: runs their steps on symbols. Each buffer holds pieces (columns ->
 * which columns of which value), a value is the hash of the ops that made it, and every kernel is
 * written out as the ops that it stands for. A plan is right when it leaves the values that the
 * graph itself gives. */
#ifndef FRIT_UTIL_PLAN_H
#define FRIT_UTIL_PLAN_H

#include "plan/plan.h"

/* NULL, or what is wrong with which step (valid until the next call): it reads something else than
 * the value it wants, binds one buffer for reading and writing, or the part does not leave what the
 * graph says. */
const char *tp_verify(const ir_graph *g, const plan_weights *w, const plan *p);
/* Every row of every weight is in exactly one part, every row of a stack belongs to exactly one,
 * and no stack is over the limit. */
void tp_verify_weights(const ir_graph *g, const plan_weights *w, const hw_caps *c);

#endif

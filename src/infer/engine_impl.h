/* The engine's parts, for engine.c and session.c. */
#ifndef FRIT_INFER_ENGINE_IMPL_H
#define FRIT_INFER_ENGINE_IMPL_H

#include "base/file.h"
#include "infer/engine.h"

struct engine {
  engine_opts o;
  gguf *file;
  model *model;
  tokenizer *tokens;
  hw *h;
  run *run;
  uint32_t ctx;
  hw_ticket stale; /* the last submit whose read-back a session gave up */
};

/* The error of logits that are not numbers. Looks for the cause where the weights are in memory: a
 * weight that is NaN or infinite (ERR_FORMAT, naming it), else a sum that overflowed (ERR_LIMIT).
 */
err engine_not_numbers(const engine *en);

#endif

/* Time of one run of a model, kernel by kernel. */
#ifndef FRIT_CLI_PROFILE_H
#define FRIT_CLI_PROFILE_H

#include "run/run.h"

typedef struct profile_row {
  char kernel[2 * HW_LABEL];
  uint32_t calls;
  uint64_t ns, bytes, flops;
} profile_row;

enum { PROFILE_ROWS = 96 };
typedef struct profile {
  profile_row row[PROFILE_ROWS]; /* by time, longest first */
  uint32_t n, dispatches;
  uint64_t ns;
} profile;

/* Runs `n` tokens at position pos (one: decode; more: in chunks of the batch) and the greedy
 * choice, timed. The session's timeline must be rewound to pos afterwards. ERR_UNSUPPORTED when the
 * device has no timestamps. */
err profile_run(run *r, uint32_t pos, const uint32_t *ids, uint32_t n, profile *out);
void profile_print(const profile *p);

#endif

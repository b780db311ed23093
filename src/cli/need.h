/* The memory that a model needs on each device, by planning alone. */
#ifndef FRIT_CLI_NEED_H
#define FRIT_CLI_NEED_H

#include "cli/cli.h"

typedef struct need {
  char device[16], name[128];
  uint32_t ctx;
  uint64_t weights, kv, work; /* bytes */
  uint64_t room;              /* bytes available, 0: not known */
  bool fits;
  char why[320]; /* "" or why it cannot be planned there */
} need;

/* One row for the CPU and one for each adapter; a device that d->device excludes is left out. */
err need_all(const model *m, const cli_device *d, need *out, uint32_t max, uint32_t *n);

/* The device's part of `frit explain` and of the above: caps without opening. kind and index as
 * cli_pick finds them. */
err need_caps(hw_kind kind, uint32_t index, const char *library, hw_caps *out);
/* Caps with what the options pretend. */
void need_pretend(const cli_device *d, hw_caps *c);
/* What the engine would choose on that device. ERR_ARG: a context beyond the model's. */
err need_opts(const model *m, const cli_device *d, const hw_caps *c, run_opts *out);

#endif

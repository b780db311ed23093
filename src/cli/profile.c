#include "cli/profile.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/math.h"
#include "cli/cli.h"

static profile_row *find_row(profile *p, const char *kernel) {
  for (uint32_t i = 0; i < p->n; i++)
    if (strcmp(p->row[i].kernel, kernel) == 0) return &p->row[i];
  if (p->n == PROFILE_ROWS) return &p->row[PROFILE_ROWS - 1];
  profile_row *r = &p->row[p->n++];
  snprintf(r->kernel, sizeof r->kernel, "%s", kernel);
  return r;
}

/* Adds the steps of one plan; returns the next time. */
static const uint64_t *add_plan(profile *p, const plan *pl, const uint64_t *ns) {
  char label[2 * HW_LABEL];
  for (uint32_t i = 0; i < pl->n_steps; i++, ns++) {
    const kernel_spec *s = &pl->steps[i].spec;
    kernel_shape k;
    kernel_label(s, label, sizeof label);
    kernel_get(s->op)->shape(s, &k);
    profile_row *r = find_row(p, label);
    r->calls++;
    r->ns += *ns;
    r->bytes += k.bytes;
    r->flops += k.flops;
    p->ns += *ns;
    p->dispatches++;
  }
  return ns;
}

static err run_chunk(run *r, uint32_t pos, const uint32_t *ids, uint32_t n, uint64_t *ns,
                     uint32_t room, profile *out) {
  hw *h = run_device(r);
  hw_ticket t;
  uint32_t m = n == 1 ? 1 : run_get_opts(r)->batch, got = room;
  step_params p = {.pos = pos, .n_tok = n, .top_k = 1, .temp = 1, .top_p = 1, .penalty = 1};
  err e = run_write_ids(r, ids, n);
  if (!e)
    e = run_submit(r, (n == 1 ? RUN_BODY_ONE : RUN_BODY_BATCH) | RUN_HEAD | RUN_GREEDY, &p,
                   RUN_READ_NONE, true, &t);
  if (e) return e;
  cli_wait w = {0};
  while (!hw_done(h, t)) cli_wait_step(&w, false);
  e = hw_error(h);
  if (!e) e = hw_times(h, t, ns, &got);
  if (e) return e;
  const plan *plans[] = {run_plan(r, PLAN_BODY, m), run_plan(r, PLAN_HEAD, m),
                         run_plan(r, PLAN_GREEDY, 1)};
  uint32_t want = plans[0]->n_steps + plans[1]->n_steps + plans[2]->n_steps;
  if (got != want) return err_set(ERR_DEVICE, "%u times of %u dispatches", got, want);
  for (int i = 0; i < 3; i++) ns = (uint64_t *)(uintptr_t)add_plan(out, plans[i], ns);
  return ERR_NONE;
}

static int by_time(const void *a, const void *b) {
  const profile_row *x = a, *y = b;
  return x->ns < y->ns ? 1 : x->ns > y->ns ? -1 : 0;
}

err profile_run(run *r, uint32_t pos, const uint32_t *ids, uint32_t n, profile *out) {
  *out = (profile){.n = 0};
  if (!hw_get_caps(run_device(r))->timestamps)
    return err_set(ERR_UNSUPPORTED, "this device has no timestamps");
  uint32_t batch = run_get_opts(r)->batch, room = 16384;
  uint64_t *ns = mem_alloc(room * sizeof *ns);
  if (!ns) return mem_err("times", room * sizeof *ns);
  err e = ERR_NONE;
  for (uint32_t at = 0; at < n && !e; at += batch)
    e = run_chunk(r, pos + at, ids + at, min_u32(batch, n - at), ns, room, out);
  mem_free(ns);
  qsort(out->row, out->n, sizeof *out->row, by_time);
  return e;
}

void profile_print(const profile *p) {
  printf("\n%u dispatches, %.1f us in kernels\n", p->dispatches, (double)p->ns / 1e3);
  printf("| us | %% | calls | us a call | GB/s | GFLOP/s | kernel "
         "|\n|---:|---:|---:|---:|---:|---:|---|\n");
  for (uint32_t i = 0; i < p->n; i++) {
    const profile_row *r = &p->row[i];
    double ns = r->ns ? (double)r->ns : 1;
    printf("| %.1f | %.1f | %u | %.2f | %.0f | %.0f | %s |\n", ns / 1e3,
           100 * ns / (double)(p->ns ? p->ns : 1), r->calls, ns / 1e3 / r->calls,
           (double)r->bytes / ns, (double)r->flops / ns, r->kernel);
  }
  putchar('\n');
}

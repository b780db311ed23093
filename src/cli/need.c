#include "cli/need.h"

#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/math.h"
#include "tasks/pick.h"

enum { MAX_ADAPTERS = 16 };

err need_caps(hw_kind kind, uint32_t index, const char *library, hw_caps *out) {
  hw_caps all[MAX_ADAPTERS];
  uint32_t n;
  err e = cli_list(kind, library, all, MAX_ADAPTERS, &n);
  if (e) return e;
  if (index >= n) return err_set(ERR_NO_DEVICE, "gpu:%u: there are %u adapters", index, n);
  *out = all[index];
  return ERR_NONE;
}

void need_pretend(const cli_device *d, hw_caps *c) {
  if (c->kind == HW_CPU) {
    if (d->threads) c->threads = d->threads;
    return;
  }
  if (d->no_f16) c->f16 = false;
  if (d->no_subgroups) c->subgroups = false, c->subgroup_min = c->subgroup_max = 0;
  if (d->limit_binding) c->max_binding = min_u64(c->max_binding, d->limit_binding);
}

err need_opts(const model *m, const cli_device *d, const hw_caps *c, run_opts *out) {
  const engine_opts o = cli_engine_opts(d, &(cli_picked){.desc.kind = c->kind});
  return engine_run_opts(&o, m->p.n_ctx, out);
}

/* On the cpu weights stay in the mapped file: the system may drop their pages, so that only the
 * rest has to fit. The same judgement as engine.c's. */
static err one(const model *m, const cli_device *d, hw_caps *c, const char *device, need *out) {
  *out = (need){.ctx = 0};
  snprintf(out->device, sizeof out->device, "%s", device);
  snprintf(out->name, sizeof out->name, "%s", c->name);
  need_pretend(d, c);
  run_opts o;
  run_memory r = {0};
  err e = need_opts(m, d, c, &o);
  if (e) return e;
  e = run_estimate(c, &m->graph, &o, &r);
  if (e == ERR_NOMEM) return e;
  out->ctx = o.ctx;
  out->weights = r.weights;
  out->kv = r.kv;
  out->work = r.work;
  if (e) snprintf(out->why, sizeof out->why, "%s", err_text());
  if (e || (c->kind != HW_CPU && !c->software)) return ERR_NONE;
  out->room = file_memory_free();
  out->fits = out->kv + out->work + (c->kind == HW_CPU ? 0 : out->weights) <= out->room;
  return ERR_NONE;
}

err need_all(const model *m, const cli_device *d, need *out, uint32_t max, uint32_t *n) {
  hw_caps caps[MAX_ADAPTERS], cpu;
  uint32_t gpus = 0;
  char name[16];
  *n = 0;
  bool only_cpu = d->device && strcmp(d->device, "cpu") == 0;
  err e = need_caps(HW_CPU, 0, NULL, &cpu);
  if (!e) e = one(m, d, &cpu, "cpu", &out[(*n)++]);
  if (!e && !only_cpu) {
    e = cli_list(HW_WEBGPU, d->webgpu, caps, MAX_ADAPTERS, &gpus);
    if (e == ERR_NO_DEVICE && !d->webgpu) e = ERR_NONE;
  }
  for (uint32_t i = 0; !e && i < gpus && *n < max; i++) {
    snprintf(name, sizeof name, "gpu:%u", i);
    if (d->device && strncmp(d->device, "gpu:", 4) == 0 && strcmp(d->device, name) != 0) continue;
    e = one(m, d, &caps[i], name, &out[(*n)++]);
  }
  return e;
}

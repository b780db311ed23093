#include "cli/need.h"

#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/math.h"
#include "tasks/pick.h"

enum { MAX_ADAPTERS = 16, BATCH = 512 };

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

/* As engine.c chooses. */
plan_opts need_plan_opts(const model *m, const cli_device *d, const hw_caps *c) {
  bool f32 = d->precision && strcmp(d->precision, "f32") == 0;
  plan_level level = c->kind == HW_CPU ? PLAN_NONE : PLAN_ROLE;
  if (d->level) level = strcmp(d->level, "role") == 0 ? PLAN_ROLE : PLAN_NONE;
  uint32_t ctx = d->context ? d->context : min_u32(m->p.n_ctx, ENGINE_CTX);
  uint32_t batch = d->batch ? d->batch : BATCH;
  return (plan_opts){.level = level,
                     .m = max_u32(2, min_u32(batch, ctx)),
                     .ctx = ctx,
                     .kv = f32 ? DT_F32 : DT_F16,
                     .rounds = !f32,
                     .off = d->off};
}

/* Slots are shared by all programs: each has the largest size that any of them wants. */
static err add_slots(const model *m, const plan_weights *w, const hw_caps *c, plan_opts o,
                     uint64_t *slots, uint32_t max) {
  plan *p;
  err e = plan_new(&m->graph, w, c, &o, &p);
  if (e) return e;
  for (uint32_t i = 0; i < p->n_slots && i < max; i++) slots[i] = max_u64(slots[i], p->slots[i]);
  plan_free(p);
  return ERR_NONE;
}

static err plan_need(const model *m, const cli_device *d, const hw_caps *c, need *out) {
  enum { SLOTS = 64 };
  uint64_t slots[SLOTS] = {0};
  plan_weights *w = NULL;
  plan_opts o = need_plan_opts(m, d, c);
  const ir_graph *g = &m->graph;
  out->ctx = o.ctx;
  err e;
  TRY(plan_weights_new(g, c, &w));
  for (int i = 0; i < 4; i++) {
    plan_opts one = o;
    one.part = i < 2 ? PLAN_BODY : PLAN_HEAD;
    one.m = i & 1 ? o.m : 1;
    TRY(add_slots(m, w, c, one, slots, SLOTS));
  }
  out->weights = plan_weights_bytes(w);
  out->kv = plan_state_bytes(g, o.ctx, o.kv);
  out->work = 4ull * o.m * g->tensors[g->hidden].cols + 4ull * m->p.n_vocab;
  for (int i = 0; i < SLOTS; i++) out->work += slots[i];
done:
  plan_weights_free(w);
  return e;
}

/* On the cpu weights stay in the mapped file: the system may drop their pages, so that only the
 * rest has to fit. The same judgement as engine.c's. */
static err one(const model *m, const cli_device *d, hw_caps *c, const char *device, need *out) {
  *out = (need){.ctx = 0};
  snprintf(out->device, sizeof out->device, "%s", device);
  snprintf(out->name, sizeof out->name, "%s", c->name);
  need_pretend(d, c);
  err e = plan_need(m, d, c, out);
  if (e == ERR_NOMEM) return e;
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
  if (d->context > m->p.n_ctx)
    return err_set(ERR_ARG, "a context of %u is more than the model's own %u", d->context,
                   m->p.n_ctx);
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

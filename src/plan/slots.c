/* Places virtual values in slots: first fit by size over lifetimes. A value's slot is taken before
 * the slots of its step's inputs are given back, so no step reads and writes one buffer. */
#include <string.h>

#include "plan/plan_impl.h"

/* Whether binding j of a step is written, from the catalog line ("y:w"). */
static bool writes(const plan_step *s, uint32_t j) {
  const char *p = kernel_get(s->spec.op)->binds;
  for (;; j--) {
    p += strspn(p, " ");
    size_t n = strcspn(p, " ");
    if (j == 0) return n && p[n - 1] == 'w';
    p += n;
  }
}

#define NOWHERE 0xFFFFFFFFu

static err take_slot(plan_builder *b, bool *busy, uint64_t bytes, uint32_t max, uint32_t *out) {
  uint32_t best = NOWHERE;
  for (uint32_t i = 0; i < b->p->n_slots; i++) {
    if (busy[i]) continue;
    bool fits = b->p->slots[i] >= bytes;
    bool better =
        best == NOWHERE || (fits ? b->p->slots[best] < bytes || b->p->slots[i] < b->p->slots[best]
                                 : b->p->slots[best] < bytes && b->p->slots[i] > b->p->slots[best]);
    if (better) best = i;
  }
  if (best == NOWHERE) {
    if (b->p->n_slots == max) return err_set(ERR_LIMIT, "a plan with more than %u slots", max);
    best = b->p->n_slots++;
  }
  if (b->p->slots[best] < bytes) b->p->slots[best] = bytes;
  busy[best] = true;
  *out = best;
  return ERR_NONE;
}

err plan_place(plan_builder *b) {
  plan *p = b->p;
  enum { MAX_SLOTS = 64 };
  bool busy[MAX_SLOTS] = {false};
  err e = ERR_NONE;
  uint32_t *last = mem_zalloc(b->n_values + 1, sizeof *last); /* step of the last use */
  uint32_t *slot = mem_zalloc(b->n_values + 1, sizeof *slot);
  p->slots = arena_alloc(&p->mem, MAX_SLOTS, sizeof *p->slots);
  if (!last || !slot || !p->slots) {
    e = mem_err("plan", b->n_values * sizeof *last);
    goto done;
  }
  for (uint32_t v = 0; v < b->n_values; v++) slot[v] = NOWHERE;
  for (uint32_t i = 0; i < p->n_steps; i++) {
    for (uint32_t j = 0; j < p->steps[i].n_bind; j++) {
      if (p->steps[i].bind[j].kind == PLAN_REF_SLOT) last[p->steps[i].bind[j].index] = i;
    }
  }
  for (uint32_t i = 0; i < p->n_steps; i++) {
    plan_step *s = &p->steps[i];
    uint32_t values[HW_MAX_BINDINGS], n = 0;
    for (uint32_t j = 0; j < s->n_bind; j++) {
      plan_ref *r = &s->bind[j];
      if (r->kind != PLAN_REF_SLOT) continue;
      uint32_t v = r->index;
      if (slot[v] == NOWHERE) {
        if (!writes(s, j)) {
          e = err_set(ERR_ARG, "plan step '%s' reads a value that nothing wrote", s->label);
          goto done;
        }
        TRY(take_slot(b, busy, b->value_bytes[v], MAX_SLOTS, &slot[v]));
      }
      values[n++] = v;
      r->index = slot[v];
    }
    for (uint32_t j = 0; j < n; j++) {
      if (last[values[j]] == i) busy[slot[values[j]]] = false;
    }
  }
done:
  mem_free(last);
  mem_free(slot);
  return e;
}

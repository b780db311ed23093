#include "tasks/pick.h"

#include <stdio.h>
#include <string.h>

#include "base/math.h"
#include "base/mem.h"

enum { MAX_ADAPTERS = 16 };
typedef enum want { WANT_AUTO, WANT_CPU, WANT_GPU, WANT_INDEX } want;

struct pick {
  want want;
  uint32_t index;
  hw_list_state *list; /* NULL: nothing to list */
  hw_caps caps[MAX_ADAPTERS];
  char note[320];
};

static bool parse(const char *s, want *w, uint32_t *index) {
  *index = 0;
  if (!s || strcmp(s, "auto") == 0) *w = WANT_AUTO;
  else if (strcmp(s, "cpu") == 0) *w = WANT_CPU;
  else if (strcmp(s, "gpu") == 0) *w = WANT_GPU;
  else if (strncmp(s, "gpu:", 4) == 0 && s[4] >= '0' && s[4] <= '9' && strlen(s) <= 6) {
    *w = WANT_INDEX;
    for (s += 4; *s >= '0' && *s <= '9'; s++) *index = *index * 10 + (uint32_t)(*s - '0');
    return !*s;
  } else return false;
  return true;
}

bool pick_valid(const char *device) {
  want w;
  uint32_t index;
  return parse(device, &w, &index);
}

err pick_begin(const char *device, const char *library, pick **out) {
  *out = NULL;
  pick *p = mem_zalloc(1, sizeof *p);
  if (!p) return mem_err("device list", sizeof *p);
  err e = ERR_NONE;
  if (!parse(device, &p->want, &p->index))
    e = err_set(ERR_ARG, "device '%s' is none of auto, cpu, gpu, gpu:N", device);
  if (!e && p->want != WANT_CPU) e = hw_list_begin(HW_WEBGPU, library, &p->list);
  if (e == ERR_NO_DEVICE && p->want == WANT_AUTO) {
    snprintf(p->note, sizeof p->note, "no GPU: %s", err_text());
    p->list = NULL;
    e = ERR_NONE;
  }
  if (e) pick_end(p);
  else *out = p;
  return e;
}

static err choose(pick *p, uint32_t n, hw_kind *kind, uint32_t *index) {
  uint32_t hard = 0;
  while (hard < n && p->caps[hard].software) hard++;
  *kind = HW_WEBGPU;
  *index = hard;
  if (p->want == WANT_AUTO && hard == n) {
    *kind = HW_CPU;
    *index = 0;
    snprintf(p->note, sizeof p->note,
             n ? "no GPU: only %s, a CPU that plays GPU" : "no GPU found%s",
             n ? p->caps[0].name : "");
    return ERR_NONE;
  }
  if (n == 0) return err_set(ERR_NO_DEVICE, "no GPU: the WebGPU library finds no adapter");
  if (p->want == WANT_GPU) *index = hard < n ? hard : 0;
  if (p->want == WANT_INDEX) *index = p->index;
  if (*index >= n)
    return err_set(ERR_NO_DEVICE, "gpu:%u: there are %u adapters, the last is gpu:%u", *index, n,
                   n - 1);
  return ERR_NONE;
}

err pick_poll(pick *p, hw_kind *kind, uint32_t *index, bool *done) {
  *kind = HW_CPU;
  *index = 0;
  *done = true;
  if (!p->list) return ERR_NONE;
  uint32_t n = 0;
  *done = hw_list_poll(p->list, p->caps, MAX_ADAPTERS, &n);
  return *done ? choose(p, n, kind, index) : ERR_NONE;
}

const char *pick_note(const pick *p) { return p->note; }

void pick_end(pick *p) {
  if (!p) return;
  if (p->list) hw_list_end(p->list);
  mem_free(p);
}

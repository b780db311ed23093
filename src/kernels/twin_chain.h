/* Twins of roles are the chain of base twins that the role replaces: called one after the other on
 * the role's buffers, with what lies between them in the call's scratch. */
#ifndef FRIT_KERNELS_TWIN_CHAIN_H
#define FRIT_KERNELS_TWIN_CHAIN_H

#include "kernels/kernel_impl.h"

/* Runs the twin of `s` on bufs, in the order of its catalog line. Twins read no sizes. */
static inline void twin_call(const hw_cpu_call *c, const kernel_spec *s, void *const *bufs) {
  hw_cpu_call sub = *c;
  sub.ctx = s;
  sub.buf = bufs;
  sub.size = NULL;
  kernel_get(s->op)->twin(&sub);
}

/* h = rmsnorm(x) g for the rows of step. */
static inline void twin_norm(const hw_cpu_call *c, uint32_t n, float eps, void *x, void *g, void *h,
                             void *step) {
  kernel_spec s = {.op = KERNEL_RMSNORM, .dim = {n, 1}, .f = {eps}};
  twin_call(c, &s, (void *[]){x, g, h, step});
}

/* y[Y0 + n] = sum_k W[ROW0 + n, k] x[k]; dims as in the catalog. */
typedef struct twin_mv {
  uint32_t n, k, row0, ntot, yn, y0;
  dtype w;
} twin_mv;
static inline void twin_matvec(const hw_cpu_call *c, twin_mv d, void *w, void *x, void *y,
                               void *step) {
  kernel_spec s = {
      .op = KERNEL_MATVEC, .dim = {d.n, d.k, d.row0, d.ntot, d.yn, d.y0}, .type = {d.w}};
  twin_call(c, &s, (void *[]){w, x, y, step});
}

#endif

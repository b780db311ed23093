/* The kernel catalog: each op has a WGSL text, a C twin (its definition) and a line here.
 *
 * A kernel_spec names one specialisation; kernel_label prints it, and that string is pipeline key,
 * GPU label, test name and plan text: "matvec(N=576,K=1536,...,W=q4_1)". Specialisation is by
 * `const` lines put before the text, and by includes whose names hold a knob: #include
 * "lib/w_{W}.wgsl".
 *
 * Conventions of every kernel:
 * - activations are row-major f32 [M, N]; row m is token m of the chunk; rows from step.n_tok on
 * are neither read nor written (M is the room, step.n_tok what is there; ops of the head have M = 1
 *   in runs of more tokens: an op does min(step.n_tok, M) rows);
 * - one uniform block, Step (lib/step.wgsl), holds all that changes from run to run;
 * - K of a quantised weight is a multiple of 32 (256 for K types); weights are [NTOT, K] in the
 * packed layout of lib/w_*.wgsl on GPUs (see pack.h) and in the file's own layout on the cpu back
 * end;
 * - the KV cache of a layer is [context, N] in f32, or f16 packed two to a u32, one buffer each for
 * K, V.
 */
#ifndef FRIT_KERNELS_KERNEL_H
#define FRIT_KERNELS_KERNEL_H

#include "base/dtype.h"
#include "base/mem.h"
#include "hw/hw.h"
#include "kernels/catalog.h"
#include "params_step.h" /* generated from lib/step.wgsl: struct step_params */

typedef enum kernel_op {
#define X(id, name, dims, consts, types, binds) KERNEL_##id,
  KERNELS(X)
#undef X
      KERNEL_COUNT_
} kernel_op;

enum { KERNEL_DIMS = 12, KERNEL_CONSTS = 2, KERNEL_TYPES = 3 };

typedef struct kernel_spec {
  kernel_op op;
  uint32_t dim[KERNEL_DIMS]; /* in the order of the catalog line */
  float f[KERNEL_CONSTS];
  dtype type[KERNEL_TYPES];
  uint32_t sg; /* subgroup size that the text may rely on; 0: no subgroups */
  uint32_t wg; /* threads that a workgroup should have at most; 0: what suits a GPU. Small where
                  a CPU plays GPU, since a barrier costs it microseconds a subgroup */
  bool rounds; /* the fast form may round activations to 8 bits (cpu) */
} kernel_spec;

/* How a specialisation runs, and what it costs. */
typedef struct kernel_shape {
  uint32_t workgroup[3];
  uint32_t groups[3];
  uint32_t workgroup_mem;        /* bytes */
  uint64_t cpu_scratch, cpu_own; /* bytes that the fast form shares, and of each thread */
  uint64_t bytes, flops;         /* moved and done, with all M rows */
  bool cpu_single;               /* too small to share among threads */
  uint32_t tile[4];   /* tunables, chosen here only: `const T0` .. T3 of the text; 0: none */
  const char *refuse; /* NULL, or why there is no such specialisation: a clause */
} kernel_shape;

typedef struct kernel_def {
  const char *name, *dims, *consts, *types, *binds;
  hw_cpu_fn twin; /* simple; the definition. Called with one thread; the fast
                     forms are in cpu_isa.h */
  void (*shape)(const kernel_spec *s, kernel_shape *out);
} kernel_def;

const kernel_def *kernel_get(kernel_op op);
/* By value: the struct has padding. */
bool kernel_spec_equal(const kernel_spec *a, const kernel_spec *b);

/* "name(N=..,K=..,EPS=..,W=q4_0,SG=32)" into out (NUL-terminated, cut at size). */
void kernel_label(const kernel_spec *s, char *out, uint32_t size);
/* The whole WGSL text of a specialisation, appended to out. */
err kernel_wgsl(const kernel_spec *s, buf *out);
/* Value of the named dim / type of a spec; asserts that the op has it. */
uint32_t kernel_dim(const kernel_spec *s, const char *name);
dtype kernel_type(const kernel_spec *s, const char *name);

/* Creates the kernel on a device: the twin when `twin`, else its best form. The spec is copied into
 * `keep`, which must outlive the kernel. Compiles asynchronously: see hw_kernel_ready. */
err kernel_new(hw *h, const kernel_spec *s, bool twin, arena *keep, hw_kernel *out);

/* Sets s->wg where the op has a shape of its own for it. */
void kernel_limit_threads(kernel_spec *s, uint32_t wg);
/* Threads of a workgroup that would have `best` on a GPU and needs `least`: a power of two. */
uint32_t kernel_threads(const kernel_spec *s, uint32_t best, uint32_t least);

/* For fast forms and twins: the spec of a call. */
static inline const kernel_spec *kernel_spec_of(const hw_cpu_call *c) { return c->ctx; }

/* A grid of n workgroups in x, spilling to y above 32768: texts compute wid.x + wid.y * num.x. */
void kernel_grid(uint64_t n, uint32_t groups[3]);

/* Share of thread t of n in [0, total), in units of `unit`: [*begin, *end). */
static inline void kernel_share(const hw_cpu_call *c, uint32_t total, uint32_t unit,
                                uint32_t *begin, uint32_t *end) {
  uint64_t units = (total + unit - 1) / unit;
  uint64_t b = units * c->thread / c->n_threads * unit;
  uint64_t e = units * (c->thread + 1) / c->n_threads * unit;
  *begin = (uint32_t)(b < total ? b : total);
  *end = (uint32_t)(e < total ? e : total);
}

#endif

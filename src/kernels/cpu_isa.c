/* Owns the choice of the instruction-set level and the dispatch of fast forms to it. */
#include "kernels/cpu_isa.h"

#include <stdatomic.h>

#include "base/math.h"
#include "kernels/cpu_isa_impl.h"

#if defined(__x86_64__)
#include <cpuid.h>

static bool has_avx2(void) {
  unsigned a, b, c, d;
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
         __get_cpuid(1, &a, &b, &c, &d) && (c >> 29 & 1); /* F16C */
}
/* AVX-VNNI: leaf 7, subleaf 1, EAX bit 4. */
static bool has_avx2_vnni(void) {
  unsigned a, b, c, d;
  return has_avx2() && __get_cpuid_count(7, 1, &a, &b, &c, &d) && (a >> 4 & 1);
}
static bool has_avx512(void) {
  return has_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq");
}
static bool has_avx512_vnni(void) { return has_avx512() && __builtin_cpu_supports("avx512vnni"); }
#elif defined(__aarch64__)
#if defined(__linux__)
#include <sys/auxv.h>
#endif

/* SDOT and UDOT. Elsewhere than on Linux as the compiler was told. */
static bool has_neon_dot(void) {
#if defined(__ARM_FEATURE_DOTPROD)
  return true;
#elif defined(__linux__)
  return getauxval(AT_HWCAP) >> 20 & 1; /* HWCAP_ASIMDDP */
#else
  return false;
#endif
}
#endif

static bool always(void) { return true; }

static const struct {
  const cpu_forms *forms;
  bool (*has)(void);
} levels[] = {
#if defined(__aarch64__)
    {&cpu_forms_neon, always},       {&cpu_forms_neon_dot, has_neon_dot},
#elif defined(__wasm_simd128__)
    {&cpu_forms_simd128, always},
#else
    {&cpu_forms_base, always},
#endif
#if defined(__x86_64__)
    {&cpu_forms_avx2, has_avx2},     {&cpu_forms_avx2_vnni, has_avx2_vnni},
    {&cpu_forms_avx512, has_avx512}, {&cpu_forms_avx512_vnni, has_avx512_vnni},
#endif
};
enum { LEVELS = sizeof levels / sizeof levels[0] };

static _Atomic(const cpu_forms *) chosen; /* NULL until first asked */

static const cpu_forms *widest(void) {
  int i = LEVELS - 1;
  while (!levels[i].has()) i--;
  return levels[i].forms;
}

static const cpu_forms *forms(void) {
  const cpu_forms *f = atomic_load_explicit(&chosen, memory_order_relaxed);
  if (!f) {
    f = widest();
    atomic_store_explicit(&chosen, f, memory_order_relaxed);
  }
  return f;
}

const char *kernel_cpu_isa(void) { return forms()->name; }

const char *kernel_cpu_isa_at(uint32_t i) {
  for (int l = 0; l < LEVELS; l++)
    if (levels[l].has() && i-- == 0) return levels[l].forms->name;
  return NULL;
}

err kernel_cpu_limit_isa(const char *name) {
  if (!name) {
    atomic_store_explicit(&chosen, widest(), memory_order_relaxed);
    return ERR_NONE;
  }
  for (int l = 0; l < LEVELS; l++) {
    if (strcmp(levels[l].forms->name, name) != 0) continue;
    if (!levels[l].has()) return err_set(ERR_UNSUPPORTED, "this machine's CPU has no %s", name);
    atomic_store_explicit(&chosen, levels[l].forms, memory_order_relaxed);
    return ERR_NONE;
  }
  return err_set(ERR_ARG, "no instruction set '%s'; this machine's widest is %s", name,
                 widest()->name);
}

/* X(op, form, rounding form, the function's name) */
#define FAST(X)                                                                                    \
  X(MATVEC, matvec, matvec_rounding)                                                               \
  X(MATMUL, matmul, matmul_rounding)                                                               \
  X(ATTENTION, attention, attention)                                                               \
  X(RMSNORM, rmsnorm, rmsnorm)                                                                     \
  X(SILU_MUL, silu_mul, silu_mul)                                                                  \
  X(ADD, add, add)                                                                                 \
  X(EMBED, embed, embed)                                                                           \
  X(KV_APPEND, kv_append, kv_append)                                                               \
  X(ROPE, rope, rope)

#define X(op, exact, rounding)                                                                     \
  static void exact##_fast(const hw_cpu_call *c) { forms()->exact(c); }
FAST(X)
#undef X
static void matvec_rounding_fast(const hw_cpu_call *c) { forms()->matvec_rounding(c); }
static void matmul_rounding_fast(const hw_cpu_call *c) { forms()->matmul_rounding(c); }

hw_cpu_fn kernel_cpu_fast(kernel_op op, bool rounds) {
  switch (op) {
#define X(op, exact, rounding)                                                                     \
  case KERNEL_##op: return rounds ? rounding##_fast : exact##_fast;
    FAST(X) // NOLINT(bugprone-branch-clone): most have one form
#undef X
  default: return NULL;
  }
}

/* matvec: sums, or codes of at most 16 bits with scales, sums and offsets. matmul: packed x, a
 * strip of weights. attention: see its panel; the parts of one token. */
void kernel_cpu_shape(const kernel_spec *s, kernel_shape *shape) {
  if (s->op == KERNEL_MATVEC) {
    const uint64_t k = s->dim[1];
    shape->cpu_own = s->rounds ? 2 * k + 12 * (k / 32) : 4 * (k / 16);
  } else if (s->op == KERNEL_MATMUL) {
    const uint64_t k = s->dim[1], m = round_up(s->dim[2], CPU_PANEL_MAX) + CPU_PANEL_MAX;
    shape->cpu_scratch = 4 * m * k;
    shape->cpu_own = 4 * CPU_STRIP_MAX * k;
  } else if (s->op == KERNEL_ATTENTION) {
    const uint64_t h = s->dim[0], d = s->dim[2];
    shape->cpu_scratch = 4 * HW_MAX_THREADS * h * (d + 2);
    shape->cpu_own = 4 * (CPU_PANEL_MAX * (2 * d + CPU_KEYS_MAX + 2) + CPU_KEYS_MAX * d);
  }
}

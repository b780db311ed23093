/* The fast CPU forms against the twins' definitions: each form at each instruction-set level that
 * this machine has, each weight type, 1 to 3 threads, odd sizes, fewer tokens than room.
 *
 * Tolerance of a sum: f32 rounding errors of n terms in any order stay below n eps times the sum of
 * the terms' sizes, in practice far below; terms are at most (|w| + max |w|) |x|, for a code and a
 * minimum are multiplied apart. TOL is 16 eps of that. The rounding forms are compared in the same
 * way with the product of the weights and x rounded as they round it (round_x below). */
#include <stdlib.h>

#include "base/math.h"
#include "base/mem.h"
#include "hw/cpu.h"
#include "kernels/cpu_isa.h"
#include "kernels/quant.h"
#include "test.h"
#include "util_kernels.h"

#define TOL (16 * 0x1p-24)

enum { MAX_BIND = 5, SENTINEL = 0x5A };

typedef struct call_rig {
  hw_cpu_pool *pool;
  uint32_t threads;
  hw_cpu_fn fn;
  const kernel_spec *s;
  void *buf[MAX_BIND];
  uint64_t size[MAX_BIND];
  char *scratch;
  uint64_t own_at, own;
} call_rig;

static void on_thread(void *ctx, uint32_t thread) {
  const call_rig *r = ctx;
  hw_cpu_call c = {.ctx = r->s,
                   .buf = r->buf,
                   .size = r->size,
                   .thread = thread,
                   .n_threads = r->threads,
                   .scratch = r->scratch,
                   .own = r->scratch + r->own_at + thread * r->own,
                   .pool = r->pool};
  r->fn(&c);
}

/* Runs the fast form, scratch as kernel_cpu_shape says and checked for writes beyond it. */
static void run_fast(hw_cpu_pool *pool, const kernel_spec *s, void *const *binds) {
  kernel_shape shape = {0};
  kernel_cpu_shape(s, &shape);
  call_rig r = {.pool = pool,
                .threads = hw_cpu_pool_threads(pool),
                .s = s,
                .fn = kernel_cpu_fast(s->op, s->rounds),
                .own_at = round_up(shape.cpu_scratch, 64),
                .own = round_up(shape.cpu_own + 64, 64)};
  REQUIRE(r.fn != NULL);
  memcpy(r.buf, binds, sizeof r.buf);
  uint64_t total = r.own_at + 64 + r.threads * r.own;
  r.own_at += 64;
  r.scratch = mem_alloc((size_t)total);
  REQUIRE(r.scratch != NULL);
  memset(r.scratch, SENTINEL, (size_t)total);
  hw_cpu_pool_run(pool, on_thread, &r);
  bool whole = true;
  for (uint64_t i = shape.cpu_scratch; i < r.own_at; i++) whole &= r.scratch[i] == SENTINEL;
  for (uint32_t t = 0; t < r.threads; t++)
    for (uint64_t i = shape.cpu_own; i < r.own; i++)
      whole &= r.scratch[r.own_at + t * r.own + i] == SENTINEL;
  CHECK(whole);
  mem_free(r.scratch);
}

static float *randoms(size_t n, uint32_t seed, float size) {
  float *x = mem_alloc(n * sizeof *x + 64);
  for (size_t i = 0; x && i < n; i++) x[i] = (rng_f32(seed, (uint32_t)i) * 2 - 1) * size;
  return x;
}

/* x rounded to 8 bits by groups of 32. */
static void round_x(const float *x, size_t n, float *out) {
  for (size_t i = 0; i < n; i += 32) {
    float top = 0;
    for (size_t j = i; j < i + 32; j++) top = fmaxf(top, fabsf(x[j]));
    float d = top / 127.0f, id = d > 0 ? 1 / d : 0;
    for (size_t j = i; j < i + 32; j++) out[j] = d * (fmaf(x[j], id, 12582912.0f) - 12582912.0f);
  }
}

/* Each level, each number of threads: body(pool) with these set. */
static void each_level(void (*body)(hw_cpu_pool *pool, const void *arg), const void *arg) {
  const char *level;
  for (uint32_t i = 0; (level = kernel_cpu_isa_at(i)); i++) {
    CHECK_OK(kernel_cpu_limit_isa(level));
    CHECK_STR(kernel_cpu_isa(), level);
    for (uint32_t threads = 1; threads <= 3; threads++) {
      hw_cpu_pool *pool;
      CHECK_OK(hw_cpu_pool_new(threads, &pool));
      body(pool, arg);
      hw_cpu_pool_free(pool);
    }
  }
  CHECK_OK(kernel_cpu_limit_isa(NULL));
}

/* Which levels the cases below run. FRIT_TEST_ISA, where set, is the one that has to be in use. */
static void levels(void) {
  const char *want = getenv("FRIT_TEST_ISA"), *level = NULL, *last = NULL;
  printf("  levels:");
  for (uint32_t i = 0; (level = kernel_cpu_isa_at(i)); i++) printf(" %s", last = level);
  printf(", in use: %s\n", kernel_cpu_isa());
  REQUIRE(last != NULL);
  CHECK_STR(kernel_cpu_isa(), last);
  if (want) CHECK_STR(kernel_cpu_isa(), want);
}

/* ---- matvec, matmul ---- */

/* y[m, Y0 + n] of a weight of NTOT rows from ROW0 on; the same for matvec with m = 1. */
typedef struct product {
  dtype t;
  uint32_t n, k, m, tokens, row0, yn, y0;
  bool rounds;
  const uint8_t *w;
  const float *wf, *x, *xr; /* weights as floats, x, x rounded */
} product;

static void product_reference(const product *p, const float *x, uint32_t m, uint32_t n, double *y,
                              double *tol) {
  const float *w = p->wf + (size_t)(p->row0 + n) * p->k;
  double sum = 0, size = 0, top = 0;
  for (uint32_t k = 0; k < p->k; k++) top = fmax(top, fabs((double)w[k]));
  for (uint32_t k = 0; k < p->k; k++) {
    double v = (double)x[(size_t)m * p->k + k];
    sum += (double)w[k] * v;
    size += (fabs((double)w[k]) + top) * fabs(v);
  }
  *y = sum;
  *tol = TOL * size + 1e-30;
}

/* Types that every level but the plain one multiplies with rounded x. */
static bool must_round(dtype t) {
  return strcmp(kernel_cpu_isa(), "base") != 0 && t >= DT_Q4_0 && t != DT_Q8_0 && t != DT_Q2_K &&
         t != DT_Q3_K && t != DT_Q6_K;
}

static void product_case(hw_cpu_pool *pool, const void *arg) {
  const product *p = arg;
  const bool one = p->m == 1;
  const uint32_t ntot = p->row0 + p->n;
  kernel_spec s = {.op = one ? KERNEL_MATVEC : KERNEL_MATMUL, .type = {p->t}, .rounds = p->rounds};
  const uint32_t mv[] = {p->n, p->k, p->row0, ntot, p->yn, p->y0};
  const uint32_t mm[] = {p->n, p->k, p->m, p->row0, ntot, p->yn, p->y0};
  memcpy(s.dim, one ? mv : mm, one ? sizeof mv : sizeof mm);
  step_params step = {.n_tok = p->tokens};
  float *y = randoms((size_t)p->m * p->yn, 3, 1), *before = randoms((size_t)p->m * p->yn, 3, 1);
  REQUIRE(y && before);
  run_fast(pool, &s,
           (void *[MAX_BIND]){(void *)(uintptr_t)p->w, (void *)(uintptr_t)p->x, y, &step});
  /* How many elements are off either reference; elements elsewhere must be as before. */
  uint32_t off_exact = 0, off_rounded = 0, touched = 0;
  for (uint32_t m = 0; m < p->m; m++) {
    for (uint32_t i = 0; i < p->yn; i++) {
      size_t at = (size_t)m * p->yn + i;
      if (m >= p->tokens || i < p->y0 || i >= p->y0 + p->n) {
        touched += f32_bits(y[at]) != f32_bits(before[at]);
        continue;
      }
      double want, tol;
      product_reference(p, p->x, m, i - p->y0, &want, &tol);
      off_exact += !(fabs((double)y[at] - want) <= tol);
      product_reference(p, p->xr, m, i - p->y0, &want, &tol);
      off_rounded += !(fabs((double)y[at] - want) <= tol);
    }
  }
  const bool wrong = !p->rounds         ? off_exact
                     : must_round(p->t) ? off_rounded
                                        : off_exact && off_rounded;
  if (touched || wrong) {
    char label[128];
    kernel_label(&s, label, sizeof label);
    FAIL("%s: %s, %u threads, %u tokens: %u elements off (%u off the rounded), %u touched", label,
         kernel_cpu_isa(), hw_cpu_pool_threads(pool), p->tokens, off_exact, off_rounded, touched);
  }
  mem_free(y);
  mem_free(before);
}

static void product_type(dtype t, uint32_t n, uint32_t k, uint32_t m, uint32_t tokens,
                         bool rounds) {
  product p = {.t = t,
               .n = n,
               .k = k,
               .m = m,
               .tokens = tokens,
               .row0 = 3,
               .yn = n + 5,
               .y0 = 2,
               .rounds = rounds};
  const size_t row = (size_t)dtype_row_bytes(t, k), rows = p.row0 + n;
  float *wf = randoms(rows * k, 1, 1), *x = randoms((size_t)m * k, 2, 3),
        *xr = randoms((size_t)m * k, 2, 3);
  uint8_t *w = mem_alloc(rows * row);
  REQUIRE(wf && x && xr && w);
  for (size_t i = 0; i < rows; i++) {
    quant_quantize_row(t, wf + i * k, w + i * row, k);
    quant_dequant_row(t, w + i * row, wf + i * k, k);
  }
  if (k % 32 == 0) round_x(x, (size_t)m * k, xr);
  p.w = w;
  p.wf = wf;
  p.x = x;
  p.xr = xr;
  each_level(product_case, &p);
  mem_free(w);
  mem_free(xr);
  mem_free(x);
  mem_free(wf);
}

static const dtype types[] = {DT_F32,  DT_F16,  DT_BF16, DT_Q4_0, DT_Q4_1, DT_Q5_0, DT_Q5_1,
                              DT_Q8_0, DT_Q2_K, DT_Q3_K, DT_Q4_K, DT_Q5_K, DT_Q6_K};
enum { TYPES = sizeof types / sizeof types[0] };

static uint32_t least_k(dtype t) { return dtype_get(t)->n == 256 ? 256 : 96; }

static void matvec(void) {
  for (int i = 0; i < TYPES; i++) {
    for (int rounds = 0; rounds < 2; rounds++) {
      product_type(types[i], 1, least_k(types[i]), 1, 1, rounds);
      product_type(types[i], 37, 768, 1, 1, rounds);
    }
  }
  product_type(DT_F32, 5, 77, 1, 1, false);
  product_type(DT_F16, 5, 77, 1, 1, false);
  product_type(DT_BF16, 6, 3, 1, 1, true);
}

static void matmul(void) {
  for (int i = 0; i < TYPES; i++)
    for (int rounds = 0; rounds < 2; rounds++) product_type(types[i], 37, 512, 17, 11, rounds);
  for (uint32_t m = 2; m <= 17; m++) product_type(DT_Q4_1, 21, 96, m, m - m / 3, m % 2);
  product_type(DT_Q8_0, 9, 64, 120, 101, false);
  product_type(DT_Q8_0, 9, 64, 120, 101, true);
  product_type(DT_Q5_1, 17, 64, 97, 97, true);
  product_type(DT_F32, 13, 77, 50, 50, false);
}

/* ---- the others, against their twins ---- */

/* Buffers of floats: inputs random, the last of `n` is the output of `out` floats (which the twin
 * gets a copy of). */
typedef struct other {
  kernel_spec s;
  step_params step;
  uint32_t n_in;
  const void *in[4];
  size_t out; /* bytes */
  double tol;
  bool halves; /* compare as halves */
} other;

static void run_twin(const kernel_spec *s, void *const *binds) {
  kernel_shape shape = {0};
  kernel_get(s->op)->shape(s, &shape);
  void *scratch = mem_alloc((size_t)shape.cpu_scratch + 64);
  hw_cpu_call c = {.ctx = s, .buf = binds, .n_threads = 1, .scratch = scratch};
  kernel_get(s->op)->twin(&c);
  mem_free(scratch);
}

static void other_case(hw_cpu_pool *pool, const void *arg) {
  const other *o = arg;
  void *binds[MAX_BIND] = {0};
  step_params step = o->step;
  for (uint32_t i = 0; i < o->n_in; i++) binds[i] = (void *)(uintptr_t)o->in[i];
  float *y = randoms(o->out / 4, 9, 1), *want = randoms(o->out / 4, 9, 1);
  REQUIRE(y && want);
  binds[o->n_in + 1] = &step;
  binds[o->n_in] = want;
  run_twin(&o->s, binds);
  binds[o->n_in] = y;
  run_fast(pool, &o->s, binds);
  double worst = 0;
  for (size_t i = 0; i < o->out / (o->halves ? 2 : 4); i++) {
    float a = o->halves ? f16_to_f32(((uint16_t *)(void *)y)[i]) : y[i];
    float b = o->halves ? f16_to_f32(((uint16_t *)(void *)want)[i]) : want[i];
    if (o->halves && !(fabsf(b) < 65536)) continue; /* what was there before, as halves */
    worst = fmax(worst, fabs((double)a - (double)b));
  }
  if (!(worst <= o->tol)) {
    char label[128];
    kernel_label(&o->s, label, sizeof label);
    FAIL("%s: %s, %u threads, pos %u, %u tokens: off by %g, more than %g", label, kernel_cpu_isa(),
         hw_cpu_pool_threads(pool), o->step.pos, o->step.n_tok, worst, o->tol);
  }
  mem_free(y);
  mem_free(want);
}

/* Inputs within [-1, 1]: one rounding or a few, of values at most about 1. */
static void elements(void) {
  enum { N = 77, M = 9 };
  float *a = randoms(N * M, 1, 8), *b = randoms(N * M, 2, 1);
  REQUIRE(a && b);
  for (uint32_t tokens = 1; tokens <= M; tokens += 4) {
    other o = {.s = {.op = KERNEL_ADD, .dim = {N, M}},
               .step = {.n_tok = tokens},
               .n_in = 2,
               .in = {a, b},
               .out = N * M * 4,
               .tol = 0};
    each_level(other_case, &o);
    o.s.op = KERNEL_SILU_MUL;
    o.tol = 8 * 6 * 0x1p-24; /* |silu| < 8; exp to 2 ulp, and four roundings */
    each_level(other_case, &o);
    o.s = (kernel_spec){.op = KERNEL_RMSNORM, .dim = {N, M}, .f = {1e-5f}};
    o.tol = 1.8 * 10 * 0x1p-24; /* |x| / rms <= sqrt 3; a sum of squares in f32 */
    each_level(other_case, &o);
  }
  mem_free(a);
  mem_free(b);
}

static void silu_far(void) {
  const float far[8] = {-1e30f, -200, -88.5f, -87, 87, 88.5f, 200, 1e30f};
  const float ones[8] = {1, 1, 1, 1, 1, 1, 1, 1};
  other o = {.s = {.op = KERNEL_SILU_MUL, .dim = {7, 1}},
             .step = {.n_tok = 1},
             .n_in = 2,
             .in = {far, ones},
             .out = 28,
             .tol = 2e-5};
  each_level(other_case, &o);
}

static void embed(void) {
  const uint32_t ids[5] = {3, 12, 0, 7, 9};
  for (int i = 0; i < TYPES; i++) {
    enum { N = 512, ROWS = 8, M = 5 };
    const size_t row = (size_t)dtype_row_bytes(types[i], N);
    float *wf = randoms(ROWS * N, 1, 1);
    uint8_t *w = mem_alloc(ROWS * row);
    REQUIRE(wf && w);
    for (size_t r = 0; r < ROWS; r++) quant_quantize_row(types[i], wf + r * N, w + r * row, N);
    other o = {.s = {.op = KERNEL_EMBED, .dim = {N, ROWS, M, 2}, .type = {types[i]}},
               .step = {.n_tok = 4},
               .n_in = 2,
               .in = {w, ids},
               .out = M * N * 4,
               .tol = 0x1p-24}; /* of the last addition, where it is fused */
    each_level(other_case, &o);
    mem_free(w);
    mem_free(wf);
  }
}

static void rope(void) {
  enum { H = 3, D = 20, ROT = 16, M = 6 };
  float *x = randoms(H * D * M, 1, 1), *cs = randoms(32 * ROT, 2, 1);
  REQUIRE(x && cs);
  for (uint32_t neox = 0; neox < 2; neox++) {
    other o = {.s = {.op = KERNEL_ROPE, .dim = {H, D, ROT, neox, M}},
               .step = {.pos = 7, .n_tok = 5},
               .n_in = 2,
               .in = {x, cs},
               .out = H * D * M * 4,
               .tol = 0x1p-23};
    each_level(other_case, &o);
  }
  mem_free(x);
  mem_free(cs);
}

static void kv_append(void) {
  enum { N = 20, M = 6, CONTEXT = 16 };
  float *x = randoms(N * M, 1, 1);
  REQUIRE(x != NULL);
  for (int half = 0; half < 2; half++) {
    other o = {.s = {.op = KERNEL_KV_APPEND, .dim = {N, M}, .type = {half ? DT_F16 : DT_F32}},
               .step = {.pos = 3, .n_tok = 5},
               .n_in = 1,
               .in = {x},
               .out = CONTEXT * N * (half ? 2 : 4),
               .halves = half};
    each_level(other_case, &o);
  }
  mem_free(x);
}

/* Values within [-1, 1], so are the means; scores within 8: their rounding errors, about D eps 8,
 * become relative errors of the weights. */
static void attention_at(uint32_t h, uint32_t g, uint32_t d, uint32_t m, uint32_t pos,
                         uint32_t tokens, bool half) {
  const uint32_t rows = pos + tokens;
  const size_t n = (size_t)rows * g * d;
  float *q = randoms((size_t)m * h * d, 1, 4), *k = randoms(n, 2, 1), *v = randoms(n, 3, 1);
  REQUIRE(q && k && v);
  for (size_t i = 0; half && i < n; i++) {
    ((uint16_t *)(void *)k)[i] = f32_to_f16(k[i]);
    ((uint16_t *)(void *)v)[i] = f32_to_f16(v[i]);
  }
  other o = {.s = {.op = KERNEL_ATTENTION,
                   .dim = {h, g, d, m},
                   .f = {1 / sqrtf((float)d)},
                   .type = {half ? DT_F16 : DT_F32}},
             .step = {.pos = pos, .n_tok = tokens},
             .n_in = 3,
             .in = {q, k, v},
             .out = (size_t)m * h * d * 4,
             .tol = 4e-6};
  each_level(other_case, &o);
  mem_free(v);
  mem_free(k);
  mem_free(q);
}

static void attention(void) {
  for (int half = 0; half < 2; half++) {
    attention_at(6, 2, 32, 1, 0, 1, half);
    attention_at(6, 2, 32, 1, 76, 1, half);
    attention_at(3, 3, 20, 1, 200, 1, half);
    attention_at(6, 2, 32, 17, 0, 13, half);
    attention_at(2, 2, 32, 17, 5, 2, half);
    attention_at(4, 1, 20, 17, 90, 17, half);
    attention_at(2, 1, 64, 130, 5, 125, half);
  }
}

/* ---- what is not a number stays so ---- */

static void all_nan(const char *what, const float *y, size_t n, bool nan) {
  for (size_t i = 0; i < n; i++) {
    if ((y[i] != y[i]) == nan) continue;
    FAIL("%s at %s: [%zu] is %g", what, kernel_cpu_isa(), i, (double)y[i]);
    return;
  }
}

/* A NaN in row 1 of x; then in row 1 of the weights, by its scale. */
static void nan_products(hw_cpu_pool *pool, const void *arg) {
  enum { K = 512, N = 5, M = 3 };
  const dtype t = *(const dtype *)arg;
  const size_t row = (size_t)dtype_row_bytes(t, K);
  float *wf = randoms(N * K, 1, 1), *x = randoms(M * K, 2, 1), *y = randoms(M * N, 3, 1);
  uint8_t *w = mem_alloc(N * row);
  REQUIRE(wf && x && y && w);
  step_params many = {.n_tok = M}, one = {.n_tok = 1};
  kernel_spec mm = {.op = KERNEL_MATMUL, .dim = {N, K, M, 0, N, N, 0}, .type = {t}};
  kernel_spec mv = {.op = KERNEL_MATVEC, .dim = {N, K, 0, N, N, 0}, .type = {t}};
  const kernel_spec embed = {.op = KERNEL_EMBED, .dim = {K, N, 1, 0}, .type = {t}};
  for (size_t r = 0; r < N; r++) quant_quantize_row(t, wf + r * K, w + r * row, K);
  for (int rounds = 0; rounds < 2; rounds++) {
    mm.rounds = mv.rounds = rounds;
    for (size_t at = K; at < 2 * K; at += 37) {
      const float was = x[at];
      x[at] = at % 2 ? NAN : -NAN;
      run_fast(pool, &mm, (void *[MAX_BIND]){w, x, y, &many});
      all_nan("matmul, row 0", y, N, false);
      all_nan("matmul, row 1", y + N, N, true);
      all_nan("matmul, row 2", y + 2 * N, N, false);
      run_fast(pool, &mv, (void *[MAX_BIND]){w, x + K, y, &one});
      all_nan("matvec", y, N, true);
      x[at] = was;
    }
  }
  kt_put_nan(t, w + row);
  for (int rounds = 0; rounds < 2; rounds++) {
    mm.rounds = mv.rounds = rounds;
    run_fast(pool, &mm, (void *[MAX_BIND]){w, x, y, &many});
    for (uint32_t i = 0; i < M * N; i++) all_nan("matmul by NaN", y + i, 1, i % N == 1);
    run_fast(pool, &mv, (void *[MAX_BIND]){w, x, y, &one});
    for (uint32_t i = 0; i < N; i++) all_nan("matvec by NaN", y + i, 1, i == 1);
  }
  run_fast(pool, &embed, (void *[MAX_BIND]){w, (uint32_t[]){1}, wf, &one});
  all_nan("embed", wf, dtype_get(t)->n, true);
  mem_free(w);
  mem_free(y);
  mem_free(x);
  mem_free(wf);
}

/* A NaN in one key of many, in silu, in the norm. */
static void nan_others(hw_cpu_pool *pool, const void *arg) {
  enum { D = 32, M = 5, POS = 70 };
  const bool half = *(const bool *)arg;
  float *q = randoms(M * D, 1, 1), *k = randoms((POS + M) * D, 2, 1),
        *v = randoms((POS + M) * D, 3, 1), *y = randoms(M * D, 4, 1);
  REQUIRE(q && k && v && y);
  k[9 * D + 3] = NAN;
  for (size_t i = 0; half && i < (POS + M) * D; i++) {
    ((uint16_t *)(void *)k)[i] = f32_to_f16(k[i]);
    ((uint16_t *)(void *)v)[i] = f32_to_f16(v[i]);
  }
  const kernel_spec attention = {
      .op = KERNEL_ATTENTION, .dim = {1, 1, D, M}, .f = {0.1f}, .type = {half ? DT_F16 : DT_F32}};
  for (uint32_t n = 1; n <= M; n += M - 1) {
    run_fast(pool, &attention,
             (void *[MAX_BIND]){q, k, v, y, &(step_params){.pos = POS, .n_tok = n}});
    all_nan("attention", y, n * D, true);
  }
  step_params one = {.n_tok = 1};
  q[7] = NAN;
  const kernel_spec silu = {.op = KERNEL_SILU_MUL, .dim = {D, 1}};
  run_fast(pool, &silu, (void *[MAX_BIND]){q, v, y, &one});
  for (uint32_t i = 0; i < D && !half; i++) all_nan("silu", y + i, 1, i == 7);
  const kernel_spec norm = {.op = KERNEL_RMSNORM, .dim = {D, 1}};
  run_fast(pool, &norm, (void *[MAX_BIND]){q, q, y, &one});
  all_nan("rmsnorm", y, D, true);
  mem_free(y);
  mem_free(v);
  mem_free(k);
  mem_free(q);
}

static void nan_stays(void) {
  for (int i = 0; i < TYPES; i++) each_level(nan_products, &types[i]);
  for (int half = 0; half < 2; half++) each_level(nan_others, &(bool){half});
}

void suite_cpu_kernels(void) {
  RUN(levels);
  RUN(matvec);
  RUN(matmul);
  RUN(elements);
  RUN(silu_far);
  RUN(embed);
  RUN(rope);
  RUN(kv_append);
  RUN(attention);
  RUN(nan_stays);
}

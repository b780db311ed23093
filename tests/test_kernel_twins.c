/* The twins themselves against double precision by numpy (tools/vectors/kernels.py). */
#include "base/file.h"
#include "base/math.h"
#include "base/mem.h"
#include "kernels/kernel.h"
#include "test.h"

enum { MAX_WORDS = 4096 };
typedef union block {
  float f[MAX_WORDS];
  uint32_t u[MAX_WORDS];
} block;

typedef struct reader {
  char *text;
  size_t size, off;
} reader;

/* The next block, of exactly n words. */
static bool next(reader *r, block *b, uint32_t n) {
  if (r->size - r->off < 4 + 4 * (size_t)n || load_u32(r->text + r->off) != n || n > MAX_WORDS) {
    FAIL("ops.bin at %zu: not a block of %u", r->off, n);
    return false;
  }
  memcpy(b, r->text + r->off + 4, 4 * (size_t)n);
  r->off += 4 + 4 * (size_t)n;
  return true;
}

static void twin(const kernel_spec *s, void *const *data) {
  kernel_get(s->op)->twin(&(hw_cpu_call){.ctx = s, .buf = data, .n_threads = 1});
}

static void check(const char *what, const float *got, const float *want, uint32_t n) {
  for (uint32_t i = 0; i < n; i++) {
    if (!(fabsf(got[i] - want[i]) <= 3e-6f * (1 + fabsf(want[i]))))
      FAIL("%s [%u]: %g, numpy has %g", what, i, (double)got[i], (double)want[i]);
  }
}

static block a, b, c, want, got;

static void norm_and_silu(reader *r) {
  step_params step = {.n_tok = 3};
  if (!next(r, &a, 195) || !next(r, &b, 65) || !next(r, &want, 195)) return;
  twin(&(kernel_spec){.op = KERNEL_RMSNORM, .dim = {65, 3}, .f = {1e-5f}},
       (void *[]){&a, &b, &got, &step});
  check("rmsnorm", got.f, want.f, 195);
  step.n_tok = 1;
  if (!next(r, &a, 50) || !next(r, &b, 50) || !next(r, &want, 50)) return;
  twin(&(kernel_spec){.op = KERNEL_SILU_MUL, .dim = {50, 1}}, (void *[]){&a, &b, &got, &step});
  check("silu_mul", got.f, want.f, 50);
}

static void rope(reader *r) {
  step_params step = {.pos = 5, .n_tok = 4};
  if (!next(r, &a, 192) || !next(r, &b, 108)) return;
  for (uint32_t neox = 0; neox < 2; neox++) {
    if (!next(r, &want, 192)) return;
    twin(&(kernel_spec){.op = KERNEL_ROPE, .dim = {3, 16, 12, neox, 4}},
         (void *[]){&a, &b, &got, &step});
    check(neox ? "rope, neox" : "rope", got.f, want.f, 192);
  }
}

static void attention(reader *r) {
  step_params step = {.pos = 7, .n_tok = 3};
  if (!next(r, &a, 96) || !next(r, &b, 160) || !next(r, &c, 160) || !next(r, &want, 96)) return;
  twin(&(kernel_spec){.op = KERNEL_ATTENTION, .dim = {4, 2, 8, 3}, .f = {1}, .type = {DT_F32}},
       (void *[]){&a, &b, &c, &got, &step});
  check("attention", got.f, want.f, 96);
}

static void nll(reader *r) {
  step_params step = {.n_tok = 2};
  if (!next(r, &a, 40) || !next(r, &want, 2)) return;
  twin(&(kernel_spec){.op = KERNEL_NLL, .dim = {20, 2}},
       (void *[]){&a, (uint32_t[]){3, 3}, &got, &step});
  check("nll", got.f, want.f, 2);
}

static void sample(reader *r) {
  enum { N = 400, ROWS = 200 };
  if (!next(r, &a, N) || !next(r, &b, 3 * ROWS) || !next(r, &c, 3 * ROWS) || !next(r, &want, ROWS))
    return;
  for (uint32_t i = 0; i < ROWS; i++) {
    step_params step = {.n_tok = 1,
                        .top_k = b.u[3 * i],
                        .seed = b.u[3 * i + 1],
                        .draw = b.u[3 * i + 2],
                        .temp = c.f[3 * i],
                        .top_p = c.f[3 * i + 1],
                        .min_p = c.f[3 * i + 2]};
    twin(&(kernel_spec){.op = KERNEL_SAMPLE, .dim = {N}}, (void *[]){&a, &got, &step});
    if (got.u[0] != want.u[i]) FAIL("sample row %u: id %u, numpy has %u", i, got.u[0], want.u[i]);
  }
}

/* The id of none where a logit is NaN or +infinity, wherever it is; an id where all are -infinity.
 */
static void not_numbers(void) {
  enum { N = 50 };
  const float bad[] = {NAN, -NAN, INFINITY};
  step_params step = {.n_tok = 1, .top_k = 3, .temp = 1, .top_p = 1};
  const kernel_spec greedy = {.op = KERNEL_ARGMAX, .dim = {N}};
  const kernel_spec draw = {.op = KERNEL_SAMPLE, .dim = {N}};
  for (uint32_t i = 0; i < N; i++) a.f[i] = -INFINITY;
  twin(&greedy, (void *[]){&a, &got, &step});
  CHECK_EQ(got.u[0], 0);
  for (uint32_t i = 0; i < 3 * N; i++) {
    for (uint32_t j = 0; j < N; j++) a.f[j] = j == i / 3 ? bad[i % 3] : (float)j;
    twin(&greedy, (void *[]){&a, &got, &step});
    CHECK_EQ(got.u[0], UINT32_MAX);
    twin(&draw, (void *[]){&a, &got, &step});
    CHECK_EQ(got.u[0], UINT32_MAX);
  }
}

static void numpy_vectors(void) {
  reader r = {0};
  CHECK_OK(file_read(test_data("kernels/ops.bin"), 1 << 20, &r.text, &r.size));
  REQUIRE(r.text);
  norm_and_silu(&r);
  rope(&r);
  attention(&r);
  nll(&r);
  sample(&r);
  CHECK_EQ(r.off, r.size);
  mem_free(r.text);
}

void suite_kernel_twins(void) {
  RUN(numpy_vectors);
  RUN(not_numbers);
}

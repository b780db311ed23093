/* Twins of roles against the chain of base twins that each replaces: the same bits, except where
 * attention is cut into splits. Runs on the host, no device. */
#include <stdlib.h>

#include "base/math.h"
#include "kernels/kernel.h"
#include "kernels/quant.h"
#include "test.h"

enum { CONTEXT = 72, POS = 70, K = 96 };
static const dtype wtype = DT_Q4_1;

static void *room(uint64_t bytes) {
  void *p = calloc(bytes + 1, 1);
  if (!p) abort();
  return p;
}
static float *floats(uint64_t n, uint32_t seed) {
  float *p = room(n * sizeof *p);
  for (uint64_t i = 0; i < n; i++) p[i] = rng_f32(seed, (uint32_t)i) * 2 - 1;
  return p;
}
static void *weights(uint32_t rows, uint32_t seed) {
  float *w = floats((uint64_t)rows * K, seed);
  void *p = room(rows * dtype_row_bytes(wtype, K));
  quant_quantize_row(wtype, w, p, (uint64_t)rows * K);
  free(w);
  return p;
}

static void call(kernel_spec s, void *const *bufs) {
  kernel_shape shape;
  const kernel_def *def = kernel_get(s.op);
  def->shape(&s, &shape);
  void *scratch = room(shape.cpu_scratch);
  hw_cpu_call c = {.ctx = &s, .buf = bufs, .n_threads = 1, .scratch = scratch};
  def->twin(&c);
  free(scratch);
}
#define CALL(op_, dims, eps, t0, t1, ...)                                                          \
  call((kernel_spec){.op = KERNEL_##op_, .dim = {UNPACK dims}, .f = {eps}, .type = {t0, t1}},      \
       (void *[]){__VA_ARGS__})
#define UNPACK(...) __VA_ARGS__

static void same(const char *what, const void *a, const void *b, uint64_t bytes) {
  if (memcmp(a, b, bytes) != 0) FAIL("%s: the role's twin differs from the chain", what);
}

static void matvec_roles(void) {
  enum { N = 40 };
  step_params step = {.pos = POS, .n_tok = 1};
  float *x = floats(K, 1), *g = floats(K, 2), *r = floats(N, 3);
  void *w = weights(2 * N, 4);
  float *h = room(4 * K), *a = room(4 * N), *b = room(4 * N), *want = room(4 * N),
        *got = room(4 * N);

  CALL(MATVEC, (N, K, 5, 2 * N, N, 0), 0, wtype, 0, w, x, a, &step);
  CALL(ADD, (N, 1), 0, 0, 0, r, a, want, &step);
  CALL(MATVEC_RES, (N, K, 5, 2 * N), 0, wtype, 0, w, x, r, got, &step);
  same("matvec_res", got, want, 4 * N);

  CALL(RMSNORM, (K, 1), 1e-5f, 0, 0, x, g, h, &step);
  CALL(MATVEC, (N - 2, K, 5, 2 * N, N, 1), 0, wtype, 0, w, h, want, &step);
  memcpy(got, r, 4 * N);
  want[0] = r[0], want[N - 1] = r[N - 1];
  CALL(NORM_MV, (N - 2, K, 5, 2 * N, N, 1), 1e-5f, wtype, 0, w, x, g, got, &step);
  same("norm_mv", got, want, 4 * N);

  CALL(MATVEC, (N, K, 0, 2 * N, N, 0), 0, wtype, 0, w, h, a, &step);
  CALL(MATVEC, (N, K, N, 2 * N, N, 0), 0, wtype, 0, w, h, b, &step);
  CALL(SILU_MUL, (N, 1), 0, 0, 0, a, b, want, &step);
  CALL(FFN_MV, (N, K), 1e-5f, wtype, 0, w, x, g, got, &step);
  same("ffn_mv", got, want, 4 * N);

  void *all[] = {x, g, r, w, h, a, b, want, got};
  for (int i = 0; i < 9; i++) free(all[i]);
}

/* Four query heads and two of keys and values; q, k, v in one tensor, then in three. */
static void qkv(void) {
  enum { D = 16, NQ = 4 * D, NK = 2 * D, N = NQ + 2 * NK };
  step_params step = {.pos = POS, .n_tok = 1};
  float *x = floats(K, 1), *g = floats(K, 2), *cs = floats(CONTEXT * D, 3), *h = room(4 * K);
  void *w = weights(N, 4);
  for (uint32_t variant = 0; variant < 4; variant++) {
    const uint32_t neox = variant & 1, rot = variant & 1 ? 8 : D;
    const dtype kv = variant & 2 ? DT_F16 : DT_F32;
    float *y = room(4 * N), *q = room(4 * NQ), *k = room(4 * NK);
    void *kc = room(4 * CONTEXT * NK), *vc = room(4 * CONTEXT * NK);
    CALL(RMSNORM, (K, 1), 1e-5f, 0, 0, x, g, h, &step);
    CALL(MATVEC, (N, K, 0, N, N, 0), 0, wtype, 0, w, h, y, &step);
    CALL(ROPE, (4, D, rot, neox, 1), 0, 0, 0, y, cs, q, &step);
    CALL(ROPE, (2, D, rot, neox, 1), 0, 0, 0, y + NQ, cs, k, &step);
    CALL(KV_APPEND, (NK, 1), 0, kv, 0, k, kc, &step);
    CALL(KV_APPEND, (NK, 1), 0, kv, 0, y + NQ + NK, vc, &step);
    for (int parts = 1; parts <= 3; parts += 2) {
      static const uint32_t off[] = {0, NQ, NQ + NK, N};
      float *q2 = room(4 * NQ);
      void *kc2 = room(4 * CONTEXT * NK), *vc2 = room(4 * CONTEXT * NK);
      for (int i = 0; i < parts; i++) {
        const uint32_t from = parts == 1 ? 0 : off[i], n = (parts == 1 ? N : off[i + 1]) - from;
        CALL(QKV_MV, (n, K, from, N, from, NQ, NK, D, rot, neox), 1e-5f, wtype, kv, w, x, g, cs, q2,
             kc2, vc2, &step);
      }
      same("qkv_mv q", q2, q, 4 * NQ);
      same("qkv_mv k", kc2, kc, 4 * CONTEXT * NK);
      same("qkv_mv v", vc2, vc, 4 * CONTEXT * NK);
      free(q2), free(kc2), free(vc2);
    }
    free(y), free(q), free(k), free(kc), free(vc);
  }
  free(x), free(g), free(cs), free(h), free(w);
}

static void attention(void) {
  enum { H = 6, G = 2, D = 32 };
  for (uint32_t pos = 0; pos <= POS; pos += POS / 2) {
    step_params step = {.pos = pos, .n_tok = 1};
    float *q = floats(H * D, 1), *k = floats(CONTEXT * G * D, 2), *v = floats(CONTEXT * G * D, 3);
    float want[H * D], got[H * D];
    CALL(ATTENTION, (H, G, D, 1), 0.3f, DT_F32, 0, q, k, v, want, &step);
    for (uint32_t s = 1; s <= 16; s *= 4) { /* at pos 0, most splits are empty */
      float *part = room(4ull * H * s * (D + 2));
      CALL(ATTN_SPLIT, (H, G, D, s), 0.3f, DT_F32, 0, q, k, v, part, &step);
      CALL(ATTN_COMBINE, (H, D, s), 0, 0, 0, part, got, &step);
      for (int i = 0; i < H * D; i++) CHECK_NEAR(got[i], want[i], 1e-5);
      free(part);
    }
    CALL(ATTN_FLASH, (H, G, D, 1), 0.3f, DT_F32, 0, q, k, v, got, &step);
    same("attn_flash", got, want, sizeof want);
    free(q), free(k), free(v);
  }
}

static void prefill_roles(void) {
  enum { N = 24, M = 5, T = 3, H = 4, G = 2, D = 16, W = (H + 2 * G) * D };
  step_params step = {.pos = 7, .n_tok = T};
  float *x = floats(M * K, 1), *r = floats(M * N, 2), *qkv_ = floats(M * W, 3),
        *cs = floats(16 * D, 5);
  void *w = weights(N, 4);
  float *p = room(4 * M * N), *want = room(4 * M * N), *got = room(4 * M * N);
  CALL(MATMUL, (N, K, M, 0, N, N, 0), 0, wtype, 0, w, x, p, &step);
  CALL(ADD, (N, M), 0, 0, 0, r, p, want, &step);
  CALL(MATMUL_RES, (N, K, M, 0, N), 0, wtype, 0, w, x, r, got, &step);
  same("matmul_res", got, want, 4 * M * N);

  /* q, k, v and gate, up as matrices of their own */
  float *q = room(4 * M * H * D), *k = room(4 * M * G * D), *v = room(4 * M * G * D);
  for (int m = 0; m < M; m++) {
    memcpy(q + m * H * D, qkv_ + m * W, 4 * H * D);
    memcpy(k + m * G * D, qkv_ + m * W + H * D, 4 * G * D);
    memcpy(v + m * G * D, qkv_ + m * W + (H + G) * D, 4 * G * D);
  }
  float *turned = room(4 * M * G * D), *q1 = room(4 * M * H * D), *q2 = room(4 * M * H * D);
  void *c[4];
  for (int i = 0; i < 4; i++) c[i] = room(4 * 16 * G * D);
  CALL(ROPE, (H, D, D, 1, M), 0, 0, 0, q, cs, q1, &step);
  CALL(ROPE, (G, D, D, 1, M), 0, 0, 0, k, cs, turned, &step);
  CALL(KV_APPEND, (G * D, M), 0, DT_F16, 0, turned, c[0], &step);
  CALL(KV_APPEND, (G * D, M), 0, DT_F16, 0, v, c[1], &step);
  CALL(ROPE_APPEND, (H, G, D, D, 1, M), 0, DT_F16, 0, qkv_, cs, q2, c[2], c[3], &step);
  same("rope_append q", q2, q1, 4 * M * H * D);
  same("rope_append k", c[2], c[0], 4 * 16 * G * D);
  same("rope_append v", c[3], c[1], 4 * 16 * G * D);

  float *y1 = room(4 * M * 64), *y2 = room(4 * M * 64), *a = room(4 * M * 64),
        *b = room(4 * M * 64);
  for (int m = 0; m < M; m++) {
    memcpy(a + m * 64, qkv_ + m * W, 4 * 64);
    memcpy(b + m * 64, qkv_ + m * W + 64, 4 * 64);
  }
  CALL(SILU_MUL, (64, M), 0, 0, 0, a, b, y1, &step);
  CALL(SILU_MUL_PAIR, (64, M), 0, 0, 0, qkv_, y2, &step);
  same("silu_mul_pair", y2, y1, 4 * M * 64);
  void *all[] = {x,      r,  qkv_, cs,   w,    p,    want, got, q,  k, v,
                 turned, q1, q2,   c[0], c[1], c[2], c[3], y1,  y2, a, b};
  for (uint32_t i = 0; i < sizeof all / sizeof all[0]; i++) free(all[i]);
}

void suite_role_chains(void) {
  RUN(matvec_roles);
  RUN(qkv);
  RUN(attention);
  RUN(prefill_roles);
}

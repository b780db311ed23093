/* Role kernels against their twins, and the twins against the chain of base twins that each role
 * replaces. Shapes: those of two llama models scaled down, and odd ones. */
#include <stdlib.h>

#include "base/math.h"
#include "kernels/kernel.h"
#include "test.h"
#include "util_hw.h"
#include "util_kernels.h"

enum { CONTEXT = 520 };

static const double tol_sum = 1e-5;  /* f32 sums in another order, codes as 1 + code / 2^n */
static const double tol_half = 1e-3; /* a value stored as f16: 2^-11, next to a sum's error */
static const char *why_sum = "f32 sums in another order", *why_half = "rounded to f16";

/* The subgroup sizes that texts are tested with: none, and the device's own where it is fixed. */
static uint32_t subgroup_sizes(uint32_t sg[2]) {
  hw *h = test_open();
  if (!h) return 0;
  const hw_caps *caps = hw_get_caps(h);
  sg[0] = 0;
  sg[1] = caps->subgroups && caps->subgroup_min == caps->subgroup_max ? caps->subgroup_max : 0;
  return sg[1] ? 2 : 1;
}

static uint32_t k_of(dtype t, uint32_t k) {
  const uint32_t block = max_u32(dtype_get(t)->n, 32);
  return (uint32_t)round_up(k, block);
}

#define EACH_SG(sg)                                                                                \
  uint32_t sizes_[2], n_sizes_ = subgroup_sizes(sizes_);                                           \
  for (uint32_t i_ = 0, sg; i_ < n_sizes_ && (sg = sizes_[i_], true); i_++)

/* ---- matrix-vector roles ---- */

static kt_bind floats(uint64_t n) { return (kt_bind){KT_FLOATS, 1, n, 0, DT_F32, 0, NULL}; }
static kt_bind output(uint64_t n) { return (kt_bind){KT_POISON, 1, n, 0, DT_F32, 0, NULL}; }
static kt_bind weights(dtype t, uint64_t rows, uint64_t k) {
  return (kt_bind){KT_WEIGHTS, rows, k, 0, t, 0, NULL};
}
static const kt_bind step_bind = {KT_STEP, 0, 0, 0, DT_F32, 0, NULL};

static void run_mv(kernel_op op, dtype t, uint32_t n, uint32_t k, uint32_t sg) {
  kt_case c = {.spec = {.op = op, .type = {t}, .sg = sg},
               .step = {.pos = 3, .n_tok = 1},
               .tol = tol_sum,
               .why = why_sum,
               .seed = n + k};
  k = k_of(t, k);
  c.spec.f[0] = 1e-5f;
  if (op == KERNEL_FFN_MV) {
    memcpy(c.spec.dim, (uint32_t[]){n, k}, 8);
    memcpy(c.bind, (kt_bind[]){weights(t, 2 * n, k), floats(k), floats(k), output(n), step_bind},
           5 * sizeof(kt_bind));
  } else if (op == KERNEL_NORM_MV) {
    memcpy(c.spec.dim, (uint32_t[]){n, k, 2, n + 3, n + 5, 4}, 24);
    memcpy(c.bind,
           (kt_bind[]){weights(t, n + 3, k), floats(k), floats(k), output(n + 5), step_bind},
           5 * sizeof(kt_bind));
  } else if (op == KERNEL_MATVEC) {
    c.spec.f[0] = 0;
    memcpy(c.spec.dim, (uint32_t[]){n, k, 1, n + 1, n + 7, 3}, 24);
    memcpy(c.bind, (kt_bind[]){weights(t, n + 1, k), floats(k), output(n + 7), step_bind},
           4 * sizeof(kt_bind));
  } else {
    c.spec.f[0] = 0;
    memcpy(c.spec.dim, (uint32_t[]){n, k, 1, n + 4}, 16);
    memcpy(c.bind, (kt_bind[]){weights(t, n + 4, k), floats(k), floats(n), output(n), step_bind},
           5 * sizeof(kt_bind));
  }
  kt_run(&c);
}

static const kernel_op mv_ops[] = {KERNEL_MATVEC, KERNEL_MATVEC_RES, KERNEL_NORM_MV, KERNEL_FFN_MV};

/* Pipelines take long to compile on software adapters: two ops for each type and each shape. */
static void mv_types(void) {
  EACH_SG(sg) {
    for (uint32_t i = 0; i < kt_n_types; i++)
      for (uint32_t o = 0; o < 2; o++) run_mv(mv_ops[(i + 2 * o) % 4], kt_types[i], 33, 576, sg);
  }
}

/* Few and many rows (4 to 32 a workgroup), one and several parts of x. */
static void mv_shapes(void) {
  static const uint32_t shapes[][2] = {{1, 32},   {3, 96},    {64, 2048}, {31, 2080},
                                       {5, 8192}, {1700, 64}, {3201, 32}, {6500, 32}};
  EACH_SG(sg) {
    for (int i = 0; i < 8; i++)
      for (int o = 0; o < 2; o++)
        run_mv(mv_ops[(i + i_ + 2 * o) % 4], DT_Q4_0, shapes[i][0], shapes[i][1], sg);
  }
}

typedef struct qkv {
  dtype w, kv;
  uint32_t off, n, k, nq, nk, d, rot, neox, pos;
} qkv;

static void run_qkv(const qkv *q, uint32_t sg) {
  const uint32_t k = k_of(q->w, q->k);
  kt_case c = {.spec = {.op = KERNEL_QKV_MV,
                        .dim = {q->n, k, 1, q->n + 2, q->off, q->nq, q->nk, q->d, q->rot, q->neox},
                        .f = {1e-5f},
                        .type = {q->w, q->kv},
                        .sg = sg},
               .step = {.pos = q->pos, .n_tok = 1},
               .bind = {weights(q->w, q->n + 2, k),
                        floats(k),
                        floats(k),
                        {.fill = KT_ANGLES, .rows = q->pos + 1, .cols = q->rot},
                        output(q->nq),
                        {.rows = q->pos + 2, .cols = q->nk, .type = q->kv},
                        {.rows = q->pos + 2, .cols = q->nk, .type = q->kv},
                        step_bind},
               .tol = q->kv == DT_F16 ? tol_half : tol_sum,
               .why = q->kv == DT_F16 ? why_half : why_sum,
               .seed = q->n + q->k + q->pos};
  kt_run(&c);
}

static void qkv_mv(void) {
  static const qkv cases[] = {
      {DT_Q4_1, DT_F32, 0, 320, 576, 192, 64, 64, 64, 0, 0},
      {DT_Q4_1, DT_F16, 0, 320, 576, 192, 64, 64, 64, 0, 63},
      {DT_Q4_0, DT_F32, 0, 384, 512, 256, 64, 64, 64, 1, 500},
      {DT_Q4_0, DT_F16, 0, 384, 2080, 256, 64, 64, 64, 1, 1},
      {DT_Q8_0, DT_F16, 0, 256, 96, 256, 64, 64, 32, 1, 2},    /* q alone, half of it rotated */
      {DT_Q8_0, DT_F32, 256, 64, 96, 256, 64, 64, 32, 0, 2},   /* k alone */
      {DT_F16, DT_F16, 320, 64, 96, 256, 64, 64, 32, 0, 2},    /* v alone */
      {DT_F32, DT_F16, 160, 240, 64, 240, 80, 80, 80, 1, 7},   /* from the middle of q, odd heads */
      {DT_Q4_0, DT_F16, 0, 5120, 32, 4096, 512, 64, 64, 0, 5}, /* many rows a workgroup */
      {DT_Q4_0, DT_F16, 0, 5120, 32, 4096, 512, 64, 64, 1, 5},
  };
  EACH_SG(sg) {
    for (uint32_t i = 0; i < sizeof cases / sizeof cases[0]; i++) run_qkv(&cases[i], sg);
    for (uint32_t i = 0; i < kt_n_types; i++) {
      qkv q = {kt_types[i], i % 2 ? DT_F16 : DT_F32, 0, 96, 256, 32, 32, 32, 32, i / 2 % 2, 9};
      run_qkv(&q, sg);
    }
  }
}

static void qkv_refused(void) {
  kernel_spec s = {.op = KERNEL_QKV_MV, .dim = {12, 32, 0, 12, 0, 4, 4, 6, 6, 0}};
  kernel_shape shape;
  kernel_get(s.op)->shape(&s, &shape);
  CHECK(shape.refuse != NULL);
  s.dim[7] = s.dim[8] = 4;
  kernel_get(s.op)->shape(&s, &shape);
  CHECK(shape.refuse == NULL);
}

/* ---- attention ---- */

typedef struct heads {
  uint32_t h, g, d;
} heads;
static const heads head_shapes[] = {{9, 3, 64}, {8, 2, 64},  {2, 2, 32},  {4, 2, 80},
                                    {2, 1, 96}, {14, 2, 64}, {4, 1, 128}, {3, 1, 256}};
enum { N_HEADS = sizeof head_shapes / sizeof head_shapes[0] };

static kt_bind cache_of(heads a, dtype kv, uint64_t valid) {
  return (kt_bind){
      .fill = KT_FLOATS, .rows = CONTEXT, .cols = a.g * a.d, .valid = valid, .type = kv};
}

static void run_split(heads a, uint32_t s, uint32_t pos, dtype kv) {
  kt_case c = {
      .spec = {.op = KERNEL_ATTN_SPLIT, .dim = {a.h, a.g, a.d, s}, .f = {0.3f}, .type = {kv}},
      .step = {.pos = pos, .n_tok = 1},
      .bind = {floats(a.h * a.d),
               cache_of(a, kv, pos + 1),
               cache_of(a, kv, pos + 1),
               {.rows = a.h * s, .cols = a.d + 2},
               step_bind},
      .tol = 1e-4, /* exp of scores that differ by 1e-5 */
      .why = "exp of f32 sums in another order",
      .seed = s + pos};
  kt_run(&c);
}

static void attn_split(void) {
  static const uint32_t splits[] = {1, 4, 16}, pos[] = {0, 1, 63, 64, 500};
  if (!test_open()) return;
  for (int i = 0; i < N_HEADS; i++)
    for (int s = 0; s < 3; s++)
      for (int p = 0; p < 5; p++)
        if (i < 1 || (s + p + i) % 5 == 0)
          run_split(head_shapes[i], splits[s], pos[p], (s + p) % 2 ? DT_F16 : DT_F32);
}

/* The lowest f32 is what a split without rows has for its maximum. */
static void attn_combine(void) {
  static const heads shapes[] = {{9, 3, 64}, {2, 2, 80}, {3, 1, 256}};
  if (!test_open()) return;
  for (int i = 0; i < 3; i++) {
    const heads a = shapes[i];
    for (uint32_t s = 1; s <= 16; s *= 4) {
      const uint32_t n = a.h * s * (a.d + 2);
      float *part = malloc(n * sizeof *part);
      REQUIRE(part != NULL);
      for (uint32_t j = 0; j < n; j++) part[j] = rng_f32(s, j) * 2 - 1;
      for (uint32_t j = 0; j < a.h * s; j++) {
        float *p = part + j * (a.d + 2);
        p[a.d + 1] = 1 + rng_f32(s, j);
        if (j % s != 0 && j % 3 == 0) {
          for (uint32_t e = 0; e < a.d + 2; e++) p[e] = e == a.d ? -3.4028234e38f : 0;
        }
      }
      kt_case c = {.spec = {.op = KERNEL_ATTN_COMBINE, .dim = {a.h, a.d, s}},
                   .step = {.pos = 4, .n_tok = 1},
                   .bind = {{.fill = KT_FLOATS, .rows = 1, .cols = n, .data = part},
                            output(a.h * a.d),
                            step_bind},
                   .tol = tol_sum,
                   .why = why_sum,
                   .seed = s};
      kt_run(&c);
      free(part);
    }
  }
}

static void run_flash(heads a, uint32_t room, uint32_t n_tok, uint32_t pos, dtype kv) {
  kt_case c = {
      .spec = {.op = KERNEL_ATTN_FLASH, .dim = {a.h, a.g, a.d, room}, .f = {0.3f}, .type = {kv}},
      .step = {.pos = pos, .n_tok = n_tok},
      .bind = {{.fill = KT_FLOATS, .rows = room, .cols = a.h * a.d, .valid = n_tok},
               cache_of(a, kv, pos + n_tok),
               cache_of(a, kv, pos + n_tok),
               {.rows = room, .cols = a.h * a.d},
               step_bind},
      .tol = 1e-4,
      .why = "exp of f32 sums in another order",
      .seed = n_tok + pos};
  kt_run(&c);
}

static void attn_flash(void) {
  static const uint32_t runs[][3] = {
      {1, 1, 0}, {17, 17, 0}, {64, 40, 1}, {33, 33, 63}, {40, 9, 470}};
  if (!test_open()) return;
  for (int i = 0; i < N_HEADS; i++)
    for (int r = i < 1 ? 0 : i % 3; r < 5; r += i < 1 ? 1 : 3)
      run_flash(head_shapes[i], runs[r][0], runs[r][1], runs[r][2], (r + i) % 2 ? DT_F16 : DT_F32);
}

/* ---- roles of prefill ---- */

static void run_matmul(kernel_op op, dtype t, uint32_t n, uint32_t k, uint32_t m, uint32_t n_tok) {
  k = k_of(t, k);
  kt_case c = {.spec = {.op = op, .type = {t}},
               .step = {.n_tok = n_tok},
               .tol = tol_sum,
               .why = why_sum,
               .seed = n + k + m};
  const kt_bind x = {.fill = KT_FLOATS, .rows = m, .cols = k, .valid = n_tok};
  if (op == KERNEL_MATMUL) {
    memcpy(c.spec.dim, (uint32_t[]){n, k, m, 2, n + 3, n + 5, 4}, 28);
    memcpy(c.bind, (kt_bind[]){weights(t, n + 3, k), x, {.rows = m, .cols = n + 5}, step_bind},
           4 * sizeof(kt_bind));
  } else {
    memcpy(c.spec.dim, (uint32_t[]){n, k, m, 2, n + 3}, 20);
    memcpy(c.bind,
           (kt_bind[]){weights(t, n + 3, k),
                       x,
                       {.fill = KT_FLOATS, .rows = m, .cols = n, .valid = n_tok},
                       {.rows = m, .cols = n},
                       step_bind},
           5 * sizeof(kt_bind));
  }
  kt_run(&c);
}

/* Small, for 32 x 32 tiles; then sizes that get 32 x 64 and 64 x 64. */
static void matmul_roles(void) {
  static const kernel_op ops[] = {KERNEL_MATMUL, KERNEL_MATMUL_RES};
  if (!test_open()) return;
  for (uint32_t o = 0; o < 2; o++) {
    for (uint32_t i = o; i < kt_n_types; i += 2) run_matmul(ops[o], kt_types[i], 65, 96, 33, 33);
    run_matmul(ops[o], DT_Q4_0, 1, 32, 1, 1);
    run_matmul(ops[o], DT_Q4_1, 64, 576, 64, 17);
    run_matmul(ops[o], DT_Q4_0, 2050, 32, 129, 40);
    run_matmul(ops[o], DT_Q8_0, 4230, 64, 70, 66);
    run_matmul(ops[o], DT_Q4_0, 4230, 32, 130, 3);
  }
}

static void rope_append(void) {
  static const struct {
    uint32_t h, g, d, rot, neox, m, n_tok, pos;
    dtype kv;
  } cases[] = {{9, 3, 64, 64, 0, 5, 5, 0, DT_F32},   {9, 3, 64, 64, 0, 5, 4, 63, DT_F16},
               {4, 1, 64, 64, 1, 7, 7, 1, DT_F16},   {4, 2, 80, 32, 1, 3, 3, 2, DT_F32},
               {2, 2, 80, 32, 0, 3, 2, 500, DT_F16}, {1, 1, 32, 32, 1, 1, 1, 0, DT_F16}};
  if (!test_open()) return;
  for (uint32_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    const uint32_t h = cases[i].h, g = cases[i].g, d = cases[i].d, m = cases[i].m;
    const uint32_t end = cases[i].pos + cases[i].n_tok;
    const kt_bind cache = {.rows = end + 2, .cols = g * d, .type = cases[i].kv};
    kt_case c = {
        .spec = {.op = KERNEL_ROPE_APPEND,
                 .dim = {h, g, d, cases[i].rot, cases[i].neox, m},
                 .type = {cases[i].kv}},
        .step = {.pos = cases[i].pos, .n_tok = cases[i].n_tok},
        .bind = {{.fill = KT_FLOATS, .rows = m, .cols = (h + 2 * g) * d, .valid = cases[i].n_tok},
                 {.fill = KT_ANGLES, .rows = end, .cols = cases[i].rot},
                 {.rows = m, .cols = h * d},
                 cache,
                 cache,
                 step_bind},
        .tol = cases[i].kv == DT_F16 ? tol_half : 1e-6,
        .why = cases[i].kv == DT_F16 ? why_half : "fused or not multiply-add",
        .seed = i};
    kt_run(&c);
  }
}

static void silu_mul_pair(void) {
  static const uint32_t shapes[][3] = {{1, 1, 1}, {255, 3, 3}, {256, 2, 1}, {1537, 4, 3}};
  if (!test_open()) return;
  for (int i = 0; i < 4; i++) {
    const uint32_t n = shapes[i][0], m = shapes[i][1], n_tok = shapes[i][2];
    kt_case c = {.spec = {.op = KERNEL_SILU_MUL_PAIR, .dim = {n, m}},
                 .step = {.n_tok = n_tok},
                 .bind = {{.fill = KT_FLOATS, .rows = m, .cols = 2 * n, .valid = n_tok},
                          {.rows = m, .cols = n},
                          step_bind},
                 .tol = 1e-6,
                 .why = "exp is not exactly rounded",
                 .seed = n};
    kt_run(&c);
  }
}

/* Shares that are whole, uneven and past the end; the first of equal ones; logits that are not
 * numbers. */
static void argmax_split(void) {
  static const uint32_t shapes[][2] = {{1, 1}, {255, 1}, {1000, 7}, {4097, 64}, {300, 256}};
  enum { ROWS = 5, MOST = 4097 };
  static float l[ROWS][MOST];
  if (!test_open()) return;
  for (uint32_t i = 0; i < 5; i++) {
    const uint32_t n = shapes[i][0], parts = shapes[i][1];
    kt_case cases[ROWS];
    for (uint32_t row = 0; row < ROWS; row++) {
      for (uint32_t j = 0; j < n; j++) l[row][j] = row < 2 ? 9 * rng_f32(row, j) : -(float)(j % 5);
      if (row == 3) l[row][n / 2] = -NAN;
      if (row == 4) l[row][n - 1] = INFINITY;
      cases[row] = (kt_case){.spec = {.op = KERNEL_ARGMAX_PART, .dim = {n, parts}},
                             .step = {.n_tok = 1},
                             .bind = {{.fill = KT_FLOATS, .rows = 1, .cols = n, .data = l[row]},
                                      {.rows = parts, .cols = 2, .type = DT_U32},
                                      step_bind}};
    }
    kt_run_all(cases, ROWS);
  }
}

/* Keys below, equal, and beyond what numbers have. */
static void argmax_join(void) {
  static const uint32_t rows[4][10] = {
      {5, 1, 9, 44, 7, 3, 9, 20, 9, 60},
      {0x007FFFFF, 8, 0x007FFFFF, 6, 0x007FFFFF, 7, 0x007FFFFF, 9, 0x007FFFFF, 6},
      {0xC0000000, 0, 0x80000000, 1, 0x80000000, 2, 0xFF800000, 3, 0x80000000, 4},
      {0xC0000000, 0, 0x80000000, 1, 0x80000000, 2, 0x80000000, 3, 0xFFFFFFFF, 4}};
  if (!test_open()) return;
  kt_case cases[4];
  for (uint32_t i = 0; i < 4; i++)
    cases[i] =
        (kt_case){.spec = {.op = KERNEL_ARGMAX_JOIN, .dim = {5}},
                  .step = {.n_tok = 1},
                  .bind = {{.fill = KT_IDS, .rows = 5, .cols = 2, .type = DT_U32, .data = rows[i]},
                           {.rows = 1, .cols = 1, .type = DT_U32},
                           step_bind}};
  kt_run_all(cases, 4);
}

void suite_roles(void) {
  RUN(mv_types);
  RUN(mv_shapes);
  RUN(qkv_mv);
  RUN(qkv_refused);
  RUN(attn_split);
  RUN(attn_combine);
  RUN(attn_flash);
  RUN(matmul_roles);
  RUN(rope_append);
  RUN(silu_mul_pair);
  RUN(argmax_split);
  RUN(argmax_join);
}

/* Block formats against vectors from the gguf Python package (tools/vectors/quant.py), bit for bit.
 */
#include "base/file.h"
#include "base/math.h"
#include "base/mem.h"
#include "kernels/quant.h"
#include "test.h"

typedef struct record {
  dtype type;
  uint32_t n, size;
  const uint8_t *blocks;
  const uint8_t *values; /* f32, unaligned */
} record;

/* Advances *off; false at the end or on a malformed file. */
static bool next_record(const char *p, size_t size, size_t *off, record *r) {
  if (size - *off < 12) return false;
  r->n = load_u32(p + *off + 4);
  r->size = load_u32(p + *off + 8);
  if (!dtype_by_gguf(load_u32(p + *off), &r->type)) return false;
  if (dtype_row_bytes(r->type, r->n) != r->size) return false;
  if (size - *off - 12 < (size_t)r->size + 4 * (size_t)r->n) return false;
  r->blocks = (const uint8_t *)p + *off + 12;
  r->values = r->blocks + r->size;
  *off += 12 + r->size + 4 * (size_t)r->n;
  return true;
}

static void dequant_vectors(void) {
  char *p;
  size_t size, off = 0;
  int seen = 0;
  CHECK_OK(file_read(test_data("quant/dequant.bin"), 1 << 20, &p, &size));
  REQUIRE(p);
  record r;
  while (next_record(p, size, &off, &r)) {
    float *y = mem_alloc((r.n + 1) * sizeof *y);
    REQUIRE(y);
    y[r.n] = 1234.5f;
    quant_dequant_row(r.type, r.blocks, y, r.n);
    CHECK(f32_bits(y[r.n]) == f32_bits(1234.5f));
    for (uint32_t i = 0; i < r.n; i++) {
      if (f32_bits(y[i]) != load_u32(r.values + 4 * i))
        FAIL("%s: element %u is %a, not %a", dtype_get(r.type)->name, i, (double)y[i],
             (double)load_f32(r.values + 4 * i));
    }
    mem_free(y);
    seen++;
  }
  CHECK_EQ(off, size);
  CHECK_EQ(seen, 12); /* every type but f32 */
  mem_free(p);
}

static void quantize_vectors(void) {
  char *p;
  size_t size, off = 0;
  int seen = 0;
  CHECK_OK(file_read(test_data("quant/quantize.bin"), 1 << 20, &p, &size));
  REQUIRE(p);
  record r;
  while (next_record(p, size, &off, &r)) {
    float *x = mem_alloc(r.n * sizeof *x);
    uint8_t *b = mem_alloc(r.size + 1);
    REQUIRE(x && b);
    memcpy(x, r.values, r.n * sizeof *x);
    b[r.size] = 0xA5;
    quant_quantize_row(r.type, x, b, r.n);
    CHECK_EQ(b[r.size], 0xA5);
    for (uint32_t i = 0; i < r.size; i++) {
      if (b[i] != r.blocks[i])
        FAIL("%s: byte %u is %02x, not %02x", dtype_get(r.type)->name, i, b[i], r.blocks[i]);
    }
    mem_free(x);
    mem_free(b);
    seen++;
  }
  CHECK_EQ(off, size);
  CHECK_EQ(seen, 7);
  mem_free(p);
}

/* Box-Muller over counters: near enough to what weights look like. */
static void fill(float *x, uint32_t n, uint32_t seed, float scale) {
  for (uint32_t i = 0; i < n; i++) {
    float u = 1 - rng_f32(seed, 2 * i), v = rng_f32(seed, 2 * i + 1);
    x[i] = scale * sqrtf(-2 * logf(u)) * cosf(6.2831853f * v);
  }
}

/* Relative error of a round trip; the bounds are a quarter above what was seen on normal values.
 */
static void round_trip(void) {
  static const struct {
    dtype type;
    float bound;
  } rows[] = {{DT_F32, 0},      {DT_F16, 2.7e-4f}, {DT_BF16, 2.2e-3f}, {DT_Q4_0, 0.11f},
              {DT_Q4_1, 0.1f},  {DT_Q5_0, 0.056f}, {DT_Q5_1, 0.049f},  {DT_Q8_0, 0.007f},
              {DT_Q2_K, 0.42f}, {DT_Q3_K, 0.2f},   {DT_Q4_K, 0.1f},    {DT_Q5_K, 0.049f},
              {DT_Q6_K, 0.024f}};
  enum { N = 2048 };
  static float x[N], y[N];
  static uint8_t b[N * 4];
  for (size_t k = 0; k < sizeof rows / sizeof rows[0]; k++) {
    for (uint32_t scale = 0; scale < 3; scale++) {
      fill(x, N, 7 + scale, scale == 0 ? 0.02f : scale == 1 ? 1 : 100);
      quant_quantize_row(rows[k].type, x, b, N);
      quant_dequant_row(rows[k].type, b, y, N);
      double sum = 0, diff = 0;
      for (int i = 0; i < N; i++) {
        sum += (double)x[i] * (double)x[i];
        diff += ((double)x[i] - (double)y[i]) * ((double)x[i] - (double)y[i]);
      }
      double rel = sqrt(diff / sum);
      if (!(rel <= (double)rows[k].bound))
        FAIL("%s: relative error %g, over %g", dtype_get(rows[k].type)->name, rel,
             (double)rows[k].bound);
    }
    memset(x, 0, sizeof x);
    quant_quantize_row(rows[k].type, x, b, N);
    quant_dequant_row(rows[k].type, b, y, N);
    for (int i = 0; i < N; i++) CHECK(y[i] == 0);
  }
  CHECK(!quant_has(DT_I32) && !quant_has(DT_COUNT_));
}

void suite_quant(void) {
  RUN(dequant_vectors);
  RUN(quantize_vectors);
  RUN(round_trip);
}

/* Random weights, made as bytes of their type. */
#include <string.h>

#include "base/math.h"
#include "import/gguf/synth_impl.h"

/* Where a block's half-precision scale is, and what random bits around it give: with scale d, and
 * minimum (min_ratio * d) stored as a half at `min`, the standard deviation is spread * d, the mean
 * 0. Spread is the square root of the mean of (d * s * q - dmin * m)^2 over uniform codes q, inner
 * scales s and minimums m; formats as in kernels/quant.c. */
static const struct {
  int scale, min; /* byte offsets; min -1: none */
  float min_ratio, spread;
} layouts[DT_COUNT_] = {
    [DT_Q4_0] = {0, -1, 0, 4.64f},     /* -8..7 */
    [DT_Q4_1] = {0, 2, -7.5f, 4.61f},  /* 0..15 minus 7.5 */
    [DT_Q5_0] = {0, -1, 0, 9.25f},     /* -16..15 */
    [DT_Q5_1] = {0, 2, -15.5f, 9.23f}, /* 0..31 minus 15.5 */
    [DT_Q8_0] = {0, -1, 0, 73.9f},     /* -128..127 */
    [DT_Q2_K] = {80, 82, 1.5f, 13.9f}, /* s, m 0..15, q 0..3 */
    [DT_Q3_K] = {108, -1, 0, 43.3f},   /* s -32..31, q -4..3 */
    [DT_Q4_K] = {0, 2, 7.5f, 258.3f},  /* s, m 0..63, q 0..15 */
    [DT_Q5_K] = {0, 2, 15.5f, 526.9f}, /* s, m 0..63, q 0..31 */
    [DT_Q6_K] = {208, -1, 0, 1365.7f}, /* s -128..127, q -32..31 */
};

bool synth_can(dtype t) {
  return t == DT_F32 || t == DT_F16 || t == DT_BF16 || (t < DT_COUNT_ && layouts[t].spread > 0);
}

static void put_half(uint8_t *p, float x) {
  uint16_t h = f32_to_f16(x);
  memcpy(p, &h, sizeof h);
}

/* Near a normal distribution: the sum of the four bytes of a random number, whose standard
 * deviation is 2 * 73.9. */
static float normal(uint32_t seed, uint32_t i) {
  uint32_t r = rng_u32(seed, i);
  int sum = (int)((r & 255) + (r >> 8 & 255) + (r >> 16 & 255) + (r >> 24));
  return (float)(sum - 510) * (1 / 147.8f);
}

static void plain(dtype t, const synth_fill *fill, uint32_t seed, uint64_t first, uint64_t n,
                  uint8_t *dst) {
  for (uint64_t i = 0; i < n; i++) {
    float x = fill->mean + fill->std * normal(seed, (uint32_t)(first + i));
    if (t == DT_F32) {
      memcpy(dst + 4 * i, &x, sizeof x);
    } else {
      uint16_t h = t == DT_F16 ? f32_to_f16(x) : f32_to_bf16(x);
      memcpy(dst + 2 * i, &h, sizeof h);
    }
  }
}

/* Sixteen scales of either sign, 0.5 to 1.5 times what is wanted. The sign keeps the mean of types
 * with an uneven range (-8..7) at 0: a common offset would grow from layer to layer. */
static float scale_of(uint32_t seed, uint64_t block, float d) {
  uint32_t r = rng_u32(seed ^ 0x5CA1Eu, (uint32_t)block);
  float x = d * (0.5f + (float)(r & 7) * (1 / 7.0f));
  return r & 8 ? -x : x;
}

void synth_blocks(dtype t, const synth_fill *fill, uint32_t seed, uint64_t first, uint64_t n,
                  uint8_t *dst) {
  if (layouts[t].spread == 0) {
    plain(t, fill, seed, first, n, dst);
    return;
  }
  uint32_t bytes = dtype_get(t)->bytes;
  uint64_t word = first * bytes / 4; /* exact: first is a multiple of 64 */
  for (uint64_t i = 0; i < div_up(n * bytes, 4); i++) {
    uint32_t r = rng_u32(seed, (uint32_t)(word + i));
    memcpy(dst + 4 * i, &r, sizeof r);
  }
  float d = fill->std / (1.05f * layouts[t].spread); /* 1.05: root mean square of scale_of */
  for (uint64_t i = 0; i < n; i++) {
    uint8_t *b = dst + i * bytes;
    float scale = scale_of(seed, first + i, d);
    put_half(b + layouts[t].scale, scale);
    if (layouts[t].min >= 0) put_half(b + layouts[t].min, scale * layouts[t].min_ratio);
  }
}

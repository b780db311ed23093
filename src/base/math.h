/* Checked sizes, half floats, counter-based random numbers. Header only. */
#ifndef FRIT_BASE_MATH_H
#define FRIT_BASE_MATH_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* False on overflow; *out is then unchanged. */
static inline bool add_u64(uint64_t a, uint64_t b, uint64_t *out) {
  if (a > UINT64_MAX - b) return false;
  *out = a + b;
  return true;
}
static inline bool mul_u64(uint64_t a, uint64_t b, uint64_t *out) {
  if (b && a > UINT64_MAX / b) return false;
  *out = a * b;
  return true;
}

static inline uint64_t div_up(uint64_t a, uint64_t b) { return a / b + (a % b != 0); }
static inline uint64_t round_up(uint64_t a, uint64_t b) { return div_up(a, b) * b; }
static inline uint32_t div_up32(uint32_t a, uint32_t b) { return a / b + (a % b != 0); }
static inline uint32_t min_u32(uint32_t a, uint32_t b) { return a < b ? a : b; }
static inline uint32_t max_u32(uint32_t a, uint32_t b) { return a > b ? a : b; }
static inline uint64_t min_u64(uint64_t a, uint64_t b) { return a < b ? a : b; }
static inline uint64_t max_u64(uint64_t a, uint64_t b) { return a > b ? a : b; }

/* Unaligned little-endian loads (the hosts that we build for are little-endian). */
static inline uint16_t load_u16(const void *p) {
  uint16_t v;
  memcpy(&v, p, sizeof v);
  return v;
}
static inline uint32_t load_u32(const void *p) {
  uint32_t v;
  memcpy(&v, p, sizeof v);
  return v;
}
static inline uint64_t load_u64(const void *p) {
  uint64_t v;
  memcpy(&v, p, sizeof v);
  return v;
}
static inline float load_f32(const void *p) {
  float v;
  memcpy(&v, p, sizeof v);
  return v;
}

static inline float bits_f32(uint32_t u) {
  float f;
  memcpy(&f, &u, sizeof f);
  return f;
}
static inline uint32_t f32_bits(float f) {
  uint32_t u;
  memcpy(&u, &f, sizeof u);
  return u;
}

/* IEEE binary16 -> binary32, exact, subnormals included. */
static inline float f16_to_f32(uint16_t h) {
  uint32_t sign = (uint32_t)(h & 0x8000u) << 16, em = h & 0x7FFFu;
  if (em >= 0x7C00u) return bits_f32(sign | 0x7F800000u | (em & 0x3FFu) << 13);
  if (em >= 0x0400u) return bits_f32(sign | ((em << 13) + 0x38000000u));
  float f = (float)em * 0x1p-24f; /* subnormal or zero */
  return bits_f32(sign | f32_bits(f));
}

/* binary32 -> binary16, round to nearest even, overflow to infinity. */
static inline uint16_t f32_to_f16(float f) {
  uint32_t x = f32_bits(f), sign = x >> 16 & 0x8000u;
  x &= 0x7FFFFFFFu;
  if (x > 0x7F800000u) return (uint16_t)(sign | 0x7E00u);
  if (x >= 0x477FF000u) return (uint16_t)(sign | 0x7C00u);
  if (x < 0x38800000u) { /* subnormal: let the FPU round at 2^-24 */
    float r = bits_f32(x) + 0.5f;
    return (uint16_t)(sign | (f32_bits(r) - 0x3F000000u));
  }
  uint32_t odd = x >> 13 & 1;
  return (uint16_t)(sign | ((x - 0x38000000u + 0xFFFu + odd) >> 13));
}

static inline float bf16_to_f32(uint16_t h) { return bits_f32((uint32_t)h << 16); }

/* binary32 -> bfloat16, round to nearest even, NaN kept quiet. */
static inline uint16_t f32_to_bf16(float f) {
  uint32_t x = f32_bits(f);
  if ((x & 0x7FFFFFFFu) > 0x7F800000u) return (uint16_t)(x >> 16 | 0x40u);
  return (uint16_t)((x + 0x7FFFu + (x >> 16 & 1)) >> 16);
}

/* PCG-RXS-M-XS-32 output of a 32-bit LCG step (O'Neill 2014): the hash that lib/rng.wgsl has too,
 * bit for bit. */
static inline uint32_t pcg_hash(uint32_t x) {
  uint32_t s = x * 747796405u + 2891336453u;
  uint32_t w = ((s >> ((s >> 28) + 4u)) ^ s) * 277803737u;
  return (w >> 22) ^ w;
}
/* A number that depends on (seed, counter) only. */
static inline uint32_t rng_u32(uint32_t seed, uint32_t counter) {
  return pcg_hash(pcg_hash(seed ^ 0x9E3779B9u) + counter);
}
/* Uniform in [0,1), 24 bits. */
static inline float rng_f32(uint32_t seed, uint32_t counter) {
  return (float)(rng_u32(seed, counter) >> 8) * 0x1p-24f;
}

#endif

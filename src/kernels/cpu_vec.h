/* Vectors of one instruction-set level; included by the files that compile cpu_forms.h, which set
 *   CPU_LEVEL 0 base, 1 AVX2+FMA+F16C, 2 with AVX-VNNI, 3 AVX-512 (F, BW, VL, DQ), 4 with its VNNI,
 *   5 NEON of 64-bit ARM, 6 with its dot product, 7 WebAssembly's simd128.
 * Written with the vector extensions that gcc and clang share; intrinsics only where these have no
 * word for it. All functions are inlined into forms compiled for that level. */
#ifndef FRIT_KERNELS_CPU_VEC_H
#define FRIT_KERNELS_CPU_VEC_H

#include <stdint.h>
#include <string.h>

#include "base/dtype.h"
#include "base/math.h"

#define CPU_X86 (CPU_LEVEL >= 1 && CPU_LEVEL <= 4)
#define CPU_512 (CPU_LEVEL == 3 || CPU_LEVEL == 4)
#define CPU_VNNI (CPU_LEVEL == 2 || CPU_LEVEL == 4)
#define CPU_NEON (CPU_LEVEL == 5 || CPU_LEVEL == 6)
#define CPU_NEON_DOT (CPU_LEVEL == 6)
#define CPU_WASM (CPU_LEVEL == 7)

#if CPU_X86
#include <immintrin.h>
#elif CPU_NEON
#include <arm_neon.h>
#elif CPU_WASM
#include <wasm_simd128.h>
#endif

#define INLINE static inline __attribute__((always_inline, unused))
#ifdef __SANITIZE_ADDRESS__ /* gcc warns of loops that its checks keep it from unrolling */
#define UNROLL
#else
#define UNROLL _Pragma("GCC unroll 16")
#endif

#if CPU_512
enum { VW = 16 };
#elif CPU_X86
enum { VW = 8 };
#else
enum { VW = 4 };
#endif

typedef float vf __attribute__((vector_size(4 * VW)));
typedef int32_t vi __attribute__((vector_size(4 * VW)));
typedef float f32x4 __attribute__((vector_size(16)));
typedef uint8_t u8x16 __attribute__((vector_size(16)));
typedef uint16_t u16x8 __attribute__((vector_size(16)));
typedef int16_t i16x8 __attribute__((vector_size(16)));

INLINE vf v_load(const float *p) {
  vf v;
  memcpy(&v, p, sizeof v);
  return v;
}
INLINE void v_store(float *p, vf v) { memcpy(p, &v, sizeof v); }
INLINE vf v_set(float x) { return x - (vf){0}; }
INLINE vi vi_set(int32_t x) { return x - (vi){0}; }
INLINE vi vi_load(const void *p) {
  vi v;
  memcpy(&v, p, sizeof v);
  return v;
}
INLINE vf v_from_int(vi v) { return __builtin_convertvector(v, vf); }
/* Each byte shifted by n < 8. NEON alone has shifts of bytes, elsewhere compilers do as is done
 * here, but browsers make more of it. */
INLINE u8x16 u8_shr(u8x16 v, uint32_t n) {
#if CPU_NEON
  return v >> (uint8_t)n;
#else
  return (u8x16)((u16x8)v >> (uint16_t)n) & (uint8_t)(255u >> n);
#endif
}
INLINE u8x16 u8_shl(u8x16 v, uint32_t n) {
#if CPU_NEON
  return v << (uint8_t)n;
#else
  return (u8x16)((u16x8)v << (uint16_t)n) & (uint8_t)(255u << n);
#endif
}
INLINE u8x16 load_16(const void *p) {
  u8x16 v;
  memcpy(&v, p, sizeof v);
  return v;
}

/* a * b + c, rounded once where the level can. */
INLINE vf v_fma(vf a, vf b, vf c) {
#if CPU_512
  return _mm512_fmadd_ps(a, b, c);
#elif CPU_X86
  return _mm256_fmadd_ps(a, b, c);
#elif CPU_NEON
  return (vf)vfmaq_f32((float32x4_t)c, (float32x4_t)a, (float32x4_t)b);
#else
  return a * b + c;
#endif
}

/* Lanes of a where the mask (0 or -1 a lane) is set, else of b. */
INLINE vf v_select(vi mask, vf a, vf b) { return (vf)((mask & (vi)a) | (~mask & (vi)b)); }
INLINE vf v_max(vf a, vf b) {
#if CPU_512
  return _mm512_max_ps(a, b);
#elif CPU_X86
  return _mm256_max_ps(a, b);
#elif CPU_WASM
  return (vf)wasm_f32x4_pmax((v128_t)b, (v128_t)a);
#else
  return v_select(a > b, a, b);
#endif
}
INLINE vf v_min(vf a, vf b) { return -v_max(-a, -b); }
INLINE vf v_abs(vf a) { return (vf)((vi)a & vi_set(0x7FFFFFFF)); }

INLINE float v_sum(vf v) {
  float a[VW], s = 0;
  v_store(a, v);
  for (int n = VW / 2; n >= 1; n /= 2) UNROLL for (int i = 0; i < n; i++) a[i] += a[i + n];
  s = a[0];
  return s;
}
INLINE vi vi_max(vi a, vi b) {
#if CPU_512
  return (vi)_mm512_max_epi32((__m512i)a, (__m512i)b);
#elif CPU_X86
  return (vi)_mm256_max_epi32((__m256i)a, (__m256i)b);
#elif CPU_WASM
  return (vi)wasm_i32x4_max((v128_t)a, (v128_t)b);
#else
  vi mask = a > b;
  return (mask & a) | (~mask & b);
#endif
}
INLINE int32_t vi_hmax(vi v) {
#if CPU_X86
#if CPU_512
  __m256i h = _mm256_max_epi32(_mm512_castsi512_si256((__m512i)v),
                               _mm512_extracti64x4_epi64((__m512i)v, 1));
#else
  __m256i h = (__m256i)v;
#endif
  __m128i q = _mm_max_epi32(_mm256_castsi256_si128(h), _mm256_extracti128_si256(h, 1));
  q = _mm_max_epi32(q, _mm_shuffle_epi32(q, 0x4E));
  q = _mm_max_epi32(q, _mm_shuffle_epi32(q, 0xB1));
  return _mm_cvtsi128_si32(q);
#else
  int32_t top = v[0];
  for (int i = 1; i < VW; i++) top = v[i] > top ? v[i] : top;
  return top;
#endif
}

/* e^x. Cephes' expf: x = n ln 2 + r, |r| <= ln 2 / 2, a polynomial of degree 7 in r; below 2 units
 * in the last place over [-87.3, 88]; 0 below, e^88 above; NaN of NaN. */
INLINE vf v_exp(vf x) {
  vi keep = ~(x <= v_set(-87.3f));
  x = v_min(v_set(88.0f), v_max(v_set(-87.3f), x));        /* the second where one is NaN */
  vf t = v_fma(x, v_set(1.44269504f), v_set(12582912.0f)); /* n in its low bits */
  vf nf = t - v_set(12582912.0f);
  vf r = v_fma(nf, v_set(-0.693359375f), x);
  r = v_fma(nf, v_set(2.12194440e-4f), r);
  vf p = v_set(1.9875691500e-4f);
  p = v_fma(p, r, v_set(1.3981999507e-3f));
  p = v_fma(p, r, v_set(8.3334519073e-3f));
  p = v_fma(p, r, v_set(4.1665795894e-2f));
  p = v_fma(p, r, v_set(1.6666665459e-1f));
  p = v_fma(p, r, v_set(5.0000001201e-1f));
  p = v_fma(p, r * r, r + v_set(1.0f));
  p *= (vf)(((vi)t << 23) + vi_set(0x3F800000)); /* 2^n */
  return (vf)((vi)p & keep);
}

/* 16 bytes as floats, into 16 / VW vectors. */
INLINE void v_from_u8(u8x16 b, vf *out) {
#if CPU_512
  out[0] = _mm512_cvtepi32_ps(_mm512_cvtepu8_epi32((__m128i)b));
#elif CPU_X86
  out[0] = _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32((__m128i)b));
  out[1] = _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(_mm_unpackhi_epi64((__m128i)b, (__m128i)b)));
#elif CPU_WASM
  v128_t lo = wasm_u16x8_extend_low_u8x16((v128_t)b), hi = wasm_u16x8_extend_high_u8x16((v128_t)b);
  out[0] = v_from_int((vi)wasm_u32x4_extend_low_u16x8(lo));
  out[1] = v_from_int((vi)wasm_u32x4_extend_high_u16x8(lo));
  out[2] = v_from_int((vi)wasm_u32x4_extend_low_u16x8(hi));
  out[3] = v_from_int((vi)wasm_u32x4_extend_high_u16x8(hi));
#else
  u8x16 z = {0};
  u16x8 zz = {0};
  u16x8 lo =
      (u16x8)__builtin_shufflevector(b, z, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
  u16x8 hi = (u16x8)__builtin_shufflevector(b, z, 8, 16, 9, 17, 10, 18, 11, 19, 12, 20, 13, 21, 14,
                                            22, 15, 23);
  out[0] = v_from_int((vi)__builtin_shufflevector(lo, zz, 0, 8, 1, 9, 2, 10, 3, 11));
  out[1] = v_from_int((vi)__builtin_shufflevector(lo, zz, 4, 8, 5, 9, 6, 10, 7, 11));
  out[2] = v_from_int((vi)__builtin_shufflevector(hi, zz, 0, 8, 1, 9, 2, 10, 3, 11));
  out[3] = v_from_int((vi)__builtin_shufflevector(hi, zz, 4, 8, 5, 9, 6, 10, 7, 11));
#endif
}
INLINE void v_from_s8(u8x16 b, vf *out) {
#if CPU_512
  out[0] = _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32((__m128i)b));
#elif CPU_X86
  out[0] = _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32((__m128i)b));
  out[1] = _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_unpackhi_epi64((__m128i)b, (__m128i)b)));
#elif CPU_WASM
  v128_t lo = wasm_i16x8_extend_low_i8x16((v128_t)b), hi = wasm_i16x8_extend_high_i8x16((v128_t)b);
  out[0] = v_from_int((vi)wasm_i32x4_extend_low_i16x8(lo));
  out[1] = v_from_int((vi)wasm_i32x4_extend_high_i16x8(lo));
  out[2] = v_from_int((vi)wasm_i32x4_extend_low_i16x8(hi));
  out[3] = v_from_int((vi)wasm_i32x4_extend_high_i16x8(hi));
#else
  v_from_u8(b ^ 128, out);
  for (int i = 0; i < 16 / VW; i++) out[i] -= 128.0f;
#endif
}

/* A half at any address. Without an instruction: exponent moved into place by a multiplication,
 * exact for subnormals too; infinity becomes NaN. */
INLINE float half_at(const void *p) {
#if CPU_X86
  return _mm_cvtss_f32(_mm_cvtph_ps(_mm_cvtsi32_si128(load_u16(p))));
#elif CPU_NEON
  __fp16 h;
  memcpy(&h, p, sizeof h);
  return (float)h;
#else
  uint32_t h = load_u16(p), em = h & 0x7FFFu;
  uint32_t bits = f32_bits(bits_f32(em << 13) * 0x1p112f) | (em >= 0x7C00u ? 0x7FFFFFFFu : 0);
  return bits_f32(bits | (h & 0x8000u) << 16);
#endif
}

#if !CPU_X86
/* The halves in the low 16 bits of the lanes, as half_at; what is above them must be 0. */
INLINE vf v_from_halves(vi h) {
#if CPU_NEON
  return (vf)vcvt_f32_f16(vreinterpret_f16_s16(vmovn_s32((int32x4_t)h)));
#else
  vi em = h & 0x7FFF;
  return (vf)((vi)((vf)(em << 13) * 0x1p112f) | (vi)(em > 0x7BFF) | (h & 0x8000) << 16);
#endif
}
#endif

/* VW values of an F32, F16 or BF16 row from element i on. */
INLINE vf v_load_as(dtype t, const void *row, size_t i) {
  if (t == DT_F32) return v_load((const float *)row + i);
  const uint8_t *p = (const uint8_t *)row + 2 * i;
  vf v;
#if CPU_512
  __m256i h;
  memcpy(&h, p, sizeof h);
  v = t == DT_F16 ? _mm512_cvtph_ps(h)
                  : _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(h), 16));
#elif CPU_X86
  __m128i h;
  memcpy(&h, p, sizeof h);
  v = t == DT_F16 ? _mm256_cvtph_ps(h)
                  : _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(h), 16));
#else
  vi h = {load_u16(p), load_u16(p + 2), load_u16(p + 4), load_u16(p + 6)};
  v = t == DT_F16 ? v_from_halves(h) : (vf)(h << 16);
#endif
  return v;
}
INLINE float load_as(dtype t, const void *row, size_t i) {
  if (t == DT_F32) return load_f32((const float *)row + i);
  const uint8_t *p = (const uint8_t *)row + 2 * i;
  return t == DT_F16 ? half_at(p) : bf16_to_f32(load_u16(p));
}

/* dst[j * dst_row + i] = src[i * src_row + j] for i, j < 4. */
INLINE void transpose_4x4(const float *src, size_t src_row, float *dst, size_t dst_row) {
  f32x4 r[4], t[4], o[4];
  UNROLL for (int i = 0; i < 4; i++) memcpy(&r[i], src + i * src_row, sizeof r[i]);
  t[0] = __builtin_shufflevector(r[0], r[1], 0, 4, 1, 5);
  t[1] = __builtin_shufflevector(r[0], r[1], 2, 6, 3, 7);
  t[2] = __builtin_shufflevector(r[2], r[3], 0, 4, 1, 5);
  t[3] = __builtin_shufflevector(r[2], r[3], 2, 6, 3, 7);
  o[0] = __builtin_shufflevector(t[0], t[2], 0, 1, 4, 5);
  o[1] = __builtin_shufflevector(t[0], t[2], 2, 3, 6, 7);
  o[2] = __builtin_shufflevector(t[1], t[3], 0, 1, 4, 5);
  o[3] = __builtin_shufflevector(t[1], t[3], 2, 3, 6, 7);
  UNROLL for (int j = 0; j < 4; j++) memcpy(dst + j * dst_row, &o[j], sizeof o[j]);
}

#endif

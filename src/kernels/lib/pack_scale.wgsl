// (d, times d) as two f16, d at byte o: exact, as `times` is a power of two. Subnormals are kept.
#include "lib/half.wgsl"
fn half_bits(v: f32) -> u32 {
  let u = bitcast<u32>(v) & 0x7fffffffu;
  let sign = (bitcast<u32>(v) >> 16u) & 0x8000u;
  if (u >= 0x47800000u) { return sign | 0x7c00u; }
  if (u < 0x38800000u) { return sign | u32(abs(v) * 0x1p24f); }
  return sign | ((u - 0x38000000u) >> 13u);
}
fn scale_and(o: u32, times: f32) -> u32 {
  let d = u16_at(o);
  return d | (half_bits(half_exact(d) * times) << 16u);
}

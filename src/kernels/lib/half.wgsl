// An f16 in the low half of h, exact: unpack2x16float may flush subnormals to zero, and the scales of
// K types often are subnormal. NaN stays NaN, and infinity becomes it.
fn half_exact(h: u32) -> f32 {
  let em = h & 0x7fffu;
  let bits = select((em << 13u) + 0x38000000u, 0x7fffffffu, em >= 0x7c00u);
  let v = select(bitcast<f32>(bits), f32(em) * 0x1p-24f, em < 0x400u);
  return select(v, -v, (h & 0x8000u) != 0u);
}

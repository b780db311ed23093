// A finite f16 in the low half of h, exact: unpack2x16float may flush subnormals to zero, and the
// scales of K types often are subnormal.
fn half_exact(h: u32) -> f32 {
  let em = h & 0x7fffu;
  let v = select(bitcast<f32>((em << 13u) + 0x38000000u), f32(em) * 0x1p-24f, em < 0x400u);
  return select(v, -v, (h & 0x8000u) != 0u);
}

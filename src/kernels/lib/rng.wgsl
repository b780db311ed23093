// Counter-based random numbers: base/math.h bit for bit.
fn pcg_hash(x: u32) -> u32 {
  let s = x * 747796405u + 2891336453u;
  let v = ((s >> ((s >> 28u) + 4u)) ^ s) * 277803737u;
  return (v >> 22u) ^ v;
}
fn rng_u32(seed: u32, counter: u32) -> u32 { return pcg_hash(pcg_hash(seed ^ 0x9E3779B9u) + counter); }
// Uniform in [0,1), 24 bits.
fn rng_f32(seed: u32, counter: u32) -> f32 { return f32(rng_u32(seed, counter) >> 8u) * 0x1p-24f; }

// Keys that rise with the number, also across the sign (-0 is below 0); the greatest for a NaN of
// either sign. Made of the bits, as a shader may assume that there is no NaN.
fn order_key(f: f32) -> u32 {
  let u = bitcast<u32>(f);
  let key = select(u | 0x80000000u, ~u, (u >> 31u) == 1u);
  return select(key, 0xffffffffu, (u & 0x7fffffffu) > 0x7f800000u);
}
fn key_logit(k: u32) -> f32 { return bitcast<f32>(select(~k, k & 0x7fffffffu, (k >> 31u) == 1u)); }

// What a sampler yields for logits whose greatest key is `top`: the id, or none (no id is as great)
// where one is NaN or +infinity.
const KEY_INFINITE = 0xff800000u;
fn id_or_none(top: u32, id: u32) -> u32 { return select(id, 0xffffffffu, top >= KEY_INFINITE); }

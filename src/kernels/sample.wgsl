// ids[0] = a draw from logits [N]: top-k, top-p, min-p, temperature, as sample.c defines them. Sums
// are taken in another order than there, so a draw within rounding of a boundary may differ.
// ids[0] is 0xffffffff where a logit is NaN or +infinity.
// Grid: one workgroup.
#include "lib/step.wgsl"
@group(0) @binding(0) var<storage, read> logits: array<f32>;
@group(0) @binding(1) var<storage, read_write> ids: array<u32>;
@group(0) @binding(2) var<uniform> step: Step;
#include "lib/rng.wgsl"
#include "lib/top_k.wgsl"
var<workgroup> sums: array<f32, 256>;
var<workgroup> kept: atomic<u32>;
var<workgroup> drawn: atomic<u32>;

// sums[t] = v of threads 0 .. t
fn prefix_sums(v: f32, t: u32) {
  workgroupBarrier();
  sums[t] = v;
  for (var apart = 1u; apart < 256u; apart *= 2u) {
    workgroupBarrier();
    let add = select(0.0, sums[max(t, apart) - apart], t >= apart);
    workgroupBarrier();
    sums[t] += add;
  }
  workgroupBarrier();
}

@compute @workgroup_size(256)
fn main(@builtin(local_invocation_index) t: u32) {
  let k = min(clamp(step.top_k, 1u, 256u), N);
  top_k(k, t);
  let l = select(0.0, key_logit(keys[t]) - key_logit(keys[0]), t < k); // at most 0
  let p = select(0.0, exp(l), t < k);
  prefix_sums(p, t);
  let before = select(0.0, sums[max(t, 1u) - 1u], t > 0u);
  let in_top_p = t == 0u || step.top_p >= 1.0 || before < step.top_p * sums[255];
  let keep = t < k && in_top_p && (t == 0u || p >= step.min_p);
  if (t == 0u) {
    atomicStore(&kept, 0u);
    atomicStore(&drawn, 255u);
  }
  prefix_sums(select(0.0, exp(l / step.temp), keep), t);
  if (keep) { atomicMax(&kept, t + 1u); }
  workgroupBarrier();
  let goal = rng_f32(step.seed, step.draw) * sums[255];
  if (sums[t] > goal || t + 1u == atomicLoad(&kept)) { atomicMin(&drawn, t); }
  workgroupBarrier();
  if (t == 0u) { ids[0] = id_or_none(keys[0], key_ids[atomicLoad(&drawn)]); }
}

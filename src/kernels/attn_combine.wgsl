// y[h,:] = sum_s e_s part[h,s,:D] / sum_s e_s part[h,s,D+1], e_s = exp(part[h,s,D] - max_s part[h,s,D])
// part: [H, S, D+2] of attn_split; y: [H D]
// Grid: a thread an element: (D / 64 rounded up) workgroups of 64 for each head.
#include "lib/step.wgsl"
@group(0) @binding(0) var<storage, read> part: array<f32>;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;
@group(0) @binding(2) var<uniform> step: Step;

const PER = (D + 63u) / 64u;

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) wid: vec3u, @builtin(local_invocation_index) t: u32) {
  let h = wid.x / PER;
  let e = wid.x % PER * 64u + t;
  if (e >= D) { return; }
  var top = -3.4028234e38;
  var acc = 0.0;
  var sum = 0.0;
  // With a running maximum: the loads do not wait for each other.
  for (var s = 0u; s < S; s++) {
    let at = (h * S + s) * (D + 2u);
    let m = part[at + D];
    let new_top = max(top, m);
    let keep = exp(top - new_top);
    let gain = exp(m - new_top);
    acc = acc * keep + part[at + e] * gain;
    sum = sum * keep + part[at + D + 1u] * gain;
    top = new_top;
  }
  y[h * D + e] = acc / sum;
}

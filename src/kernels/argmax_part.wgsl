// part[p] = (key of the greatest logit of share p, its id)      logits: [N]; part: [P]
// Grid: a workgroup a share of ceil(N / P) neighbours. With argmax_join replaces argmax: one
// workgroup alone reads 128,256 logits in 58 us on an NVIDIA H200 (driver 580).
#include "lib/step.wgsl"
@group(0) @binding(0) var<storage, read> logits: array<f32>;
@group(0) @binding(1) var<storage, read_write> part: array<vec2u>;
@group(0) @binding(2) var<uniform> step: Step;
#include "lib/reduce_best.wgsl"

const SHARE = (N + P - 1u) / P;

@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) wid: vec3u, @builtin(local_invocation_index) t: u32) {
  let begin = min(wid.x * SHARE, N - 1u);
  let end = min(wid.x * SHARE + SHARE, N);
  var id = min(begin + t, end - 1u);
  var most = order_key(logits[id]);
  for (var i = begin + t + 256u; i < end; i += 256u) {
    let key = order_key(logits[i]);
    if (key > most) {
      most = key;
      id = i;
    }
  }
  best_of(most, id, t);
  if (t == 0u) { part[wid.x] = vec2u(best[0], best_id[0]); }
}

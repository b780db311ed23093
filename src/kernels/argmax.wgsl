// ids[0] = the first n of the greatest logits[n], or 0xffffffff where one is NaN or +infinity
// logits: [N]
// Grid: one workgroup.
#include "lib/step.wgsl"
@group(0) @binding(0) var<storage, read> logits: array<f32>;
@group(0) @binding(1) var<storage, read_write> ids: array<u32>;
@group(0) @binding(2) var<uniform> step: Step;
#include "lib/reduce_best.wgsl"

@compute @workgroup_size(256)
fn main(@builtin(local_invocation_index) t: u32) {
  var id = min(t, N - 1u);
  var most = order_key(logits[id]);
  var i = t + 256u;
  for (; i + 768u < N; i += 1024u) { // four loads in flight
    let l = vec4f(logits[i], logits[i + 256u], logits[i + 512u], logits[i + 768u]);
    for (var j = 0u; j < 4u; j++) {
      let key = order_key(l[j]);
      if (key > most) {
        most = key;
        id = i + j * 256u;
      }
    }
  }
  for (; i < N; i += 256u) {
    let key = order_key(logits[i]);
    if (key > most) {
      most = key;
      id = i;
    }
  }
  best_of(most, id, t);
  if (t == 0u) { ids[0] = id_or_none(best[0], best_id[0]); }
}

// ids[0] = the id of the greatest key of part [P], the lowest among equals; 0xffffffff where that is
// NaN or +infinity
// Grid: one workgroup. P at most 256.
#include "lib/step.wgsl"
@group(0) @binding(0) var<storage, read> part: array<vec2u>;
@group(0) @binding(1) var<storage, read_write> ids: array<u32>;
@group(0) @binding(2) var<uniform> step: Step;
#include "lib/reduce_best.wgsl"

@compute @workgroup_size(256)
fn main(@builtin(local_invocation_index) t: u32) {
  let p = part[min(t, P - 1u)];
  best_of(p.x, p.y, t);
  if (t == 0u) { ids[0] = id_or_none(best[0], best_id[0]); }
}

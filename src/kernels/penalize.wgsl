// Of each of the last step.n_recent ids before position step.pos + step.n_tok, once: a logit above 0
// is divided by step.penalty, else multiplied.   recent: [RING], position p at p % RING; logits: [N]
// Grid: one workgroup.
#include "lib/step.wgsl"
@group(0) @binding(0) var<storage, read> recent: array<u32>;
@group(0) @binding(1) var<storage, read_write> logits: array<f32>;
@group(0) @binding(2) var<uniform> step: Step;

// The i-th newest.
fn recent_id(i: u32) -> u32 { return recent[(step.pos + step.n_tok - 1u - i) % RING]; }

@compute @workgroup_size(64)
fn main(@builtin(local_invocation_index) t: u32) {
  let count = min(min(step.n_recent, RING), step.pos + step.n_tok);
  for (var i = t; i < count; i += 64u) {
    let id = recent_id(i);
    var j = 0u;
    while (j < i && recent_id(j) != id) { j++; }
    if (j == i && id < N) {
      let l = logits[id];
      logits[id] = select(l * step.penalty, l / step.penalty, l > 0.0);
    }
  }
}

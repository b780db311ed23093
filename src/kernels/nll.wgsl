// nll[m] = log(sum_n exp(logits[m,n])) - logits[m,next[m]]      logits: [M, N]; next, nll: [M]
// Grid: a workgroup a row. Any N.
#include "lib/step.wgsl"
@group(0) @binding(0) var<storage, read> logits: array<f32>;
@group(0) @binding(1) var<storage, read> next: array<u32>;
@group(0) @binding(2) var<storage, read_write> nll: array<f32>;
@group(0) @binding(3) var<uniform> step: Step;

const WG = 256u;
#include "lib/reduce.wgsl"

@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) wid: vec3u, @builtin(local_invocation_index) t: u32) {
  let m = wid.x;
  if (m >= step.n_tok) { return; }
  let row = m * N;
  var top = logits[row];
  for (var n = t; n < N; n += WG) { top = max(top, logits[row + n]); }
  top = reduce_max(top, t);
  var sum = 0.0;
  for (var n = t; n < N; n += WG) { sum += exp(logits[row + n] - top); }
  sum = reduce_add(sum, t);
  if (t == 0u) { nll[m] = select(0.0, log(sum) + top - logits[row + min(next[m], N - 1u)], next[m] < N); }
}

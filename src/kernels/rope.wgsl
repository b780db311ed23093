// Of each head's first ROT elements, pair (a, b) of position p = step.pos + m becomes
// (a cos - b sin, a sin + b cos), cos and sin from cs[p, pair]; the rest is copied.
// x, y: [M, H D]; cs: [context, ROT/2]; pair i is (2i, 2i+1), with NEOX (i, i + ROT/2).
// Grid: a thread an element.
#include "lib/step.wgsl"
@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read> cs: array<vec2f>;
@group(0) @binding(2) var<storage, read_write> y: array<f32>;
@group(0) @binding(3) var<uniform> step: Step;

@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) wid: vec3u, @builtin(num_workgroups) num: vec3u,
        @builtin(local_invocation_index) t: u32) {
  let i = (wid.x + wid.y * num.x) * 256u + t;
  let m = i / (H * D);
  if (m >= step.n_tok) { return; }
  let e = i % D;
  if (e >= ROT) {
    y[i] = x[i];
    return;
  }
  const HALF = ROT / 2u;
  let pair = select(e / 2u, e % HALF, NEOX == 1u);
  let first = select(e % 2u == 0u, e < HALF, NEOX == 1u);
  let apart = select(1u, HALF, NEOX == 1u);
  let c = cs[(step.pos + m) * HALF + pair];
  if (first) { y[i] = x[i] * c.x - x[i + apart] * c.y; }
  else { y[i] = x[i - apart] * c.y + x[i] * c.x; }
}

// y[m,h] = sum_j softmax_j(SCALE q[m,h] . k[j,g]) v[j,g], j = 0 .. step.pos + m, g = h / (H/G)
// q, y: [M, H D]; k, v: [context, G D] in f32 or f16
// Grid: (H, M), a workgroup a head of a row: T0 cache rows at a time, with a running maximum.
// D a multiple of 4, at most 512.
#include "lib/step.wgsl"
#include "lib/kv_{KV}.wgsl"
@group(0) @binding(0) var<storage, read> q: array<vec4f>;
@group(0) @binding(1) var<storage, read> k: array<KV4>;
@group(0) @binding(2) var<storage, read> v: array<KV4>;
@group(0) @binding(3) var<storage, read_write> y: array<vec4f>;
@group(0) @binding(4) var<uniform> step: Step;

const WG = T0;
#include "lib/reduce.wgsl"
const V4 = D / 4u;
const SETS = WG / V4;                      // threads that share a vec4 of y
var<workgroup> qs: array<vec4f, V4>;
var<workgroup> ps: array<f32, WG>;         // exp(score - maximum) of the rows in hand
var<workgroup> sums: array<vec4f, WG>;

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) wid: vec3u, @builtin(local_invocation_index) t: u32) {
  let m = wid.y;
  if (m >= step.n_tok) { return; }
  let out = (m * H + wid.x) * V4;
  let off = wid.x / (H / G) * V4;
  let rows = step.pos + m + 1u;
  for (var i = t; i < V4; i += WG) { qs[i] = q[out + i] * SCALE; }
  workgroupBarrier();
  let part = t / V4;
  let e = t % V4;
  var top = -3.4028234e38;
  var total = 0.0;
  var acc = vec4f(0.0);
  for (var first = 0u; first < rows; first += WG) {
    let n = min(WG, rows - first);
    var score = -3.4028234e38;
    if (t < n) {
      let at = (first + t) * (G * V4) + off;
      score = 0.0;
      for (var i = 0u; i < V4; i++) { score += dot(qs[i], kv_four(k[at + i])); }
    }
    let higher = max(top, reduce_max(score, t));
    let p = select(0.0, exp(score - higher), t < n);
    ps[t] = p;
    let fade = exp(top - higher);
    total = total * fade + reduce_add(p, t);
    acc *= fade;
    top = higher;
    if (part < SETS) {
      for (var j = part; j < n; j += SETS) { acc += ps[j] * kv_four(v[(first + j) * (G * V4) + off + e]); }
    }
  }
  sums[t] = acc;
  workgroupBarrier();
  if (t < V4) {
    for (var i = 1u; i < SETS; i++) { acc += sums[t + i * V4]; }
    y[out + t] = acc / total;
  }
}

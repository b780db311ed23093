// y[m,h,:] = sum_j softmax_j(SCALE q[m,h] . k_j) v_j over cache rows j = 0 .. step.pos + m (causal)
// q, y: [M, H D]; k, v: [context, G D]; head h reads h / (H/G)
// (Each var in a loop has an initial value: one implementation does not clear it on each turn.)
// Grid: (M / T0 rounded up, H): T0 query rows of one head against T1 cache rows at a time, with a
// running maximum; tiles above the diagonal are skipped. D a multiple of 16, at most 256.
// Replaces attention.
#include "lib/step.wgsl"
#include "lib/kv_{KV}.wgsl"
@group(0) @binding(0) var<storage, read> q: array<vec4f>;
@group(0) @binding(1) var<storage, read> k: array<KV4>;
@group(0) @binding(2) var<storage, read> v: array<KV4>;
@group(0) @binding(3) var<storage, read_write> y: array<vec4f>;
@group(0) @binding(4) var<uniform> step: Step;

const BQ = T0;
const BK = T1;
const WG = T2;
const V4 = D / 4u;
const STRIDE = V4 | 1u;                     // odd: neighbouring keys hit different banks
const SG_ROWS = max(1u, WG / BK);           // scores: groups of BK threads, each on rows SG_ROWS apart
const SPER = (BQ + SG_ROWS - 1u) / SG_ROWS;
const LANES = WG / BQ;                      // maxima: threads a row
const VG = WG / V4;                         // values: groups of V4 threads, each on rows VG apart
const VPER = (BQ + VG - 1u) / VG;
const LOWEST = -3.4028234e38;
var<workgroup> qs: array<vec4f, BQ * STRIDE>;
var<workgroup> kv: array<vec4f, BK * STRIDE>;
var<workgroup> ps: array<f32, BQ * (BK + 1u)>;
var<workgroup> part: array<f32, WG>;
var<workgroup> maxs: array<f32, BQ>;

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) wid: vec3u, @builtin(local_invocation_index) t: u32) {
  // The longest tiles first: they decide when the dispatch ends.
  let m0 = ((M + BQ - 1u) / BQ - 1u - wid.x) * BQ;
  if (m0 >= step.n_tok) { return; }
  let h = wid.y;
  let row = G * V4;                          // vec4s of a cache row
  let off = h / (H / G) * V4;
  let end = step.pos + min(m0 + BQ, step.n_tok); // cache rows that some query of the tile sees
  for (var i = t; i < BQ * V4; i += WG) {
    let m = min(m0 + i / V4, step.n_tok - 1u);
    qs[i / V4 * STRIDE + i % V4] = q[(m * H + h) * V4 + i % V4] * SCALE;
  }
  let key = t % BK;
  let sr = t / BK;
  let lr = t / LANES;
  let lane = t % LANES;
  let vg = t / V4;
  let e = t % V4;
  var top: array<f32, VPER>;
  var sum: array<f32, VPER>;
  var acc: array<vec4f, VPER>;
  for (var i = 0u; i < VPER; i++) { top[i] = LOWEST; }

  for (var base = 0u; base < end; base += BK) {
    for (var i = t; i < BK * V4; i += WG) {
      kv[i / V4 * STRIDE + i % V4] = kv_four(k[min(base + i / V4, end - 1u) * row + off + i % V4]);
    }
    workgroupBarrier();
    var s = array<f32, SPER>();
    if (sr < SG_ROWS) {
      for (var c = 0u; c < V4; c++) {
        let kc = kv[key * STRIDE + c];
        for (var i = 0u; i < SPER; i++) { s[i] += dot(qs[min(sr + i * SG_ROWS, BQ - 1u) * STRIDE + c], kc); }
      }
      for (var i = 0u; i < SPER; i++) {
        let r = sr + i * SG_ROWS;
        if (r < BQ) { ps[r * (BK + 1u) + key] = select(LOWEST, s[i], base + key <= step.pos + m0 + r); }
      }
    }
    workgroupBarrier();
    // The keys are read: their place is taken by the values, while the maxima are found.
    for (var i = t; i < BK * V4; i += WG) {
      kv[i / V4 * STRIDE + i % V4] = kv_four(v[min(base + i / V4, end - 1u) * row + off + i % V4]);
    }
    var high = LOWEST;
    for (var j = lane; j < BK; j += LANES) { high = max(high, ps[lr * (BK + 1u) + j]); }
    part[t] = high;
    workgroupBarrier();
    high = part[lr * LANES];
    for (var i = 1u; i < LANES; i++) { high = max(high, part[lr * LANES + i]); }
    for (var j = lane; j < BK; j += LANES) { ps[lr * (BK + 1u) + j] = exp(ps[lr * (BK + 1u) + j] - high); }
    if (lane == 0u) { maxs[lr] = high; }
    workgroupBarrier();
    if (vg < VG) {
      var c = array<vec4f, VPER>();
      var d = array<f32, VPER>();
      for (var j = 0u; j < BK; j++) {
        let vj = kv[j * STRIDE + e];
        for (var i = 0u; i < VPER; i++) {
          let p = ps[min(vg + i * VG, BQ - 1u) * (BK + 1u) + j];
          c[i] += p * vj;
          d[i] += p;
        }
      }
      for (var i = 0u; i < VPER; i++) {
        let high_i = maxs[min(vg + i * VG, BQ - 1u)];
        let m = max(top[i], high_i);
        let keep = exp(top[i] - m);
        let gain = exp(high_i - m);
        acc[i] = acc[i] * keep + c[i] * gain;
        sum[i] = sum[i] * keep + d[i] * gain;
        top[i] = m;
      }
    }
    workgroupBarrier();
  }
  for (var i = 0u; i < VPER; i++) {
    let r = vg + i * VG;
    if (vg < VG && r < BQ && m0 + r < step.n_tok) { y[((m0 + r) * H + h) * V4 + e] = acc[i] / sum[i]; }
  }
}

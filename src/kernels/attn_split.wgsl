// part[h,s,:D] = sum_j exp(score_j - max) v_j, [D] = max, [D+1] = sum_j exp(score_j - max), over the cache
// rows j of split s: share s of S of rows 0 .. step.pos; score_j = SCALE q[h] . k_j. Of a split without
// rows: 0, the lowest f32, 0. q: [H D]; k, v: [context, G D]; part: [H, S, D+2]
// Grid: (H / T0, S): a workgroup takes T0 query heads that share keys, T1 cache rows at a time.
// D a multiple of 16, at most 256. Replaces attention, with attn_combine.
#include "lib/step.wgsl"
#include "lib/kv_{KV}.wgsl"
@group(0) @binding(0) var<storage, read> q: array<vec4f>;
@group(0) @binding(1) var<storage, read> k: array<KV4>;
@group(0) @binding(2) var<storage, read> v: array<KV4>;
@group(0) @binding(3) var<storage, read_write> part: array<f32>;
@group(0) @binding(4) var<uniform> step: Step;

const HEADS = T0;
const KEYS = T1;
const WG = T2;
const LANES = T3;                     // threads that share a key
const V4 = D / 4u;
const PER = V4 / LANES;               // vec4s of a key that a thread reads
const PASSES = KEYS * LANES / WG;     // keys of a chunk that a thread works on
const VG = WG / V4;                   // groups of threads that share the values of a chunk
const VPER = (KEYS + VG - 1u) / VG;   // values of a chunk that a thread reads
const LOWEST = -3.4028234e38;
var<workgroup> qs: array<vec4f, HEADS * V4>;
var<workgroup> dots: array<f32, HEADS * KEYS * (LANES + 1u)>;
var<workgroup> scores: array<f32, HEADS * KEYS>;
var<workgroup> ps: array<f32, HEADS * KEYS>;
var<workgroup> maxs: array<f32, HEADS>;
var<workgroup> accs: array<vec4f, WG>;
var<workgroup> sums: array<f32, VG>;

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) wid: vec3u, @builtin(local_invocation_index) t: u32) {
  let h0 = wid.x * HEADS;
  let row = G * V4;                            // vec4s of a cache row
  let off = h0 / (H / G) * V4;
  let len = step.pos + 1u;
  let share = (len + S - 1u) / S;
  let begin = min(wid.y * share, len);
  let end = min(begin + share, len);
  let lane = t % LANES;
  let vg = t / V4;
  let e = t % V4;
  for (var i = t; i < HEADS * V4; i += WG) { qs[i] = q[h0 * V4 + i] * SCALE; }
  var top: array<f32, HEADS>;
  var sum: array<f32, HEADS>;
  var acc: array<vec4f, HEADS>;
  for (var h = 0u; h < HEADS; h++) { top[h] = LOWEST; }

  for (var base = begin; base < end; base += KEYS) {
    // Loads of keys and values are all under way before the first wait.
    let last = end - 1u;
    var kr: array<KV4, PASSES * PER>;
    var vr: array<KV4, VPER>;
    for (var p = 0u; p < PASSES; p++) {
      let j = min(base + p * (WG / LANES) + t / LANES, last);
      for (var i = 0u; i < PER; i++) { kr[p * PER + i] = k[j * row + off + lane + i * LANES]; }
    }
    for (var i = 0u; i < VPER; i++) { vr[i] = v[min(base + vg + i * VG, last) * row + off + e]; }
    workgroupBarrier();
    for (var h = 0u; h < HEADS; h++) {
      for (var p = 0u; p < PASSES; p++) {
        var s = 0.0;
        for (var i = 0u; i < PER; i++) { s += dot(qs[h * V4 + lane + i * LANES], kv_four(kr[p * PER + i])); }
        dots[(h * KEYS + p * (WG / LANES) + t / LANES) * (LANES + 1u) + lane] = s;
      }
    }
    workgroupBarrier();
    for (var i = t; i < HEADS * KEYS; i += WG) {
      var s = 0.0;
      for (var l = 0u; l < LANES; l++) { s += dots[i * (LANES + 1u) + l]; }
      scores[i] = select(LOWEST, s, base + i % KEYS < end);
    }
    workgroupBarrier();
    for (var i = t; i < HEADS * KEYS; i += WG) {
      var m = scores[i];
      for (var j = 0u; j < KEYS; j++) { m = max(m, scores[i / KEYS * KEYS + j]); }
      ps[i] = exp(scores[i] - m);
      if (i % KEYS == 0u) { maxs[i / KEYS] = m; }
    }
    workgroupBarrier();
    for (var h = 0u; h < HEADS; h++) {
      var c = vec4f(0.0);
      var d = 0.0;
      for (var i = 0u; i < VPER; i++) {
        let j = vg + i * VG;
        if (j < KEYS) {
          let p = ps[h * KEYS + j];
          c += p * kv_four(vr[i]);
          d += p;
        }
      }
      let m = max(top[h], maxs[h]);
      let keep = exp(top[h] - m);
      let gain = exp(maxs[h] - m);
      acc[h] = acc[h] * keep + c * gain;
      sum[h] = sum[h] * keep + d * gain;
      top[h] = m;
    }
  }

  for (var h = 0u; h < HEADS; h++) {
    workgroupBarrier();
    accs[t] = acc[h];
    if (e == 0u && vg < VG) { sums[vg] = sum[h]; }
    workgroupBarrier();
    let out = ((h0 + h) * S + wid.y) * (D + 2u);
    if (t < V4) {
      var a = accs[t];
      for (var i = 1u; i < VG; i++) { a += accs[i * V4 + t]; }
      part[out + 4u * t] = a.x;
      part[out + 4u * t + 1u] = a.y;
      part[out + 4u * t + 2u] = a.z;
      part[out + 4u * t + 3u] = a.w;
    }
    if (t == 0u) {
      var a = sums[0];
      for (var i = 1u; i < VG; i++) { a += sums[i]; }
      part[out + D] = top[h];
      part[out + D + 1u] = a;
    }
  }
}

// Core of the matrix-vector kernels: W x for the MV_ROWS rows of a workgroup, MV_LANES threads a row
// on neighbouring blocks, MV_RPT rows a thread. Needs const K, T0 to T3 (mv_shape.c chooses them), one
// lib/w_<type>.wgsl, and
//   fn mv_row(wg: u32, r: u32) -> u32    row in W's stack of the workgroup's row r < MV_ROWS; any row
//                                        that is there when r lies beyond the end
//   fn mv_x(c: u32, i: u32)              loads the i-th four values of x, the thread's c-th < MV_X
//   fn mv_stage(c: u32) -> vec4f         those values as they are multiplied; once for each i
// After mv(wg, t) by all threads and a barrier, mv_sum(r) is the product of row r, in any thread.
// With subgroups, thread t is taken to be lane t % SG of its subgroup.
#include "lib/mv_{SG}.wgsl"
const MV_ROWS = T0;
const MV_RPT = T1;
const MV_LANES = T2;
const MV_WG = MV_ROWS / MV_RPT * MV_LANES;
const MV_DIRECT = T3 == 1u; // weights are loaded where they are used, and not a part ahead
const MV_BLOCKS = (XB + MV_LANES - 1u) / MV_LANES; // blocks of a staged part that a lane reads
const MV_PARTS = MV_LANES / MV_FOLD;               // partial sums of a row
const MV_STRIDE = MV_PARTS | 1u;                   // odd: threads on neighbouring rows hit all banks
var<workgroup> mv_part: array<f32, MV_ROWS * MV_STRIDE>;

const MV_X = (XB * 8u + MV_WG - 1u) / MV_WG;        // vec4s of a staged part that a thread brings

var<private> mv_raw: array<W_Raw, select(MV_RPT * MV_BLOCKS, 1u, MV_DIRECT)>;

// Sends for the weights and x of the part at kb: loads only, no use.
fn mv_load(wg: u32, kb: u32, t: u32) {
  if (!MV_DIRECT) {
    for (var j = 0u; j < MV_RPT; j++) {
      let row = mv_row(wg, t / MV_LANES * MV_RPT + j);
      for (var i = 0u; i < MV_BLOCKS; i++) {
        mv_raw[j * MV_BLOCKS + i] = W_load(row, min(kb + i * MV_LANES + t % MV_LANES, K / 32u - 1u));
      }
    }
  }
  for (var i = 0u; i < MV_X; i++) { mv_x(i, min(kb * 8u + t + i * MV_WG, K / 4u - 1u)); }
}

fn mv(wg: u32, t: u32) {
  let lane = t % MV_LANES;
  var acc: array<f32, MV_RPT>;
  mv_load(wg, 0u, t);
  for (var kb = 0u; kb < K / 32u; kb += XB) {
    let n = xs_blocks(kb);
    for (var i = 0u; i < MV_X; i++) {
      if (t + i * MV_WG < n * 8u) { xs_put(t + i * MV_WG, mv_stage(i)); }
    }
    xs_ready(t, MV_WG);
    // The next part travels while this one is used.
    var raw = mv_raw;
    if (K / 32u > XB) {
      if (kb + XB < K / 32u) { mv_load(wg, kb + XB, t); }
    }
    if (MV_DIRECT) {
      for (var j = 0u; j < MV_RPT; j++) {
        let row = mv_row(wg, t / MV_LANES * MV_RPT + j);
        for (var xb = lane; xb < n; xb += MV_LANES) { acc[j] += W_mul(W_load(row, kb + xb), xb); }
      }
    } else {
      for (var i = 0u; i < MV_BLOCKS; i++) {
        let xb = i * MV_LANES + lane;
        if (xb < n) {
          for (var j = 0u; j < MV_RPT; j++) { acc[j] += W_mul(raw[j * MV_BLOCKS + i], xb); }
        }
      }
    }
    if (K / 32u > XB) { workgroupBarrier(); }
  }
  for (var j = 0u; j < MV_RPT; j++) {
    let v = mv_fold(acc[j]);
    if (t % MV_FOLD == 0u) { mv_part[(t / MV_LANES * MV_RPT + j) * MV_STRIDE + lane / MV_FOLD] = v; }
  }
}

fn mv_sum(r: u32) -> f32 {
  var s = 0.0;
  for (var i = 0u; i < MV_PARTS; i++) { s += mv_part[r * MV_STRIDE + i]; }
  return s;
}

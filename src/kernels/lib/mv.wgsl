// Work of a matrix-vector product in workgroups of 256: MV_TPR threads share a row (lanes on
// neighbouring blocks), each thread has MV_R rows, MV_STEP apart. Needs const N, K, one
// lib/w_<type>.wgsl. The grid is kernel_mv_shape (matvec.c).
//   let row = mv_row(wid, num, t);           // its i-th row is row + i * MV_STEP, i < MV_R
//   for each staged part: mv_add(row, ROW0, kb, t);
//   let v = mv_sum(mv_acc[i], t);            // by all threads; valid where mv_first(t)
// Rows from N on are computed as row N-1: do not store them.
const MV_TPR = 8u << (u32(K >= 512u) + u32(K >= 1024u));
const MV_R = 1u + 3u * u32(N >= 16384u);
const MV_STEP = 256u / MV_TPR;
const MV_ROWS = MV_STEP * MV_R;             // rows a workgroup
var<workgroup> mv_buf: array<f32, 256>;
var<private> mv_acc: array<f32, MV_R>;

fn mv_row(wid: vec3u, num: vec3u, t: u32) -> u32 {
  return (wid.x + wid.y * num.x) * MV_ROWS + t / MV_TPR;
}
fn mv_first(t: u32) -> bool { return t % MV_TPR == 0u; }

fn mv_add(row: u32, row0: u32, kb: u32, t: u32) {
  let n = xs_blocks(kb);
  for (var xb = t % MV_TPR; xb < n; xb += MV_TPR) {
    for (var i = 0u; i < MV_R; i++) {
      let r = row0 + min(row + i * MV_STEP, N - 1u);
      mv_acc[i] += W_dot(r * (K / 32u) + kb + xb, xb);
    }
  }
}

fn mv_sum(v: f32, t: u32) -> f32 {
  mv_buf[t] = v;
  for (var n = MV_TPR / 2u; n > 0u; n /= 2u) {
    workgroupBarrier();
    if (t % MV_TPR < n) { mv_buf[t] += mv_buf[t + n]; }
  }
  workgroupBarrier();
  let r = mv_buf[t];
  workgroupBarrier();
  return r;
}

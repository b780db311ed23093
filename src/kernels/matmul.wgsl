// y[m,Y0+n] = sum_k W[ROW0+n,k] x[m,k]   x: [M, K]; y: [M, YN]; W: rows of a stack [NTOT, K]
// Grid: a workgroup a tile of 64 columns by BM rows (kernel_mm_shape); x and W go through workgroup
// memory a block of 32 k at a time, as vec4s along k. A thread sums 4 by BM/16. K a multiple of 32.
#include "lib/step.wgsl"
@group(0) @binding(0) var<storage, read> w: array<vec4<u32>>;
@group(0) @binding(1) var<storage, read> x: array<vec4f>;
@group(0) @binding(2) var<storage, read_write> y: array<f32>;
@group(0) @binding(3) var<uniform> step: Step;
#include "lib/w_{W}.wgsl"

const BM = 64u - 32u * u32(((N + 63u) / 64u) * ((M + 63u) / 64u) < 128u);
const TM = BM / 16u;
var<workgroup> wt: array<vec4f, 512>;      // [8][64]: vec4 j of column n
var<workgroup> xt: array<vec4f, 8u * BM>;  // [8][BM]

@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) wid: vec3u, @builtin(local_invocation_index) t: u32) {
  let n0 = wid.x * 64u;
  let m0 = wid.y * BM;
  if (m0 >= step.n_tok) { return; }
  let row = (ROW0 + min(n0 + t % 64u, N - 1u)) * (K / 32u);
  let tn = t % 16u;
  let tm = t / 16u;
  var acc: array<array<f32, 4>, TM>;
  for (var kb = 0u; kb < K / 32u; kb++) {
    let j = t / 64u;
    wt[t] = W_vec(row + kb, j);
    wt[t + 256u] = W_vec(row + kb, j + 4u);
    for (var i = t; i < 8u * BM; i += 256u) {
      xt[i] = x[min(m0 + i % BM, step.n_tok - 1u) * (K / 4u) + kb * 8u + i / BM];
    }
    workgroupBarrier();
    for (var q = 0u; q < 8u; q++) {
      let a = array<vec4f, 4>(wt[q * 64u + tn], wt[q * 64u + tn + 16u],
                              wt[q * 64u + tn + 32u], wt[q * 64u + tn + 48u]);
      for (var i = 0u; i < TM; i++) {
        let b = xt[q * BM + tm + i * 16u];
        acc[i][0] += dot(a[0], b);
        acc[i][1] += dot(a[1], b);
        acc[i][2] += dot(a[2], b);
        acc[i][3] += dot(a[3], b);
      }
    }
    workgroupBarrier();
  }
  for (var i = 0u; i < TM; i++) {
    let m = m0 + tm + i * 16u;
    for (var c = 0u; c < 4u; c++) {
      let n = n0 + tn + c * 16u;
      if (m < step.n_tok && n < N) { y[m * YN + Y0 + n] = acc[i][c]; }
    }
  }
}

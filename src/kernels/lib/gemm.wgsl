// Matrix product y = x W^T by tiles of GEMM_BM rows of x (tokens) by GEMM_BN rows of W, 4 by GEMM_TM
// values a thread, one block of 32 k at a time through workgroup memory, as vec4s along k. Column q of
// row r lies at r * 8 + (q ^ (r & 7)): threads on neighbouring rows hit different banks.
// Needs const N, K, ROW0, T0 to T2 (gemm_shape.c chooses them), x: array<vec4f>, step, one
// lib/w_<type>.wgsl, and
//   fn gemm_out(m: u32, n: u32, v: f32)      what becomes of y[m,n]; m < step.n_tok, n < N
// Grid: (N / BN, M / BM) rounded up. The entry point returns at once where wid.y * GEMM_BM >= step.n_tok.
const GEMM_BM = T0;
const GEMM_BN = T1;
const GEMM_TM = T2;
const GEMM_TX = GEMM_BN / 4u;        // threads along n; a thread's rows of W are GEMM_TX apart
const GEMM_TY = GEMM_BM / GEMM_TM;   // threads along m; its tokens are GEMM_TY apart
const GEMM_WG = GEMM_TX * GEMM_TY;
var<workgroup> gemm_x: array<vec4f, GEMM_BM * 8u>;
var<workgroup> gemm_w: array<vec4f, GEMM_BN * 8u>;

fn gemm_at(r: u32, q: u32) -> u32 { return r * 8u + (q ^ (r & 7u)); }

fn gemm_load(n0: u32, m0: u32, kb: u32, t: u32) {
  for (var i = t; i < GEMM_BM * 8u; i += GEMM_WG) {
    let r = i / 8u;
    let q = i % 8u;
    gemm_x[gemm_at(r, q)] = x[min(m0 + r, step.n_tok - 1u) * (K / 4u) + kb * 8u + q];
  }
  for (var i = t; i < GEMM_BN * 4u; i += GEMM_WG) {
    let r = i / 4u;
    let q = i % 4u;
    let v = W_part(ROW0 + min(n0 + r, N - 1u), kb, q);
    gemm_w[gemm_at(r, q)] = v[0];
    gemm_w[gemm_at(r, q + 4u)] = v[1];
  }
}

// s + a . b, four fused steps where the device fuses
fn gemm_dot(a: vec4f, b: vec4f, s: f32) -> f32 {
  return fma(a.w, b.w, fma(a.z, b.z, fma(a.y, b.y, fma(a.x, b.x, s))));
}

fn gemm(wid: vec3u, t: u32) {
  let n0 = wid.x * GEMM_BN;
  let m0 = wid.y * GEMM_BM;
  let tx = t % GEMM_TX;
  let ty = t / GEMM_TX;
  var acc: array<vec4f, GEMM_TM>;
  for (var kb = 0u; kb < K / 32u; kb++) {
    gemm_load(n0, m0, kb, t);
    workgroupBarrier();
    for (var q = 0u; q < 8u; q++) {
      let w0 = gemm_w[gemm_at(tx, q)];
      let w1 = gemm_w[gemm_at(tx + GEMM_TX, q)];
      let w2 = gemm_w[gemm_at(tx + 2u * GEMM_TX, q)];
      let w3 = gemm_w[gemm_at(tx + 3u * GEMM_TX, q)];
      for (var i = 0u; i < GEMM_TM; i++) {
        let a = gemm_x[gemm_at(ty + i * GEMM_TY, q)];
        let s = acc[i];
        acc[i] = vec4f(gemm_dot(a, w0, s.x), gemm_dot(a, w1, s.y), gemm_dot(a, w2, s.z), gemm_dot(a, w3, s.w));
      }
    }
    workgroupBarrier();
  }
  for (var i = 0u; i < GEMM_TM; i++) {
    let m = m0 + ty + i * GEMM_TY;
    for (var c = 0u; c < 4u; c++) {
      let n = n0 + tx + c * GEMM_TX;
      if (m < step.n_tok && n < N) { gemm_out(m, n, acc[i][c]); }
    }
  }
}

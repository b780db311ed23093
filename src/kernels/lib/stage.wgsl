// Part of x in workgroup memory, for W_dot: XB blocks of 32 at once. Included by
// lib/w_block.wgsl; costs nothing where it is not used. Needs const K.
//   for (var kb = 0u; kb < K / 32u; kb += XB) {
//     xs_put(i, v) for the i-th vec4 of the part, i in 0 .. xs_blocks(kb) * 8, shared among threads;
//     xs_ready(t, n);                  // t: local_invocation_index, of n threads
//     ... W_dot(b, xb) or W_mul(raw, xb), xb in 0 .. xs_blocks(kb) ...
//     workgroupBarrier();              // before the next part
//   }
// vec4 j of staged block xb is at xs[j * XS + xb]: lanes on neighbouring blocks read neighbouring
// words. XS is odd, so that storing the eight vec4s of a block hits eight different banks.
const XB = min(K / 32u, 64u);
const XS = XB | 1u;
var<workgroup> xs: array<vec4f, XS * 8u>;
var<workgroup> xsum: array<f32, XB>; // sum of each staged block, where W_SUM

fn xs_blocks(kb: u32) -> u32 { return min(XB, K / 32u - kb); }
fn xs_put(i: u32, v: vec4f) { xs[(i & 7u) * XS + (i >> 3u)] = v; }
fn xs_ready(t: u32, n: u32) {
  workgroupBarrier();
  if (W_SUM) {
    for (var b = t; b < XB; b += n) {
      var s = xs[b];
      for (var j = 1u; j < 8u; j++) { s += xs[j * XS + b]; }
      xsum[b] = dot(s, vec4f(1.0));
    }
    workgroupBarrier();
  }
}

// block b of the stack times staged block xb
fn W_dot(b: u32, xb: u32) -> f32 { return W_mul(W_get(b), xb); }

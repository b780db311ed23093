// x as lib/mv.wgsl reads it: times the gains g of rmsnorm, the squares summed on the way; the sums of
// rows are multiplied by mv_scale() afterwards, so that nobody waits for it. Needs const EPS.
//   mv(wg, t); mv_norm(t); workgroupBarrier(); ... mv_sum(r) * mv_scale()
var<private> mv_squares: f32;
var<private> mv_new: array<vec4f, MV_X>;
var<private> mv_gain: array<vec4f, MV_X>;
var<workgroup> mv_norm_part: array<f32, MV_WG / MV_FOLD>;

fn mv_x(c: u32, i: u32) {
  mv_new[c] = x[i];
  mv_gain[c] = g[i];
}
fn mv_stage(c: u32) -> vec4f {
  mv_squares += dot(mv_new[c], mv_new[c]);
  return mv_new[c] * mv_gain[c];
}
fn mv_norm(t: u32) {
  let s = mv_fold(mv_squares);
  if (t % MV_FOLD == 0u) { mv_norm_part[t / MV_FOLD] = s; }
}
fn mv_scale() -> f32 {
  var s = 0.0;
  for (var i = 0u; i < MV_WG / MV_FOLD; i++) { s += mv_norm_part[i]; }
  return inverseSqrt(s / f32(K) + EPS);
}

// x as lib/mv.wgsl reads it: as it is.
var<private> mv_new: array<vec4f, MV_X>;
fn mv_x(c: u32, i: u32) { mv_new[c] = x[i]; }
fn mv_stage(c: u32) -> vec4f { return mv_new[c]; }

// x as lib/mv.wgsl reads it: as it is.
fn mv_x(i: u32) -> vec4f { return x[i]; }

// Sum over MV_FOLD neighbouring threads: each alone, the rest is summed from workgroup memory.
const MV_FOLD = 1u;
fn mv_fold(v: f32) -> f32 { return v; }

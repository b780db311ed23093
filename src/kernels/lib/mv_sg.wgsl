// Sum over MV_FOLD neighbouring threads: a subgroup. A row's lanes are whole subgroups.
const MV_FOLD = SG;
fn mv_fold(v: f32) -> f32 { return subgroupAdd(v); }

// recent[(step.pos + step.n_tok) % RING] = ids[0]      recent: [RING]
// Grid: one thread.
#include "lib/step.wgsl"
@group(0) @binding(0) var<storage, read> ids: array<u32>;
@group(0) @binding(1) var<storage, read_write> recent: array<u32>;
@group(0) @binding(2) var<uniform> step: Step;

@compute @workgroup_size(1)
fn main() { recent[(step.pos + step.n_tok) % RING] = ids[0]; }

// The greatest key of a workgroup of 256 threads and its id, the lowest among equals: in best[0] and
// best_id[0] after best_of, for thread 0.
#include "lib/order_key.wgsl"
var<workgroup> best: array<u32, 256>;
var<workgroup> best_id: array<u32, 256>;

fn best_of(key: u32, id: u32, t: u32) {
  best[t] = key;
  best_id[t] = id;
  for (var n = 128u; n > 0u; n /= 2u) {
    workgroupBarrier();
    if (t < n && (best[t + n] > best[t] || (best[t + n] == best[t] && best_id[t + n] < best_id[t]))) {
      best[t] = best[t + n];
      best_id[t] = best_id[t + n];
    }
  }
}

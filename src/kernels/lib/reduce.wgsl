// Sum and maximum over a workgroup of WG threads (a power of two), the result in every thread.
var<workgroup> reduce_buf: array<f32, WG>;

fn reduce_add(v: f32, t: u32) -> f32 {
  reduce_buf[t] = v;
  for (var n = WG / 2u; n > 0u; n /= 2u) {
    workgroupBarrier();
    if (t < n) { reduce_buf[t] += reduce_buf[t + n]; }
  }
  workgroupBarrier();
  let r = reduce_buf[0];
  workgroupBarrier();
  return r;
}

fn reduce_max(v: f32, t: u32) -> f32 {
  reduce_buf[t] = v;
  for (var n = WG / 2u; n > 0u; n /= 2u) {
    workgroupBarrier();
    if (t < n) { reduce_buf[t] = max(reduce_buf[t], reduce_buf[t + n]); }
  }
  workgroupBarrier();
  let r = reduce_buf[0];
  workgroupBarrier();
  return r;
}

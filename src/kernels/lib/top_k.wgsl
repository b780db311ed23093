// The k greatest of logits[0 .. N), equal ones by lower id, into keys[0 .. k) and key_ids, in falling
// order; 1 <= k <= min(256, N). Workgroups of 256; needs const N, the binding logits.
//
// The k-th of the threads' own maxima is at most the k-th of all; seldom are more than LIST_MAX as
// great. Where they are (many equal ones, or great ones in few threads), halving finds the exact
// k-th key, then the last id of that key that is needed.
#include "lib/order_key.wgsl"
const LIST_MAX = 1024u;
var<workgroup> keys: array<u32, LIST_MAX>; // rise with the logit; 0: none
var<workgroup> key_ids: array<u32, LIST_MAX>;
var<workgroup> counter: atomic<u32>;
var<workgroup> shared_u32: u32;

// The value that thread 0 passes, in all threads.
fn of_first(v: u32, t: u32) -> u32 {
  workgroupBarrier();
  if (t == 0u) { shared_u32 = v; }
  return workgroupUniformLoad(&shared_u32);
}

// Whether (k, id) comes no later than (least, last) in the order.
fn listed(k: u32, id: u32, least: u32, last: u32) -> bool {
  return k > least || (k == least && id <= last);
}

// How many logits are listed; puts the first LIST_MAX that arrive into the list when `put`.
fn count_listed(least: u32, last: u32, put: bool, t: u32) -> u32 {
  workgroupBarrier();
  if (t == 0u) { atomicStore(&counter, 0u); }
  workgroupBarrier();
  var mine = 0u;
  for (var i = t; i < N; i += 1024u) { // four loads in flight
    let l = vec4f(logits[i], logits[min(i + 256u, N - 1u)], logits[min(i + 512u, N - 1u)],
                  logits[min(i + 768u, N - 1u)]);
    for (var j = 0u; j < 4u; j++) {
      let id = i + j * 256u;
      let key = order_key(l[j]);
      if (id < N && listed(key, id, least, last)) {
        if (put) {
          let at = atomicAdd(&counter, 1u);
          if (at < LIST_MAX) {
            keys[at] = key;
            key_ids[at] = id;
          }
        } else {
          mine++;
        }
      }
    }
  }
  if (mine > 0u) { atomicAdd(&counter, mine); }
  workgroupBarrier();
  return of_first(atomicLoad(&counter), t);
}

// Bitonic sort of the list's first n, a power of two, at most LIST_MAX: falling keys, rising ids.
fn sort_list(n: u32, t: u32) {
  for (var size = 2u; size <= n; size *= 2u) {
    for (var apart = size / 2u; apart > 0u; apart /= 2u) {
      workgroupBarrier();
      for (var i = t; i < n / 2u; i += 256u) {
        let a = (i / apart) * 2u * apart + i % apart;
        let b = a + apart;
        let later = keys[b] > keys[a] || (keys[b] == keys[a] && key_ids[b] < key_ids[a]);
        if (later == ((a & size) == 0u)) {
          let key = keys[a];
          let id = key_ids[a];
          keys[a] = keys[b];
          key_ids[a] = key_ids[b];
          keys[b] = key;
          key_ids[b] = id;
        }
      }
    }
  }
  workgroupBarrier();
}

// The k-th of the threads' maxima.
fn bound_of_maxima(k: u32, t: u32) -> u32 {
  var most = 0u;
  for (var i = t; i < N; i += 1024u) {
    let l = vec4f(logits[i], logits[min(i + 256u, N - 1u)], logits[min(i + 512u, N - 1u)],
                  logits[min(i + 768u, N - 1u)]);
    for (var j = 0u; j < 4u; j++) {
      if (i + j * 256u < N) { most = max(most, order_key(l[j])); }
    }
  }
  keys[t] = most;
  key_ids[t] = t;
  sort_list(256u, t);
  return of_first(keys[k - 1u], t);
}

fn top_k(k: u32, t: u32) {
  var least = bound_of_maxima(k, t);
  var last = N - 1u;
  var n = count_listed(least, last, true, t);
  if (n > LIST_MAX) {
    var above = 0xffffffffu; // fewer than k are as great as this
    while (above - least > 1u) {
      let mid = least + (above - least) / 2u;
      if (count_listed(mid, last, false, t) >= k) { least = mid; } else { above = mid; }
    }
    var below = 0u; // smallest id that is enough: in [below, last]
    while (below < last) {
      let mid = below + (last - below) / 2u;
      if (count_listed(least, mid, false, t) >= k) { last = mid; } else { below = mid + 1u; }
    }
    n = count_listed(least, last, true, t);
  }
  var size = 1u;
  while (size < n) { size *= 2u; }
  for (var i = n + t; i < size; i += 256u) {
    keys[i] = 0u;
    key_ids[i] = 0xffffffffu;
  }
  sort_list(size, t);
}

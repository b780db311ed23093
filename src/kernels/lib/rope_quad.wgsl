// The stack q, k, v (NQ, NK, NK rows, heads of D) by quads of four rows: a quad is two rotated pairs
// whose results are two pairs of neighbours, so that an f16 cache is written by whole words. Quad s / 4
// is named by s, a multiple of 4. Needs const NQ, NK, D, ROT, NEOX (D and ROT multiples of 4), one
// lib/kv_<type>.wgsl, and
//   cs: array<vec2f>, q: array<vec2f>, kc, vc: array<KV2>

fn quad_turns(s: u32) -> bool { return s < NQ + NK && s % D < ROT; }

// row of the stack of element j < 4 of a quad: (i, i+1, i+ROT/2, i+1+ROT/2) or four neighbours
fn quad_row(s: u32, j: u32) -> u32 {
  if (NEOX == 1u && quad_turns(s)) { return s - (s % D) / 2u + (j & 1u) + (j >> 1u) * (ROT / 2u); }
  return s + j;
}

// puts neighbours at rows n and n + 1 of the stack where they belong: row m of q, row `at` of the caches
fn quad_put(n: u32, v: vec2f, m: u32, at: u32) {
  if (n < NQ) { q[(m * NQ + n) / 2u] = v; }
  else if (n < NQ + NK) { kc[(at * NK + n - NQ) / 2u] = kv_pack2(v); }
  else { vc[(at * NK + n - NQ - NK) / 2u] = kv_pack2(v); }
}

fn quad_store(s: u32, v: vec4f, m: u32, at: u32) {
  var lo = v.xy;
  var hi = v.zw;
  if (quad_turns(s)) {
    let c0 = cs[at * (ROT / 2u) + (s % D) / 2u];
    let c1 = cs[at * (ROT / 2u) + (s % D) / 2u + 1u];
    let c = vec2f(c0.x, c1.x);
    let n = vec2f(c0.y, c1.y);
    if (NEOX == 1u) {
      lo = v.xy * c - v.zw * n;
      hi = v.xy * n + v.zw * c;
    } else {
      let a = v.xz * c - v.yw * n;
      let b = v.xz * n + v.yw * c;
      lo = vec2f(a.x, b.x);
      hi = vec2f(a.y, b.y);
    }
  }
  quad_put(quad_row(s, 0u), lo, m, at);
  quad_put(quad_row(s, 2u), hi, m, at);
}

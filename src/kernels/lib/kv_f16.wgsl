// Elements of a KV cache in f16, two to a u32: KV2 and KV4 hold two and four neighbours.
alias KV2 = u32;
alias KV4 = vec2u;
fn kv_pack2(v: vec2f) -> KV2 { return pack2x16float(v); }
fn kv_four(v: KV4) -> vec4f { return vec4f(unpack2x16float(v.x), unpack2x16float(v.y)); }

// Elements of a KV cache in f32: KV2 and KV4 hold two and four neighbours.
alias KV2 = vec2f;
alias KV4 = vec4f;
fn kv_pack2(v: vec2f) -> KV2 { return v; }
fn kv_four(v: KV4) -> vec4f { return v; }

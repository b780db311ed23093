// GGUF files made from another one, for tests: data further on, several parts, other shapes.
// Works in a page and in Node.

const SIZES = [1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8];
const ALIGN = 32, STRING = 8, ARRAY = 9;
const pad = (n) => Math.ceil(n / ALIGN) * ALIGN;

/** Keys as [name, type and value as bytes]; tensors as {name, dims, type, off}; where the data begins. */
export function parse(bytes) {
  const v = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  let at = 24;
  const u32 = () => v.getUint32((at += 4) - 4, true), u64 = () => Number(v.getBigUint64((at += 8) - 8, true));
  const string = () => {
    const n = u64();
    return new TextDecoder().decode(bytes.subarray((at += n) - n, at));
  };
  const skip = (type) => {
    if (type === STRING) string();
    else if (type !== ARRAY) at += SIZES[type];
    else for (let item = u32(), n = u64(); n > 0; n--) skip(item);
  };
  const tensors = Number(v.getBigUint64(8, true)), keys = Number(v.getBigUint64(16, true)), f = { keys: [], tensors: [] };
  for (let i = 0; i < keys; i++) {
    const name = string(), from = at;
    skip(u32());
    f.keys.push([name, bytes.slice(from, at)]);
  }
  for (let i = 0; i < tensors; i++) {
    const name = string(), dims = Array.from({ length: u32() }, u64);
    f.tensors.push({ name, dims, type: u32(), off: u64() });
  }
  return { ...f, data: pad(at) };
}

/** The head of a file: all but the data, padded to where that begins. */
export function head({ keys, tensors }) {
  const out = [], u32 = (n) => push(4, (v) => v.setUint32(0, n, true)), u64 = (n) => push(8, (v) => v.setBigUint64(0, BigInt(n), true));
  const push = (n, set) => {
    const b = new Uint8Array(n);
    set(new DataView(b.buffer));
    out.push(b);
  };
  const string = (s) => {
    const b = new TextEncoder().encode(s);
    u64(b.length);
    out.push(b);
  };
  out.push(new TextEncoder().encode("GGUF"));
  u32(3);
  u64(tensors.length);
  u64(keys.length);
  for (const [name, value] of keys) {
    string(name);
    out.push(value);
  }
  for (const t of tensors) {
    string(t.name);
    u32(t.dims.length);
    t.dims.forEach(u64);
    u32(t.type);
    u64(t.off);
  }
  const size = out.reduce((n, b) => n + b.length, 0), all = new Uint8Array(pad(size));
  let at = 0;
  for (const b of out) all.set(b, (at += b.length) - b.length);
  return all;
}

/** A key's value of type u32 or u16. */
export function number(type, n) {
  const b = new Uint8Array(type === 2 ? 6 : 8), v = new DataView(b.buffer);
  v.setUint32(0, type, true);
  if (type === 2) v.setUint16(4, n, true);
  else v.setUint32(4, n, true);
  return b;
}

/** Head and data of the same model with a hole of `shift` bytes before its data. */
export function shifted(bytes, shift) {
  const f = parse(bytes);
  return { head: head({ ...f, tensors: f.tensors.map((t) => ({ ...t, off: t.off + shift })) }), data: bytes.subarray(f.data) };
}

/** The same model in n parts, its tensors shared out in order. */
export function split(bytes, n) {
  const f = parse(bytes), per = Math.ceil(f.tensors.length / n);
  const end = (t) => f.tensors.map((o) => o.off).filter((o) => o > t.off).sort((a, b) => a - b)[0] ?? bytes.length - f.data;
  return Array.from({ length: n }, (_, i) => {
    const own = f.tensors.slice(i * per, (i + 1) * per);
    let off = 0;
    const tensors = own.map((t) => ({ ...t, off: (off += pad(end(t) - t.off)) - pad(end(t) - t.off) }));
    const keys = [...(i ? [] : f.keys), ["split.no", number(2, i)], ["split.count", number(2, n)],
      ["split.tensors.count", number(4, f.tensors.length)]];
    const h = head({ keys, tensors }), all = new Uint8Array(h.length + off);
    all.set(h);
    own.forEach((t, k) => all.set(bytes.subarray(f.data + t.off, f.data + end(t)), h.length + tensors[k].off));
    return all;
  });
}

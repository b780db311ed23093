// The JavaScript half of src/hw/browser.c: owns every WebGPU object; C knows them by integers.
//
// Nothing here waits. Promises set what C asks for by polling, and call `wake` so that whoever
// drives C need not poll in vain. The first error of a device is kept, as C keeps it.

/** Codes of src/base/err.h that this side gives. */
export enum Err {
  None = 0, Nomem, Io, Format, Truncated, Unsupported, Limit, Arg, NoDevice, Device, DeviceLost,
  DeviceNomem, Cancelled,
}

const enum Flag { NoF16 = 1, NoSubgroups = 2, NoDot4i8 = 4, AdapterOnly = 8 }
const enum State { Opening, Ready, Failed }
const IN_FLIGHT = 32, SMALL_READ = 256; // read-backs; bytes of one: token ids, a few statistics
const TIMERS = 4, SET_STEPS = 2048, MAX_SETS = 16; // a query set holds at most 4,096 queries

/** The limits that kernels and buffers meet: asked for at the adapter's own values. */
const LIMITS = [
  "maxStorageBufferBindingSize", "maxBufferSize", "maxStorageBuffersPerShaderStage",
  "maxComputeWorkgroupStorageSize", "maxComputeInvocationsPerWorkgroup", "maxComputeWorkgroupSizeX",
  "maxComputeWorkgroupSizeY", "maxComputeWorkgroupSizeZ", "maxComputeWorkgroupsPerDimension",
  "minStorageBufferOffsetAlignment",
] as const;

type MapState = "free" | "pending" | "mapped" | "broken";
/** dropped: nobody reads it; it is free when its mapping has ended. */
interface Slot { ticket: number; state: MapState; dropped: boolean; buf: GPUBuffer; cap: number; size: number }
interface Timer {
  ticket: number; state: MapState; n: number; sets: GPUQuerySet[];
  resolve?: GPUBuffer; staging?: GPUBuffer; ns?: BigUint64Array;
}
interface Layout { group: GPUBindGroupLayout; pipeline: GPUPipelineLayout }
interface Buf { dev: Dev; buf: GPUBuffer; size: number; had: boolean }
interface Kernel { dev: Dev; label: string; layout: GPUBindGroupLayout; pipeline?: GPUComputePipeline; text?: string }
interface Step { pipeline: GPUComputePipeline; group: GPUBindGroup; x: number; y: number; z: number; label: string }
interface Program { label: string; steps: Step[] }
interface Dev {
  id: number; state: State; error: Err; text: string; flags: number; limitBinding: number;
  granted: number; refused: number; closing: boolean; adapter?: GPUAdapter; device?: GPUDevice; layouts: Map<string, Layout>;
  slots: Slot[]; timers: Timer[]; submitted: number; completed: number; asked: boolean;
}

/** What WebGPU says of an adapter or device, for people. */
export interface AdapterFacts {
  name: string; vendor: string; architecture: string; software: boolean;
  features: string[]; limits: Record<string, number>;
}

export class HwBrowser {
  /** Called whenever a promise has settled. */
  wake: () => void = () => {};
  /** Promises not yet settled: with none, polling again at once is never in vain. */
  pending = 0;
  #objects: unknown[] = [null];
  #free: number[] = [];
  #memory: () => ArrayBufferLike;
  #gpu: GPU | undefined;

  constructor(memory: () => ArrayBufferLike, gpu: GPU | undefined) {
    this.#memory = memory;
    this.#gpu = gpu;
  }

  /** The device that C has opened last and not closed: for panels and tests. */
  device(): GPUDevice | undefined {
    return this.#dev()?.device;
  }

  /** Bytes of buffers on that device: had, as the browser has confirmed, and of the one that it refused. */
  bytes(): { granted: number; refused: number } {
    const { granted = 0, refused = 0 } = this.#dev() ?? {};
    return { granted, refused };
  }

  #dev(): Dev | undefined {
    return this.#objects.find((o) => (o as Dev | null)?.layouts && (o as Dev).device) as Dev | undefined;
  }

  /** Bytes straight to a buffer, past the wasm heap; `bytes` is padded to 4 at the buffer's end. */
  write(buf: number, off: number, bytes: Uint8Array<ArrayBuffer>): void {
    const b = this.#get<Buf>(buf);
    const whole = bytes.length & ~3;
    if (whole) b.dev.device!.queue.writeBuffer(b.buf, off, bytes, 0, whole);
    if (whole === bytes.length) return;
    const tail = new Uint8Array(4);
    tail.set(bytes.subarray(whole));
    b.dev.device!.queue.writeBuffer(b.buf, off + whole, tail);
  }

  /** What src/hw/browser.c imports from module "frit". */
  readonly imports = {
    gpu_open: (index: number, flags: number, limit: number) => this.#open(index, flags, limit),
    gpu_close: (d: number) => this.#close(d),
    gpu_poll: (d: number, error: number) => {
      const dev = this.#get<Dev>(d);
      this.#view().setUint32(error, dev.error, true);
      return dev.error ? State.Failed : dev.state;
    },
    gpu_error: (d: number, p: number, room: number) => this.#put(p, room, this.#get<Dev>(d).text),
    gpu_caps: (d: number, p: number) => this.#caps(this.#get<Dev>(d), p),
    gpu_buf_new: (d: number, label: number, n: number, size: number, use: number) =>
      this.#bufNew(this.#get<Dev>(d), this.#text(label, n), size, use),
    gpu_buf_free: (b: number) => {
      const o = this.#release<Buf>(b);
      if (o.had) o.dev.granted -= o.size;
      o.size = 0; // for a confirmation that is still to come
      o.buf.destroy();
    },
    gpu_buf_write: (b: number, off: number, p: number, size: number) => {
      const o = this.#get<Buf>(b);
      o.dev.device!.queue.writeBuffer(o.buf, off, this.#memory() as ArrayBuffer, p, size);
    },
    gpu_kernel_new: (d: number, label: number, n: number, wgsl: number, size: number, bind: number, binds: number) =>
      this.#kernelNew(this.#get<Dev>(d), this.#text(label, n), this.#text(wgsl, size),
        [...new Uint32Array(this.#memory(), bind, binds)]),
    gpu_kernel_ready: (k: number, p: number, room: number) => {
      const o = this.#get<Kernel>(k);
      if (o.pipeline) return 1;
      if (o.text === undefined) return 0;
      this.#put(p, room, o.text);
      return 2;
    },
    gpu_kernel_free: (k: number) => void this.#release<Kernel>(k),
    gpu_program_new: (d: number, label: number, n: number, words: number, steps: number) =>
      this.#programNew(this.#get<Dev>(d), this.#text(label, n), words, steps),
    gpu_program_free: (p: number) => void this.#release<Program>(p),
    gpu_submit: (p: number) => this.#submit(p),
    gpu_done: (d: number, ticket: number) => this.#done(this.#get<Dev>(d), ticket),
    gpu_read: (d: number, ticket: number, dst: number, size: number) =>
      this.#read(this.#get<Dev>(d), ticket, dst, size),
    gpu_times: (d: number, ticket: number, ns: number, room: number) =>
      this.#times(this.#get<Dev>(d), ticket, ns, room),
    gpu_lose: (d: number) => this.#get<Dev>(d).device?.destroy(),
  };

  // ---- handles, memory ----

  #new(o: unknown): number {
    const id = this.#free.pop() ?? this.#objects.length;
    this.#objects[id] = o;
    return id;
  }

  #get<T>(id: number): T {
    return this.#objects[id] as T;
  }

  #release<T>(id: number): T {
    const o = this.#objects[id] as T;
    this.#objects[id] = null;
    this.#free.push(id);
    return o;
  }

  #view(): DataView {
    return new DataView(this.#memory());
  }

  // A copy: the memory may be shared, which TextDecoder refuses.
  #text(p: number, n: number): string {
    return new TextDecoder().decode(new Uint8Array(this.#memory(), p, n).slice());
  }

  /** NUL-terminated, cut to fit at a character's end. */
  #put(p: number, room: number, text: string): void {
    const tmp = new Uint8Array(room);
    const { written } = new TextEncoder().encodeInto(text, tmp.subarray(0, room - 1));
    tmp.fill(0, written);
    new Uint8Array(this.#memory(), p, room).set(tmp);
  }

  #track<T>(p: Promise<T>, ok: (v: T) => void, fail: (e: unknown) => void | Promise<void>): void {
    this.pending++;
    p.then(ok, fail).catch((e) => console.error("frit:", e)).finally(() => {
      this.pending--;
      this.wake();
    });
  }

  // ---- device ----

  #note(dev: Dev, code: Err, text: string): void {
    if (dev.closing || dev.error) return;
    dev.error = code;
    dev.text = text;
    this.wake();
  }

  #open(index: number, flags: number, limit: number): number {
    if (!this.#gpu) return 0;
    const dev: Dev = {
      id: 0, state: State.Opening, error: Err.None, text: "", flags, limitBinding: limit,
      granted: 0, refused: 0, closing: false, layouts: new Map(), slots: [], timers: [], submitted: 0, completed: 0, asked: false,
    };
    dev.id = this.#new(dev);
    this.#track(this.#request(dev, this.#gpu, index), () => {}, (e) =>
      this.#note(dev, Err.NoDevice, `gpu:${index}: ${words(e)}`));
    return dev.id;
  }

  async #request(dev: Dev, gpu: GPU, index: number): Promise<void> {
    if (index > 0) throw new Error("a page is given one adapter");
    const adapter = await gpu.requestAdapter({ powerPreference: "high-performance" }) ??
      await gpu.requestAdapter();
    if (!adapter) throw new Error("no adapter: the browser has WebGPU but no GPU that it would use");
    dev.adapter = adapter;
    if (!(dev.flags & Flag.AdapterOnly)) await this.#requestDevice(dev, adapter);
    dev.state = State.Ready;
  }

  async #requestDevice(dev: Dev, adapter: GPUAdapter): Promise<void> {
    const requiredLimits: Record<string, number> = {};
    for (const name of LIMITS) requiredLimits[name] = adapter.limits[name] as number;
    if (dev.limitBinding)
      requiredLimits.maxStorageBufferBindingSize =
        Math.min(requiredLimits.maxStorageBufferBindingSize, dev.limitBinding);
    const wanted = ["timestamp-query"];
    if (!(dev.flags & Flag.NoF16)) wanted.push("shader-f16");
    if (!(dev.flags & Flag.NoSubgroups)) wanted.push("subgroups");
    const device = await adapter.requestDevice({
      label: "frit", requiredLimits, defaultQueue: { label: "frit queue" },
      requiredFeatures: wanted.filter((f) => adapter.features.has(f)) as GPUFeatureName[],
    });
    if (dev.closing) return device.destroy();
    dev.device = device;
    device.addEventListener("uncapturederror", (event) => {
      const { error } = event as GPUUncapturedErrorEvent;
      event.preventDefault();
      this.#note(dev, codeOf(error), error.message);
    });
    void device.lost.then((info) => this.#note(dev, Err.DeviceLost, `device lost: ${info.message || info.reason}`));
    for (let i = 0; i < IN_FLIGHT; i++)
      dev.slots.push({ ticket: 0, state: "free", dropped: false, buf: readBuffer(device, SMALL_READ), cap: SMALL_READ, size: 0 });
    for (let i = 0; i < TIMERS; i++) dev.timers.push({ ticket: 0, state: "free", n: 0, sets: [] });
  }

  #close(id: number): void {
    const dev = this.#release<Dev>(id);
    dev.closing = true;
    dev.device?.destroy(); // and with it all that was made on it
  }

  #caps(dev: Dev, p: number): void {
    const { info, limits, features } = (dev.device ? { ...parts(dev.device), info: dev.adapter!.info } : parts(dev.adapter!));
    const v = this.#view();
    const subgroups = features.has("subgroups");
    const binding = limits.maxStorageBufferBindingSize;
    [
      isSoftware(dev.adapter!), features.has("shader-f16"), subgroups,
      !(dev.flags & Flag.NoDot4i8) && !!this.#gpu?.wgslLanguageFeatures?.has("packed_4x8_integer_dot_product"),
      features.has("timestamp-query"),
      subgroups ? info.subgroupMinSize ?? 4 : 0, subgroups ? info.subgroupMaxSize ?? 128 : 0,
      limits.maxStorageBuffersPerShaderStage, limits.maxComputeWorkgroupsPerDimension,
      limits.maxComputeInvocationsPerWorkgroup, limits.maxComputeWorkgroupStorageSize,
      limits.minStorageBufferOffsetAlignment,
    ].forEach((x, i) => v.setUint32(p + 4 * i, Number(x), true));
    v.setFloat64(p + 48, dev.limitBinding ? Math.min(binding, dev.limitBinding) : binding, true);
    v.setFloat64(p + 56, limits.maxBufferSize, true);
    const facts = describe(dev.adapter!);
    const strings: [number, string][] = [
      [128, facts.name], [64, facts.vendor], [64, facts.architecture], [128, ""], [32, "browser"], [128, browserName()],
    ];
    let at = p + 64;
    for (const [room, text] of strings) {
      this.#put(at, room, text);
      at += room;
    }
  }

  // ---- buffers ----

  #bufNew(dev: Dev, label: string, size: number, use: number): number {
    const device = dev.device!;
    device.pushErrorScope("out-of-memory");
    let buf: GPUBuffer | undefined;
    try {
      buf = device.createBuffer({
        label, size, usage: (use ? GPUBufferUsage.UNIFORM : GPUBufferUsage.STORAGE) |
          GPUBufferUsage.COPY_DST | GPUBufferUsage.COPY_SRC,
      });
    } catch (e) {
      dev.refused ||= size;
      this.#note(dev, Err.DeviceNomem, `buffer '${label}': ${size} bytes: ${words(e)}`);
    }
    const made: Buf | undefined = buf && { dev, buf, size, had: false };
    this.#track(device.popErrorScope(), (e) => {
      if (e) {
        dev.refused ||= size;
        return this.#note(dev, Err.DeviceNomem, `buffer '${label}': ${size} bytes of device memory are not to be had`);
      }
      if (!made || dev.refused) return; // those asked for after it say nothing
      made.had = true;
      dev.granted += made.size;
    }, () => {});
    return made ? this.#new(made) : 0;
  }

  // ---- kernels ----

  /** One layout per signature: kernels with the same bindings share it. */
  #layout(dev: Dev, binds: number[]): Layout {
    const label = "bindings " + binds.map((b) => "rwu"[b]).join("");
    let layout = dev.layouts.get(label);
    if (!layout) {
      const types = ["read-only-storage", "storage", "uniform"] as const;
      const group = dev.device!.createBindGroupLayout({
        label, entries: binds.map((b, binding) =>
          ({ binding, visibility: GPUShaderStage.COMPUTE, buffer: { type: types[b] } })),
      });
      layout = { group, pipeline: dev.device!.createPipelineLayout({ label, bindGroupLayouts: [group] }) };
      dev.layouts.set(label, layout);
    }
    return layout;
  }

  #kernelNew(dev: Dev, label: string, code: string, binds: number[]): number {
    const device = dev.device!, layout = this.#layout(dev, binds);
    const k: Kernel = { dev, label, layout: layout.group };
    device.pushErrorScope("validation"); // a text that does not compile is no failure of the device
    const module = device.createShaderModule({ label, code });
    device.popErrorScope().catch(() => {});
    const made = device.createComputePipelineAsync({
      label, layout: layout.pipeline, compute: { module, entryPoint: "main" },
    });
    this.#track(made.catch(async (e) => {
      const info = await module.getCompilationInfo().catch(() => undefined);
      const first = info?.messages.find((m) => m.type === "error");
      throw first ? new Error(`line ${first.lineNum}: ${first.message}`) : e;
    }), (pipeline) => { k.pipeline = pipeline; },
    (e) => { k.text = `kernel '${label}' does not compile: ${words(e)}`; });
    return this.#new(k);
  }

  // ---- programs ----

  #programNew(dev: Dev, label: string, p: number, n: number): number {
    const w = new Uint32Array(this.#memory(), p);
    const steps: Step[] = [];
    let at = 0;
    const u64 = () => w[at++] + w[at++] * 2 ** 32;
    for (let i = 0; i < n; i++) {
      const k = this.#get<Kernel>(w[at]);
      const [x, y, z, text, length, binds] = w.subarray(at + 1, at + 7);
      const name = this.#text(text, length);
      const entries: GPUBindGroupEntry[] = [];
      at += 7;
      if (!k.pipeline) {
        this.#note(dev, Err.Device, `step '${name}': kernel '${k.label}' is not ready`);
        return 0;
      }
      for (let binding = 0; binding < binds; binding++) {
        const buffer = this.#get<Buf>(w[at++]).buf;
        entries.push({ binding, resource: { buffer, offset: u64(), size: u64() } });
      }
      const group = dev.device!.createBindGroup({ label: name, layout: k.layout, entries });
      steps.push({ pipeline: k.pipeline, group, x, y, z, label: name });
    }
    return this.#new({ label, steps } satisfies Program);
  }

  // ---- submits ----

  /** The whole of a submit: parameters, programs, read-back. Layout: browser_submit in browser.c. */
  #submit(p: number): number {
    const v = this.#view(), u = (i: number) => v.getUint32(p + 4 * i, true);
    const dev = this.#get<Dev>(u(0)), device = dev.device!;
    const programs: Program[] = [];
    for (let i = 0; i < u(1); i++) programs.push(this.#get<Program>(u(2 + i)));
    const read = u(9), readSize = u(10), ticket = v.getFloat64(p + 56, true);
    const steps = programs.reduce((n, o) => n + o.steps.length, 0);
    const slot = read ? takeSlot(dev, readSize) : undefined;
    const timer = u(11) && steps ? takeTimer(dev, steps) : undefined;
    if ((read && !slot) || (u(11) && steps && !timer)) return Err.Limit;
    if (u(6) && u(8))
      device.queue.writeBuffer(this.#get<Buf>(u(6)).buf, 0, this.#memory() as ArrayBuffer, u(7), u(8));
    const label = programs[0]?.label ?? "read-back";
    const enc = device.createCommandEncoder({ label });
    if (timer) encodeTimed(enc, programs, timer);
    else if (programs.length) encode(enc, programs, label);
    if (slot) enc.copyBufferToBuffer(this.#get<Buf>(read).buf, v.getFloat64(p + 48, true), slot.buf, 0, readSize);
    device.queue.submit([enc.finish({ label })]);
    dev.submitted = ticket;
    if (slot) this.#map(dev, slot, ticket, readSize);
    if (timer) this.#mapTimes(dev, timer, ticket);
    return dev.error;
  }

  #map(dev: Dev, s: Slot, ticket: number, size: number): void {
    Object.assign(s, { ticket, size, state: "pending", dropped: false });
    this.#track(s.buf.mapAsync(GPUMapMode.READ, 0, size), () => {
      s.state = s.dropped ? "free" : "mapped";
      if (s.dropped) s.buf.unmap();
      dev.completed = Math.max(dev.completed, ticket); // the queue runs in order
    }, () => afterLoss(dev, s));
  }

  #mapTimes(dev: Dev, t: Timer, ticket: number): void {
    Object.assign(t, { ticket, state: "pending" });
    const arrived = t.staging!.mapAsync(GPUMapMode.READ, 0, t.n * 16).then(() => {
      t.ns = elapsed(new BigUint64Array(t.staging!.getMappedRange(0, t.n * 16)));
      t.staging!.unmap();
    });
    this.#track(arrived, () => {
      t.state = "free";
      dev.completed = Math.max(dev.completed, ticket);
    }, () => afterLoss(dev, t));
  }

  // A read-back or its times finish with their mapping. Of other submits the end is only asked for
  // when somebody wants to know.
  #done(dev: Dev, ticket: number): number {
    if (dev.timers.some((t) => t.ticket === ticket && t.state === "pending")) return 0;
    const s = slotOf(dev, ticket);
    if (s) return s.state === "pending" ? 0 : 1;
    if (ticket <= dev.completed) return 1;
    if (!dev.asked) {
      const upTo = dev.submitted;
      dev.asked = true;
      this.#track(dev.device!.queue.onSubmittedWorkDone(), () => {
        dev.asked = false;
        dev.completed = Math.max(dev.completed, upTo);
      }, () => { dev.asked = false; });
    }
    return 0;
  }

  #read(dev: Dev, ticket: number, dst: number, size: number): number {
    const s = slotOf(dev, ticket);
    if (!s || (s.state === "pending" && dst)) return Err.Arg;
    s.dropped = !dst;
    if (s.state === "pending") return Err.None;
    const arrived = s.state === "mapped";
    s.state = "free";
    if (!arrived) return dev.error || Err.Device;
    try {
      if (dst) copyOut(s, new Uint8Array(this.#memory(), dst, Math.min(size, s.size)));
      s.buf.unmap();
      return Err.None;
    } catch (e) { // a device that is destroyed unmaps its buffers before it tells of its loss
      this.#note(dev, Err.DeviceLost, `device lost: a read-back that had arrived is gone: ${words(e)}`);
      return dev.error;
    }
  }

  #times(dev: Dev, ticket: number, p: number, room: number): number {
    const t = dev.timers.find((o) => o.ticket === ticket);
    if (!t || t.state === "pending") return -1;
    if (t.state === "broken" || !t.ns) return -2;
    const n = Math.min(room, t.n);
    new BigUint64Array(this.#memory(), p, n).set(t.ns.subarray(0, n));
    return n;
  }
}

// ---- the rest needs no state of the class ----

function words(e: unknown): string {
  return e instanceof Error ? e.message : String(e);
}

function codeOf(e: GPUError): Err {
  if (typeof GPUOutOfMemoryError !== "undefined" && e instanceof GPUOutOfMemoryError) return Err.DeviceNomem;
  return /not enough memory|out of memory/i.test(e.message) ? Err.DeviceNomem : Err.Device;
}

/** A mapping that failed. When the device was lost, its own word must come first, and it may come after
 * this one: that is the error to tell. */
async function afterLoss(dev: Dev, o: Slot | Timer): Promise<void> {
  await Promise.race([dev.device!.lost, new Promise((resolve) => setTimeout(resolve, 500))]);
  o.state = "broken";
}

function parts(o: GPUAdapter | GPUDevice) {
  return { limits: o.limits, features: o.features, info: (o as GPUAdapter).info ?? {} };
}

function isSoftware(a: GPUAdapter): boolean {
  const i = a.info as GPUAdapterInfo & { isFallbackAdapter?: boolean };
  return !!i.isFallbackAdapter || /swiftshader|llvmpipe|lavapipe/i.test(`${i.architecture} ${i.device} ${i.description}`);
}

/** What an adapter says of itself. */
export function describe(a: GPUAdapter): AdapterFacts {
  const i = a.info;
  const limits: Record<string, number> = {};
  for (const name of LIMITS) limits[name] = a.limits[name] as number;
  return {
    name: i.description || i.device || [i.vendor, i.architecture].filter(Boolean).join(" ") || "WebGPU adapter",
    vendor: i.vendor, architecture: i.architecture, software: isSoftware(a),
    features: [...a.features].sort(), limits,
  };
}

function browserName(): string {
  const agent = globalThis.navigator?.userAgent ?? "";
  return /(Firefox|Edg|Chrome|Version)\/[\d.]+/.exec(agent)?.[0].replace("Version", "Safari") || "JavaScript's WebGPU";
}

function readBuffer(device: GPUDevice, size: number): GPUBuffer {
  return device.createBuffer({ label: "read-back", size, usage: GPUBufferUsage.MAP_READ | GPUBufferUsage.COPY_DST });
}

/** The smallest free slot that is large enough, else the largest free one, grown. */
function takeSlot(dev: Dev, size: number): Slot | undefined {
  const free = dev.slots.filter((s) => s.state === "free").sort((a, b) => a.cap - b.cap);
  const fit = free.find((s) => s.cap >= size) ?? free.at(-1);
  if (fit && fit.cap < size) {
    fit.buf.destroy();
    fit.cap = 2 ** Math.ceil(Math.log2(size));
    fit.buf = readBuffer(dev.device!, fit.cap);
  }
  return fit;
}

/** Nanoseconds between the two ticks of each step. */
function elapsed(ticks: BigUint64Array): BigUint64Array {
  return ticks.filter((_, i) => i % 2 === 0).map((a, i) => (ticks[2 * i + 1] > a ? ticks[2 * i + 1] - a : 0n));
}

function copyOut(s: Slot, to: Uint8Array): void {
  to.set(new Uint8Array(s.buf.getMappedRange(0, s.size), 0, to.length));
}

function slotOf(dev: Dev, ticket: number): Slot | undefined {
  return dev.slots.find((s) => s.state !== "free" && !s.dropped && s.ticket === ticket);
}

/** The oldest one that is not in flight. */
function takeTimer(dev: Dev, steps: number): Timer | undefined {
  const t = dev.timers.filter((o) => o.state !== "pending").sort((a, b) => a.ticket - b.ticket)[0];
  const sets = Math.ceil(steps / SET_STEPS);
  if (!t || sets > MAX_SETS) return undefined;
  if (sets > t.sets.length) {
    const device = dev.device!, size = sets * SET_STEPS * 16, label = "step times";
    for (const s of t.sets) s.destroy();
    t.resolve?.destroy();
    t.staging?.destroy();
    t.sets = Array.from({ length: sets }, () => device.createQuerySet({ label, type: "timestamp", count: 2 * SET_STEPS }));
    t.resolve = device.createBuffer({ label, size, usage: GPUBufferUsage.QUERY_RESOLVE | GPUBufferUsage.COPY_SRC });
    t.staging = device.createBuffer({ label, size, usage: GPUBufferUsage.MAP_READ | GPUBufferUsage.COPY_DST });
  }
  t.n = steps;
  return t;
}

/** All programs in one pass. */
function encode(enc: GPUCommandEncoder, programs: Program[], label: string): void {
  const pass = enc.beginComputePass({ label });
  let bound: GPUComputePipeline | undefined;
  for (const p of programs) {
    for (const s of p.steps) {
      if (s.pipeline !== bound) pass.setPipeline((bound = s.pipeline));
      pass.setBindGroup(0, s.group);
      pass.dispatchWorkgroups(s.x, s.y, s.z);
    }
  }
  pass.end();
}

/** A pass a step, since timestamps are written at the ends of passes. */
function encodeTimed(enc: GPUCommandEncoder, programs: Program[], t: Timer): void {
  let n = 0;
  for (const p of programs) {
    for (const s of p.steps) {
      const i = n % SET_STEPS * 2;
      const pass = enc.beginComputePass({ label: s.label, timestampWrites: {
        querySet: t.sets[Math.floor(n++ / SET_STEPS)], beginningOfPassWriteIndex: i, endOfPassWriteIndex: i + 1 } });
      pass.setPipeline(s.pipeline);
      pass.setBindGroup(0, s.group);
      pass.dispatchWorkgroups(s.x, s.y, s.z);
      pass.end();
    }
  }
  for (let done = 0, i = 0; done < t.n; done += SET_STEPS, i++)
    enc.resolveQuerySet(t.sets[i], 0, Math.min(t.n - done, SET_STEPS) * 2, t.resolve!, i * SET_STEPS * 16);
  enc.copyBufferToBuffer(t.resolve!, 0, t.staging!, 0, t.n * 16);
}

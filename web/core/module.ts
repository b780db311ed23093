// What the module needs round it: its code, a clock, a turn of the event loop.
import { FritError } from "./errors.js";

export async function compile(url: string | URL): Promise<WebAssembly.Module> {
  const res = await fetch(url);
  if (!res.ok) throw new FritError("io", `${url}: HTTP ${res.status}`);
  return WebAssembly.compile(await res.arrayBuffer());
}

/** A turn of the event loop, sooner than a timer would give it. */
export function turn(): Promise<void> {
  const { setImmediate } = globalThis as { setImmediate?: (fn: () => void) => void };
  if (setImmediate) return new Promise((resolve) => setImmediate(resolve));
  return new Promise((resolve) => {
    const { port1, port2 } = new MessageChannel();
    port1.onmessage = () => {
      port1.close();
      resolve();
    };
    port2.postMessage(0);
  });
}

/** The calls of WASI that the C library keeps: a clock, and standard error for failed asserts. */
export function wasi(memory: () => WebAssembly.Memory, log: (level: "warn", text: string) => void) {
  return {
    clock_time_get(_id: number, _precision: bigint, out: number): number {
      const ns = BigInt(Math.round(performance.now() * 1e6));
      new DataView(memory().buffer).setBigUint64(out, _id === 0 ? BigInt(Date.now()) * 1_000_000n : ns, true);
      return 0;
    },
    fd_write(_fd: number, iovs: number, n: number, out: number): number {
      const v = new DataView(memory().buffer);
      let text = "", total = 0;
      for (let i = 0; i < n; i++) {
        const size = v.getUint32(iovs + 8 * i + 4, true);
        text += new TextDecoder().decode(new Uint8Array(memory().buffer, v.getUint32(iovs + 8 * i, true), size));
        total += size;
      }
      log("warn", text.trimEnd());
      v.setUint32(out, total, true);
      return 0;
    },
    fd_close: (): number => 8,
    fd_seek: (): number => 8,
  };
}

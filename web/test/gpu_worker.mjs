// Serves the GPU calls of a test worker that blocks: the same HwBrowser on an event loop of its own,
// over the same (shared) memory. A call arrives as a message; its result goes to `ctl`.
import { HwBrowser } from "/build/wasm/core/hw_browser.js";

self.onmessage = ({ data: { memory, ctl, port } }) => {
  const flag = new Int32Array(ctl), result = new Float64Array(ctl, 8);
  const hw = new HwBrowser(() => memory.buffer, navigator.gpu);
  port.onmessage = ({ data: [name, args] }) => {
    try {
      result[0] = Number(hw.imports[name](...args) ?? 0);
    } catch (e) {
      console.error(`${name}(${args}): ${e.stack}`);
      result[0] = NaN;
    }
    Atomics.store(flag, 0, 1);
    Atomics.notify(flag, 0);
  };
  postMessage("ready");
};

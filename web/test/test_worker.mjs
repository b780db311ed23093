// Runs the C tests in a worker, which may block. GPU calls go to gpu_worker.mjs and are waited for.
import { runTests } from "./wasi.mjs";

const never = new Int32Array(new SharedArrayBuffer(4));

function proxy(ctl, port) {
  const flag = new Int32Array(ctl), result = new Float64Array(ctl, 8);
  return new Proxy({}, {
    get: (_, name) => (...args) => {
      Atomics.store(flag, 0, 0);
      port.postMessage([name, args]);
      // A late notification of the call before may wake this one.
      while (Atomics.load(flag, 0) === 0) Atomics.wait(flag, 0, 0);
      if (Number.isNaN(result[0])) throw new Error(`${name} failed`);
      return result[0];
    },
  });
}

self.onmessage = async ({ data: { module, memory, args, files, ctl, port } }) => {
  const print = (line) => postMessage({ line });
  try {
    const status = await runTests({
      module, memory, args, files, print,
      frit: proxy(ctl, port),
      env: { FRIT_TEST_DATA: "/data", FRIT_TEST_TMP: "/tmp" },
      wait: (ms) => Atomics.wait(never, 0, 0, Math.max(ms, 0.2)),
    });
    postMessage({ status });
  } catch (e) {
    print(`FAIL the module died: ${e.stack}`);
    postMessage({ status: 1 });
  }
};

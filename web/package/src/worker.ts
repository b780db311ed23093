// The worker's whole program.
import { Host } from "./host.js";
import type { FromHost, ToHost } from "./protocol.js";

const self_ = globalThis as unknown as { onmessage: (e: MessageEvent<ToHost>) => void; postMessage(m: FromHost): void };
const host = new Host((m) => self_.postMessage(m));
self_.onmessage = (e) => void host.handle(e.data);

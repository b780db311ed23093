// The caller's side of protocol.ts: requests with ids, over a worker or straight to a Host.
import { AbortError, WorkerError, makeError, toFritError } from "./errors.js";
import { Host } from "./host.js";
import { PortServer } from "./port.js";
import type { FromHost, Ops, PartMessage, ToHost } from "./protocol.js";
import type { ByteSource } from "./source.js";
import type { Progress } from "./types.js";

interface Pending {
  resolve: (v: unknown) => void;
  reject: (e: Error) => void;
  onProgress?: (p: Progress) => void;
  onText?: (text: string) => void;
}

export class Client {
  #pending = new Map<number, Pending>();
  #next = 1;
  #send: (m: ToHost, transfer?: Transferable[]) => void;
  #served: PortServer[] = [];
  #end: () => void;
  #dead: Error | null = null;
  /** Whether requests leave this thread. */
  readonly remote: boolean;

  /** A worker of the caller's own is left running at the end; one that is made here is ended. */
  constructor(worker: Worker | null, owned: boolean) {
    this.remote = worker !== null;
    if (worker) {
      worker.onmessage = (e: MessageEvent<FromHost>) => this.#receive(e.data);
      worker.onmessageerror = () => this.#die(new WorkerError("worker", "a message could not be read"));
      worker.onerror = (e) => this.#die(new WorkerError("worker", `the worker failed: ${e.message ?? "it did not load"}`));
      this.#send = (m, transfer = []) => worker.postMessage(m, transfer);
      this.#end = () => { if (owned) worker.terminate(); };
    } else {
      const host = new Host((m) => this.#receive(m));
      this.#send = (m) => void host.handle(m);
      this.#end = () => {};
    }
  }

  /** A source with functions, as it can be given to the Host. */
  part(source: ByteSource): PartMessage {
    if (!this.remote) return { source };
    const server = new PortServer(source);
    this.#served.push(server);
    return server.message;
  }

  call<K extends keyof Ops>(op: K, arg: Ops[K]["takes"],
    o: { signal?: AbortSignal; transfer?: Transferable[] } & Pick<Pending, "onProgress" | "onText"> = {}): Promise<Ops[K]["gives"]> {
    if (this.#dead) return Promise.reject(this.#dead);
    if (o.signal?.aborted) return Promise.reject(new AbortError());
    const id = this.#next++;
    const abort = () => this.#send({ id, op: "abort" });
    const result = new Promise<unknown>((resolve, reject) => {
      this.#pending.set(id, { resolve, reject, onProgress: o.onProgress, onText: o.onText });
    });
    o.signal?.addEventListener("abort", abort, { once: true });
    try {
      this.#send({ id, op, arg } as ToHost, o.transfer);
    } catch (e) {
      this.#receive({ id, type: "error", code: "argument", message: toFritError(e, "argument").message });
    }
    return result.finally(() => o.signal?.removeEventListener("abort", abort)) as Promise<Ops[K]["gives"]>;
  }

  /** No call is answered after this. */
  end(why: Error): void {
    this.#end();
    this.#die(why);
  }

  #receive(m: FromHost): void {
    const p = this.#pending.get(m.id);
    if (!p) return;
    switch (m.type) {
      case "progress": return p.onProgress?.(m.progress);
      case "text": return p.onText?.(m.text);
      case "done":
        this.#pending.delete(m.id);
        return p.resolve(m.value);
      case "error":
        this.#pending.delete(m.id);
        return p.reject(makeError(m.code, m.message, m.facts));
    }
  }

  #die(e: Error): void {
    this.#dead ??= e;
    for (const s of this.#served.splice(0)) s.end();
    for (const p of this.#pending.values()) p.reject(e);
    this.#pending.clear();
  }
}

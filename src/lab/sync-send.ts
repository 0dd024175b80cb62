// Requests that are over when the call returns: kg waits for each of its patches, and acts on whether it succeeded.

import { Worker } from "node:worker_threads";
import type { ApiAccess, ApiCall } from "./api-stream.ts";

/** What the thread that sends is started with. */
export type SenderData = { readonly access: ApiAccess; readonly shared: SharedArrayBuffer };

const answerMsMax = 12_000;

/** Sends requests from a thread of its own while this one waits. */
export class SyncSender {
  readonly #worker: Worker;
  /** The number of the request that was answered last, and its status. */
  readonly #shared = new Int32Array(new SharedArrayBuffer(8));
  #sent = 0;

  constructor(access: ApiAccess) {
    const workerData: SenderData = { access, shared: this.#shared.buffer };
    this.#worker = new Worker(new URL("sender-thread.js", import.meta.url), { workerData });
    this.#worker.unref();
  }

  /** The status of the answer; 0, if there was none. */
  send(call: Omit<ApiCall, "signal">): number {
    this.#sent += 1;
    this.#worker.postMessage({ call, number: this.#sent });
    const giveUpMs = Date.now() + answerMsMax;
    while (Atomics.load(this.#shared, 0) !== this.#sent) {
      const leftMs = giveUpMs - Date.now();
      if (leftMs <= 0) return 0;
      Atomics.wait(this.#shared, 0, Atomics.load(this.#shared, 0), leftMs);
    }
    return Atomics.load(this.#shared, 1);
  }
}

// The thread behind `SyncSender`: sends one request after the other and leaves the status of each where the other thread
// looks for it.

import { parentPort, workerData } from "node:worker_threads";
import { type ApiCall, send } from "./api-stream.ts";
import type { SenderData } from "./sync-send.ts";

const { access, shared } = workerData as SenderData;
const answered = new Int32Array(shared);

parentPort?.on("message", ({ call, number }: { readonly call: ApiCall; readonly number: number }) => {
  void send(access, call).then(
    ({ status, text }) => answer(number, status, status < 300 ? "" : text.slice(0, 200), call),
    (error: unknown) => answer(number, 0, String(error), call),
  );
});

function answer(number: number, status: number, trouble: string, { method, path }: ApiCall): void {
  if (trouble !== "") console.error(`${method} ${path}: ${status} ${trouble}`);
  Atomics.store(answered, 1, status);
  Atomics.store(answered, 0, number);
  Atomics.notify(answered, 0);
}

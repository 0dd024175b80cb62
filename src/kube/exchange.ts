import type { IncomingHttpHeaders } from "node:http";
import type { Dispatcher } from "undici";
import { overBudget } from "../core/budgets.ts";
import { fieldsOf } from "../core/json.ts";
import { byteStore } from "./byte-store.ts";
import { lossOf, type Progress } from "./connection-failure.ts";
import type { KubeFailure } from "./failure.ts";
import type { HttpAnswer, HttpRequest } from "./interceptor.ts";
import type { Clock } from "./runtime.ts";

/**
 * One request and its answer, as undici calls it back. Whatever happens, `answer` settles once, by the deadline at the
 * latest, and nothing is read after that.
 */
export class Exchange implements Dispatcher.DispatchHandler {
  readonly answer: Promise<HttpAnswer>;
  readonly #request: HttpRequest;
  readonly #clock: Clock;
  readonly #body = byteStore();
  #resolve: (answer: HttpAnswer) => void = () => undefined;
  #reject: (error: unknown) => void = () => undefined;
  #settled = false;
  #progress: Progress = "queued";
  #status = 0;
  #headers: IncomingHttpHeaders = {};
  #controller: Dispatcher.DispatchController | undefined;
  #lastByteMs: number;
  #cancelDeadline: () => void;
  #cancelWatchdog: () => void = () => undefined;

  constructor(request: HttpRequest, clock: Clock) {
    this.#request = request;
    this.#clock = clock;
    this.#lastByteMs = clock.monotonicMs();
    this.answer = new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
    const { signal, timeoutMs, idleMs } = request;
    this.#cancelDeadline = clock.after(timeoutMs, () =>
      this.#giveUp({ kind: "unreachable", detail: `no answer within ${seconds(timeoutMs)}` }),
    );
    if (idleMs !== undefined) this.#watch(idleMs, idleMs);
    signal.addEventListener("abort", this.#aborted, { once: true });
    if (signal.aborted) this.#aborted();
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    // Given up while it waited for a connection. Throwing makes undici drop the request and keep the connection.
    if (this.#settled) throw new Error("given up before it was sent");
    this.#controller = controller;
    this.#progress = "sent";
    this.#lastByteMs = this.#clock.monotonicMs();
  }

  onResponseStarted(): void {
    this.#progress = "answering";
  }

  onResponseStart(_controller: Dispatcher.DispatchController, status: number, headers: IncomingHttpHeaders): void {
    if (status < 200) return;
    this.#status = status;
    this.#headers = headers;
    this.#lastByteMs = this.#clock.monotonicMs();
    if (this.#streams) this.#cancelDeadline();
  }

  onResponseData(_controller: Dispatcher.DispatchController, chunk: Buffer): void {
    if (this.#settled) return;
    this.#lastByteMs = this.#clock.monotonicMs();
    const { budgets, meter, onChunk } = this.#request;
    const refusal = meter?.(chunk.length);
    const bytes = this.#body.size() + chunk.length;
    if (refusal !== undefined) this.#giveUp(refusal);
    else if (onChunk !== undefined && this.#streams) this.#pass(chunk, onChunk);
    else if (bytes > budgets["answer-bytes"]) this.#giveUp(overBudget("answer-bytes", bytes, budgets));
    else this.#body.append(chunk);
  }

  onResponseEnd(): void {
    const answer = {
      kind: "response",
      status: this.#status,
      headers: this.#headers,
      body: this.#body.bytes(),
    } as const;
    this.#settle(() => this.#resolve(answer));
  }

  onResponseError(_controller: Dispatcher.DispatchController | undefined, error: Error): void {
    // A path or header that undici will not send is our own fault, not the world's.
    if (fieldsOf(error)["code"] === "UND_ERR_INVALID_ARG") this.#settle(() => this.#reject(error));
    else this.#settle(() => this.#resolve(lossOf(error, this.#progress)));
  }

  get #streams(): boolean {
    return this.#request.onChunk !== undefined && this.#status < 300;
  }

  readonly #aborted = (): void => {
    this.#stop(() => this.#reject(this.#request.signal.reason));
  };

  #pass(chunk: Buffer, onChunk: (chunk: Buffer) => KubeFailure | undefined): void {
    try {
      const failure = onChunk(chunk);
      if (failure !== undefined) this.#giveUp(failure);
    } catch (error) {
      this.#stop(() => this.#reject(error));
    }
  }

  /** Looks again when the silence could have become too long, not after every byte. Waiting for a connection is none. */
  #watch(idleMs: number, waitMs: number): void {
    this.#cancelWatchdog = this.#clock.after(waitMs, () => {
      const quietMs = this.#progress === "queued" ? 0 : this.#clock.monotonicMs() - this.#lastByteMs;
      if (quietMs >= idleMs) this.#giveUp({ kind: "unreachable", detail: `no bytes for ${seconds(idleMs)}` });
      else this.#watch(idleMs, idleMs - quietMs);
    });
  }

  #giveUp(failure: KubeFailure): void {
    this.#stop(() => this.#resolve({ kind: "lost", failure, repeat: "never" }));
  }

  /** Ends it from our side; the rest of the answer is unread, so the connection goes with it. */
  #stop(settle: () => void): void {
    if (this.#settled) return;
    this.#settle(settle);
    this.#controller?.abort(new Error("given up"));
  }

  #settle(settle: () => void): void {
    if (this.#settled) return;
    this.#settled = true;
    this.#cancelDeadline();
    this.#cancelWatchdog();
    this.#request.signal.removeEventListener("abort", this.#aborted);
    settle();
  }
}

const seconds = (ms: number): string => `${Math.max(1, Math.round(ms / 100)) / 10} s`;

// What the production transport does about time, for requests that never reach it: a simulated server, or a fault in
// front of one, that does not answer must cost the caller what a real one costs.

import type { HttpAnswer, HttpRequest, Interceptor, Send } from "../kube/interceptor.ts";
import type { Clock } from "../kube/runtime.ts";

/** Ends a request at its deadline, and a stream after its longest silence. It stands before faults and servers. */
export function deadlines(clock: Pick<Clock, "after" | "monotonicMs">): Interceptor {
  return (request, next) =>
    new Promise((resolve, reject) => new Attempt(clock, request, { resolve, reject }).run(next));
}

/** Why a request ends that nobody waits for any more. */
export const givenUp = new DOMException("given up", "AbortError");

type Settle = { readonly resolve: (answer: HttpAnswer) => void; readonly reject: (reason: unknown) => void };

class Attempt {
  readonly #clock: Pick<Clock, "after" | "monotonicMs">;
  readonly #request: HttpRequest;
  readonly #settle: Settle;
  readonly #inner = new AbortController();
  #isOver = false;
  #lastByteMs: number;
  #callOff: () => void = () => undefined;

  constructor(clock: Pick<Clock, "after" | "monotonicMs">, request: HttpRequest, settle: Settle) {
    this.#clock = clock;
    this.#request = request;
    this.#settle = settle;
    this.#lastByteMs = clock.monotonicMs();
  }

  run(next: Send): void {
    const { signal, onChunk, timeoutMs, idleMs } = this.#request;
    signal.addEventListener("abort", this.#aborted, { once: true });
    if (signal.aborted) this.#aborted();
    // The headers of a stream are there as soon as it is answered, so only silence counts.
    if (onChunk === undefined)
      this.#callOff = this.#clock.after(timeoutMs, () => this.#give(timeoutMs, "no answer within"));
    else if (idleMs !== undefined) this.#watch(idleMs, idleMs);
    const heard = (chunk: Buffer): ReturnType<NonNullable<typeof onChunk>> => {
      this.#lastByteMs = this.#clock.monotonicMs();
      return this.#isOver ? undefined : onChunk?.(chunk);
    };
    const inner = {
      ...this.#request,
      signal: this.#inner.signal,
      ...(onChunk === undefined ? {} : { onChunk: heard }),
    };
    next(inner).then(
      (answer) => this.#end(() => this.#settle.resolve(answer)),
      (reason: unknown) => this.#end(() => this.#settle.reject(reason)),
    );
  }

  readonly #aborted = (): void => {
    this.#end(() => this.#settle.reject(this.#request.signal.reason));
    this.#inner.abort(givenUp);
  };

  #watch(idleMs: number, waitMs: number): void {
    this.#callOff = this.#clock.after(waitMs, () => {
      const quietMs = this.#clock.monotonicMs() - this.#lastByteMs;
      if (quietMs >= idleMs) this.#give(idleMs, "no bytes for");
      else this.#watch(idleMs, idleMs - quietMs);
    });
  }

  #give(ms: number, what: string): void {
    const failure = { kind: "unreachable", detail: `${what} ${Math.round(ms / 100) / 10} s` } as const;
    this.#end(() => this.#settle.resolve({ kind: "lost", failure, repeat: "never" }));
    this.#inner.abort(givenUp);
  }

  #end(settle: () => void): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#callOff();
    this.#request.signal.removeEventListener("abort", this.#aborted);
    settle();
  }
}

import type { Clock } from "../../src/kube/runtime.ts";

type Timer = { readonly atMs: number; readonly order: number; readonly run: () => void };

/** Time that passes only when it is told to, with every timer run in order and everything that follows from it. */
export class VirtualClock implements Clock {
  #elapsedMs = 0;
  #wallMs: number;
  #order = 0;
  readonly #timers = new Set<Timer>();

  constructor(wallMs = Date.UTC(2026, 10, 15, 12)) {
    this.#wallMs = wallMs;
  }

  readonly nowMs = (): number => this.#wallMs + this.#elapsedMs;

  readonly monotonicMs = (): number => this.#elapsedMs;

  readonly after = (ms: number, run: () => void): (() => void) => {
    this.#order += 1;
    const timer = { atMs: this.#elapsedMs + Math.max(0, ms), order: this.#order, run };
    this.#timers.add(timer);
    return () => this.#timers.delete(timer);
  };

  readonly sleep = (ms: number, signal?: AbortSignal): Promise<void> =>
    new Promise((resolve, reject) => {
      if (signal?.aborted) {
        reject(signal.reason);
        return;
      }
      const end = (): void => {
        callOff();
        reject(signal?.reason);
      };
      const callOff = this.after(ms, () => {
        signal?.removeEventListener("abort", end);
        resolve();
      });
      signal?.addEventListener("abort", end, { once: true });
    });

  /** How many timers are still to run. */
  get pending(): number {
    return this.#timers.size;
  }

  /** Moves the wall clock alone, as NTP or an administrator does. */
  jump(ms: number): void {
    this.#wallMs += ms;
  }

  /** Lets time pass; whatever a timer sets going runs to its end before the next one. */
  async advance(ms: number): Promise<void> {
    const untilMs = this.#elapsedMs + ms;
    await settled();
    for (let timer = this.#next(untilMs); timer !== undefined; timer = this.#next(untilMs)) {
      this.#timers.delete(timer);
      this.#elapsedMs = timer.atMs;
      timer.run();
      await settled();
    }
    this.#elapsedMs = untilMs;
  }

  #next(untilMs: number): Timer | undefined {
    let first: Timer | undefined;
    for (const timer of this.#timers) {
      if (timer.atMs > untilMs) continue;
      if (first === undefined || timer.atMs < first.atMs || (timer.atMs === first.atMs && timer.order < first.order))
        first = timer;
    }
    return first;
  }
}

/** Lets every promise that can settle do so, without time passing. */
export const settled = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

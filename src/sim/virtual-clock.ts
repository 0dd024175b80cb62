import { type Clock, sleepWith } from "../kube/runtime.ts";

/** More than anything of ours sets off in one step; without a limit a loop would keep time from passing at all. */
const timersMax = 100_000;

type Timer = { readonly atMs: number; readonly order: number; run: (() => void) | undefined };

/** Time that passes only when it is told to, with every timer run in order and everything that follows from it. */
export class VirtualClock implements Clock {
  #elapsedMs = 0;
  #wallMs: number;
  #order = 0;
  #pending = 0;
  /** A heap by time, then by order; what was called off stays in it, without anything to run, until its time comes. */
  readonly #timers: Timer[] = [];

  constructor(wallMs = Date.UTC(2026, 10, 15, 12)) {
    this.#wallMs = wallMs;
  }

  readonly nowMs = (): number => this.#wallMs + this.#elapsedMs;

  readonly monotonicMs = (): number => this.#elapsedMs;

  readonly after = (ms: number, run: () => void): (() => void) => {
    this.#order += 1;
    this.#pending += 1;
    const timer: Timer = { atMs: this.#elapsedMs + Math.max(0, ms), order: this.#order, run };
    this.#push(timer);
    return () => {
      if (timer.run !== undefined) this.#pending -= 1;
      timer.run = undefined;
    };
  };

  readonly sleep = (ms: number, signal?: AbortSignal): Promise<void> => sleepWith(this.after, ms, signal);

  /** How many timers are still to run. */
  get pending(): number {
    return this.#pending;
  }

  /** Moves the wall clock alone, as NTP or an administrator does. */
  jump(ms: number): void {
    this.#wallMs += ms;
  }

  /** Time that passes while the process is at something: timers that fall due meanwhile run late. */
  spend(ms: number): void {
    this.#elapsedMs += ms;
  }

  /** Lets time pass; whatever a timer sets going runs to its end before the next one. */
  async advance(ms: number): Promise<void> {
    const untilMs = this.#elapsedMs + ms;
    let ran = 0;
    await settled();
    for (let timer = this.#pop(untilMs); timer !== undefined; timer = this.#pop(untilMs)) {
      const { run } = timer;
      if (run === undefined) continue;
      timer.run = undefined;
      this.#pending -= 1;
      ran += 1;
      if (ran > timersMax) throw new Error(`more than ${timersMax} timers in ${ms} ms: somebody asks again and again`);
      this.#elapsedMs = Math.max(this.#elapsedMs, timer.atMs);
      run();
      await settled();
    }
    this.#elapsedMs = Math.max(this.#elapsedMs, untilMs);
  }

  #push(timer: Timer): void {
    const heap = this.#timers;
    let at = heap.length;
    heap.push(timer);
    while (at > 0) {
      const parent = (at - 1) >> 1;
      const above = heap[parent];
      if (above === undefined || isBefore(above, timer)) break;
      heap[at] = above;
      at = parent;
    }
    heap[at] = timer;
  }

  /** The next timer, unless it is for later. */
  #pop(untilMs: number): Timer | undefined {
    const heap = this.#timers;
    const [first] = heap;
    if (first === undefined || first.atMs > untilMs) return undefined;
    const last = heap.pop();
    if (last === undefined || heap.length === 0) return first;
    let at = 0;
    for (;;) {
      const left = 2 * at + 1;
      const [a, b] = [heap[left], heap[left + 1]];
      if (a === undefined) break;
      const isRight = b !== undefined && isBefore(b, a);
      const child = isRight ? b : a;
      if (isBefore(last, child)) break;
      heap[at] = child;
      at = isRight ? left + 1 : left;
    }
    heap[at] = last;
    return first;
  }
}

const isBefore = (a: Timer, b: Timer): boolean => a.atMs < b.atMs || (a.atMs === b.atMs && a.order < b.order);

/** Lets every promise that can settle do so, without time passing. */
export const settled = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

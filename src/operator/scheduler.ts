// A work queue of keys. A key carries no content: a thousand changes of one cluster are one run over its newest state.
//
//             add             due          slot free
//   (nothing) ───► waiting ───────► ready ──────────► running ───► waiting, if asked for again, by itself or meanwhile
//                                                             └──► resting until its window is over, then forgotten

import { invariant } from "../core/assert.ts";
import type { Runtime } from "../kube/runtime.ts";

/** What a run asks for: nothing, another run as if added now, one after a back-off, or one in so many milliseconds. */
export type Outcome = { readonly again?: "now" | "backoff" | number };

/** The queue a key stands in, and how many keys of it may run at once. */
export type Lane = { readonly lane: string; readonly max: number };

/** When an added key is due: in `delayMs`, and not before `gatherMs` have passed since its last run began. */
export type AddOptions = { readonly delayMs?: number; readonly gatherMs?: number };

/** Sees every run; `queuedMs` is how long the key was due before a slot was free. */
export type SchedulerObserver = {
  readonly onStart: (key: string, queuedMs: number) => void;
  readonly onEnd: (key: string, ms: number, outcome: Outcome) => void;
};

/** What a scheduler needs. A `run` that throws is a fault of ours: it goes to `onError`, and counts as a back-off. */
export type SchedulerOptions = {
  readonly run: (key: string, signal: AbortSignal) => Promise<Outcome>;
  readonly runtime: Pick<Runtime, "clock" | "random">;
  /** The scheduler's lifetime: once aborted nothing starts any more. */
  readonly signal: AbortSignal;
  readonly onError: (key: string, error: unknown) => void;
  /** How many keys run at once, over all lanes; beyond it a lane in which nothing runs may still start one key. */
  readonly concurrency?: number;
  /** How long after the start of a run further adds of its key are gathered. */
  readonly gatherMs?: number;
  readonly backoff?: { readonly firstMs: number; readonly maxMs: number };
  /** How many keys are held at most; a new one beyond is dropped. */
  readonly keysMax?: number;
  /** Keeps keys that may hang apart from the rest: however many of one lane hang, every other lane goes on. */
  readonly lanes?: (key: string) => Lane;
  readonly observe?: SchedulerObserver;
};

/** Runs keys: never one key twice at once, and after every add a run that starts later than it. */
export type Scheduler = {
  /**
   * Asks for a run. The earliest due time wins. An idle key runs at once; one whose last run began less than `gatherMs`
   * ago waits for that window to end. A key in back-off runs no sooner than one second after its last run ended: a
   * change of the world may have healed it, but a busy world must not make a broken cluster be asked without pause.
   */
  add(key: string, options?: AddOptions): void;
  /** Forgets a key. If it runs, the run ends as it will and its outcome counts for nothing. */
  remove(key: string): void;
  /** How many keys are held: delayed, due or running. */
  size(): number;
  /** How many keys are due and wait for a free slot. */
  due(): number;
  /** Ends when nothing is running or due. Keys that wait for a later time do not count. */
  idle(): Promise<void>;
  /** Takes no more keys, drops those that wait and lets the running ones end; false if some still ran after `timeoutMs`. */
  drain(timeoutMs: number): Promise<boolean>;
};

/** Makes a scheduler that lives as long as its signal. */
export function createScheduler(options: SchedulerOptions): Scheduler {
  return new WorkQueue(options);
}

/** No window is shorter: a key that keeps asking for itself must leave room for timers and sockets. */
const gatherMsMin = 1;
const healedAfterMs = 1_000;

type Phase =
  | { readonly at: "resting"; readonly cancel: () => void }
  | { readonly at: "waiting"; readonly dueMs: number; readonly cancel: () => void }
  | { readonly at: "ready"; readonly sinceMs: number; readonly turn: number }
  | { readonly at: "running"; readonly wantedMs: number; readonly disowned: boolean } // Infinity: not wanted again
  | { readonly at: "gone" };

type Entry = {
  readonly key: string;
  readonly lane: LaneQueue;
  phase: Phase;
  startedMs: number;
  endedMs: number;
  failures: number;
  rememberMs: number;
};

class WorkQueue implements Scheduler {
  readonly #options: SchedulerOptions;
  readonly #concurrency: number;
  readonly #gatherMs: number;
  readonly #backoff: { readonly firstMs: number; readonly maxMs: number };
  readonly #keysMax: number;
  readonly #entries = new Map<string, Entry>();
  readonly #lanes = new Map<string, LaneQueue>();
  #running = 0;
  #resting = 0;
  #turns = 0;
  #isWoken = false;
  #isClosed = false;
  #isFullSaid = false;
  #idleWaiters: (() => void)[] = [];

  constructor(options: SchedulerOptions) {
    this.#options = options;
    this.#concurrency = options.concurrency ?? 16;
    this.#gatherMs = options.gatherMs ?? 250;
    this.#backoff = options.backoff ?? { firstMs: 50, maxMs: 30_000 };
    this.#keysMax = options.keysMax ?? 100_000;
    invariant(this.#concurrency >= 1, "a scheduler has at least one slot");
    if (options.signal.aborted) this.#close();
    else options.signal.addEventListener("abort", this.#close, { once: true });
  }

  add(key: string, { delayMs = 0, gatherMs = this.#gatherMs }: AddOptions = {}): void {
    invariant(Number.isFinite(delayMs) && Number.isFinite(gatherMs), "a key is added for some time to come");
    if (this.#isClosed) return;
    const entry = this.#entries.get(key) ?? this.#admit(key);
    if (entry === undefined) return;
    entry.rememberMs = Math.max(entry.rememberMs, gatherMs);
    const { phase } = entry;
    const wantedMs = this.#earliest(entry, delayMs, gatherMs);
    if (phase.at === "running") entry.phase = { ...phase, wantedMs: Math.min(wantedMs, phase.wantedMs) };
    if (phase.at !== "resting" && phase.at !== "waiting") return;
    const dueMs = entry.failures === 0 ? wantedMs : Math.max(wantedMs, entry.endedMs + healedAfterMs);
    if (phase.at === "waiting" && phase.dueMs <= dueMs) return;
    this.#leave(entry);
    this.#schedule(entry, dueMs);
  }

  remove(key: string): void {
    const entry = this.#entries.get(key);
    if (entry === undefined) return;
    if (entry.phase.at === "running") entry.phase = { at: "running", wantedMs: Infinity, disowned: true };
    else this.#forget(entry);
    this.#settle();
  }

  size(): number {
    return this.#entries.size - this.#resting;
  }

  due(): number {
    let count = 0;
    for (const lane of this.#lanes.values()) count += lane.size;
    return count;
  }

  idle(): Promise<void> {
    if (this.#isIdle()) return Promise.resolve();
    return new Promise((resolve) => this.#idleWaiters.push(resolve));
  }

  async drain(timeoutMs: number): Promise<boolean> {
    this.#close();
    return await new Promise((resolve) => {
      const cancel = this.#options.runtime.clock.after(timeoutMs, () => resolve(this.#isIdle()));
      void this.idle().then(() => {
        cancel();
        resolve(true);
      });
    });
  }

  #admit(key: string): Entry | undefined {
    if (this.#entries.size >= this.#keysMax) {
      if (!this.#isFullSaid) this.#options.onError(key, new Error(`the queue is full: it holds ${this.#keysMax} keys`));
      this.#isFullSaid = true;
      return undefined;
    }
    const { lane, max } = this.#options.lanes?.(key) ?? { lane: "", max: this.#concurrency };
    invariant(max >= 1, "a lane has at least one slot");
    const queue = this.#lanes.get(lane) ?? new LaneQueue();
    queue.max = max;
    this.#lanes.set(lane, queue);
    const phase: Phase = { at: "resting", cancel: () => {} };
    this.#resting += 1;
    const times = { startedMs: -Infinity, endedMs: -Infinity, rememberMs: this.#gatherMs };
    const entry: Entry = { key, lane: queue, phase, failures: 0, ...times };
    this.#entries.set(key, entry);
    return entry;
  }

  #earliest(entry: Entry, delayMs: number, gatherMs: number): number {
    const nowMs = this.#options.runtime.clock.monotonicMs();
    return Math.max(nowMs + Math.max(0, delayMs), entry.startedMs + Math.max(gatherMsMin, gatherMs));
  }

  #schedule(entry: Entry, dueMs: number): void {
    const { clock } = this.#options.runtime;
    const waitMs = dueMs - clock.monotonicMs();
    if (waitMs <= 0) this.#makeReady(entry);
    else entry.phase = { at: "waiting", dueMs, cancel: clock.after(waitMs, () => this.#makeReady(entry)) };
  }

  #makeReady(entry: Entry): void {
    this.#turns += 1;
    entry.phase = { at: "ready", sinceMs: this.#options.runtime.clock.monotonicMs(), turn: this.#turns };
    entry.lane.push(entry);
    if (this.#isWoken) return;
    this.#isWoken = true;
    queueMicrotask(() => {
      this.#isWoken = false;
      this.#startDue();
    });
  }

  #startDue(): void {
    for (let entry = this.#next(); entry !== undefined; entry = this.#next()) void this.#execute(entry);
    this.#settle();
  }

  /** The key that has been due longest, among the lanes with a free slot. */
  #next(): Entry | undefined {
    let oldest: { readonly lane: LaneQueue; readonly turn: number } | undefined;
    for (const lane of this.#lanes.values()) {
      const isFree = lane.running < lane.max && (this.#running < this.#concurrency || lane.running === 0);
      const turn = isFree ? lane.firstTurn() : undefined;
      if (turn !== undefined && (oldest === undefined || turn < oldest.turn)) oldest = { lane, turn };
    }
    return oldest?.lane.shift();
  }

  async #execute(entry: Entry): Promise<void> {
    const { run, runtime, signal, observe, onError } = this.#options;
    const startedMs = runtime.clock.monotonicMs();
    const queuedMs = entry.phase.at === "ready" ? startedMs - entry.phase.sinceMs : 0;
    entry.phase = { at: "running", wantedMs: Infinity, disowned: false };
    entry.startedMs = startedMs;
    entry.lane.running += 1;
    this.#running += 1;
    let outcome: Outcome;
    try {
      observe?.onStart(entry.key, queuedMs);
      outcome = await run(entry.key, signal);
      invariant(typeof outcome.again !== "number" || Number.isFinite(outcome.again), "an outcome names a real delay");
    } catch (error) {
      outcome = { again: "backoff" };
      if (!isShutdown(error, signal)) onError(entry.key, error);
    }
    entry.endedMs = runtime.clock.monotonicMs();
    entry.lane.running -= 1;
    this.#running -= 1;
    observe?.onEnd(entry.key, entry.endedMs - startedMs, outcome);
    this.#finish(entry, outcome);
    this.#startDue();
  }

  #finish(entry: Entry, outcome: Outcome): void {
    const { phase } = entry;
    invariant(phase.at === "running", "a run ends once");
    const again = phase.disowned ? undefined : outcome.again;
    let dueMs = phase.wantedMs;
    if (again === "backoff") {
      dueMs = Math.min(entry.endedMs + this.#backoffMs(entry), Math.max(dueMs, entry.endedMs + healedAfterMs));
      entry.failures += 1;
    } else {
      entry.failures = 0;
      if (again !== undefined)
        dueMs = Math.min(dueMs, this.#earliest(entry, again === "now" ? 0 : again, this.#gatherMs));
    }
    if (this.#isClosed) this.#forget(entry);
    else if (dueMs < Infinity) this.#schedule(entry, dueMs);
    else this.#rest(entry);
  }

  #backoffMs({ failures }: Entry): number {
    const wholeMs = Math.min(this.#backoff.maxMs, this.#backoff.firstMs * 2 ** failures);
    return wholeMs * (0.5 + this.#options.runtime.random() / 2);
  }

  #rest(entry: Entry): void {
    const { clock } = this.#options.runtime;
    const leftMs = entry.startedMs + entry.rememberMs - clock.monotonicMs();
    if (leftMs <= 0) return this.#forget(entry);
    entry.phase = { at: "resting", cancel: clock.after(leftMs, () => this.#forget(entry)) };
    this.#resting += 1;
  }

  #forget(entry: Entry): void {
    this.#leave(entry);
    entry.phase = { at: "gone" };
    this.#entries.delete(entry.key);
    // Half empty, not just below full: a queue at its limit would otherwise complain about every other key.
    if (this.#entries.size <= this.#keysMax / 2) this.#isFullSaid = false;
  }

  /** Undoes what the present phase holds: a timer, a place in the queue. */
  #leave(entry: Entry): void {
    const { phase, lane } = entry;
    if (phase.at === "ready") lane.size -= 1;
    if (phase.at === "resting") this.#resting -= 1;
    if (phase.at === "resting" || phase.at === "waiting") phase.cancel();
  }

  #close = (): void => {
    this.#isClosed = true;
    this.#options.signal.removeEventListener("abort", this.#close);
    for (const entry of this.#entries.values()) if (entry.phase.at !== "running") this.#forget(entry);
    this.#settle();
  };

  #isIdle(): boolean {
    return this.#running === 0 && this.due() === 0;
  }

  #settle(): void {
    if (this.#idleWaiters.length === 0 || !this.#isIdle()) return;
    const waiters = this.#idleWaiters;
    this.#idleWaiters = [];
    for (const resolve of waiters) resolve();
  }
}

/** First in, first out. Keys that were removed stay in the list until they are met or swept, and do not count. */
class LaneQueue {
  max = 1;
  running = 0;
  size = 0;
  #entries: Entry[] = [];
  #head = 0;

  push(entry: Entry): void {
    if (this.#entries.length > 2 * this.size + 64) {
      this.#entries = this.#entries.slice(this.#head).filter(({ phase }) => phase.at === "ready");
      this.#head = 0;
    }
    this.#entries.push(entry);
    this.size += 1;
  }

  /** When its first key became due, as a count over all lanes. */
  firstTurn(): number | undefined {
    for (; this.#head < this.#entries.length; this.#head += 1) {
      const phase = this.#entries[this.#head]?.phase;
      if (phase?.at === "ready") return phase.turn;
    }
    return undefined;
  }

  shift(): Entry | undefined {
    if (this.firstTurn() === undefined) return undefined;
    const entry = this.#entries[this.#head];
    this.#head += 1;
    this.size -= 1;
    return entry;
  }
}

function isShutdown(error: unknown, signal: AbortSignal): boolean {
  return signal.aborted && (error === signal.reason || (error instanceof Error && error.name === "AbortError"));
}

// kg's one goroutine: events wait in line, each is taken alone, and none while an apply goes on.

import type { Clock } from "../../kube/runtime.ts";

/** What kg is at: a change of a Peer or a Node, what it had listed, or its check-in. */
export type Cause = "Peer" | "Node" | "list" | "check-in";

/** What a line is made of. */
export type LineOptions = {
  readonly clock: Pick<Clock, "nowMs" | "after">;
  /** How long an apply takes; with 0 what waits together is taken together. */
  readonly applyMs: number;
  /** Applies, if an event since the last time asked for it. */
  readonly flush: () => void;
};

type Event = { readonly cause: Cause; readonly take: () => void };

/** The events of an agent that it has not taken yet. */
export class EventLine {
  /** What the event taken last was. */
  cause: Cause = "list";
  readonly #options: LineOptions;
  // kg takes from two channels and two timers whatever its runtime picks; here check-ins come first and Peers last.
  #checkIn: Event | undefined;
  #nodes: Event[] = [];
  #peers: Event[] = [];
  #isRunning = false;
  #freeAtMs = 0;
  /** A run is to come: at once, or when the apply under way is over. */
  #callOff: (() => void) | undefined;

  constructor(options: LineOptions) {
    this.#options = options;
  }

  get hasNodes(): boolean {
    return this.#nodes.length > 0;
  }

  /** Adds an event of a Node; it waits for `wake` or `run`. */
  addNode(take: () => void): void {
    this.#nodes.push({ cause: "Node", take });
  }

  /** Adds an event of a Peer; it waits for `wake` or `run`. */
  addPeer(cause: "Peer" | "list", take: () => void): void {
    this.#peers.push({ cause, take });
  }

  /** A check-in is due: now, or when the apply under way is over. */
  checkIn(take: () => void): void {
    this.#checkIn = { cause: "check-in", take };
    this.run();
  }

  /** Events are taken after the request that made them, never inside it. */
  wake(): void {
    if (this.#isRunning || this.#callOff !== undefined) return;
    this.#callOff = this.#options.clock.after(this.#busyMs(), () => {
      this.#callOff = undefined;
      this.run();
    });
  }

  /** Takes what can be taken now. */
  run(): void {
    const { applyMs, flush } = this.#options;
    this.#isRunning = true;
    try {
      for (let event = this.#next(); event !== undefined; event = this.#next()) {
        this.cause = event.cause;
        event.take();
        if (applyMs > 0 || this.#isEmpty()) flush();
      }
    } finally {
      this.#isRunning = false;
    }
    if (!this.#isEmpty()) this.wake();
  }

  /** An apply begins. */
  occupy(): void {
    this.#freeAtMs = this.#options.clock.nowMs() + this.#options.applyMs;
  }

  /** The process is gone, and so are its channels. */
  clear(): void {
    this.#callOff?.();
    this.#callOff = undefined;
    this.#checkIn = undefined;
    this.#nodes = [];
    this.#peers = [];
    this.#freeAtMs = 0;
  }

  #next(): Event | undefined {
    if (this.#busyMs() > 0) return undefined;
    const checkIn = this.#checkIn;
    this.#checkIn = undefined;
    return checkIn ?? this.#nodes.shift() ?? this.#peers.shift();
  }

  #isEmpty(): boolean {
    return this.#checkIn === undefined && this.#nodes.length === 0 && this.#peers.length === 0;
  }

  /** How long the apply under way still takes; a wall clock that is set back makes it no longer. */
  #busyMs(): number {
    const { applyMs, clock } = this.#options;
    return Math.min(applyMs, Math.max(0, this.#freeAtMs - clock.nowMs()));
  }
}

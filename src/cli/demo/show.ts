// The demo as it goes: looks at the fleet again and again, says what changed, and waits for what must come of a happening.

import type { Clock } from "../../kube/runtime.ts";
import type { After, Happening } from "./happenings.ts";
import type { Line } from "./picture.ts";
import type { DemoState } from "./state.ts";
import { type Done, tellMesh, tellWrites } from "./telling.ts";

/** How often each action was written. */
export type Writes = {
  readonly create: number;
  readonly update: number;
  readonly delete: number;
  readonly touch: number;
};

/** What came of something that happened. */
export type Ended = {
  readonly what: string;
  /** What Causeway did and said meanwhile, and what came of it. */
  readonly said: readonly string[];
  readonly operations: Writes;
  readonly seconds: number;
  /** What was not reached in time; nothing, if everything was. */
  readonly missing: readonly string[];
};

/** What a show needs. */
export type ShowOptions = {
  readonly clock: Clock;
  readonly look: () => DemoState;
  readonly onLine: (line: Line) => void;
  /** After every look. */
  readonly onLook: (state: DemoState) => void;
  /** How long a happening may take. */
  readonly timeoutMs: number;
  /** Writes that come within that time are one sentence. */
  readonly gatherMs: number;
};

/** Something to wait for, with or without somebody who caused it. */
export type Awaited = Pick<Happening, "what" | "missing" | "outcome">;

type Waiting = {
  readonly awaited: Awaited;
  readonly before: DemoState;
  readonly sinceMs: number;
  readonly done: Done[];
  readonly said: string[];
  readonly end: (ended: Ended) => void;
};

/** The sentence is due earlier when nothing more comes. */
const quietShare = 0.1;
const pauseMs = { min: 80, max: 2_000 };
/** Looking may take that share of the time. */
const lookShare = 0.2;

/** One run of the demo. */
export class Show {
  state: DemoState;
  readonly #options: ShowOptions;
  readonly #startMs: number;
  readonly #writes = { create: 0, update: 0, delete: 0, touch: 0 };
  #untold: Done[] = [];
  #untoldSinceMs = 0;
  #lastMs = 0;
  #waiting: readonly Waiting[] = [];

  constructor(options: ShowOptions) {
    this.#options = options;
    this.#startMs = options.clock.monotonicMs();
    this.state = options.look();
  }

  /** Since the show began. */
  seconds(): number {
    return (this.#options.clock.monotonicMs() - this.#startMs) / 1_000;
  }

  writes(): Writes {
    return { ...this.#writes };
  }

  /** Hears of a write of the operator. */
  readonly heard = (done: Done): void => {
    const nowMs = this.#options.clock.monotonicMs();
    if (this.#untold.length === 0) this.#untoldSinceMs = nowMs;
    this.#lastMs = nowMs;
    this.#untold.push(done);
    if (isAction(done.action)) this.#writes[done.action] += 1;
    for (const { done: own } of this.#waiting) own.push(done);
  };

  say(kind: Line["kind"], text: string): void {
    this.#options.onLine({ seconds: this.seconds(), kind, text });
    if (kind !== "event") for (const { said } of this.#waiting) said.push(text);
  }

  /** Says what happened, and answers when it came to what it must come to, or when time is up. `before` is the state then. */
  follow(awaited: Awaited, before: DemoState): Promise<Ended> {
    this.say("event", awaited.what);
    return new Promise((end) => {
      const sinceMs = this.#options.clock.monotonicMs();
      this.#waiting = [...this.#waiting, { awaited, before, sinceMs, done: [], said: [], end }];
    });
  }

  /** Goes on until the signal aborts. */
  async run(signal: AbortSignal): Promise<void> {
    const { clock } = this.#options;
    while (!signal.aborted) {
      const startMs = clock.monotonicMs();
      this.#tick();
      const costMs = (clock.monotonicMs() - startMs) / lookShare;
      await clock.sleep(Math.min(pauseMs.max, Math.max(pauseMs.min, costMs)), signal).catch(() => undefined);
    }
  }

  #tick(): void {
    const before = this.state;
    this.state = this.#options.look();
    this.#tellWrites();
    for (const text of tellMesh(before.mesh, this.state.mesh)) this.say("did", text);
    if (this.#untold.length === 0) for (const waiting of this.#waiting) this.#check(waiting);
    this.#options.onLook(this.state);
  }

  #tellWrites(): void {
    if (this.#untold.length === 0) return;
    const { clock, gatherMs } = this.#options;
    const nowMs = clock.monotonicMs();
    if (nowMs - this.#lastMs < gatherMs * quietShare && nowMs - this.#untoldSinceMs < gatherMs) return;
    const told = this.#untold;
    this.#untold = [];
    for (const text of tellWrites(told)) this.say("did", text);
  }

  #check(waiting: Waiting): void {
    const { clock, timeoutMs } = this.#options;
    const { awaited, before, sinceMs, done, said } = waiting;
    const ms = clock.monotonicMs() - sinceMs;
    const after: After = { before, now: this.state, done, seconds: ms / 1_000 };
    const missing = awaited.missing(after);
    const isLate = ms > timeoutMs;
    if (missing.length > 0 && !isLate) return;
    const text =
      missing.length === 0
        ? awaited.outcome(after)
        : `Not there after ${Math.round(ms / 1_000)} s: ${missing.join("; ")}.`;
    this.say(missing.length === 0 ? "end" : "did", text);
    this.#waiting = this.#waiting.filter((each) => each !== waiting);
    waiting.end({ what: awaited.what, said, operations: countWrites(done), seconds: after.seconds, missing });
  }
}

function countWrites(done: readonly Done[]): Writes {
  const writes = { create: 0, update: 0, delete: 0, touch: 0 };
  for (const { action } of done) if (isAction(action)) writes[action] += 1;
  return writes;
}

const isAction = (action: string): action is keyof Writes => ["create", "update", "delete", "touch"].includes(action);

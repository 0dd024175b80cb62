// Moments for writes that disturb. Kilo writes its whole device again for every Peer that changes, which ends every session
// of it. WireGuard then needs one handshake, 0.1 s, but 5 s if
//
//   one end begins two handshakes within 20 ms      writes on one target are `intervalMs` apart
//   both ends begin one within a round trip         writes on two targets that are joined are a quarter of that apart, or more
//
// A node that joins or leaves makes the agents of its own cluster write their devices, too: what follows from that change
// is as far from it as from a write.
//
// A write after a pause goes at once. Nothing here knows what is written.

import { apartMs } from "../core/pace.ts";
import type { ClusterId } from "../core/world.ts";
import type { Clock } from "../kube/runtime.ts";
import { Urgency } from "./urgency.ts";

/** The target of a write, how far apart writes on it are, and the targets whose tunnels it shares. */
export type Paced = {
  readonly target: ClusterId;
  readonly intervalMs: number;
  readonly joined: ReadonlySet<ClusterId>;
  /** When the change was seen that the write follows from; its own cluster acts on it at that moment. */
  readonly changedMs?: number | undefined;
  /** The object that cannot wait for other targets; it does if the write is part of a series or there were too many. */
  readonly urgent?: string | undefined;
};

/** A write's moment has come. Either it was made, and `done` is called when it was answered, or the turn is given back. */
export type Turn = { readonly done: () => void; readonly giveBack: () => void };

type Last = { atMs: number; isOver: boolean } & Pick<Paced, "intervalMs" | "joined">;

/** A series of writes that nothing was heard of for so many intervals is over, whatever became of it. */
const silentIntervals = 50;
/** A process that was held up makes its writes late, all at the same moment; so much is no reason to look again. */
const lateMaxMs = 5;
/** Where every moment comes too late, one is as good as another. */
const looksMax = 5;

/** Hands out the moments; one for all targets of an operator, and for as long as it lives. */
export class Pace {
  readonly #clock: Pick<Clock, "monotonicMs" | "sleep">;
  readonly #last = new Map<ClusterId, Last>();
  readonly #urgency = new Urgency();

  constructor(clock: Pick<Clock, "monotonicMs" | "sleep">) {
    this.#clock = clock;
  }

  /** Waits for the moment of the next write on a target; one that is given up costs nobody else anything. */
  async turn(paced: Paced, signal: AbortSignal): Promise<Turn> {
    signal.throwIfAborted();
    const { target, intervalMs } = paced;
    const nowMs = this.#clock.monotonicMs();
    for (const [id, { atMs, intervalMs: each }] of this.#last) {
      if (nowMs - atMs > silentIntervals * each) this.#last.delete(id);
    }
    const before = this.#last.get(target);
    const dueMs = Math.max(nowMs, (before?.atMs ?? Number.NEGATIVE_INFINITY) + intervalMs);
    // Tunnels that came up in the course of a series are that series' own work: only older ones are innocent.
    const isSeries = before?.isOver === false;
    const joined = isSeries ? before.joined : paced.joined;
    const account = paced.urgent === undefined ? undefined : `${target} ${paced.urgent}`;
    const isAlone = account !== undefined && !isSeries && this.#urgency.has(account, nowMs);
    if (account !== undefined && !isAlone) this.#urgency.note(account, nowMs, false);
    const quietMs = joined.size === 0 ? nowMs : (paced.changedMs ?? Number.NEGATIVE_INFINITY) + apartMs(intervalMs);
    const momentFrom = (fromMs: number): number =>
      isAlone ? fromMs : this.#free(Math.max(fromMs, quietMs), { target, intervalMs, joined }, isSeries);
    const turn: Last = { atMs: momentFrom(dueMs), isOver: false, intervalMs, joined };
    this.#last.set(target, turn);
    const giveBack = (): void => {
      if (before === undefined) this.#last.delete(target);
      else this.#last.set(target, { ...before, isOver: before.isOver || turn.isOver });
    };
    try {
      for (let look = 0, wakeMs = nowMs; look < looksMax; look += 1) {
        if (look > 0) turn.atMs = momentFrom(wakeMs);
        if (turn.atMs > wakeMs) await this.#clock.sleep(turn.atMs - wakeMs, signal);
        wakeMs = this.#clock.monotonicMs();
        if (wakeMs - turn.atMs <= lateMaxMs) break;
      }
    } catch (error) {
      giveBack();
      throw error;
    }
    // Somewhere between its start and its answer the write took effect: a slow answer takes from the interval, but not all.
    const done = (): void => {
      const answeredMs = this.#clock.monotonicMs();
      turn.atMs = Math.max(turn.atMs, answeredMs - intervalMs / 2);
      if (account !== undefined && isAlone) this.#urgency.note(account, answeredMs, true);
    };
    return { done, giveBack };
  }

  /** Nothing is left to write on a target: the next write begins a new series. */
  rest(target: ClusterId): void {
    const last = this.#last.get(target);
    if (last !== undefined) last.isOver = true;
  }

  /**
   * The first moment from then on that is far enough from the writes on joined targets, made or to come. In the course of
   * a series few targets are as far from each other as the interval allows: agents are not equally quick.
   */
  #free(fromMs: number, { target, intervalMs, joined }: Paced, isSeries: boolean): number {
    const others = [...this.#last].flatMap(([other, last]) =>
      other !== target && (joined.has(other) || last.joined.has(target)) ? [last] : [],
    );
    const busy = others.filter(({ isOver }) => !isOver).length + 1;
    return others
      .map((last) => ({ atMs: last.atMs, longestMs: Math.max(intervalMs, last.intervalMs) }))
      .map(({ atMs, longestMs }) => ({
        atMs,
        apart: Math.max(apartMs(longestMs), isSeries ? Math.floor(longestMs / busy) : 0),
      }))
      .sort((a, b) => a.atMs - b.atMs)
      .reduce((atMs, other) => (Math.abs(atMs - other.atMs) < other.apart ? other.atMs + other.apart : atMs), fromMs);
  }
}

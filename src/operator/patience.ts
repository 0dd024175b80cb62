// When to say something of an intent: not while first answers are awaited, and not while writes are about to be done.

import type { Member } from "../core/provider.ts";
import type { ClusterId } from "../core/world.ts";
import type { Clock } from "../kube/runtime.ts";

const settleMaxMs = 10_000;
const busyMaxMs = 2_000;
/** Writes that are kept apart take a while: how often the number of those that are left is worth a word. */
const progressMs = 5_000;

/** How long a word about each intent is held back. */
export class Patience {
  readonly #clock: Pick<Clock, "monotonicMs">;
  readonly #isSettling: (id: ClusterId) => boolean;
  readonly #settlingSinceMs = new Map<string, number>();
  /** Since when there has been something to write without a break. */
  readonly #pendingSinceMs = new Map<string, number>();

  readonly #saidMs = new Map<string, number>();

  constructor(clock: Pick<Clock, "monotonicMs">, isSettling: (id: ClusterId) => boolean) {
    this.#clock = clock;
    this.#isSettling = isSettling;
  }

  /** Whether first answers are still to come; who lets us wait for too long is reported as absent meanwhile. */
  isSettling(intent: string, members: readonly Member[]): boolean {
    if (!members.some(({ id }) => this.#isSettling(id))) {
      this.#settlingSinceMs.delete(intent);
      return false;
    }
    return this.#clock.monotonicMs() - since(this.#settlingSinceMs, intent, this.#clock) < settleMaxMs;
  }

  /** Whether there is something to write for an intent, as the last plan says. */
  note(intent: string, isPending: boolean): void {
    if (isPending) since(this.#pendingSinceMs, intent, this.#clock);
    else this.#pendingSinceMs.delete(intent);
  }

  /** Something was said of an intent. */
  said(intent: string): void {
    this.#saidMs.set(intent, this.#clock.monotonicMs());
  }

  /** How long to wait: what is being written is soon done, and then there is one thing to say instead of two. */
  busyMs(intent: string): number {
    const sinceMs = this.#pendingSinceMs.get(intent);
    if (sinceMs === undefined) return 0;
    const saidMs = this.#saidMs.get(intent) ?? Number.NEGATIVE_INFINITY;
    const dueMs = saidMs < sinceMs ? sinceMs + busyMaxMs : saidMs + progressMs;
    return Math.max(0, dueMs - this.#clock.monotonicMs());
  }

  forget(intent: string): void {
    this.#settlingSinceMs.delete(intent);
    this.#pendingSinceMs.delete(intent);
    this.#saidMs.delete(intent);
  }
}

function since(starts: Map<string, number>, intent: string, clock: Pick<Clock, "monotonicMs">): number {
  const sinceMs = starts.get(intent) ?? clock.monotonicMs();
  starts.set(intent, sinceMs);
  return sinceMs;
}

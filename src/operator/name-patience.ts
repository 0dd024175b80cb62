import type { ClusterId } from "../core/world.ts";
import type { Clock } from "../kube/runtime.ts";

/** How long a plan may wait: at once, and what comes back of that in a second. */
const allowance = {
  cluster: { maxMs: 3_000, perSecondMs: 5 },
  all: { maxMs: 3_000, perSecondMs: 50 },
};

type Purse = { leftMs: number; atMs: number };

/**
 * Whether a plan waits for names that were never asked for: without them a node would look as if it had no endpoint, and
 * its Peer would be written twice. All meshes wait together, so each cluster has little of that time, and all clusters
 * together have little more: who mentions a slow name every few seconds soon delays only what is written of itself.
 */
export class NamePatience {
  readonly #clock: Pick<Clock, "monotonicMs">;
  readonly #purses = new Map<ClusterId, Purse>();
  readonly #all: Purse;
  #waiting: readonly ClusterId[] = [];
  #lookedMs: number;

  constructor(clock: Pick<Clock, "monotonicMs">) {
    this.#clock = clock;
    this.#lookedMs = clock.monotonicMs();
    this.#all = { leftMs: allowance.all.maxMs, atMs: this.#lookedMs };
  }

  /** Whether to wait a little longer for the first answers that these clusters still need. */
  isWaiting(unsettled: readonly ClusterId[]): boolean {
    const nowMs = this.#clock.monotonicMs();
    const spentMs = this.#waiting.length === 0 ? 0 : nowMs - this.#lookedMs;
    this.#lookedMs = nowMs;
    change(this.#all, spentMs, nowMs, allowance.all);
    for (const id of this.#waiting) change(this.#purseOf(id, nowMs), spentMs, nowMs, allowance.cluster);
    for (const [id, purse] of this.#purses) {
      change(purse, 0, nowMs, allowance.cluster);
      if (purse.leftMs >= allowance.cluster.maxMs) this.#purses.delete(id);
    }
    this.#waiting = this.#all.leftMs > 0 ? unsettled.filter((id) => this.#purseOf(id, nowMs).leftMs > 0) : [];
    return this.#waiting.length > 0;
  }

  #purseOf(id: ClusterId, nowMs: number): Purse {
    const purse = this.#purses.get(id) ?? { leftMs: allowance.cluster.maxMs, atMs: nowMs };
    this.#purses.set(id, purse);
    return purse;
  }
}

function change(purse: Purse, spentMs: number, nowMs: number, { maxMs, perSecondMs }: typeof allowance.all): void {
  const earnedMs = ((nowMs - purse.atMs) * perSecondMs) / 1_000;
  purse.leftMs = Math.min(maxMs, purse.leftMs + earnedMs) - spentMs; // a debt is paid off first
  purse.atMs = nowMs;
}

// How often the whole fleet is planned.

/** What follows a change within this time is planned together with it, however little planning takes. */
export const gatherMsMin = 20;

const factor = 5;
const creditMs = 500;
const usualMsMax = 2_000;

/**
 * Planning may take a fifth of a core in the long run. What it took beyond is a debt that time pays off; only a debt above
 * the credit makes the next change wait, so that a lone one never does. No change waits for longer than 2 s, or than five
 * times what the last plan took where that is more: one cluster with very many objects must not take the whole core.
 */
export class PlanPace {
  #gatherMs = gatherMsMin;
  #debtMs = 0;
  #startedMs = 0;

  /** For how long after the last plan began further changes are gathered. */
  get gatherMs(): number {
    return this.#gatherMs;
  }

  /** A plan was made, and everything that is done at once with it. */
  took(startedMs: number, endedMs: number): void {
    const owedMs = factor * (endedMs - startedMs);
    this.#debtMs = Math.max(0, this.#debtMs - (startedMs - this.#startedMs)) + owedMs;
    this.#startedMs = startedMs;
    this.#gatherMs = Math.min(Math.max(usualMsMax, owedMs), Math.max(gatherMsMin, this.#debtMs - creditMs));
  }
}

import { expect } from "vitest";

const seed = process.env["PROPERTY_SEED"] ?? "20261115";

/**
 * How often each property is tried, and from where: the gate tries the same worlds every time, so that a change is judged
 * and not the dice. `PROPERTY_SEED=random PROPERTY_RUNS=20000` explores; fast-check prints the seed of a failure.
 */
export const runs = {
  numRuns: Number(process.env["PROPERTY_RUNS"] ?? 2_000),
  ...(seed === "random" ? {} : { seed: Number(seed) }),
};

/** Counts what a property met, so that one which never met anything fails. */
export class Tally {
  readonly #counts = new Map<string, number>();

  /** Notes that one run met something. */
  saw(what: string, met = true): void {
    if (met) this.#counts.set(what, (this.#counts.get(what) ?? 0) + 1);
  }

  /** Fails unless each thing was met in at least that share of the runs. */
  atLeast(shares: Readonly<Record<string, number>>): void {
    for (const [what, share] of Object.entries(shares)) {
      const found = (this.#counts.get(what) ?? 0) / runs.numRuns;
      expect(found, `share of runs with ${what}`).toBeGreaterThanOrEqual(share);
    }
  }
}

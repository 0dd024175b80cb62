import { setTimeout as sleep } from "node:timers/promises";

/** What a scenario asked for and did not get; its message is the `why` of a FAIL line. */
export class Unmet extends Error {}

/** The same, where a fault of the product is known to be the reason. */
export class KnownFault extends Unmet {}

/** Makes demands that a known fault breaks: only if these fail has the scenario failed by that fault. */
export async function despiteFault<T>(demands: () => Promise<T>): Promise<T> {
  try {
    return await demands();
  } catch (error) {
    throw error instanceof Unmet ? new KnownFault(error.message) : error;
  }
}

/** Fails the scenario unless something holds. */
export function demand(holds: boolean, why: string): void {
  if (!holds) throw new Unmet(why);
}

/** Waits until `look` answers with something; says what was waited for, and what was seen last, if it takes too long. */
export async function waitFor<T>(
  what: string,
  look: () => T | undefined | false | Promise<T | undefined | false>,
  msMax = 30_000,
): Promise<T> {
  let last = "";
  for (const began = performance.now(); performance.now() - began < msMax; await sleep(50)) {
    try {
      const found = await look();
      if (found !== undefined && found !== false) return found;
    } catch (error) {
      last = error instanceof Error ? ` (${error.message})` : "";
    }
  }
  throw new Unmet(`waited ${msMax / 1_000} s for ${what}${last}`);
}

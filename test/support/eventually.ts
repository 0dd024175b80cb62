import { setTimeout as sleep } from "node:timers/promises";

/** Waits until `look` answers with something; says what was waited for, and what went wrong last, if it takes too long. */
export async function eventually<T>(
  what: string,
  look: () => T | undefined | false | Promise<T | undefined | false>,
  msMax = 30_000,
): Promise<T> {
  let last = "";
  for (const began = performance.now(); performance.now() - began < msMax; await sleep(25)) {
    try {
      const found = await look();
      if (found !== undefined && found !== false) return found;
      last = "";
    } catch (error) {
      last = error instanceof Error ? `: ${error.message}` : "";
    }
  }
  throw new Error(`waited ${msMax} ms for ${what}${last}`);
}

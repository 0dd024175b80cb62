// The same scenarios with both agents: where the model does not do what Kilo does, a simulation proves nothing. Outcomes
// must be alike; the numbers stand beside each other for people, since they hang on when agents happen to check in.

import type { Result } from "./scenario.ts";

/** One scenario with both agents. */
export type Comparison = { readonly name: string; readonly isAlike: boolean; readonly line: string };

/** Compares run by run; a scenario that one of the agents skips is not compared. */
export function compare(kg: readonly Result[], model: readonly Result[]): readonly Comparison[] {
  const left = [...model];
  return kg.flatMap((one) => {
    const index = left.findIndex(({ name }) => name === one.name);
    const [other] = index === -1 ? [] : left.splice(index, 1);
    if (other === undefined || [one, other].some(({ outcome }) => outcome === "skip")) return [];
    const isAlike = one.outcome === other.outcome;
    const line = `${isAlike ? "alike" : "DIFFERS"} ${one.name} kg: ${words(one)}; model: ${words(other)}`;
    return [{ name: one.name, isAlike, line }];
  });
}

function words({ outcome, measures: { rewrites, peerWrites, worstGapMs } }: Result): string {
  return `${outcome}, ${peerWrites} Peer writes, ${rewrites} device rewrites, worst gap ${(worstGapMs / 1_000).toFixed(1)} s`;
}

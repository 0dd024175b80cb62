// Writes that disturb are kept apart: how far, between which targets, and how long a plan takes for it.

import type { TargetPlan } from "./plan.ts";
import type { ClusterId } from "./world.ts";

/** How far apart writes on two joined targets are, by how far apart writes on one of them are. */
export const apartMs = (intervalMs: number): number => intervalMs / 4;

/** The targets that are joined with one, and stay so: each holds something that stands for the other and does not go. */
export function joinedWith(target: ClusterId, plans: readonly TargetPlan[]): ReadonlySet<ClusterId> {
  const own = plans.find((each) => each.target === target);
  const parties = own === undefined ? new Set<string>() : partiesOf(own);
  const mutual = plans.filter((other) => parties.has(other.target) && partiesOf(other).has(target));
  return new Set(mutual.map((other) => other.target));
}

const known = new WeakMap<TargetPlan, ReadonlySet<string>>();

/** Whom the objects stand for that stay on a target. */
function partiesOf(plan: TargetPlan): ReadonlySet<string> {
  const found = known.get(plan);
  if (found !== undefined) return found;
  const wanted = new Set(plan.desired.map(({ slot }) => slot));
  const parties = new Set(
    plan.items.flatMap(({ slot, party, standing }) => {
      const goes = standing.owner === "us" && standing.ifUnwanted.do === "delete" && !wanted.has(slot);
      return goes || party === undefined ? [] : [party];
    }),
  );
  known.set(plan, parties);
  return parties;
}

/** About how long it takes to write so much to each target; what a single request takes is not counted. */
export function durationMs(plans: readonly TargetPlan[], writes: ReadonlyMap<ClusterId, number>): number {
  const busy = plans.filter(({ target, intervalMs = 0 }) => intervalMs > 0 && (writes.get(target) ?? 0) > 0);
  const intervalOf = new Map(busy.map(({ target, intervalMs = 0 }) => [target, intervalMs]));
  const each = busy.map(({ target, intervalMs = 0 }) => {
    const others = joinedWith(target, busy);
    // Two that are joined are as far apart as the slower one demands.
    const longestMs = [...others].reduce((longest, other) => Math.max(longest, intervalOf.get(other) ?? 0), intervalMs);
    const roundMs = Math.max(intervalMs, (others.size + 1) * apartMs(longestMs));
    return others.size * apartMs(longestMs) + ((writes.get(target) ?? 0) - 1) * roundMs;
  });
  return each.reduce((longest, ms) => Math.max(longest, ms), 0);
}

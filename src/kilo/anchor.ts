import { type Cidr, overlaps } from "../core/net/cidr.ts";
import type { Item } from "../core/plan.ts";
import type { Proposal } from "./slots.ts";

/**
 * The Peer that carries the ranges of a whole cluster on a target. The one that carries them today keeps them while its
 * node is usable; otherwise the first by name whose node is ready. A node that joins therefore never moves them.
 */
export function chooseAnchor(
  proposals: readonly Proposal[],
  ranges: readonly Cidr[],
  itemOf: (proposal: Proposal) => Item | undefined,
): Proposal | undefined {
  const ready = proposals.filter(({ owner }) => owner.candidate.node.ready !== false);
  const usable = ready.length > 0 ? ready : proposals;
  return usable.find((proposal) => carriesAny(itemOf(proposal), ranges)) ?? usable[0];
}

/** Whether an object holds one of the ranges, or one that was cut from it, or that it was cut from. */
export function carriesAny(item: Item | undefined, ranges: readonly Cidr[]): boolean {
  if (item === undefined || item.standing.owner !== "us") return false;
  return item.claims.some((claim) => ranges.some((range) => range === claim || overlaps(range, claim)));
}

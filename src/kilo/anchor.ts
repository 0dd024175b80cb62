import { type Cidr, overlaps } from "../core/net/cidr.ts";
import { indexOf } from "../core/net/disjoint.ts";
import type { Item } from "../core/plan.ts";
import type { Proposal } from "./slots.ts";

/**
 * The Peer that carries the ranges of a whole cluster on a target. The one that carries most of them today keeps them
 * while its node is usable; otherwise the first by name whose node is ready. A node that joins therefore never moves them.
 */
export function chooseAnchor(
  proposals: readonly Proposal[],
  ranges: readonly Cidr[],
  itemOf: (proposal: Proposal) => Item | undefined,
): Proposal | undefined {
  const ready = proposals.filter(({ owner }) => owner.candidate.node.ready !== false);
  const usable = ready.length > 0 ? ready : proposals;
  const index = ranges.length > 8 ? indexOf(ranges) : undefined;
  const inRanges = (claim: Cidr): boolean =>
    index === undefined
      ? ranges.some((range) => range === claim || overlaps(range, claim))
      : index.firstOverlap(claim) !== undefined;
  let best: Proposal | undefined;
  let most = 0;
  for (const proposal of usable) {
    const item = itemOf(proposal);
    if (item === undefined || item.standing.owner !== "us") continue;
    // A node's own address in such a range is no sign that it carries the range.
    const { internals } = proposal.owner.candidate;
    const carried = item.claims.filter((claim) => !internals.includes(claim) && inRanges(claim)).length;
    if (carried > most) [best, most] = [proposal, carried];
  }
  return best ?? usable[0];
}

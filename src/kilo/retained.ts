// What a Peer keeps of what it carries, although it would not get it now: ranges of a mesh it is held for, ranges of nodes
// behind a leader that cannot be read at the moment and, where nothing may be removed, everything. It loses to
//
//   another Peer on the target, of ours or not, that carries the range or gets it
//   a tunnel that ends in the range: a route to its endpoint would swallow it
//   the rule on what no mesh may claim, where only the policy keeps it: no mesh ever gave that to the Peer
//
// and then only what of the range is concerned.

import { CidrIndex } from "../core/net/cidr-index.ts";
import { aggregateDisjoint, type Cidr, hostRoute, overlaps } from "../core/net/cidr.ts";
import { areDisjoint, indexOf } from "../core/net/disjoint.ts";
import type { Item } from "../core/plan.ts";
import { cutAround, piecesMax } from "./cluster-ranges.ts";
import { isInCustody, type Proposal } from "./slots.ts";
import type { EndpointsInUse } from "./target-endpoints.ts";
import { isWithin } from "./target-filters.ts";
import type { Carried, RangeInput } from "./target-ranges.ts";

/** Everything on a target that may be in the way of a range that a Peer keeps. */
export type Obstacles = Pick<RangeInput, "endpoints" | "itemOf" | "input"> & {
  readonly used: EndpointsInUse;
  readonly immovable: CidrIndex<Item> | undefined;
};

type Wish = { readonly cidr: Cidr; readonly proposal: Proposal };

/** Adds to what each Peer gets what it carries today and must not lose. */
export function withRetained(
  carried: ReadonlyMap<Proposal, Carried>,
  obstacles: Obstacles,
): ReadonlyMap<Proposal, Carried> {
  const wishes = Array.from(carried).flatMap(([proposal, { own }]) => wishesOf(proposal, own, obstacles));
  if (wishes.length === 0) return carried;
  const holesFor = holesAmong(carried, obstacles);
  const isClash = !areDisjoint(wishes.map(({ cidr }) => cidr));
  const given: Wish[] = [];
  const result = new Map(carried);
  for (const { cidr, proposal } of wishes) {
    const share = result.get(proposal);
    const before = isClash ? given.filter((each) => each.proposal !== proposal && overlaps(each.cidr, cidr)) : [];
    const pieces = cutAround(cidr, [...holesFor(cidr, proposal), ...before.map((each) => each.cidr)]);
    if (share === undefined || pieces.length > piecesMax) continue;
    for (const piece of pieces) given.push({ cidr: piece, proposal });
    result.set(proposal, { ...share, claims: aggregateDisjoint([...share.claims, ...pieces]) });
  }
  return result;
}

function wishesOf(proposal: Proposal, own: readonly Cidr[], { itemOf, input }: Obstacles): readonly Wish[] {
  const item = itemOf(proposal);
  if (item === undefined) return [];
  const { candidate, target } = proposal.owner;
  const custody = isInCustody(item, proposal);
  if (!custody && !input.keepsAll && candidate.retains === undefined) return [];
  const isKept = (claim: Cidr): boolean =>
    custody ||
    (input.keepsAll && input.isClaimable(claim)) ||
    (candidate.retains?.(claim) === true && target.accepts(claim));
  return item.claims.filter((claim) => !isWithin(claim, own) && isKept(claim)).map((cidr) => ({ cidr, proposal }));
}

/** What other Peers have or get of a range, and the endpoints in it. */
function holesAmong(
  carried: ReadonlyMap<Proposal, Carried>,
  { endpoints, used, immovable, input }: Obstacles,
): (range: Cidr, proposal: Proposal) => readonly Cidr[] {
  const taken = new CidrIndex(
    Array.from(carried).flatMap(([proposal, { own }]) => own.map((cidr) => [cidr, proposal] as const)),
  );
  const chosen = [...endpoints.all.values()].flatMap(({ endpoint }) => (endpoint ? [hostRoute(endpoint.ip)] : []));
  const addresses = indexOf([...chosen, ...used.others.map((address) => hostRoute(address))]);
  return (range, proposal) => {
    const { source } = proposal.owner;
    const chained = source.clusterWide
      .filter((wide) => overlaps(wide, range))
      .flatMap((wide) => input.crossings.endpointsIn(source.cluster, wide))
      .filter(({ cluster }) => cluster === source.cluster || cluster === input.id);
    return [
      ...taken.overlapping(range).flatMap(({ cidr, value }) => (value === proposal ? [] : [cidr])),
      ...(immovable?.overlapping(range) ?? []).map(({ cidr }) => cidr),
      ...addresses.overlapping(range).map(({ cidr }) => cidr),
      ...[...used.chains(source.cluster)]
        .map((address) => hostRoute(address))
        .filter((route) => overlaps(range, route)),
      ...chained.map(({ route }) => route).filter((route) => overlaps(range, route)),
    ];
  };
}

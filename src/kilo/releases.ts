// What a Peer that waits out a grace period gives up: what a node of the same cluster and mesh, seen just now, has come to
// own. Nobody is given more than its own mesh grants it, and what the Peer's own Node still claims stays with it.

import type { CidrItem } from "../core/net/cidr-index.ts";
import { type Cidr, contains, hostRoute, overlaps, subtract } from "../core/net/cidr.ts";
import type { Item } from "../core/plan.ts";
import { massDelete } from "../core/policy.ts";
import type { NodeFacts } from "./facts.ts";
import { nodeOf } from "./ownership.ts";
import type { Bid, Proposal } from "./slots.ts";
import type { SourcePlan } from "./source.ts";
import type { TargetInput } from "./target.ts";

/** A range that a proposal wants; `isWide` if it belongs to the whole cluster, whose anchor the proposal is. */
export type Wanted = { readonly range: Cidr; readonly isWide: boolean; readonly proposal: Proposal };

/**
 * Holds that wait for a node or doubt that it is gone, on complete evidence; the others leave a Peer exactly as it is.
 */
const yielding: ReadonlySet<string> = new Set([
  "NodeNoPodCIDR",
  "NodeNoWireguardIP",
  "WGIPInvalid",
  "NodeNoPublicKey",
  "NodeEndpointInvalid",
  "LocationNoLeader",
  massDelete,
]);

/** Whether a Peer that nothing wants gives a range up to the node that wants it. */
export function givesUp({ standing, party, intent, ...peer }: Item, { range, isWide, proposal }: Wanted): boolean {
  if (standing.owner !== "us" || standing.ifUnwanted.do !== "hold") return false;
  if (!yielding.has(standing.ifUnwanted.reason)) return false;
  const bid = [proposal.owner, ...proposal.also].find(
    ({ source }) => source.cluster === party && source.mesh.id === intent,
  );
  if (bid === undefined || !isGranted(range, isWide, bid)) return false;
  const node = nodeBehind(peer, bid.source);
  // With a flat grant the pod range of a node that is gone looks like one of the whole cluster.
  if (node === undefined) return !isWide || bid.source.entry.grant.generation === "typed";
  // An agent that restarts does not move the anchor; a machine that is down does.
  if (isWide && node.ready !== false) return false;
  return !claimsOf(node).some((claim) => overlaps(claim, range));
}

/** Whether the mesh for which the Peer is held gives the range to the node that wants it, too. */
function isGranted(range: Cidr, isWide: boolean, { source, candidate }: Bid): boolean {
  const own = isWide ? source.clusterWide : [...candidate.overlay, ...candidate.internals];
  return own.some((each) => contains(each, range));
}

function nodeBehind({ labels, slot, name }: Pick<Item, "labels" | "slot" | "name">, source: SourcePlan) {
  const found = nodeOf({ labels, key: slot, name }, source);
  return found === undefined ? undefined : source.nodes.find((node) => node.name === found);
}

/** What belongs to a node whatever its agent publishes. */
const claimsOf = ({ podCidrs, internalIps }: NodeFacts): readonly Cidr[] => [
  ...podCidrs.flatMap(({ result }) => (result.ok ? [result.value] : [])),
  ...internalIps.map((address) => hostRoute(address)),
];

/** What is left to held Peers without a range; nothing at all, if one of them would have to go and may not. */
export function leftWithout(
  range: Cidr,
  hits: readonly CidrItem<Item>[],
  released: ReadonlyMap<Item, readonly Cidr[]>,
  { offers, keepsAll }: TargetInput,
): ReadonlyMap<Item, readonly Cidr[]> | undefined {
  const left = new Map<Item, readonly Cidr[]>();
  for (const { value: holder } of hits) {
    const ofSource = offers.filter((offer) => offer.source.cluster === holder.party);
    // It is written again, so it may carry nothing that it would not be given today.
    const isOffered = (claim: Cidr): boolean =>
      ofSource.some(
        (offer) => offer.target.accepts(claim) && offer.source.entry.grant.all.some((grant) => contains(grant, claim)),
      );
    const claims = (released.get(holder) ?? holder.claims)
      .flatMap((claim) => (overlaps(claim, range) ? subtract(claim, [range]) : [claim]))
      .filter(isOffered);
    if (claims.length === 0 && keepsAll) return undefined;
    left.set(holder, claims);
  }
  return left;
}

// What a Peer that waits out a grace period gives up: what a node of the same cluster and mesh, seen just now, has come to
// own. Nobody is given more than its own mesh grants it, and what the Peer's own Node still claims stays with it.

import type { CidrItem } from "../core/net/cidr-index.ts";
import { type Cidr, contains, hostRoute, isHostRoute, isIPv4Cidr, overlaps, subtract } from "../core/net/cidr.ts";
import type { Item } from "../core/plan.ts";
import { massDelete } from "../core/policy.ts";
import type { NodeFacts } from "./facts.ts";
import { nodeOf, specChange } from "./ownership.ts";
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
  specChange,
]);

/** Whether a Peer that nothing wants gives a range up to the node that wants it. */
export function givesUp({ standing, party, intent, ...peer }: Item, { range, isWide, proposal }: Wanted): boolean {
  if (standing.owner !== "us" || standing.ifUnwanted.do !== "hold") return false;
  const { reason } = standing.ifUnwanted;
  if (!yielding.has(reason)) return false;
  const bid = [proposal.owner, ...proposal.also].find(
    ({ source }) => source.cluster === party && source.mesh.id === intent,
  );
  if (bid === undefined || !isGranted(range, isWide, bid)) return false;
  const node = nodeBehind(peer, bid.source);
  if (node === undefined) return !isWide || !maybePods(range, peer, bid.source);
  // An agent that restarts does not move the anchor; a machine that is down does.
  if (isWide && node.ready !== false) return false;
  return !claimsOf(node).some((claim) => overlaps(claim, range));
}

/**
 * With a flat grant the pod range of a node that is gone looks like one of the whole cluster, unless its Peer carries
 * another range that can only be pods.
 */
const maybePods = (range: Cidr, { claims }: Pick<Item, "claims">, { entry, clusterWide }: SourcePlan): boolean =>
  entry.grant.generation === "flat" &&
  !claims.some(
    (claim) =>
      isIPv4Cidr(claim) === isIPv4Cidr(range) &&
      !isHostRoute(claim) &&
      !clusterWide.some((wide) => overlaps(wide, claim)),
  );

/** Whether the mesh for which the Peer is held gives the range to the node that wants it, too. */
function isGranted(range: Cidr, isWide: boolean, { source, candidate }: Bid): boolean {
  const own = isWide ? source.clusterWide : [...candidate.overlay, ...candidate.internals];
  return own.some((each) => contains(each, range));
}

function nodeBehind({ labels, slot, name }: Pick<Item, "labels" | "slot" | "name">, source: SourcePlan) {
  const found = nodeOf({ labels, key: slot, name }, source);
  return found === undefined ? undefined : source.nodes.find((node) => node.name === found);
}

const holdReasonOf = ({ standing }: Item): string | undefined =>
  standing.owner === "us" && standing.ifUnwanted.do === "hold" ? standing.ifUnwanted.reason : undefined;

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
    const rest = (released.get(holder) ?? holder.claims).flatMap((claim) =>
      overlaps(claim, range) ? subtract(claim, [range]) : [claim],
    );
    const claims = rest.filter(isOffered);
    // What an edit withdrew is what it is held for.
    if (claims.length < rest.length && holdReasonOf(holder) === specChange) return undefined;
    if (claims.length === 0 && keepsAll) return undefined;
    left.set(holder, claims);
  }
  return left;
}

// What each Peer on a target carries: its node's own ranges, and on one Peer per source, the anchor, the ranges of the
// whole cluster; only what the target accepts, and nothing that somebody else's Peer holds or that leads to an endpoint.

import { type Diagnostic, listSome } from "../core/diagnostic.ts";
import { CidrIndex } from "../core/net/cidr-index.ts";
import {
  aggregateDisjoint,
  type Cidr,
  contains,
  containsAddress,
  hostRoute,
  intersect,
  networkAddress,
} from "../core/net/cidr.ts";
import { keepDisjoint } from "../core/net/disjoint.ts";
import { matchItems } from "../core/diff.ts";
import type { Item } from "../core/plan.ts";
import { type ClusterId, compareText } from "../core/world.ts";
import { carriesAny, chooseAnchor } from "./anchor.ts";
import { at, diagnose } from "./diagnostics.ts";
import { aboutNode } from "./node-checks.ts";
import { peerLabels } from "./peer.ts";
import type { Bid, Proposal } from "./slots.ts";
import { cutAround, piecesMax, type SourcePlan } from "./source.ts";
import type { TargetInput } from "./target.ts";
import { type Endpoints, type EndpointsInUse, endpointsInUse } from "./target-endpoints.ts";

/** What one Peer carries on a target. */
export type Carried = { readonly claims: readonly Cidr[]; readonly anchor: boolean; readonly anchorMoved: boolean };

/** Gives every range on a target to one Peer, or to none. */
export function assignRanges(
  proposals: readonly Proposal[],
  endpoints: Endpoints,
  itemOf: (proposal: Proposal) => Item | undefined,
  input: TargetInput,
  diagnostics: Diagnostic[],
): Map<Proposal, Carried> {
  const used = endpointsInUse(endpoints, input);
  const immovable = immovableRanges(proposals, input);
  const unaccepted = new Map<string, { bid: Bid; ranges: Set<Cidr> }>();
  const ranges = new Map<Proposal, Carried>();
  for (const group of groupByCluster(proposals)) {
    const wide = clusterWideOf(group, used, input, diagnostics);
    const anchor = wide.size === 0 ? undefined : chooseAnchor(group, [...wide.keys()], itemOf);
    const shared =
      group.some((proposal) => proposal.also.length > 0) || new Set(group.map((p) => p.owner.source)).size > 1;
    const wants = group.map((proposal) => {
      const bids = proposal.also.length === 0 ? [proposal.owner] : [proposal.owner, ...proposal.also];
      const take = (bid: Bid, offered: readonly Cidr[]): readonly Cidr[] =>
        accept(bid, undisputed(bid, offered, input.name, diagnostics), unaccepted);
      const plain =
        bids.length === 1
          ? take(proposal.owner, ownRanges(proposal.owner, used))
          : bids.flatMap((bid) => take(bid, ownRanges(bid, used)));
      const extra = proposal === anchor ? [...wide].flatMap(([cidr, bid]) => take(bid, [cidr])) : [];
      return { proposal, plain, extra };
    });
    const kept = shared ? shareAmongMeshes(wants) : undefined;
    for (const { proposal, plain, extra } of wants) {
      const wanted = kept?.get(proposal) ?? (extra.length === 0 ? plain : [...plain, ...extra]);
      const item = itemOf(proposal);
      const free =
        immovable === undefined ? wanted : withoutHeld(proposal, wanted, item, immovable, extra, diagnostics);
      const claims = proposal.owner.target.accepted === undefined && !shared ? free : aggregateDisjoint(free);
      const carriesExtra = extra.some((cidr) => claims.includes(cidr));
      const anchorMoved = carriesExtra && item !== undefined && !carriesAny(item, extra);
      ranges.set(proposal, { claims, anchor: carriesExtra, anchorMoved });
    }
  }
  reportUnaccepted(unaccepted, input.name, diagnostics);
  return ranges;
}

/** Ranges of Peers that stay whatever we plan: foreign ones, and ours that are held and that no proposal updates. */
function immovableRanges(proposals: readonly Proposal[], { items }: TargetInput): CidrIndex<Item> | undefined {
  const stays = ({ standing }: Item): boolean => standing.owner === "other" || standing.ifUnwanted.do === "hold";
  if (!items.some(stays)) return undefined;
  const { keepers } = matchItems({
    desired: proposals.map(({ owner: { candidate } }) => ({
      name: candidate.name,
      slot: candidate.key,
      origin: candidate.origin,
    })),
    items,
  });
  const updated = new Set(keepers.values());
  const held = items.filter((item) => stays(item) && !updated.has(item));
  if (held.length === 0) return undefined;
  return new CidrIndex(held.flatMap((item) => item.claims.map((cidr) => [cidr, item] as const)));
}

function groupByCluster(proposals: readonly Proposal[]): readonly Proposal[][] {
  const groups = new Map<ClusterId, Proposal[]>();
  for (const proposal of proposals) {
    const group = groups.get(proposal.owner.source.cluster);
    if (group === undefined) groups.set(proposal.owner.source.cluster, [proposal]);
    else group.push(proposal);
  }
  for (const group of groups.values())
    group.sort((a, b) => compareText(a.owner.candidate.node.name, b.owner.candidate.node.name));
  return [...groups.values()];
}

/** The cluster-wide ranges of a source as all meshes here offer them, cut around the endpoints in use on this target. */
function clusterWideOf(
  group: readonly Proposal[],
  endpoints: EndpointsInUse,
  input: TargetInput,
  diagnostics: Diagnostic[],
): Map<Cidr, Bid> {
  const bids = new Map<SourcePlan, Bid>();
  for (const { owner, also } of group) {
    for (const bid of [owner, ...also]) if (!bids.has(bid.source)) bids.set(bid.source, bid);
  }
  const cuts = (from: SourcePlan, into: SourcePlan): boolean =>
    from.cluster === into.cluster || input.ownSources.includes(from);
  const wide = new Map<Cidr, Bid>();
  for (const [source, bid] of bids) {
    const where = at(source.mesh.id, source.name, "Cluster", input.name);
    for (const range of source.clusterWide) {
      const chained = input.crossings.endpointsIn(source, range).filter((endpoint) => cuts(endpoint.source, source));
      const others = endpoints.others.filter((address) => containsAddress(range, address));
      const holes = [...chained.map(({ route }) => route), ...others.map((address) => hostRoute(address))];
      const [first] = holes;
      if (first !== undefined) {
        diagnostics.push(diagnose("EndpointInsideRange", where, { range, endpoint: networkAddress(first) }));
      }
      const pieces = cutAround(range, holes);
      if (pieces.length > piecesMax) {
        const values = { range, pieces: pieces.length, instead: "it is not carried" };
        diagnostics.push(diagnose("RangeFragmented", where, values));
        continue;
      }
      for (const piece of pieces) if (!wide.has(piece)) wide.set(piece, bid);
    }
  }
  return wide;
}

/** A node's own ranges, without internal addresses that are endpoints here. */
function ownRanges({ source, candidate }: Bid, endpoints: EndpointsInUse): readonly Cidr[] {
  if (candidate.internals.length === 0) return candidate.overlay;
  const internals = candidate.internals.filter((route) => !endpoints.has(source.cluster, networkAddress(route)));
  return internals.length === 0 ? candidate.overlay : [...candidate.overlay, ...internals];
}

/** The ranges without those that a node of the target claims for itself, rightly or not. */
function undisputed(bid: Bid, ranges: readonly Cidr[], target: string, diagnostics: Diagnostic[]): readonly Cidr[] {
  const { doubtful, source } = bid;
  if (doubtful === undefined) return ranges;
  return ranges.filter((range) => {
    const hit = doubtful.firstOverlap(range);
    if (hit === undefined) return true;
    const values = { range, source: source.entry.name, target, found: hit.value };
    diagnostics.push(
      diagnose("RangeContainsObserved", at(source.mesh.id, source.name, "Cluster", source.name), values),
    );
    return false;
  });
}

/** The part of the ranges that the receiving entry accepts; what it leaves out is noted for one finding per source. */
function accept(
  bid: Bid,
  ranges: readonly Cidr[],
  unaccepted: Map<string, { bid: Bid; ranges: Set<Cidr> }>,
): readonly Cidr[] {
  const { accepted } = bid.target;
  if (accepted === undefined) return ranges;
  return ranges.flatMap((range) => {
    if (accepted.some((network) => contains(network, range))) return [range];
    const key = `${bid.source.mesh.id}|${bid.source.entry.name}`;
    const noted = unaccepted.get(key) ?? { bid, ranges: new Set<Cidr>() };
    unaccepted.set(key, noted);
    noted.ranges.add(range);
    return accepted.flatMap((network) => intersect(network, range) ?? []);
  });
}

function reportUnaccepted(
  unaccepted: ReadonlyMap<string, { readonly bid: Bid; readonly ranges: ReadonlySet<Cidr> }>,
  target: string,
  diagnostics: Diagnostic[],
): void {
  for (const { bid, ranges } of unaccepted.values()) {
    const where = at(bid.source.mesh.id, target, "Cluster", target);
    diagnostics.push(
      diagnose("RangeNotAccepted", where, { source: bid.source.entry.name, ranges: listSome([...ranges]) }),
    );
  }
}

type Want = { readonly proposal: Proposal; readonly plain: readonly Cidr[]; readonly extra: readonly Cidr[] };

/** With several meshes offering one cluster, their grants may overlap: each range goes to one Peer, nodes' own first. */
function shareAmongMeshes(wants: readonly Want[]): Map<Proposal, Cidr[]> {
  const { kept } = keepDisjoint([
    ...wants.flatMap(({ proposal, plain }) => plain.map((cidr) => ({ cidr, value: proposal }))),
    ...wants.flatMap(({ proposal, extra }) => extra.map((cidr) => ({ cidr, value: proposal }))),
  ]);
  const shares = new Map<Proposal, Cidr[]>(wants.map(({ proposal }) => [proposal, []]));
  for (const { cidr, value } of kept) shares.get(value)?.push(cidr);
  return shares;
}

/** Leaves out what an immovable Peer holds, unless our Peer carries it already: then nothing is moved by us. */
function withoutHeld(
  proposal: Proposal,
  wanted: readonly Cidr[],
  item: Item | undefined,
  immovable: CidrIndex<Item>,
  extra: readonly Cidr[],
  diagnostics: Diagnostic[],
): readonly Cidr[] {
  const { source, candidate } = proposal.owner;
  return wanted.filter((range) => {
    const hit = immovable.firstOverlap(range);
    if (hit === undefined) return true;
    const { value: holder, cidr: held } = hit;
    const kept = item?.claims.includes(range) ?? false;
    const place = { mesh: source.mesh.id, cluster: source.name };
    if (holder.standing.owner === "other") {
      const values = { range, peer: holder.name, who: holder.standing.who, held, kept };
      diagnostics.push(aboutNode(place, candidate.node.name, "ForeignRangeConflict", values));
    } else if (!(extra.includes(range) && holder.labels[peerLabels.source] === candidate.labels[peerLabels.source])) {
      const values = { range, peer: holder.name, reason: holder.standing.ifUnwanted.reason };
      diagnostics.push(aboutNode(place, candidate.node.name, "RangeHeldBack", values));
    }
    return kept;
  });
}

// What each Peer on a target carries: its node's own ranges, and on one Peer per source, the anchor, the ranges of the
// whole cluster; only what the target accepts, and nothing that somebody else's Peer holds or that leads to an endpoint.

import type { Diagnostic } from "../core/diagnostic.ts";
import { CidrIndex } from "../core/net/cidr-index.ts";
import {
  aggregateDisjoint,
  type Cidr,
  contains,
  containsAddress,
  hostRoute,
  networkAddress,
  subtract,
} from "../core/net/cidr.ts";
import { indexOf, keepDisjoint } from "../core/net/disjoint.ts";
import { matchItems } from "../core/diff.ts";
import { appendTo } from "../core/list.ts";
import type { Item } from "../core/plan.ts";
import { type ClusterId, compareText } from "../core/world.ts";
import { chooseAnchor } from "./anchor.ts";
import type { AddressWithin } from "./crossings.ts";
import { at, diagnose } from "./diagnostics.ts";
import { byAge } from "./mesh-checks.ts";
import { aboutNode } from "./node-checks.ts";
import { givesUp, leftWithout } from "./releases.ts";
import { withRetained } from "./retained.ts";
import { type Bid, type Proposal } from "./slots.ts";
import { cutAround, piecesMax } from "./cluster-ranges.ts";
import type { SourcePlan } from "./source.ts";
import type { TargetInput } from "./target.ts";
import { type Endpoints, type EndpointsInUse, endpointsInUse } from "./target-endpoints.ts";
import {
  accept,
  isWithin,
  juniorRanges,
  reportUnaccepted,
  type Unaccepted,
  undisputed,
  withoutServers,
} from "./target-filters.ts";

/** What one Peer carries on a target. */
export type Carried = {
  /** What it gets now. */
  readonly own: readonly Cidr[];
  /** The same, and what it would not get now but has and must not lose. */
  readonly claims: readonly Cidr[];
  readonly anchor: boolean;
  readonly anchorMoved: boolean;
};

/** What every Peer carries, and what is left to held Peers that give something up to a live node. */
export type Assignment = {
  readonly carried: ReadonlyMap<Proposal, Carried>;
  readonly released: ReadonlyMap<Item, readonly Cidr[]>;
};

/** Everything that `assignRanges` looks at beside the proposals. */
export type RangeInput = {
  readonly endpoints: Endpoints;
  readonly staying: readonly Item[];
  readonly itemOf: (proposal: Proposal) => Item | undefined;
  readonly input: TargetInput;
  readonly diagnostics: Diagnostic[];
};

/** Gives every range on a target to one Peer, or to none. */
export function assignRanges(proposals: readonly Proposal[], around: RangeInput): Assignment {
  const { endpoints, staying, itemOf, input, diagnostics } = around;
  const used = endpointsInUse(endpoints, staying, input);
  const seniors = new CidrIndex(endpoints.senior.map((each) => [hostRoute(each.endpoint.ip), each] as const));
  const own = (bid: Bid): readonly Cidr[] => juniorRanges(bid, ownRanges(bid, used), seniors, input.name, diagnostics);
  const immovable =
    staying.length === 0
      ? undefined
      : new CidrIndex(staying.flatMap((item) => item.claims.map((cidr) => [cidr, item] as const)));
  const unaccepted = new Map<string, Unaccepted>();
  const released = new Map<Item, readonly Cidr[]>();
  const carried = new Map<Proposal, Carried>();
  for (const group of groupByCluster(proposals)) {
    const declared = clusterWideOf(group);
    const anchor = declared.size === 0 ? undefined : chooseAnchor(group, [...declared.keys()], itemOf);
    const shared = group.some((each) => each.also.length > 0 || each.owner.source !== group[0]?.owner.source);
    const wants = group.map((proposal) => {
      const { owner, also } = proposal;
      if (
        proposal !== anchor &&
        also.length === 0 &&
        owner.doubtful === undefined &&
        owner.servers === undefined &&
        owner.target.accepted === undefined
      ) {
        return { proposal, plain: own(owner), extra: [] };
      }
      const item = itemOf(proposal);
      const take = (bid: Bid, offered: readonly Cidr[]): readonly Cidr[] =>
        accept(
          bid,
          withoutServers(bid, undisputed(bid, offered, item, input.name, diagnostics), input, diagnostics),
          unaccepted,
        );
      const plain = bidsOf(proposal).flatMap((bid) => take(bid, own(bid)));
      const cut = (range: Cidr, bid: Bid): readonly Cidr[] =>
        cutHere(range, bid, proposal, { used, immovable, item, input, diagnostics });
      const extra = proposal === anchor ? [...declared].flatMap(([range, bid]) => take(bid, cut(range, bid))) : [];
      return { proposal, plain, extra };
    });
    const kept = shared ? shareAmongMeshes(wants) : undefined;
    for (const { proposal, plain, extra } of wants) {
      const wanted = kept?.get(proposal) ?? (extra.length === 0 ? plain : [...plain, ...extra]);
      const item = itemOf(proposal);
      const free =
        immovable === undefined
          ? wanted
          : withoutHeld(proposal, { wanted, extra, item, immovable, released, input, diagnostics });
      // Around the anchor's own addresses a range is not cut; then they are in it already.
      const disjoint = extra.length === 0 && proposal.owner.target.accepted === undefined && !shared;
      const claims = disjoint ? free : aggregateDisjoint(free);
      const carriesExtra = extra.some((cidr) => claims.includes(cidr));
      const anchorMoved = carriesExtra && item !== undefined && !extra.some((cidr) => isWithin(cidr, item.claims));
      carried.set(proposal, { own: claims, claims, anchor: carriesExtra, anchorMoved });
    }
  }
  reportUnaccepted(unaccepted, input.name, diagnostics);
  return { carried: withRetained(carried, { ...around, used, immovable }), released };
}

const bidsOf = ({ owner, also }: Proposal): readonly Bid[] => (also.length === 0 ? [owner] : [owner, ...also]);

/** Peers that stay as they are whatever we plan: foreign ones, and ours that are held and that no proposal updates. */
export function stayingItems(proposals: readonly Proposal[], { items }: TargetInput): readonly Item[] {
  const stays = ({ standing }: Item): boolean => standing.owner === "other" || standing.ifUnwanted.do === "hold";
  if (!items.some(stays)) return [];
  const { keepers } = matchItems({
    desired: proposals.map(({ owner: { candidate } }) => ({
      name: candidate.name,
      slot: candidate.key,
      origin: candidate.origin,
    })),
    items,
  });
  const updated = new Set(keepers.values());
  return items.filter((item) => stays(item) && !updated.has(item));
}

function groupByCluster(proposals: readonly Proposal[]): readonly Proposal[][] {
  const groups = new Map<ClusterId, Proposal[]>();
  for (const proposal of proposals) appendTo(groups, proposal.owner.source.cluster, proposal);
  for (const group of groups.values())
    group.sort((a, b) => compareText(a.owner.candidate.node.name, b.owner.candidate.node.name));
  return [...groups.values()];
}

/** The cluster-wide ranges of a source as all meshes here offer them. */
function clusterWideOf(group: readonly Proposal[]): ReadonlyMap<Cidr, Bid> {
  const wide = new Map<Cidr, Bid>();
  const seen = new Set<SourcePlan>();
  for (const proposal of group) {
    for (const bid of bidsOf(proposal)) {
      if (seen.has(bid.source)) continue;
      seen.add(bid.source);
      for (const range of bid.source.clusterWide) if (!wide.has(range)) wide.set(range, bid);
    }
  }
  return wide;
}

type Surroundings = {
  readonly used: EndpointsInUse;
  readonly immovable: CidrIndex<Item> | undefined;
  readonly item: Item | undefined;
  readonly input: TargetInput;
  readonly diagnostics: Diagnostic[];
};

/** Cuts a cluster-wide range around what other Peers carry inside it, and around the endpoints in use here. */
function cutHere(range: Cidr, { source }: Bid, anchor: Proposal, around: Surroundings): readonly Cidr[] {
  const { used, immovable, item, input, diagnostics } = around;
  const where = at(source.mesh.id, source.name, "Cluster", source.name);
  // A node's own address in the range is no part of it that is carried.
  const { internals: ownAddresses } = anchor.owner.candidate;
  const carried = item?.claims.filter((claim) => contains(range, claim) && !ownAddresses.includes(claim)) ?? [];
  const neighbour = neighbourIn(range, source, input);
  if (neighbour !== undefined) {
    const found = `address ${networkAddress(neighbour.route)} of a node`;
    const values = { range, source: source.entry.name, target: neighbour.name, found };
    diagnostics.push(diagnose("RangeContainsObserved", where, values));
    if (carried.length === 0) return [];
  }
  const anchorNode = anchor.owner.candidate.node.name;
  const internals = (source.internalsIn.get(range) ?? []).filter(({ node }) => node !== anchorNode);
  const chained = input.crossings
    .endpointsIn(source.cluster, range)
    .filter(({ cluster }) => cluster === source.cluster || cluster === input.id);
  const endpoints = [
    ...chained.map(({ route }) => route),
    ...used.others.filter((address) => containsAddress(range, address)).map((address) => hostRoute(address)),
  ];
  const [first] = endpoints;
  if (first !== undefined) {
    const values = { range, endpoint: networkAddress(first), target: input.name };
    diagnostics.push(diagnose("EndpointInsideRange", where, values));
  }
  const holes = [...internals.map(({ route }) => route), ...endpoints];
  const pieces = cutAround(range, holes).flatMap((piece) => {
    if (immovable === undefined || item?.claims.includes(piece)) return [piece];
    const wanted = { range: piece, isWide: true, proposal: anchor };
    const inside = immovable
      .overlapping(piece)
      .filter(({ cidr, value }) => cidr !== piece && contains(piece, cidr) && !givesUp(value, wanted));
    for (const { cidr, value } of inside) {
      if (value.standing.owner !== "other") continue;
      const values = { range, peer: value.name, who: value.standing.who, held: cidr, outcome: "written without it" };
      const place = { mesh: source.mesh.id, cluster: source.name };
      diagnostics.push(aboutNode(place, anchorNode, "ForeignRangeConflict", values));
    }
    return cutAround(
      piece,
      inside.map(({ cidr }) => cidr),
    );
  });
  if (pieces.length <= piecesMax) return pieces;
  diagnostics.push(diagnose("RangeFragmented", where, { range, pieces: pieces.length, target: input.name }));
  // What is carried already goes on, as far as no endpoint has come into it.
  const inTheWay = indexOf(holes);
  return carried.filter((claim) => inTheWay.firstOverlap(claim) === undefined);
}

/** A cluster that meets the source here, in a mesh that is not younger, and whose nodes have addresses in the range. */
function neighbourIn(range: Cidr, source: SourcePlan, { offers, crossings }: TargetInput): AddressWithin | undefined {
  return crossings
    .neighboursIn(source.cluster, range)
    .find(({ cluster }) =>
      offers.some((offer) => offer.source.cluster === cluster && byAge(offer.source.mesh, source.mesh) <= 0),
    );
}

/** A node's own ranges, without internal addresses that are endpoints here. */
function ownRanges({ source, candidate }: Bid, endpoints: EndpointsInUse): readonly Cidr[] {
  if (candidate.internals.length === 0) return candidate.overlay;
  const internals = candidate.internals.filter((route) => !endpoints.has(source.cluster, networkAddress(route)));
  return internals.length === 0 ? candidate.overlay : [...candidate.overlay, ...internals];
}

type Want = { readonly proposal: Proposal; readonly plain: readonly Cidr[]; readonly extra: readonly Cidr[] };

/** With several meshes offering one cluster, their grants may overlap: each range goes to one Peer, nodes' own first. */
function shareAmongMeshes(wants: readonly Want[]): Map<Proposal, Cidr[]> {
  const { kept } = keepDisjoint(
    [
      ...wants.flatMap(({ proposal, plain }) => plain.map((cidr) => ({ cidr, value: proposal }))),
      ...wants.flatMap(({ proposal, extra }) => extra.map((cidr) => ({ cidr, value: proposal }))),
    ],
    (proposal) => proposal,
  );
  const shares = new Map<Proposal, Cidr[]>(wants.map(({ proposal }) => [proposal, []]));
  for (const { cidr, value } of kept) shares.get(value)?.push(cidr);
  return shares;
}

/**
 * Leaves out what an immovable Peer holds, unless our Peer carries it already: then nothing is moved by us. A Peer that
 * waits out a grace period gives up what is this node's now.
 */
function withoutHeld(
  proposal: Proposal,
  claim: {
    readonly wanted: readonly Cidr[];
    readonly extra: readonly Cidr[];
    readonly item: Item | undefined;
    readonly immovable: CidrIndex<Item>;
    readonly released: Map<Item, readonly Cidr[]>;
    readonly input: TargetInput;
    readonly diagnostics: Diagnostic[];
  },
): readonly Cidr[] {
  const { wanted, extra, item, immovable, released, input, diagnostics } = claim;
  const { source, candidate } = proposal.owner;
  return wanted.filter((range) => {
    const hits = immovable.overlapping(range);
    const [first] = hits;
    if (first === undefined) return true;
    const isWide = extra.includes(range);
    const inTheWay = hits.find(({ value }) => !givesUp(value, { range, isWide, proposal }));
    const left = inTheWay === undefined ? leftWithout(range, hits, released, input) : undefined;
    // It is written again without what it would not be given today; where nothing may be removed, it is not written then.
    if (left !== undefined && !(input.keepsAll && losesMore(range, left, released))) {
      for (const [holder, claims] of left) released.set(holder, claims);
      return true;
    }
    const { value: holder, cidr: held } = inTheWay ?? first;
    const kept = item?.claims.includes(range) ?? false;
    const place = { mesh: source.mesh.id, cluster: source.name };
    if (holder.standing.owner === "other") {
      const outcome = kept ? "left where it is" : "not written";
      const values = { range, peer: holder.name, who: holder.standing.who, held, outcome };
      diagnostics.push(aboutNode(place, candidate.node.name, "ForeignRangeConflict", values));
      return kept;
    }
    // The anchor of before is held and still carries the ranges of the cluster: nothing is missing.
    if (isWide && holder.party === source.cluster) return kept;
    const values = { range, peer: holder.name, reason: holder.standing.ifUnwanted.reason };
    diagnostics.push(aboutNode(place, candidate.node.name, "RangeHeldBack", values));
    return kept;
  });
}

/** Whether held Peers would lose more than a range that they give up. */
const losesMore = (
  range: Cidr,
  left: ReadonlyMap<Item, readonly Cidr[]>,
  released: ReadonlyMap<Item, readonly Cidr[]>,
): boolean =>
  [...left].some(([holder, claims]) =>
    (released.get(holder) ?? holder.claims).some((claim) =>
      subtract(claim, [range]).some((piece) => !isWithin(piece, claims)),
    ),
  );

// What each Peer on a target carries: its node's own ranges, and on one Peer per source, the anchor, the ranges of the
// whole cluster; only what the target accepts, and nothing that somebody else's Peer holds or that leads to an endpoint.

import { type Diagnostic, listSome } from "../core/diagnostic.ts";
import { CidrIndex, type CidrItem } from "../core/net/cidr-index.ts";
import {
  aggregateDisjoint,
  type Cidr,
  contains,
  containsAddress,
  hostRoute,
  intersect,
  networkAddress,
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
import { type Bid, isInCustody, type Proposal } from "./slots.ts";
import { cutAround, piecesMax } from "./cluster-ranges.ts";
import type { SourcePlan } from "./source.ts";
import type { TargetInput } from "./target.ts";
import { type Endpoints, type EndpointsInUse, endpointsInUse } from "./target-endpoints.ts";

/** What one Peer carries on a target. */
export type Carried = {
  readonly claims: readonly Cidr[];
  /** Of those, what it would not get now but has and must not lose yet. */
  readonly retained: readonly Cidr[];
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
  const immovable =
    staying.length === 0
      ? undefined
      : new CidrIndex(staying.flatMap((item) => item.claims.map((cidr) => [cidr, item] as const)));
  const unaccepted = new Map<string, { bid: Bid; ranges: Set<Cidr> }>();
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
        owner.target.accepted === undefined
      ) {
        return { proposal, plain: ownRanges(owner, used), extra: [] };
      }
      const item = itemOf(proposal);
      const take = (bid: Bid, offered: readonly Cidr[]): readonly Cidr[] =>
        accept(bid, undisputed(bid, offered, item, input.name, diagnostics), unaccepted);
      const plain = bidsOf(proposal).flatMap((bid) => take(bid, ownRanges(bid, used)));
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
      const anchorMoved = carriesExtra && item !== undefined && !extra.some((cidr) => item.claims.includes(cidr));
      carried.set(proposal, { claims, retained: nothing, anchor: carriesExtra, anchorMoved });
    }
  }
  reportUnaccepted(unaccepted, input.name, diagnostics);
  return { carried: withRetained(carried, around, immovable), released };
}

/**
 * Adds what a Peer carries today and must not lose yet: ranges of a mesh it is held for, and ranges of nodes behind a
 * leader that cannot be read at the moment. Only what nobody else has or gets, and where no tunnel ends.
 */
function withRetained(
  carried: ReadonlyMap<Proposal, Carried>,
  { endpoints, itemOf }: RangeInput,
  immovable: CidrIndex<Item> | undefined,
): ReadonlyMap<Proposal, Carried> {
  const wishes: CidrItem<Proposal>[] = [];
  for (const [proposal, share] of carried) {
    const { retains } = proposal.owner.candidate;
    const item = itemOf(proposal);
    const custody = isInCustody(item, proposal);
    if (item === undefined || !(custody || retains !== undefined)) continue;
    for (const claim of item.claims) {
      const isKept = custody || (retains?.(claim) && proposal.owner.target.accepts(claim));
      if (isKept && !share.claims.includes(claim)) wishes.push({ cidr: claim, value: proposal });
    }
  }
  if (wishes.length === 0) return carried;
  const addresses = [...endpoints.all.values()].flatMap(({ endpoint }) => (endpoint ? [hostRoute(endpoint.ip)] : []));
  const taken = indexOf([...addresses, ...[...carried.values()].flatMap((share) => share.claims)]);
  const result = new Map(carried);
  for (const { cidr, value: proposal } of keepDisjoint(wishes, (value) => value).kept) {
    const share = result.get(proposal);
    const isFree = taken.firstOverlap(cidr) === undefined && immovable?.firstOverlap(cidr) === undefined;
    if (share === undefined || !isFree) continue;
    result.set(proposal, { ...share, claims: [...share.claims, cidr], retained: [...share.retained, cidr] });
  }
  return result;
}

const nothing: readonly Cidr[] = [];

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

/** The ranges without those that a node of the target claims for itself, rightly or not; what is carried already stays. */
function undisputed(
  { doubtful, source }: Bid,
  ranges: readonly Cidr[],
  item: Item | undefined,
  target: string,
  diagnostics: Diagnostic[],
): readonly Cidr[] {
  if (doubtful === undefined) return ranges;
  return ranges.filter((range) => {
    // A doubtful claim that is wider than the range is nobody's pod range; to believe it would stop everything.
    const hit = doubtful.overlapping(range).find(({ cidr }) => contains(range, cidr));
    if (hit === undefined) return true;
    const values = { range, source: source.entry.name, target, found: hit.value };
    diagnostics.push(
      diagnose("RangeContainsObserved", at(source.mesh.id, source.name, "Cluster", source.name), values),
    );
    return item?.claims.includes(range) ?? false;
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
    if (bid.target.accepts(range)) return [range];
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
    if (left !== undefined) {
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

// One cluster as a target: every source that reaches it, made into Peers. What a Peer may carry here depends on the
// target: on what it accepts, on the endpoints in use there, and on the Peers that somebody else keeps on it.

import { type Diagnostic, listSome } from "../core/diagnostic.ts";
import type { Address } from "../core/net/address.ts";
import { CidrIndex } from "../core/net/cidr-index.ts";
import {
  aggregateDisjoint,
  type Cidr,
  contains,
  hostRoute,
  intersect,
  networkAddress,
  subtract,
} from "../core/net/cidr.ts";
import { keepDisjoint } from "../core/net/disjoint.ts";
import { itemsBySlot } from "../core/diff.ts";
import type { Desired, Item } from "../core/plan.ts";
import { type ClusterId, compareText } from "../core/world.ts";
import { carriesAny, chooseAnchor } from "./anchor.ts";
import { at, diagnose } from "./diagnostics.ts";
import { carriedEndpoint, discoveredOn, type EndpointOrigin, type IpEndpoint } from "./endpoint.ts";
import type { KiloFacts } from "./facts.ts";
import { aboutNode } from "./node-checks.ts";
import { allowedIpsPath, peerFields, peerLabels, peerReasons } from "./peer.ts";
import { type Bid, fillSlots, type Offer, type Proposal } from "./slots.ts";
import type { SourcePlan } from "./source.ts";

/** What a plan says of a desired Peer beside its content. */
export type PeerNote = {
  readonly mesh: string;
  readonly source: string;
  readonly node: string;
  readonly endpoint: string | null;
  readonly endpointFrom: EndpointOrigin;
  readonly keepaliveSeconds: number;
  readonly anchor: boolean;
};

/** What is wanted on a target, with what the people of the meshes should know. */
export type TargetWish = {
  readonly desired: readonly Desired[];
  readonly notes: ReadonlyMap<Desired, PeerNote>;
  /** Slots that a foreign Peer holds too: ours there, if any, stays as it is. */
  readonly contested: ReadonlySet<string>;
  readonly diagnostics: readonly Diagnostic[];
};

/** Limits on what one target is given. */
export type TargetLimits = { readonly peersMax: number; readonly rangesWarn: number };

/** Everything `planTarget` looks at. */
export type TargetInput = {
  readonly id: ClusterId;
  readonly name: string;
  readonly facts: KiloFacts | undefined;
  readonly offers: readonly Offer[];
  /** This cluster as a source, in each mesh: its own endpoints count as endpoints of every pair here. */
  readonly ownSources: readonly SourcePlan[];
  readonly items: readonly Item[];
  readonly limits: TargetLimits;
};

/** Decides which Peers should exist on a target. */
export function planTarget(input: TargetInput): TargetWish {
  const bySlot = itemsBySlot(input.items);
  const slots = fillSlots(input.offers, bySlot, nodeKeys(input.facts));
  const diagnostics: Diagnostic[] = [...slots.diagnostics];
  const itemOf = ({ owner }: Proposal): Item | undefined =>
    bySlot.get(owner.candidate.key)?.find((item) => item.standing.owner === "us");
  const proposals = withinLimit(slots.proposals, itemOf, input, diagnostics);
  const endpoints = chooseEndpoints(proposals, itemOf, input, diagnostics);
  const ranges = assignRanges(proposals, endpoints, itemOf, input, diagnostics);
  const notes = new Map<Desired, PeerNote>();
  let total = 0;
  for (const proposal of proposals) {
    const carried = ranges.get(proposal);
    if (carried === undefined || carried.claims.length === 0) continue;
    const { from, endpoint } = endpoints.get(proposal) ?? noEndpoint;
    const { source, candidate } = proposal.owner;
    const keepaliveSeconds = keepaliveOf(proposal);
    total += carried.claims.length;
    const desired: Desired = {
      kind: "Peer",
      name: candidate.name,
      slot: candidate.key,
      origin: candidate.origin,
      claims: carried.claims,
      claimsPath: allowedIpsPath,
      labels: from === "discovered" ? { ...candidate.labels, [peerLabels.endpointFrom]: from } : candidate.labels,
      fields: peerFields(candidate.key, carried.claims, endpoint?.text ?? null, keepaliveSeconds),
      because: "NodeAppeared",
      reasons: carried.anchorMoved ? { ...peerReasons, [allowedIpsPath]: "AnchorMoved" } : peerReasons,
    };
    const { mesh, name } = source;
    notes.set(desired, {
      mesh: mesh.id,
      source: name,
      node: candidate.node.name,
      endpoint: endpoint?.text ?? null,
      endpointFrom: from,
      keepaliveSeconds,
      anchor: carried.anchor,
    });
  }
  if (total > input.limits.rangesWarn) {
    const where = at(undefined, input.name, "Cluster", input.name);
    diagnostics.push(diagnose("TargetBudget", where, { ranges: total, warn: input.limits.rangesWarn }));
  }
  return { desired: [...notes.keys()], notes, contested: slots.contested, diagnostics };
}

const noEndpoint = { from: "none" as EndpointOrigin, endpoint: undefined };

const nodeKeys = (facts: KiloFacts | undefined): Map<string, string> =>
  new Map(facts?.nodes.flatMap((node) => (node.key?.result.ok ? [[node.key.result.value, node.name]] : [])) ?? []);

/** Peers that exist come first, so that a limit never removes what works. */
function withinLimit(
  proposals: readonly Proposal[],
  itemOf: (proposal: Proposal) => Item | undefined,
  { name, limits }: TargetInput,
  diagnostics: Diagnostic[],
): readonly Proposal[] {
  if (proposals.length <= limits.peersMax) return proposals;
  const where = at(undefined, name, "Cluster", name);
  diagnostics.push(diagnose("TargetLimit", where, { peers: proposals.length, max: limits.peersMax }));
  return [...proposals]
    .map((proposal) => ({ proposal, rank: itemOf(proposal) === undefined ? 1 : 0 }))
    .sort(
      (a, b) => a.rank - b.rank || compareText(a.proposal.owner.candidate.origin, b.proposal.owner.candidate.origin),
    )
    .slice(0, limits.peersMax)
    .map(({ proposal }) => proposal);
}

type Chosen = { readonly from: EndpointOrigin; readonly endpoint: IpEndpoint | undefined };

function chooseEndpoints(
  proposals: readonly Proposal[],
  itemOf: (proposal: Proposal) => Item | undefined,
  input: TargetInput,
  diagnostics: Diagnostic[],
): Map<Proposal, Chosen> {
  const discovered = discoveredOn(input.facts?.nodes ?? []);
  const sources = [...new Set([...input.offers.map((offer) => offer.source), ...input.ownSources])];
  const overlays = new CidrIndex(
    sources.flatMap((source) => source.entry.grant.all.map((cidr) => [cidr, source] as const)),
  );
  const chosen = new Map<Proposal, Chosen>();
  for (const proposal of proposals) {
    const { source, candidate } = proposal.owner;
    const place = { mesh: source.mesh.id, cluster: source.name };
    const node = candidate.node.name;
    const choice = chooseEndpoint(proposal.owner, itemOf(proposal), discovered.get(candidate.key) ?? []);
    if (candidate.chain.unresolved !== undefined) {
      const kept = choice.endpoint
        ? `its last known address ${choice.endpoint.text} stays`
        : "its Peer has no endpoint";
      diagnostics.push(aboutNode(place, node, "EndpointUnresolved", { node, name: candidate.chain.unresolved, kept }));
    }
    const range = choice.endpoint && overlayAround(hostRoute(choice.endpoint.ip), overlays);
    if (range !== undefined && choice.endpoint !== undefined) {
      const values = { node, endpoint: choice.endpoint.text, range };
      diagnostics.push(aboutNode(place, node, "EndpointInsideOverlay", values));
      chosen.set(proposal, noEndpoint);
    } else chosen.set(proposal, choice);
  }
  return chosen;
}

/** Explicit wins; then what the target's nodes saw, if the source says it may roam; then the chain. Nothing flaps. */
function chooseEndpoint({ source, candidate }: Bid, item: Item | undefined, seen: readonly IpEndpoint[]): Chosen {
  const { chain } = candidate;
  const roams = source.entry.keepaliveSeconds > 0 && (chain.from === "ExternalIP" || chain.from === "none");
  if (!roams && chain.unresolved === undefined) return chain;
  const carried = carriedEndpoint(item?.fields["spec.endpoint"]);
  if (chain.unresolved !== undefined) return { from: carried ? "last-known" : "none", endpoint: carried };
  const current = seen.find((endpoint) => endpoint.text === carried?.text);
  if (seen.length > 0) return { from: "discovered", endpoint: current ?? seen[0] };
  // Kilo empties what it saw at each rewrite of the device, and our own write causes one: keep what was found before.
  const wasDiscovered = item?.labels[peerLabels.endpointFrom] === "discovered";
  return wasDiscovered && carried !== undefined ? { from: "discovered", endpoint: carried } : chain;
}

function overlayAround(address: Cidr, overlays: CidrIndex<SourcePlan>): Cidr | undefined {
  for (const { value: source } of overlays.overlapping(address)) {
    const hit = source.overlay.firstOverlap(address);
    if (hit !== undefined) return hit.cidr;
  }
  return undefined;
}

type Carried = { readonly claims: readonly Cidr[]; readonly anchor: boolean; readonly anchorMoved: boolean };

function assignRanges(
  proposals: readonly Proposal[],
  endpoints: ReadonlyMap<Proposal, Chosen>,
  itemOf: (proposal: Proposal) => Item | undefined,
  input: TargetInput,
  diagnostics: Diagnostic[],
): Map<Proposal, Carried> {
  const endpointIps = endpointsHere(endpoints, input);
  const endpointIndex = new CidrIndex([...endpointIps].map((ip) => [hostRoute(ip), ip] as const));
  const immovable = immovableRanges(proposals, input);
  const unaccepted = new Map<string, { bid: Bid; ranges: Set<Cidr> }>();
  const ranges = new Map<Proposal, Carried>();
  for (const group of groupByCluster(proposals)) {
    const wide = clusterWideOf(group, endpointIndex, input, diagnostics);
    const anchor = wide.size === 0 ? undefined : chooseAnchor(group, [...wide.keys()], itemOf);
    const shared =
      group.some((proposal) => proposal.also.length > 0) || new Set(group.map((p) => p.owner.source)).size > 1;
    const wants = group.map((proposal) => {
      const bids = proposal.also.length === 0 ? [proposal.owner] : [proposal.owner, ...proposal.also];
      const plain = bids.flatMap((bid) => accept(bid, ownRanges(bid, endpointIps), unaccepted));
      const extra = proposal === anchor ? [...wide].flatMap(([cidr, bid]) => accept(bid, [cidr], unaccepted)) : [];
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

/** Every address that tunnel packets go to or come from here; a range that holds one would swallow the tunnel. */
function endpointsHere(endpoints: ReadonlyMap<Proposal, Chosen>, input: TargetInput): Set<Address> {
  const addresses = new Set<Address>();
  for (const { endpoint } of endpoints.values()) if (endpoint !== undefined) addresses.add(endpoint.ip);
  for (const source of input.ownSources) {
    for (const { chain } of source.candidates) if (chain.endpoint !== undefined) addresses.add(chain.endpoint.ip);
  }
  for (const item of input.items) {
    if (item.standing.owner === "us" && item.standing.ifUnwanted.do === "delete") continue;
    const endpoint = carriedEndpoint(item.fields["spec.endpoint"]);
    if (endpoint !== undefined) addresses.add(endpoint.ip);
  }
  return addresses;
}

/** Ranges of Peers that stay whatever we plan: foreign ones, and ours that are held and that nothing desires. */
function immovableRanges(proposals: readonly Proposal[], input: TargetInput): CidrIndex<Item> | undefined {
  const wanted = new Set<string>(proposals.map((proposal) => proposal.owner.candidate.key));
  const origins = new Set(proposals.map((proposal) => proposal.owner.candidate.origin));
  const held = input.items.filter(
    (item) =>
      item.standing.owner === "other" ||
      (item.standing.ifUnwanted.do === "hold" && !wanted.has(item.slot) && !origins.has(item.origin ?? "")),
  );
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
  endpoints: CidrIndex<Address>,
  input: TargetInput,
  diagnostics: Diagnostic[],
): Map<Cidr, Bid> {
  const bids = new Map<SourcePlan, Bid>();
  for (const { owner, also } of group)
    for (const bid of [owner, ...also]) if (!bids.has(bid.source)) bids.set(bid.source, bid);
  const wide = new Map<Cidr, Bid>();
  for (const [source, bid] of bids) {
    for (const range of source.clusterWide) {
      const inside = endpoints.overlapping(range);
      const [first] = inside;
      if (first !== undefined) {
        const where = at(source.mesh.id, source.name, "Cluster", input.name);
        diagnostics.push(diagnose("EndpointInsideRange", where, { range, endpoint: first.value }));
      }
      const pieces =
        inside.length === 0
          ? [range]
          : subtract(
              range,
              inside.map(({ cidr }) => cidr),
            );
      for (const piece of pieces) if (!wide.has(piece)) wide.set(piece, bid);
    }
  }
  return wide;
}

/** A node's own ranges, without internal addresses that are endpoints here. */
function ownRanges({ candidate }: Bid, endpoints: ReadonlySet<Address>): readonly Cidr[] {
  if (candidate.internals.length === 0) return candidate.overlay;
  const internals = candidate.internals.filter((route) => !endpoints.has(networkAddress(route)));
  return internals.length === 0 ? candidate.overlay : [...candidate.overlay, ...internals];
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

/** The mesh-wide keepalive, as the old operator computes it; with several meshes the largest. */
const keepaliveOf = ({ owner, also }: Proposal): number =>
  also.reduce((most, bid) => Math.max(most, bid.source.keepaliveSeconds), owner.source.keepaliveSeconds);

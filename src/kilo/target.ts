// One cluster as a target: every source that reaches it, made into Peers. What a Peer may carry here depends on the
// target: on what it accepts, on the endpoints in use there, and on the Peers that somebody else keeps on it.

import type { Diagnostic } from "../core/diagnostic.ts";
import { changesBetween, itemsBySlot, keeperOf } from "../core/diff.ts";
import { appendAll } from "../core/list.ts";
import { labelValue } from "../core/naming.ts";
import type { Desired, Fields, Item } from "../core/plan.ts";
import { type ClusterId, compareText } from "../core/world.ts";
import type { Crossings } from "./crossings.ts";
import { at, diagnose } from "./diagnostics.ts";
import { carriedEndpoint, type EndpointOrigin } from "./endpoint.ts";
import { type KiloFacts, nodesByKey } from "./facts.ts";
import { type Cidr, isHostRoute } from "../core/net/cidr.ts";
import { allowedIpsPath, isPeerLabel, peerFields, peerLabels, peerReasons, urgentPaths } from "./peer.ts";
import { fillSlots, isInCustody, type Offer, type Proposal } from "./slots.ts";
import type { SourcePlan } from "./source.ts";
import { chooseEndpoints, discoveredLabel, type Endpoints } from "./target-endpoints.ts";
import { type Assignment, assignRanges, type Carried, stayingItems } from "./target-ranges.ts";

/** Why a held Peer gives ranges up, or goes when nothing is left of it. */
export const rangesReassigned = "RangesReassigned";

/** What a plan says of a desired Peer beside its content. */
export type PeerNote = {
  readonly mesh: string;
  readonly source: string;
  readonly node: string;
  /** What active meshes grant of it; a Peer held for another mesh may carry more. */
  readonly granted: readonly Cidr[];
  readonly endpoint: string | null;
  readonly endpointFrom: EndpointOrigin;
  readonly keepaliveSeconds: number;
  readonly anchor: boolean;
};

/** A Peer that should exist. */
export type DesiredPeer = Desired & { readonly note: PeerNote };

/** What is wanted on a target, with what the people of the meshes should know. */
export type TargetWish = {
  readonly desired: readonly DesiredPeer[];
  /** Held Peers of which nothing is left: everything they carry belongs to live nodes now. */
  readonly emptied: ReadonlySet<Item>;
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
  /** Slots whose Peers stay exactly as they are. */
  readonly frozen: ReadonlySet<string>;
  readonly crossings: Crossings;
  readonly limits: TargetLimits;
  /** Nothing may be taken away: no Peer may be left with nothing, and each keeps what it carries. */
  readonly keepsAll: boolean;
  /** Whether a mesh could have granted a range. */
  readonly isClaimable: (range: Cidr) => boolean;
};

/** Decides which Peers should exist on a target. */
export function planTarget(input: TargetInput): TargetWish {
  const bySlot = itemsBySlot(input.items);
  const slots = fillSlots(input.offers, bySlot, nodesByKey(input.facts?.nodes ?? []));
  const diagnostics: Diagnostic[] = [...slots.diagnostics];
  const itemOf = currentItems(slots.proposals, bySlot, input.items);
  const { proposals, endpoints, assignment, found } = settle(
    withinLimit(
      slots.proposals.filter(({ owner }) => !input.frozen.has(owner.candidate.key)),
      itemOf,
      input,
      diagnostics,
    ),
    itemOf,
    input,
  );
  appendAll(diagnostics, found);
  const desired: DesiredPeer[] = [];
  let total = 0;
  for (const proposal of proposals) {
    const carried = assignment.carried.get(proposal);
    if (carried === undefined || carried.own.length === 0) continue;
    const { from, endpoint } = endpoints.of(proposal);
    const { source, candidate } = proposal.owner;
    const keepaliveSeconds = keepaliveOf(proposal);
    const item = itemOf(proposal);
    const address = endpoint?.text ?? null;
    const fields = peerFields(candidate.key, carried.claims, address, keepaliveSeconds);
    total += carried.claims.length;
    desired.push({
      kind: "Peer",
      intents: [source.mesh.id, ...proposal.also.map((bid) => bid.source.mesh.id)],
      name: candidate.name,
      slot: candidate.key,
      origin: candidate.origin,
      claims: carried.claims,
      claimsPath: allowedIpsPath,
      labels: labelsHere(proposal, item, from, fields),
      fields,
      because: "NodeAppeared",
      urgent: urgentPaths,
      reasons: carried.anchorMoved ? { ...peerReasons, [allowedIpsPath]: "AnchorMoved" } : peerReasons,
      note: {
        mesh: source.mesh.id,
        source: source.name,
        node: candidate.node.name,
        granted: isInCustody(item, proposal) ? carried.own : carried.claims,
        endpoint: address,
        endpointFrom: from,
        keepaliveSeconds,
        anchor: carried.anchor,
      },
    });
  }
  const emptied = new Set<Item>();
  for (const [item, claims] of assignment.released) {
    if (claims.length === 0) emptied.add(item);
    else desired.push(trimmed(item, claims, input));
  }
  if (total > input.limits.rangesWarn) {
    const where = at(undefined, input.name, "Cluster", input.name);
    diagnostics.push(diagnose("TargetBudget", where, { ranges: total, warn: input.limits.rangesWarn }));
  }
  return { desired, emptied, diagnostics };
}

type Settled = {
  readonly proposals: readonly Proposal[];
  readonly endpoints: Endpoints;
  readonly assignment: Assignment;
  readonly found: readonly Diagnostic[];
};

/** How often a target is decided anew because a held Peer turned out to stay; in practice once. */
const roundsMax = 5;

/**
 * Chooses endpoints and gives out ranges. A proposal that gets nothing is given up, and if its Peer is held, that Peer
 * stays as it is and is in the way of others: then everything is decided once more without it.
 */
function settle(
  all: readonly Proposal[],
  itemOf: (proposal: Proposal) => Item | undefined,
  input: TargetInput,
): Settled {
  let proposals = all;
  for (let round = 1; ; round++) {
    const found: Diagnostic[] = [];
    const staying = stayingItems(proposals, input);
    const endpoints = chooseEndpoints(proposals, itemOf, staying, input, found);
    const assignment = assignRanges(proposals, { endpoints, staying, itemOf, input, diagnostics: found });
    const goesOn = proposals.filter((proposal) => !isStuck(itemOf(proposal), assignment.carried.get(proposal)));
    if (goesOn.length === proposals.length || round === roundsMax) return { proposals, endpoints, assignment, found };
    proposals = goesOn;
  }
}

const isStuck = (item: Item | undefined, carried: Carried | undefined): boolean =>
  item?.standing.owner === "us" &&
  item.standing.ifUnwanted.do === "hold" &&
  (carried === undefined || carried.own.length === 0);

/** The Peer that stands for each proposal today: by its key, else by what it was made from. */
function currentItems(
  proposals: readonly Proposal[],
  bySlot: ReadonlyMap<string, readonly Item[]>,
  items: readonly Item[],
): (proposal: Proposal) => Item | undefined {
  const current = new Map<Proposal, Item>();
  if (items.length === 0) return () => undefined;
  const ours = items.filter((item) => item.standing.owner === "us" && item.origin !== undefined);
  const byOrigin = new Map(ours.map((item) => [item.origin, item]));
  const wanted = new Set<string>(proposals.map(({ owner }) => owner.candidate.key));
  for (const proposal of proposals) {
    const { candidate } = proposal.owner;
    const holders = bySlot.get(candidate.key)?.filter((item) => item.standing.owner === "us") ?? [];
    // A node whose key was rotated has no Peer in the new slot yet: the one it was made into before counts.
    const former = holders.length === 0 ? byOrigin.get(candidate.origin) : undefined;
    const item = keeperOf(candidate, holders) ?? (former && !wanted.has(former.slot) ? former : undefined);
    if (item !== undefined) current.set(proposal, item);
  }
  return (proposal) => current.get(proposal);
}

/** Peers that exist come first, so that a limit never removes what works. */
function withinLimit(
  proposals: readonly Proposal[],
  itemOf: (proposal: Proposal) => Item | undefined,
  { name, limits }: TargetInput,
  diagnostics: Diagnostic[],
): readonly Proposal[] {
  if (proposals.length <= limits.peersMax) return proposals;
  for (const mesh of new Set(proposals.map(({ owner }) => owner.source.mesh.id))) {
    const values = { peers: proposals.length, max: limits.peersMax };
    diagnostics.push(diagnose("TargetLimit", at(mesh, name, "Cluster", name), values));
  }
  const existing = proposals.filter((proposal) => itemOf(proposal) !== undefined);
  const fresh = proposals
    .filter((proposal) => itemOf(proposal) === undefined)
    .sort((a, b) => compareText(a.owner.candidate.origin, b.owner.candidate.origin));
  return [...existing, ...fresh.slice(0, Math.max(0, limits.peersMax - existing.length))];
}

/** The mesh-wide keepalive, as the old operator computes it; with several meshes the largest. */
const keepaliveOf = ({ owner, also }: Proposal): number =>
  also.reduce((most, bid) => Math.max(most, bid.source.keepaliveSeconds), owner.source.keepaliveSeconds);

const ownLabels = (item: Item): Readonly<Record<string, string>> =>
  Object.fromEntries(
    Object.entries(item.labels)
      .filter(([key]) => isPeerLabel(key))
      .sort(([a], [b]) => compareText(a, b)),
  );

/** The labels of a Peer here: its node's, those of the mesh it is held for, and whether its endpoint was discovered. */
function labelsHere(
  proposal: Proposal,
  item: Item | undefined,
  from: EndpointOrigin,
  fields: Fields,
): Readonly<Record<string, string>> {
  const { candidate, source } = proposal.owner;
  const custody = item !== undefined && isInCustody(item, proposal);
  const labels = custody ? ownLabels(item) : { ...candidate.labels, ...sourceUid(source, item, fields) };
  return from === "discovered" ? { ...labels, [peerLabels.endpointFrom]: discoveredLabel(candidate.chain) } : labels;
}

/** Which cluster the node was seen in. A Peer that does not say so is not written for that alone. */
function sourceUid({ uid }: SourcePlan, item: Item | undefined, fields: Fields): Readonly<Record<string, string>> {
  const recorded = item?.labels[peerLabels.sourceUid];
  const isWritten = item === undefined || recorded !== undefined || changesBetween(item.fields, fields).length > 0;
  const known = isWritten && uid !== undefined ? labelValue(uid) : recorded;
  return known === undefined ? {} : { [peerLabels.sourceUid]: known };
}

/** A Peer that is held, as it is but for what a live node has got. */
function trimmed(item: Item, claims: readonly Cidr[], { offers }: TargetInput): DesiredPeer {
  const keepalive = item.fields["spec.persistentKeepalive"];
  const endpoint = carriedEndpoint(item.fields["spec.endpoint"])?.text ?? null;
  const lost = item.claims.filter((claim) => !claims.includes(claim));
  return {
    kind: item.kind,
    intents: item.intent === undefined ? [] : [item.intent],
    name: item.name,
    slot: item.slot,
    origin: item.origin ?? item.name,
    claims,
    claimsPath: allowedIpsPath,
    labels: ownLabels(item),
    fields: { ...item.fields, [allowedIpsPath]: claims, "spec.endpoint": endpoint },
    because: "Held",
    reasons: { [allowedIpsPath]: lost.every(isHostRoute) ? "AddressReassigned" : rangesReassigned },
    note: {
      mesh: item.intent ?? "",
      source: offers.find(({ source }) => source.cluster === item.party)?.source.name ?? "",
      node: item.labels[peerLabels.node] ?? item.name,
      granted: claims,
      endpoint,
      endpointFrom: endpoint === null ? "none" : "last-known",
      keepaliveSeconds: typeof keepalive === "number" ? keepalive : 0,
      anchor: false,
    },
  };
}

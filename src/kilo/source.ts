// One cluster of one mesh as a source: which of its nodes become Peers elsewhere, with which ranges, and what its owner
// should know. Independent of any target; what depends on the target is decided in target.ts.

import { type Diagnostic, listSome, type Where } from "../core/diagnostic.ts";
import { labelValue, peerName } from "../core/naming.ts";
import type { CidrIndex, CidrItem } from "../core/net/cidr-index.ts";
import { type Cidr, contains, containsAddress, hostRoute, prefixLength, subtract } from "../core/net/cidr.ts";
import { areDisjoint, indexOf, keepDisjoint } from "../core/net/disjoint.ts";
import type { PublicKey } from "../core/net/public-key.ts";
import type { ClusterId } from "../core/world.ts";
import { at, diagnose } from "./diagnostics.ts";
import { type Chain, followChain } from "./endpoint.ts";
import type { Established } from "./established.ts";
import type { KiloFacts, NodeFacts } from "./facts.ts";
import { byFreshness, granularityOf, segmentsOf } from "./granularity.ts";
import type { Entry, MeshIntent } from "./intent.ts";
import { aboutNode, checkPods, checkTunnel, type NodeFault, type Place } from "./node-checks.ts";
import { nodeAdvice } from "./node-advice.ts";
import { labelsFor, originOf } from "./peer.ts";
import { selects } from "./selector.ts";

/** A node that can be a Peer on any target. */
export type Candidate = {
  readonly node: NodeFacts;
  readonly key: PublicKey;
  readonly name: string;
  readonly origin: string;
  readonly labels: Readonly<Record<string, string>>;
  /** Pod ranges and WireGuard address: addresses that exist only inside the tunnels. */
  readonly overlay: readonly Cidr[];
  /** Internal addresses of the nodes: they exist outside too, and may be endpoints. */
  readonly internals: readonly Cidr[];
  readonly chain: Chain;
};

/** A cluster of a mesh, ready to be offered to targets. */
export type SourcePlan = {
  readonly mesh: MeshIntent;
  readonly entry: Entry;
  readonly cluster: ClusterId;
  readonly name: string;
  /** By node name. */
  readonly candidates: readonly Candidate[];
  /** Nodes that are there but cannot be Peers, and whether what they had is kept for a while. */
  readonly faults: ReadonlyMap<string, Pick<NodeFault, "code" | "consequence">>;
  readonly unselected: ReadonlySet<string>;
  readonly nodeNames: ReadonlySet<string>;
  readonly nodeByKey: ReadonlyMap<string, string>;
  /** By the node's label value on a Peer. */
  readonly nodeByLabel: ReadonlyMap<string, string>;
  /** By the name the old operator gave the node's Peer; made when first asked for. */
  readonly nodeByPeerName: () => ReadonlyMap<string, string>;
  /** A Node without a readable name: we cannot tell which one is missing. */
  readonly incomplete: boolean;
  /** Ranges of the whole cluster, to be carried by one anchor. */
  readonly clusterWide: readonly Cidr[];
  /** Addresses that exist only inside the tunnels of this source; indexed when first asked for. */
  readonly overlay: () => CidrIndex<Cidr>;
  readonly keepaliveSeconds: number;
  readonly skipped: number;
  readonly diagnostics: readonly Diagnostic[];
};

/** The most pieces a cluster-wide range may be cut into; around single addresses a /24 has at most 128. */
export const piecesMax = 128;

/** Kilo takes an agent for dead when its last check-in is older than this. */
const agentReadySeconds = 60;

/** Everything `planSource` looks at. */
export type SourceInput = {
  readonly mesh: MeshIntent;
  readonly entry: Entry;
  readonly cluster: ClusterId;
  readonly name: string;
  readonly facts: KiloFacts;
  readonly instance: string | undefined;
  readonly dns: ReadonlyMap<string, string>;
  readonly established: Established;
};

/** Checks the nodes of a source and works out what each can carry. `facts.nodes` are sorted by name. */
export function planSource(input: SourceInput): SourcePlan {
  const { mesh, entry, cluster, name, facts } = input;
  const place: Place = { mesh: mesh.id, cluster: name };
  const clusterAt = at(mesh.id, name, "Cluster", name);
  const selected = facts.nodes.filter((node) => selects(entry.selector, node.labels));
  const isSelected = new Set(selected);
  const unreadable = facts.unreadable.filter((object) => object.kind === "Node");
  const faults = new Map<string, NodeFault>();
  const { mode, diagnostics: found } = granularityOf(facts.nodes, place);
  const diagnostics: Diagnostic[] = [...found];
  const carriers = onePerKey(
    (mode === "node" ? nodeCarriers : locationCarriers)(selected, entry, place, faults, diagnostics),
    input,
    place,
    faults,
    diagnostics,
  );
  const claims = shareOut(carriers, input, place, faults, diagnostics);
  const offered = carriers.flatMap((carrier): Candidate[] => {
    const { overlay, internals } = claims.get(carrier) ?? { overlay: [], internals: [] };
    if (overlay.length === 0) return [];
    const { node, key } = carrier;
    return [
      {
        node,
        key,
        name: peerName(mesh.name, entry.name, node.name),
        origin: originOf(mesh.namespace, mesh.name, entry.name, node.name),
        labels: labelsFor(mesh, entry, cluster, node.name, input.instance),
        overlay,
        internals,
        chain: followChain(node, entry.wireguardPort, input.dns),
      },
    ];
  });
  const wide = clusterWideRanges(entry, carriers, offered, place);
  const candidates =
    wide.crowded.length === 0 ? offered : offered.map((each) => withoutInternalsIn(each, wide.crowded));
  diagnostics.push(...wide.diagnostics, ...candidates.flatMap((candidate) => nodeAdvice(candidate, entry, place)));
  diagnostics.push(...hostNetworkAdvice(entry, carriers, place));
  if (facts.nodes.length === 0 && unreadable.length === 0) {
    diagnostics.push(diagnose("SourceEmpty", clusterAt, { entry: entry.name }));
  }
  for (const object of unreadable) {
    const code = "NodeUnreadable";
    const diagnostic = aboutNode(place, object.name ?? "(no name)", code, { detail: object.detail });
    diagnostics.push(diagnostic);
    if (object.name !== undefined) faults.set(object.name, { code, consequence: "keep", diagnostic });
  }
  const nodeNames = new Set([...facts.nodes.map((node) => node.name), ...faults.keys()]);
  return {
    mesh,
    entry,
    cluster,
    name,
    candidates,
    faults,
    unselected: new Set(facts.nodes.filter((node) => !isSelected.has(node)).map((node) => node.name)),
    nodeNames,
    nodeByLabel: new Map([...nodeNames].map((node) => [labelValue(node), node])),
    nodeByPeerName: once(() => new Map([...nodeNames].map((node) => [peerName(mesh.name, entry.name, node), node]))),
    nodeByKey: new Map(
      facts.nodes.flatMap((node) => (node.key?.result.ok ? [[node.key.result.value, node.name]] : [])),
    ),
    incomplete: unreadable.some((object) => object.name === undefined),
    clusterWide: wide.ranges,
    overlay: once(() => indexOf(candidates.flatMap((candidate) => candidate.overlay))),
    keepaliveSeconds: Math.max(...mesh.entries.map((other) => other.keepaliveSeconds), 0),
    skipped: [...faults.keys()].length,
    diagnostics: [...diagnostics, ...[...faults.values()].map((fault) => fault.diagnostic)],
  };
}

function once<T>(make: () => T): () => T {
  let made: { readonly value: T } | undefined;
  return () => (made ??= { value: make() }).value;
}

/** A tunnel holder with the nodes it carries and their pod ranges. */
type Carrier = {
  readonly node: NodeFacts;
  readonly key: PublicKey;
  readonly wireguard: Cidr;
  readonly members: readonly { readonly node: NodeFacts; readonly pods: readonly Cidr[] }[];
};

function nodeCarriers(
  nodes: readonly NodeFacts[],
  entry: Entry,
  place: Place,
  faults: Map<string, NodeFault>,
  diagnostics: Diagnostic[],
): Carrier[] {
  return nodes.flatMap((node) => {
    const pods = checkPods(node, entry, place);
    const tunnel = pods.ok ? checkTunnel(node, entry, place) : pods;
    if (!pods.ok || !tunnel.ok) {
      if (!tunnel.ok) faults.set(node.name, tunnel.error);
      return [];
    }
    diagnostics.push(...pods.value.warnings);
    const { key, wireguard } = tunnel.value;
    return [{ node, key, wireguard: hostRoute(wireguard), members: [{ node, pods: pods.value.pods }] }];
  });
}

function locationCarriers(
  nodes: readonly NodeFacts[],
  entry: Entry,
  place: Place,
  faults: Map<string, NodeFault>,
  diagnostics: Diagnostic[],
): Carrier[] {
  return segmentsOf(nodes).flatMap(({ location, leader, members }) => {
    const carried = members.flatMap((node) => {
      const pods = checkPods(node, entry, place);
      if (!pods.ok) {
        faults.set(node.name, pods.error);
        return [];
      }
      diagnostics.push(...pods.value.warnings);
      return [{ node, pods: pods.value.pods }];
    });
    if (leader === undefined) {
      const names = listSome(members.map((node) => node.name));
      const where = at(place.mesh, place.cluster, "Cluster", place.cluster);
      const diagnostic = diagnose("LocationNoLeader", where, { location, nodes: names });
      for (const node of members) {
        if (!faults.has(node.name))
          faults.set(node.name, { code: "LocationNoLeader", consequence: "grace", diagnostic });
      }
      return [];
    }
    const tunnel = checkTunnel(leader, entry, place);
    if (!tunnel.ok) {
      if (!faults.has(leader.name)) faults.set(leader.name, tunnel.error);
      return [];
    }
    const { key, wireguard } = tunnel.value;
    return [{ node: leader, key, wireguard: hostRoute(wireguard), members: carried }];
  });
}

/** Kilo and WireGuard know a peer by its key: of several nodes with one key, the freshest is used. */
function onePerKey(
  carriers: readonly Carrier[],
  { established }: SourceInput,
  place: Place,
  faults: Map<string, NodeFault>,
  diagnostics: Diagnostic[],
): Carrier[] {
  const byKey = new Map<PublicKey, Carrier[]>();
  for (const carrier of carriers) {
    const group = byKey.get(carrier.key);
    if (group === undefined) byKey.set(carrier.key, [carrier]);
    else group.push(carrier);
  }
  if (byKey.size === carriers.length) return [...carriers];
  const kept = new Set<Carrier>();
  for (const [key, group] of byKey) {
    const rank = stickyRank(group, ({ node }) => established.standsFor(key, node.name));
    const [winner, ...losers] =
      group.length === 1 ? group : [...group].sort((a, b) => rank(a) - rank(b) || byFreshness(a.node, b.node));
    if (winner === undefined) continue;
    kept.add(winner);
    if (losers.length === 0) continue;
    const names = losers.map((loser) => loser.node.name);
    const values = { key, winner: winner.node.name, losers: `${names.length} other nodes: ${listSome(names)}` };
    const diagnostic = aboutNode(place, winner.node.name, "PublicKeyDuplicate", values);
    for (const node of names) faults.set(node, { code: "PublicKeyDuplicate", consequence: "drop", diagnostic });
    diagnostics.push(diagnostic);
  }
  return carriers.filter((carrier) => kept.has(carrier));
}

type Share = { readonly overlay: readonly Cidr[]; readonly internals: readonly Cidr[] };
type Want = { readonly carrier: Carrier; readonly member: NodeFacts; readonly use: "pod" | "wireguard" | "internal" };

/**
 * In a dispute the freshest wins. But two agents that are both alive check in by turns, so one that already has what is
 * disputed keeps it while its last check-in is not much older than the latest.
 */
function stickyRank(carriers: readonly Carrier[], has: (carrier: Carrier) => boolean): (carrier: Carrier) => number {
  const latest = Math.max(...carriers.map(({ node }) => node.lastSeen ?? -1));
  const isAlive = ({ node }: Carrier): boolean => latest - (node.lastSeen ?? -1) <= agentReadySeconds;
  return (carrier) => (isAlive(carrier) && has(carrier) ? 0 : 1);
}

/** Gives every range to one carrier: pods before WireGuard addresses before internal ones. */
function shareOut(
  carriers: readonly Carrier[],
  { entry, established }: SourceInput,
  place: Place,
  faults: Map<string, NodeFault>,
  diagnostics: Diagnostic[],
): Map<Carrier, Share> {
  const wants = (use: Want["use"], ranges: (member: Carrier["members"][number], carrier: Carrier) => readonly Cidr[]) =>
    carriers.flatMap((carrier) =>
      carrier.members.flatMap((member) =>
        ranges(member, carrier).map((cidr) => ({ cidr, value: { carrier, member: member.node, use } satisfies Want })),
      ),
    );
  const pods = wants("pod", (member) => member.pods);
  const hosts = [
    ...wants("wireguard", (member, carrier) => (member.node === carrier.node ? [carrier.wireguard] : [])),
    ...wants("internal", (member) => internalRoutes(member.node, entry)),
  ];
  const all = [...pods, ...hosts];
  const { kept, dropped } = areDisjoint(all.map(({ cidr }) => cidr))
    ? { kept: all, dropped: [] }
    : keepDisjoint([...podsByRight(pods, established), ...hostsByRight(hosts, carriers, established)]);
  for (const { item, by } of dropped) {
    const { carrier, member, use } = item.value;
    if (by.value.carrier === carrier || use === "internal") continue;
    const winner = by.value.member.name;
    if (use === "pod") {
      diagnostics.push(
        aboutNode(place, member.name, "PodCIDRDuplicate", { node: member.name, cidr: item.cidr, winner }),
      );
    } else {
      const address = item.cidr.slice(0, item.cidr.indexOf("/"));
      diagnostics.push(aboutNode(place, member.name, "WGIPDuplicate", { node: member.name, address, winner }));
    }
  }
  const shares = new Map<Carrier, { overlay: Cidr[]; internals: Cidr[] }>();
  for (const carrier of carriers) shares.set(carrier, { overlay: [], internals: [] });
  for (const { cidr, value } of kept) {
    const share = shares.get(value.carrier);
    if (value.use === "internal") share?.internals.push(cidr);
    else share?.overlay.push(cidr);
  }
  for (const [carrier, share] of shares) {
    if (share.overlay.length > 0) continue;
    const diagnostic = diagnostics.find(
      (finding) => finding.code === "PodCIDRDuplicate" && finding.subject.name === carrier.node.name,
    );
    if (diagnostic !== undefined)
      faults.set(carrier.node.name, { code: "PodCIDRDuplicate", consequence: "drop", diagnostic });
  }
  return shares;
}

type Wanted = CidrItem<Want>;

/** Who has a pod range keeps it; then the narrower claim counts, so that one wide claim cannot take everybody's. */
function podsByRight(pods: readonly Wanted[], established: Established): Wanted[] {
  const has = new Map(pods.map((want) => [want, established.carries(want.value.carrier.key, want.cidr) ? 0 : 1]));
  return [...pods].sort(
    (a, b) =>
      (has.get(a) ?? 1) - (has.get(b) ?? 1) ||
      prefixLength(b.cidr) - prefixLength(a.cidr) ||
      byFreshness(a.value.member, b.value.member),
  );
}

/** WireGuard addresses before internal ones, each to the freshest; Kilo hands the former out by sort order. */
function hostsByRight(hosts: readonly Wanted[], carriers: readonly Carrier[], established: Established): Wanted[] {
  const order = ({ cidr, value }: Wanted): number =>
    stickyRank(
      carriers,
      (carrier) => carrier === value.carrier && established.carries(carrier.key, cidr),
    )(value.carrier);
  const rank = new Map(hosts.map((want) => [want, (want.value.use === "wireguard" ? 0 : 2) + order(want)]));
  return [...hosts].sort(
    (a, b) => (rank.get(a) ?? 0) - (rank.get(b) ?? 0) || byFreshness(a.value.carrier.node, b.value.carrier.node),
  );
}

/** Host routes of a node's internal addresses, only where the cluster was granted them; no node lives among Services. */
const internalRoutes = (node: NodeFacts, entry: Entry): readonly Cidr[] =>
  node.internalIps
    .filter((address) => entry.grant.hosts.some((range) => containsAddress(range, address)))
    .map((address) => hostRoute(address));

function clusterWideRanges(
  entry: Entry,
  carriers: readonly Carrier[],
  candidates: readonly Candidate[],
  place: Place,
): {
  readonly ranges: readonly Cidr[];
  readonly crowded: readonly Cidr[];
  readonly diagnostics: readonly Diagnostic[];
} {
  const where = at(place.mesh, place.cluster, "Cluster", place.cluster);
  const diagnostics: Diagnostic[] = [];
  const declared =
    entry.grant.generation === "typed"
      ? entry.grant.clusterWide
      : residual(entry, carriers, candidates, where, diagnostics);
  if (declared.length > 0 && candidates.length === 0) {
    const reason = "no node of the cluster can be its anchor";
    diagnostics.push(diagnose("ClusterRangesUncarried", where, { ranges: listSome(declared), reason }));
    return { ranges: [], crowded: [], diagnostics };
  }
  // Declared ranges are disjoint, so only internal addresses can lie in a range of the whole cluster.
  const internals = indexOf(candidates.flatMap((candidate) => candidate.internals));
  const crowded: Cidr[] = [];
  const ranges = declared.flatMap((range) => {
    const pieces = cutAround(
      range,
      internals.overlapping(range).map(({ cidr }) => cidr),
    );
    if (pieces.length <= piecesMax) return pieces;
    const instead = "it is carried whole, and the nodes' internal addresses in it are not carried by themselves";
    diagnostics.push(diagnose("RangeFragmented", where, { range, pieces: pieces.length, instead }));
    crowded.push(range);
    return [range];
  });
  return { ranges, crowded, diagnostics };
}

/** A range without the holes. */
export const cutAround = (range: Cidr, holes: readonly Cidr[]): readonly Cidr[] =>
  holes.length === 0 ? [range] : subtract(range, holes);

const withoutInternalsIn = (candidate: Candidate, ranges: readonly Cidr[]): Candidate => ({
  ...candidate,
  internals: candidate.internals.filter((route) => !ranges.some((range) => contains(range, route))),
});

/** Flat entries that no node covers. Of those that one does cover, says which part nobody carries (B20). */
function residual(
  entry: Entry,
  carriers: readonly Carrier[],
  candidates: readonly Candidate[],
  where: Where,
  diagnostics: Diagnostic[],
): readonly Cidr[] {
  const entries = indexOf(entry.grant.all);
  const carried = indexOf(candidates.flatMap(({ overlay, internals }) => [...overlay, ...internals]));
  const covered = new Set<Cidr>();
  const beyondWireguard = new Set<Cidr>();
  const cover = (cidr: Cidr, wireguard: boolean): void => {
    for (const { cidr: range } of entries.overlapping(cidr)) {
      if (!contains(range, cidr)) continue;
      covered.add(range);
      if (!wireguard) beyondWireguard.add(range);
    }
  };
  for (const { wireguard, members } of carriers) {
    cover(wireguard, true);
    for (const { node, pods } of members) {
      for (const pod of pods) cover(pod, false);
      for (const address of node.internalIps) cover(hostRoute(address), false);
    }
  }
  for (const range of entry.grant.all) {
    if (!beyondWireguard.has(range)) continue;
    const rest = subtract(
      range,
      carried.overlapping(range).map(({ cidr }) => cidr),
    );
    if (rest.length > 0) {
      diagnostics.push(diagnose("RangePartlyCarried", where, { range, rest: listSome(rest), count: rest.length }));
    }
  }
  return entry.grant.all.filter((range) => !covered.has(range));
}

function hostNetworkAdvice(entry: Entry, carriers: readonly Carrier[], place: Place): Diagnostic[] {
  const outside = carriers
    .flatMap((carrier) => carrier.members.map((member) => member.node))
    .filter((node) => node.internalIps.length > 0 && internalRoutes(node, entry).length === 0)
    .map((node) => node.name);
  if (outside.length === 0) return [];
  const nodes = `${outside.length === 1 ? "node" : `${outside.length} nodes:`} ${listSome(outside)}`;
  return [diagnose("InternalIPsNotCarried", at(place.mesh, place.cluster, "Cluster", place.cluster), { nodes })];
}

// One cluster of one mesh as a source: which of its nodes become Peers elsewhere, with which ranges, and what its owner
// should know. Independent of any target; what depends on the target is decided in target.ts.

import { type Diagnostic, listSome } from "../core/diagnostic.ts";
import { appendAll, appendTo } from "../core/list.ts";
import { labelValue, peerName } from "../core/naming.ts";
import { type Cidr, contains } from "../core/net/cidr.ts";
import { indexOf } from "../core/net/disjoint.ts";
import type { PublicKey } from "../core/net/public-key.ts";
import type { ClusterId } from "../core/world.ts";
import { type Carrier, findCarriers } from "./carriers.ts";
import { clusterRanges } from "./cluster-ranges.ts";
import { at, diagnose } from "./diagnostics.ts";
import { type Chain, followChain } from "./endpoint.ts";
import type { Leader } from "./election.ts";
import type { Established } from "./established.ts";
import { type KiloFacts, type NodeFacts, nodesByKey } from "./facts.ts";
import type { Entry, MeshIntent } from "./intent.ts";
import { nodeAdvice } from "./node-advice.ts";
import { aboutNode, type NodeFault, type Place } from "./node-checks.ts";
import { peerIdentity } from "./peer.ts";
import { selects } from "./selector.ts";
import { internalRoutes, shareOut } from "./shares.ts";

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
  /** The node's own WireGuard address, which is in `overlay` too if it got it. */
  readonly wireguard: Cidr;
  /** Which of the ranges its Peer carries today are kept although no node claims them now, if any. */
  readonly retains: ((claim: Cidr) => boolean) | undefined;
  readonly chain: Chain;
};

/** A cluster of a mesh, ready to be offered to targets. */
export type SourcePlan = {
  readonly mesh: MeshIntent;
  readonly entry: Entry;
  readonly cluster: ClusterId;
  /** Which cluster that was, by itself. */
  readonly uid: string | undefined;
  readonly name: string;
  /** By node name. */
  readonly candidates: readonly Candidate[];
  readonly candidateOf: ReadonlyMap<string, Candidate>;
  /** Nodes that are there but cannot be Peers, and whether what they had is kept for a while. */
  readonly faults: ReadonlyMap<string, Pick<NodeFault, "code" | "consequence">>;
  readonly unselected: ReadonlySet<string>;
  /** Every Node that can be read. */
  readonly nodes: readonly NodeFacts[];
  readonly nodeNames: ReadonlySet<string>;
  readonly nodeByKey: ReadonlyMap<string, string>;
  /** By the node's label value on a Peer; made when first asked for, as is the next. */
  readonly nodeByLabel: () => ReadonlyMap<string, string>;
  /** By the name the old operator gave the node's Peer. */
  readonly nodeByPeerName: () => ReadonlyMap<string, string>;
  /** A Node without a readable name: we cannot tell which one is missing. */
  readonly incomplete: boolean;
  /** Ranges of the whole cluster, to be carried by one anchor and cut there around what others carry. */
  readonly clusterWide: readonly Cidr[];
  /** The internal addresses that lie in each of those. */
  readonly internalsIn: ReadonlyMap<Cidr, readonly { readonly node: string; readonly route: Cidr }[]>;
  readonly keepaliveSeconds: number;
  readonly skipped: number;
  readonly diagnostics: readonly Diagnostic[];
};

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
  /** Who leads each location, where that can be told before it is published. */
  readonly leaders: ReadonlyMap<string, Leader>;
  /** Unix seconds; 0 when unknown. */
  readonly nowSeconds: number;
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
  const diagnostics: Diagnostic[] = [];
  const review = { entry, place, established: input.established, faults, diagnostics };
  const carriers = findCarriers(facts, selected, { ...review, leaders: input.leaders });
  const shares = shareOut(carriers, review);
  const usable = carriers.flatMap((carrier) => {
    const share = shares.get(carrier);
    return share === undefined || share.overlay.length === 0 ? [] : [{ carrier, share }];
  });
  const wide = clusterRanges(
    entry,
    carriers,
    usable.map(({ share }) => share),
    place,
  );
  const identity = peerIdentity(mesh, entry, cluster, input.instance);
  const candidates = usable.map(
    ({ carrier: { node, key, wireguard, retains }, share: { overlay, internals } }): Candidate => ({
      node,
      key,
      name: peerName(mesh.name, entry.name, node.name),
      origin: identity.origin(node.name),
      labels: identity.labels(node.name),
      overlay,
      internals: internals.filter((route) => !wide.crowded.some((range) => contains(range, route))),
      wireguard,
      retains,
      chain: followChain(node, entry.wireguardPort, input.dns),
    }),
  );
  appendAll(diagnostics, wide.diagnostics);
  for (const candidate of candidates) {
    appendAll(diagnostics, nodeAdvice(candidate, input, place));
    const { node, chain } = candidate;
    if (chain.reserved === undefined) continue;
    diagnostics.push(aboutNode(place, node.name, "EndpointReserved", { node: node.name, ...chain.reserved }));
  }
  appendAll(diagnostics, hostNetworkAdvice(entry, carriers, place));
  if (facts.nodes.length === 0 && unreadable.length === 0) {
    diagnostics.push(diagnose("SourceEmpty", clusterAt, { entry: entry.name }));
  }
  if (selected.length === 0 && facts.nodes.length > 0) {
    const values = { entry: entry.name, nodes: facts.nodes.length };
    diagnostics.push(diagnose("NodeSelectorMatchesNothing", clusterAt, values));
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
    uid: facts.uid,
    name,
    candidates,
    candidateOf: new Map(candidates.map((candidate) => [candidate.node.name, candidate])),
    faults,
    unselected: new Set(facts.nodes.filter((node) => !isSelected.has(node)).map((node) => node.name)),
    nodes: facts.nodes,
    nodeNames,
    nodeByLabel: once(() => new Map([...nodeNames].map((node) => [labelValue(node), node]))),
    nodeByPeerName: once(() => new Map([...nodeNames].map((node) => [peerName(mesh.name, entry.name, node), node]))),
    nodeByKey: nodesByKey(facts.nodes),
    incomplete: unreadable.some((object) => object.name === undefined),
    clusterWide: wide.ranges,
    internalsIn: internalsIn(wide.ranges, candidates),
    keepaliveSeconds: mesh.entries.reduce((most, other) => Math.max(most, other.keepaliveSeconds), 0),
    skipped: faults.size,
    diagnostics: [...diagnostics, ...[...faults.values()].map((fault) => fault.diagnostic)],
  };
}

/** Makes a value when it is first asked for. */
export function once<T>(make: () => T): () => T {
  let made: { readonly value: T } | undefined;
  return () => (made ??= { value: make() }).value;
}

function internalsIn(ranges: readonly Cidr[], candidates: readonly Candidate[]): SourcePlan["internalsIn"] {
  const found = new Map<Cidr, { node: string; route: Cidr }[]>();
  const index = indexOf(ranges);
  for (const { node, internals } of candidates) {
    for (const route of internals) {
      for (const { cidr } of index.overlapping(route)) appendTo(found, cidr, { node: node.name, route });
    }
  }
  return found;
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

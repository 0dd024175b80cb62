// Kilo as the engine sees it.

import { clusterMeshFinalizer, kiloGroup, kiloVersion } from "../api/cluster-mesh.ts";
import { fieldsOf, textOf } from "../core/json.ts";
import type { Cidr } from "../core/net/cidr.ts";
import type { Member, Provider, Seen } from "../core/provider.ts";
import { namespaces, type Resource } from "../core/resource.ts";
import { compareText, LOCAL } from "../core/world.ts";
import { endpointNames } from "./endpoint.ts";
import {
  type KiloFacts,
  type NodeFacts,
  type PeerFacts,
  readNode,
  readPeer,
  readServiceRanges,
  sameNode,
  type Unreadable,
} from "./facts.ts";
import type { MeshIntent } from "./intent.ts";
import { meshReader } from "./mesh-reader.ts";
import { planInTurn } from "./last-plan.ts";
import { peerManifest } from "./peer.ts";
import type { KiloOptions, KiloPlan } from "./plan.ts";
import { meshReport } from "./report.ts";

const core = { group: "", version: "v1" };

/** ClusterMesh, as an API server serves it. */
export const clusterMeshes: Resource = {
  group: kiloGroup,
  version: kiloVersion,
  plural: "clustermeshes",
  kind: "ClusterMesh",
  namespaced: true,
};

/** Kilo's Peer, as an API server serves it. */
export const peers: Resource = { ...clusterMeshes, plural: "peers", kind: "Peer", namespaced: false };

/** Node, as an API server serves it. */
export const nodes: Resource = { ...core, plural: "nodes", kind: "Node", namespaced: false };

const serviceCidrs: Resource = {
  group: "networking.k8s.io",
  version: "v1",
  plural: "servicecidrs",
  kind: "ServiceCIDR",
  namespaced: false,
};

/** One thing read of one object. */
export type KiloFact =
  | { readonly type: "node"; readonly node: NodeFacts }
  | { readonly type: "peer"; readonly peer: PeerFacts }
  | { readonly type: "unreadable"; readonly object: Unreadable }
  | { readonly type: "services"; readonly ranges: readonly Cidr[] }
  | { readonly type: "cluster"; readonly uid: string | undefined };

/** The Kilo provider. */
export function kiloProvider(options: KiloOptions): Provider<MeshIntent, KiloFact, KiloFacts, KiloPlan> {
  const plan = planInTurn(options);
  return {
    name: "kilo",
    intents: {
      kinds: [{ resource: clusterMeshes, idOf: ({ namespace, name }) => `${namespace}/${name}`, read: meshReader() }],
      finalizer: clusterMeshFinalizer,
      members: membersOf,
    },
    watches: [
      { resource: nodes, read: nodeFact, same: sameFact, mayBeMissing: false },
      { resource: peers, read: peerFact, same: sameFact, mayBeMissing: true },
    ],
    reads: [
      { resource: namespaces, name: "kube-system", read: clusterFact },
      { resource: serviceCidrs, name: undefined, read: servicesFact },
    ],
    facts: assemble,
    uidOf: (facts) => facts.uid,
    dnsNames: (facts) => endpointNames(facts.nodes),
    plan: (world) => plan({ ...world, unreadableMeshes: world.unreadableIntents }),
    kinds: { Peer: { resource: peers, manifest: (name, { labels, fields }) => peerManifest(name, labels, fields) } },
    report: meshReport,
  };
}

function membersOf(mesh: MeshIntent): readonly Member[] {
  const listed = mesh.entries.flatMap(({ id, access, name, local }): Member[] => {
    if (local) return [{ id: LOCAL, access: undefined, name }];
    return id === undefined || access === undefined ? [] : [{ id, access, name }];
  });
  return [...listed, ...mesh.departed.map((departed): Member => ({ ...departed, left: true }))];
}

function nodeFact(raw: unknown): KiloFact {
  const node = readNode(raw);
  return node.ok ? { type: "node", node: node.value } : { type: "unreadable", object: node.error };
}

function peerFact(raw: unknown): KiloFact {
  const peer = readPeer(raw);
  return peer.ok ? { type: "peer", peer: peer.value } : { type: "unreadable", object: peer.error };
}

const servicesFact = (raw: unknown): KiloFact => ({ type: "services", ranges: readServiceRanges(raw) });

const clusterFact = (raw: unknown): KiloFact => ({
  type: "cluster",
  uid: textOf(fieldsOf(fieldsOf(raw)["metadata"])["uid"]),
});

/** A heartbeat is no change; of a Peer every version is. */
function sameFact(a: KiloFact, b: KiloFact): boolean {
  if (a.type === "node" && b.type === "node") return sameNode(a.node, b.node);
  if (a.type === "peer" && b.type === "peer") return a.peer.resourceVersion === b.peer.resourceVersion;
  return false;
}

function assemble({ facts, missing }: Seen<KiloFact>): KiloFacts {
  const nodesSeen: NodeFacts[] = [];
  const peersSeen: PeerFacts[] = [];
  const unreadable: Unreadable[] = [];
  const ranges = new Set<Cidr>();
  let uid: string | undefined;
  for (const fact of facts) {
    switch (fact.type) {
      case "node":
        nodesSeen.push(fact.node);
        break;
      case "peer":
        peersSeen.push(fact.peer);
        break;
      case "unreadable":
        unreadable.push(fact.object);
        break;
      case "services":
        for (const range of fact.ranges) ranges.add(range);
        break;
      case "cluster":
        uid = fact.uid;
    }
  }
  const serviceRanges = [...ranges].sort(compareText);
  const peersServed = !missing.has(peers);
  return { nodes: nodesSeen, peers: peersSeen, unreadable, serviceRanges, peersServed, uid };
}

// A world file → the world the planner sees. Whatever cannot be read is kept as a finding, never thrown.

import type { World as WorldFile, WorldCluster } from "../api/world.ts";
import { appendAll } from "../core/list.ts";
import { parseAddress } from "../core/net/address.ts";
import type { Cidr } from "../core/net/cidr.ts";
import {
  type ClusterId,
  type ClusterView,
  clusterIdOf,
  compareText,
  type Failure,
  graceKey,
  LOCAL,
  type Observed,
} from "../core/world.ts";
import { kindOf, metadataText, objectsIn } from "../core/world-objects.ts";
import type { Led } from "./election.ts";
import {
  type KiloFacts,
  type MtuFacts,
  type NodeFacts,
  type PeerFacts,
  readNode,
  readPeer,
  readServiceRanges,
  type Unreadable,
} from "./facts.ts";
import { type MeshIntent, readMesh } from "./intent.ts";
import { readClusterMtu } from "./mtu.ts";
import type { KiloWorld, LedByCluster } from "./plan.ts";

/** Reads the objects of a world file. */
export function readWorld(file: WorldFile): KiloWorld {
  // A cluster that is only known by its name is of no ClusterMesh.
  const reached = file.clusters.filter(({ local, access }) => local || access.length > 0);
  const clusters = reached.map((cluster) => readCluster(cluster));
  const local = clusters.find(({ view }) => view.id === LOCAL);
  const idOf = new Map(clusters.map(({ view }) => [view.name, view.id]));
  return {
    revision: 0,
    nowMs: file.now === undefined ? 0 : Date.parse(file.now),
    instance: local?.uid,
    intents: local?.intents ?? { state: "absent", because: { kind: "missing", detail: "no cluster is local" } },
    unreadableMeshes: local?.unreadableMeshes ?? [],
    clusters: clusters.map(({ view }) => view).sort((a, b) => compareText(a.name, b.name)),
    dns: new Map(
      Object.entries(file.dns ?? {}).flatMap(([name, ip]) => (ip === null ? [] : [[name.toLowerCase(), ip]])),
    ),
    led: ledBefore(file, idOf),
    held: new Map(
      (file.held ?? []).flatMap(({ target, object, since, reason }) => {
        const id = idOf.get(target);
        return id === undefined ? [] : [[graceKey(id, object), { sinceMs: Date.parse(since), reason }]];
      }),
    ),
  };
}

function ledBefore({ leaders = [] }: WorldFile, idOf: ReadonlyMap<string, ClusterId>): LedByCluster {
  const led = new Map<ClusterId, Map<string, Led>>();
  for (const { cluster, location, node } of leaders) {
    const id = idOf.get(cluster);
    if (id === undefined) continue;
    const known = led.get(id) ?? new Map<string, Led>();
    led.set(
      id,
      known.set(location, {
        state: "agreed",
        node,
        address: undefined,
        checkIns: new Map([[node, -1]]),
        silent: new Set(),
      }),
    );
  }
  return led;
}

type ReadCluster = {
  readonly view: ClusterView<KiloFacts>;
  readonly uid: string | undefined;
  readonly intents: Observed<readonly MeshIntent[]>;
  readonly unreadableMeshes: readonly Unreadable[];
};

function readCluster(cluster: WorldCluster): ReadCluster {
  const accesses = cluster.access.map(clusterIdOf).sort(compareText);
  const ids: readonly ClusterId[] = cluster.local ? [LOCAL, ...accesses] : accesses;
  const { facts: seenFacts, meshes, unreadableMeshes } = readObjects(cluster.objects);
  const facts = { ...seenFacts, peersServed: !cluster.missingKinds.includes("Peer") };
  const because: Failure = { kind: "unreachable", detail: cluster.because ?? `the cluster is ${cluster.observed}` };
  const seen = <T>(value: T): Observed<T> => {
    if (cluster.observed === "absent") return { state: "absent", because };
    return cluster.observed === "stale" ? { state: "stale", because, value } : { state: "synced", value };
  };
  return {
    view: { id: ids[0] ?? LOCAL, accesses: ids, name: cluster.name, observed: seen(facts), ...serversOf(cluster) },
    uid: facts.uid,
    intents: seen(meshes),
    unreadableMeshes,
  };
}

function serversOf({ server }: WorldCluster): Pick<ClusterView<KiloFacts>, "servers"> {
  const address = parseAddress(server ?? "");
  return address.ok ? { servers: [address.value] } : {};
}

type Objects = {
  readonly facts: KiloFacts;
  readonly meshes: readonly MeshIntent[];
  readonly unreadableMeshes: readonly Unreadable[];
};

function readObjects(raw: readonly unknown[]): Objects {
  const nodes: NodeFacts[] = [];
  const peers: PeerFacts[] = [];
  const meshes: MeshIntent[] = [];
  const unreadable: Unreadable[] = [];
  const unreadableMeshes: Unreadable[] = [];
  const serviceRanges: Cidr[] = [];
  let uid: string | undefined;
  const { objects, repeated } = objectsIn(raw);
  for (const { kind, name } of repeated) {
    const detail = `there are two ${kind} objects of this name; one of them is used`;
    unreadable.push({ kind: "object", name, detail });
  }
  for (const object of objects) {
    switch (kindOf(object)) {
      case "Node": {
        const node = readNode(object);
        if (node.ok) nodes.push(node.value);
        else unreadable.push(node.error);
        break;
      }
      case "Peer": {
        const peer = readPeer(object);
        if (peer.ok) peers.push(peer.value);
        else unreadable.push(peer.error);
        break;
      }
      case "ClusterMesh": {
        const mesh = readMesh(object);
        if (mesh.ok) meshes.push(mesh.value);
        else unreadableMeshes.push(mesh.error);
        break;
      }
      case "ServiceCIDR":
      case "Service":
        appendAll(serviceRanges, readServiceRanges(object));
        break;
      case "Namespace":
        if (metadataText(object, "name") === "kube-system") uid = metadataText(object, "uid");
        break;
      case undefined:
        unreadable.push({ kind: "object", name: metadataText(object, "name"), detail: "it has no kind" });
        break;
      default: // Kinds we do not plan with; a snapshot may hold any.
    }
  }
  const mtu = readClusterMtu(objects);
  const sorted = [...new Set(serviceRanges)].sort(compareText);
  return {
    facts: {
      nodes: nodes.map((node) => withMtu(node, mtu)),
      peers,
      unreadable,
      serviceRanges: sorted,
      peersServed: true,
      uid,
    },
    meshes,
    unreadableMeshes,
  };
}

/** What a node says of itself counts before what is known of its cluster. */
function withMtu(node: NodeFacts, cluster: Omit<MtuFacts, "path">): NodeFacts {
  if (cluster.pod === undefined && cluster.wireguard === undefined) return node;
  const mtu = { ...node.mtu, pod: node.mtu.pod ?? cluster.pod, wireguard: node.mtu.wireguard ?? cluster.wireguard };
  return { ...node, mtu };
}

// A world file → the world the planner sees. Whatever cannot be read is kept as a finding, never thrown.

import type { World as WorldFile, WorldCluster } from "../api/world.ts";
import { canonicalText, fieldsOf, textOf } from "../core/json.ts";
import { appendAll } from "../core/list.ts";
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
import type { KiloWorld } from "./plan.ts";

/** Reads the objects of a world file. */
export function readWorld(file: WorldFile): KiloWorld {
  const clusters = file.clusters.map((cluster) => readCluster(cluster));
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
    heldSinceMs: new Map(
      (file.held ?? []).flatMap(({ target, object, since }) => {
        const id = idOf.get(target);
        return id === undefined ? [] : [[graceKey(id, object), Date.parse(since)]];
      }),
    ),
  };
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
    view: { id: ids[0] ?? LOCAL, accesses: ids, name: cluster.name, observed: seen(facts) },
    uid: facts.uid,
    intents: seen(meshes),
    unreadableMeshes,
  };
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
  const objects = distinct(raw.flatMap(flatten), unreadable);
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

/** `kubectl get -o yaml` of several objects is a List. */
function flatten(raw: unknown): readonly unknown[] {
  const { items } = fieldsOf(raw);
  const kind = kindOf(raw);
  if (kind === undefined || !kind.endsWith("List") || !Array.isArray(items)) return [raw];
  const itemKind = kind.slice(0, -"List".length);
  if (itemKind === "") return items;
  return items.map((item: unknown) => (kindOf(item) === undefined ? { ...fieldsOf(item), kind: itemKind } : item));
}

/** Kinds whose objects have no namespace, whatever their metadata says. */
const clusterScoped: ReadonlySet<string> = new Set(["Node", "Peer", "Namespace", "ServiceCIDR"]);

/** One object per kind and name. Which of two is taken must not depend on their order, so the text decides. */
function distinct(objects: readonly unknown[], unreadable: Unreadable[]): readonly unknown[] {
  const byName = new Map<string, unknown>();
  const unnamed: unknown[] = [];
  for (const object of objects) {
    const name = metadataText(object, "name");
    const kind = kindOf(object);
    if (name === undefined || kind === undefined) {
      unnamed.push(object);
      continue;
    }
    const namespace = clusterScoped.has(kind) ? "" : (metadataText(object, "namespace") ?? "default");
    const key = JSON.stringify([kind, namespace, name]);
    const other = byName.get(key);
    if (other === undefined) byName.set(key, object);
    else {
      const first = canonicalText(other);
      const second = canonicalText(object);
      if (first === second) continue;
      const detail = `there are two ${kind} objects of this name; one of them is used`;
      unreadable.push({ kind: "object", name, detail });
      if (second > first) byName.set(key, object);
    }
  }
  return [...byName.values(), ...unnamed];
}

const kindOf = (object: unknown): string | undefined => textOf(fieldsOf(object)["kind"]);
const metadataText = (object: unknown, key: "name" | "namespace" | "uid"): string | undefined =>
  textOf(fieldsOf(fieldsOf(object)["metadata"])[key]);

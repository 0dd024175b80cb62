// What happens to a world after it was planned once: nodes and meshes change, clusters go out of sight, and people and
// other programs edit the Peers.

import { planWorld } from "./plan-world.ts";
import { applyPlan, type Obj, type TestWorld } from "./apply.ts";
import { buildWorld, keyOf, type MeshRecipe, type NodeRecipe, now, type WorldRecipe } from "./world-recipe.ts";

/** A change of what the clusters are and what the meshes ask for. Positions are taken modulo what there is. */
export type Change =
  | { readonly do: "removeNode" | "rotateKey" | "renameNode"; readonly cluster: number; readonly node: number }
  | { readonly do: "swapKeys" | "swapPods"; readonly cluster: number; readonly node: number; readonly other: number }
  | { readonly do: "renumber"; readonly cluster: number }
  | { readonly do: "replaceNode"; readonly cluster: number; readonly node: number; readonly by: NodeRecipe }
  | { readonly do: "addNode"; readonly cluster: number; readonly by: NodeRecipe }
  | { readonly do: "removeMesh"; readonly mesh: number }
  | { readonly do: "replaceMesh"; readonly mesh: number; readonly by: MeshRecipe };

/** What somebody does to a Peer of a target. */
export type PeerEdit = { readonly target: number; readonly peer: number } & (
  | { readonly do: "remove" | "duplicate" | "rename" | "legacy" | "disown" | "anotherInstance" | "garble" | "psk" }
  | { readonly do: "dropLabel"; readonly label: number }
  | { readonly do: "ranges"; readonly ranges: readonly string[] }
  | { readonly do: "swapRanges" | "swapKeys"; readonly other: number }
  | { readonly do: "key"; readonly cluster: number; readonly serial: number }
  | { readonly do: "endpoint"; readonly ip: string; readonly port: number }
);

/** A Peer that no plan of ours made. */
export type StrangePeer = {
  readonly target: number;
  readonly name: string;
  readonly key: string;
  readonly ranges: readonly string[];
  readonly endpoint: string | undefined;
  readonly labels: Readonly<Record<string, string>>;
};

/** What is known about grace periods: an object of a target, and how long ago its period began. */
export type HeldRecipe = { readonly target: number; readonly peer: number; readonly secondsAgo: number };

/** A whole random world. */
export type History = {
  readonly recipe: WorldRecipe;
  /** Whether the recipe was planned and applied before the changes. */
  readonly applied: boolean;
  readonly changes: readonly Change[];
  readonly edits: readonly PeerEdit[];
  readonly strangers: readonly StrangePeer[];
  readonly observed: readonly ("synced" | "stale" | "absent")[];
  readonly held: readonly HeldRecipe[];
  readonly dns: Readonly<Record<string, string | null>>;
};

/** The world a history ends in. */
export function worldAfter(history: History): TestWorld {
  const { recipe, applied, dns } = history;
  const before = buildWorld(recipe);
  const settled = applied ? applyPlan({ ...before, dns }, planWorld({ ...before, dns })) : before;
  const after = buildWorld(history.changes.reduce(changeRecipe, recipe));
  const clusters = after.clusters.map((cluster, index) => {
    const peers = (settled.clusters[index]?.objects ?? []).filter(isPeer);
    const strangers = history.strangers.filter(({ target }) => target % after.clusters.length === index);
    for (const edit of history.edits) if (edit.target % after.clusters.length === index) editPeers(peers, edit);
    for (const stranger of strangers) {
      if (peers.every((peer) => peer.metadata.name !== stranger.name)) peers.push(strangeObject(stranger));
    }
    const observed = history.observed[index] ?? "synced";
    const seen = observed === "synced" ? {} : { observed, because: "connect ETIMEDOUT" };
    return { ...cluster, ...seen, objects: [...cluster.objects, ...peers] };
  });
  const held = history.held.flatMap(({ target, peer, secondsAgo }) => {
    const cluster = clusters[target % clusters.length];
    const peers = cluster?.objects.filter(isPeer) ?? [];
    const object = peers[peer % Math.max(peers.length, 1)]?.metadata.name;
    if (cluster === undefined || object === undefined) return [];
    return [{ target: cluster.name, object, since: new Date(Date.parse(now) - secondsAgo * 1000).toISOString() }];
  });
  return { ...after, clusters, dns: { ...dns }, held: oncePerObject(held) };
}

/** Whether an object of a world is a Peer that has a name. */
export const isPeer = (object: unknown): object is Obj =>
  typeof object === "object" && object !== null && "kind" in object && object.kind === "Peer";

/** A world with the Peers of another one added. */
export function withPeersOf(world: TestWorld, settled: TestWorld): TestWorld {
  const clusters = world.clusters.map((cluster) => {
    const other = settled.clusters.find(({ name }) => name === cluster.name);
    return { ...cluster, objects: [...cluster.objects, ...(other?.objects ?? []).filter(isPeer)] };
  });
  return { ...world, clusters };
}

const oncePerObject = <T extends { readonly target: string; readonly object: string }>(held: readonly T[]): T[] => [
  ...new Map(held.map((one) => [`${one.target}|${one.object}`, one])).values(),
];

/** The recipe after one change. */
export function changeRecipe(recipe: WorldRecipe, change: Change): WorldRecipe {
  if (change.do === "removeMesh" || change.do === "replaceMesh")
    return { ...recipe, meshes: changeMeshes(recipe.meshes, change) };
  const index = change.cluster % recipe.clusters.length;
  const clusters = recipe.clusters.map((cluster, at) =>
    at === index ? { ...cluster, nodes: withoutRepetition(changeNodes(cluster.nodes, change, index)) } : cluster,
  );
  return { ...recipe, clusters };
}

type MeshChange = Extract<Change, { readonly mesh: number }>;

function changeMeshes(meshes: readonly MeshRecipe[], change: MeshChange): readonly MeshRecipe[] {
  const index = change.mesh % Math.max(meshes.length, 1);
  if (change.do === "removeMesh") return meshes.filter((_, at) => at !== index);
  const { by } = change;
  const old = meshes[index];
  if (old === undefined) return [by];
  return meshes.map((mesh, at) => (at === index ? { ...by, name: old.name, namespace: old.namespace } : mesh));
}

function changeNodes(
  nodes: readonly NodeRecipe[],
  change: Exclude<Change, MeshChange>,
  cluster: number,
): readonly NodeRecipe[] {
  if (change.do === "addNode") return [...nodes, { ...change.by, serial: 10 + nodes.length }];
  if (nodes.length === 0) return nodes;
  if (change.do === "renumber") {
    return nodes.map((node, at) => {
      const next = nodes[(at + 1) % nodes.length];
      return { ...node, wireguardIp: { is: "of", cluster, serial: next?.serial ?? 0 } };
    });
  }
  const index = change.node % nodes.length;
  const chosen = nodes[index];
  if (chosen === undefined) return nodes;
  const replace = (by: NodeRecipe): readonly NodeRecipe[] => nodes.map((node, at) => (at === index ? by : node));
  switch (change.do) {
    case "removeNode":
      return nodes.filter((_, at) => at !== index);
    case "rotateKey":
      return replace({ ...chosen, key: { is: "of", cluster, serial: chosen.serial + 20 } });
    case "renameNode":
      return replace({ ...chosen, name: `renamed-${chosen.serial}` });
    case "replaceNode":
      return replace({ ...change.by, serial: chosen.serial, name: chosen.name });
    case "swapKeys":
    case "swapPods": {
      const otherIndex = change.other % nodes.length;
      const other = nodes[otherIndex];
      if (other === undefined) return nodes;
      const field = change.do === "swapKeys" ? "key" : "pods";
      return nodes.map((node, at) => {
        if (at === index) return { ...node, [field]: { is: "of", cluster, serial: other.serial } };
        return at === otherIndex ? { ...node, [field]: { is: "of", cluster, serial: chosen.serial } } : node;
      });
    }
  }
}

/** One node per name: an API server cannot hold two. */
const withoutRepetition = (nodes: readonly NodeRecipe[]): readonly NodeRecipe[] => [
  ...new Map(nodes.map((node) => [node.name ?? `n${node.serial}`, node])).values(),
];

function editPeers(peers: Obj[], edit: PeerEdit): void {
  const index = edit.peer % Math.max(peers.length, 1);
  const peer = peers[index];
  if (peer === undefined) return;
  const labels = { ...(peer.metadata["labels"] as Record<string, string> | undefined) };
  const spec = { ...(peer["spec"] as Record<string, unknown>) };
  const put = (changed: Partial<{ labels: Record<string, string>; spec: unknown; name: string }>): void => {
    const { labels: newLabels = labels, spec: newSpec = spec, name = peer.metadata.name } = changed;
    peers[index] = { ...peer, metadata: { ...peer.metadata, name, labels: newLabels }, spec: newSpec };
  };
  const isFree = (name: string): boolean => peers.every((other) => other.metadata.name !== name);
  const nameOfCopy = `${peer.metadata.name}-again`;
  switch (edit.do) {
    case "remove":
      peers.splice(index, 1);
      break;
    case "duplicate":
      if (isFree(nameOfCopy)) peers.push({ ...peer, metadata: { ...peer.metadata, name: nameOfCopy } });
      break;
    case "rename":
      if (isFree(nameOfCopy)) put({ name: nameOfCopy });
      break;
    case "legacy":
      put({
        labels: Object.fromEntries(Object.entries(labels).filter(([key]) => key.startsWith("kilo-clustermesh.io/"))),
      });
      break;
    case "disown":
      put({ labels: {} });
      break;
    case "anotherInstance":
      put({ labels: { ...labels, "causeway.dev/instance": "another" } });
      break;
    case "garble":
      put({ spec: { ...spec, allowedIPs: 5 } });
      break;
    case "psk":
      put({ spec: { ...spec, presharedKey: "SECRET-d41d8cd98f00b204" } });
      break;
    case "dropLabel": {
      const keys = Object.keys(labels);
      const dropped = keys[edit.label % Math.max(keys.length, 1)];
      put({ labels: Object.fromEntries(Object.entries(labels).filter(([key]) => key !== dropped)) });
      break;
    }
    case "ranges":
      put({ spec: { ...spec, allowedIPs: edit.ranges } });
      break;
    case "key":
      put({ spec: { ...spec, publicKey: keyOf(edit.cluster, edit.serial) } });
      break;
    case "endpoint":
      put({ spec: { ...spec, endpoint: { dnsOrIP: { ip: edit.ip }, port: edit.port } } });
      break;
    case "swapRanges":
    case "swapKeys": {
      const field = edit.do === "swapRanges" ? "allowedIPs" : "publicKey";
      const otherIndex = edit.other % peers.length;
      const other = peers[otherIndex];
      if (other === undefined || otherIndex === index) break;
      const otherSpec = { ...(other["spec"] as Record<string, unknown>) };
      put({ spec: { ...spec, [field]: otherSpec[field] } });
      peers[otherIndex] = { ...other, spec: { ...otherSpec, [field]: spec[field] } };
    }
  }
}

function strangeObject({ name, key, ranges, endpoint, labels }: StrangePeer): Obj {
  return {
    apiVersion: "kilo.squat.ai/v1alpha1",
    kind: "Peer",
    metadata: { name, labels: { ...labels } },
    spec: {
      publicKey: key,
      allowedIPs: [...ranges],
      presharedKey: "SECRET-d41d8cd98f00b204",
      ...(endpoint === undefined ? {} : { endpoint: { dnsOrIP: { ip: endpoint }, port: 51820 } }),
    },
  };
}

// What the specs of a world allow and whose its Peers are, worked out from the objects themselves: the properties compare
// the planner with this, so nothing here may use it.

import { type Cidr, contains, parseCidr } from "../../src/core/net/cidr.ts";
import { parsePublicKey } from "../../src/core/net/public-key.ts";
import type { PlanDocument } from "../../src/kilo/document.ts";
import type { Obj, TestWorld } from "./apply.ts";
import { isPeer } from "./world-history.ts";

type Entry = {
  readonly name: string;
  readonly local?: boolean;
  readonly kubeconfigSecretRef?: { readonly name: string; readonly key: string };
  readonly acceptedNetworks?: readonly string[];
  readonly [field: string]: unknown;
};

type Spec = {
  readonly clusters: readonly Entry[];
  readonly suspend?: boolean;
  readonly topology?: {
    readonly type: string;
    readonly hub?: string;
    readonly pairs?: readonly { readonly clusters: readonly string[] }[];
  };
};

type Access = { readonly namespace: string; readonly secret: string; readonly key: string };

/** What one mesh lets a source bring to a target. */
export type Permission = { readonly granted: readonly Cidr[]; readonly accepted: readonly Cidr[] | undefined };

/** The permissions of every pair of clusters, by `source target`. */
export function permissionsOf(world: TestWorld, plan: PlanDocument): ReadonlyMap<string, readonly Permission[]> {
  const permissions = new Map<string, Permission[]>();
  for (const mesh of meshesOf(world)) {
    const { name, namespace, deletionTimestamp } = mesh.metadata;
    const spec = mesh["spec"] as Spec;
    const state = plan.meshes.find((each) => each.mesh === `${String(namespace)}/${name}`)?.state;
    if (state !== "active" || spec.suspend === true || deletionTimestamp !== undefined) continue;
    for (const source of spec.clusters) {
      for (const target of spec.clusters) {
        const from = clusterOf(world, String(namespace), source);
        const to = clusterOf(world, String(namespace), target);
        if (source === target || from === undefined || to === undefined || !linked(spec, source, target)) continue;
        const accepted = target.acceptedNetworks?.flatMap(cidrs);
        const permission = { granted: grantOf(source), accepted };
        permissions.set(`${from} ${to}`, [...(permissions.get(`${from} ${to}`) ?? []), permission]);
      }
    }
  }
  return permissions;
}

/** Whether some mesh lets the source bring the range to the target. */
export function isPermitted(permissions: readonly Permission[] | undefined, range: Cidr): boolean {
  return (permissions ?? []).some(
    ({ granted, accepted }) =>
      granted.some((network) => contains(network, range)) &&
      (accepted === undefined || accepted.some((network) => contains(network, range))),
  );
}

/** The meshes of a world. */
export function meshesOf(world: TestWorld): readonly Obj[] {
  const local = world.clusters.find((cluster) => cluster.local);
  return (local?.objects ?? []).filter((object): object is Obj => (object as Obj).kind === "ClusterMesh");
}

/** The Peers on a cluster of a world. */
export const peersOn = (world: TestWorld, target: string): readonly Obj[] =>
  world.clusters.find((cluster) => cluster.name === target)?.objects.filter(isPeer) ?? [];

/** The labels of an object. */
export const labelsOf = (object: Obj): Readonly<Record<string, string>> =>
  (object.metadata["labels"] as Record<string, string> | undefined) ?? {};

const specOf = (peer: Obj) => (peer["spec"] ?? {}) as { readonly publicKey?: unknown; readonly allowedIPs?: unknown };

/** The key of a Peer as WireGuard reads it; a text that is no key stands for itself. */
export function keyOfPeer(peer: Obj): string {
  const text = String(specOf(peer).publicKey);
  const key = parsePublicKey(text);
  return key.ok ? key.value : text;
}

/** The networks that a Peer holds; texts that are none are left out. */
export function rangesOfPeer(peer: Obj): readonly Cidr[] {
  const { allowedIPs } = specOf(peer);
  return Array.isArray(allowedIPs) ? allowedIPs.filter((text) => typeof text === "string").flatMap(cidrs) : [];
}

/** Whether a Peer may be ours: it has our labels and no other instance's, or a pair of old labels that one mesh declares. */
export function isOurs(world: TestWorld, peer: Obj): boolean {
  const labels = labelsOf(peer);
  const manager = labels["app.kubernetes.io/managed-by"];
  const instance = labels["causeway.dev/instance"];
  if (manager === "causeway") {
    const own = instanceOf(world);
    return instance === undefined || instance === own || (own === undefined && isOfMesh(world, labels));
  }
  if (manager !== undefined) return false;
  const mesh = labels["kilo-clustermesh.io/mesh"];
  const source = labels["kilo-clustermesh.io/source-cluster"];
  const declaring = meshesOf(world).filter(
    (each) => each.metadata.name === mesh && (each["spec"] as Spec).clusters.some((entry) => entry.name === source),
  );
  return declaring.length === 1;
}

/** Whether a mesh of this world, the very object, is what the labels name. */
const isOfMesh = (world: TestWorld, labels: Readonly<Record<string, string>>): boolean =>
  meshesOf(world).some(
    ({ metadata }) =>
      metadata.name === labels["kilo-clustermesh.io/mesh"] &&
      metadata["namespace"] === labels["causeway.dev/mesh-namespace"] &&
      metadata["uid"] === labels["causeway.dev/mesh-uid"],
  );

function instanceOf(world: TestWorld): string | undefined {
  const local = world.clusters.find((cluster) => cluster.local);
  const space = local?.objects.find(
    (object) => (object as Obj).kind === "Namespace" && (object as Obj).metadata.name === "kube-system",
  );
  return (space as Obj | undefined)?.metadata["uid"] as string | undefined;
}

function clusterOf(world: TestWorld, namespace: string, entry: Entry): string | undefined {
  const { kubeconfigSecretRef: reference } = entry;
  return world.clusters.find((cluster) => {
    if (entry.local === true) return cluster.local === true;
    const accesses = [cluster.access ?? []].flat() as Access[];
    return accesses.some(
      (access) => access.namespace === namespace && access.secret === reference?.name && access.key === reference.key,
    );
  })?.name;
}

function linked({ topology }: Spec, source: Entry, target: Entry): boolean {
  const { type, hub, pairs = [] } = topology ?? { type: "Full" };
  if (type === "Hub") return source.name === hub || target.name === hub;
  if (type !== "Pairs") return true;
  return pairs.some(({ clusters }) => clusters.includes(source.name) && clusters.includes(target.name));
}

function grantOf(entry: Entry): readonly Cidr[] {
  const lists = [entry["allowedNetworks"], entry["podCIDRs"], entry["additionalCIDRs"]].flatMap((list) =>
    Array.isArray(list) ? (list as string[]) : [],
  );
  const single = [entry["wireguardCIDR"], entry["serviceCIDR"]].filter((text) => typeof text === "string");
  return [...lists, ...single].flatMap(cidrs);
}

function cidrs(text: string): Cidr[] {
  const parsed = parseCidr(text);
  return parsed.ok ? [parsed.value] : [];
}

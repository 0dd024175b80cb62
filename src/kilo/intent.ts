// ClusterMesh → MeshIntent: the spec with its two generations folded into one form. Nothing is judged here.

import { type ClusterEntry, clusterMeshSchema, clustersMax } from "../api/cluster-mesh.ts";
import { parseWith } from "../api/problem.ts";
import { type LabelSelector, normaliseSelector } from "../api/selector.ts";
import { approvalIn, isApproved } from "../core/approval.ts";
import { fieldsOf, listOf, textOf } from "../core/json.ts";
import { type Cidr, intersect, parseCidr } from "../core/net/cidr.ts";
import { containment } from "../core/net/disjoint.ts";
import { err, ok, type Result } from "../core/result.ts";
import { type ClusterId, clusterIdOf, LOCAL, type Observed, type SecretAccess } from "../core/world.ts";
import { type Unreadable, unreadable } from "./facts.ts";

/** What a spec gives a cluster. With flat entries every list is the same one. */
export type Grant = {
  readonly generation: "flat" | "typed";
  readonly pods: readonly Cidr[];
  readonly wireguard: readonly Cidr[];
  /** Where a node's own addresses may lie: everywhere but among Services. */
  readonly hosts: readonly Cidr[];
  /** Ranges that belong to no node; flat entries become so only when no node covers them. */
  readonly clusterWide: readonly Cidr[];
  readonly all: readonly Cidr[];
  readonly holdsPods: (cidr: Cidr) => boolean;
  readonly holdsWireguard: (cidr: Cidr) => boolean;
  readonly holdsHost: (cidr: Cidr) => boolean;
};

/** One cluster of a mesh. */
export type Entry = {
  readonly name: string;
  /** Where the cluster is reached; undefined when the entry does not say. */
  readonly id: ClusterId | undefined;
  readonly secret: string | undefined;
  readonly access: SecretAccess | undefined;
  readonly local: boolean;
  readonly ignoredSecretRef: boolean;
  readonly grant: Grant;
  readonly accepted: readonly Cidr[] | undefined;
  /** Whether a whole range is accepted. */
  readonly accepts: (cidr: Cidr) => boolean;
  /** Whether the operator's flag lets a whole range in, where that is part of `accepted`. */
  readonly flagAccepts?: (cidr: Cidr) => boolean;
  readonly selector: LabelSelector;
  readonly wireguardPort: number;
  readonly keepaliveSeconds: number;
};

/** A cluster that a mesh once listed; without an access it is the local one. */
export type Departed = { readonly name: string; readonly id: ClusterId; readonly access: SecretAccess | undefined };

/** Which clusters of a mesh are joined. */
export type Topology =
  | { readonly type: "Full" }
  | { readonly type: "Hub"; readonly hub: string }
  | { readonly type: "Pairs"; readonly pairs: readonly (readonly [string, string])[] };

/** A ClusterMesh as the planner sees it. */
export type MeshIntent = {
  /** `<namespace>/<name>` */
  readonly id: string;
  readonly namespace: string;
  readonly name: string;
  readonly uid: string | undefined;
  /** Infinity when unknown: of two meshes in conflict the older one keeps working. */
  readonly createdMs: number;
  readonly generation: number;
  /** What this generation of the spec removes may go at once. */
  readonly approved: boolean;
  /** What the annotation that approves removals says: a generation, or the UID of a cluster. */
  readonly approval: string | undefined;
  readonly terminating: boolean;
  readonly suspended: boolean;
  /** How far apart writes on one of its clusters are, if it says so. */
  readonly writeIntervalMs: number | undefined;
  readonly entries: readonly Entry[];
  /** Clusters that left the spec and may still hold Peers of this mesh: what its status remembers. */
  readonly departed: readonly Departed[];
  readonly topology: Topology;
  /** Why the spec cannot be used, if it cannot; then there are no entries. */
  readonly invalid: string | undefined;
  readonly badCidrs: readonly { readonly entry: string; readonly text: string; readonly reason: string }[];
};

/** Reads a ClusterMesh. An unusable spec still yields an intent, so that its Peers are recognised and kept. */
export function readMesh(raw: unknown): Result<MeshIntent, Unreadable> {
  const metadata = fieldsOf(fieldsOf(raw)["metadata"]);
  const { creationTimestamp, deletionTimestamp, generation } = metadata;
  const name = textOf(metadata["name"]);
  if (name === undefined || name.length > 253) {
    return err(unreadable("ClusterMesh", raw, [{ path: ["metadata", "name"], message: "expected a name" }]));
  }
  const space = textOf(metadata["namespace"]) ?? "default";
  const created = typeof creationTimestamp === "string" ? Date.parse(creationTimestamp) : Number.NaN;
  const identity = {
    id: `${space}/${name}`,
    namespace: space,
    name,
    uid: textOf(metadata["uid"]),
    createdMs: Number.isNaN(created) ? Number.POSITIVE_INFINITY : created,
    generation: typeof generation === "number" ? generation : 0,
    approved: isApproved(metadata),
    approval: approvalIn(metadata),
    terminating: deletionTimestamp !== undefined && deletionTimestamp !== null,
  };
  const remembered = readRemembered(space, fieldsOf(raw)["status"]);
  const parsed = parseWith(clusterMeshSchema, raw);
  if (!parsed.success) {
    const { detail } = unreadable("ClusterMesh", raw, parsed.issues);
    const suspended = fieldsOf(fieldsOf(raw)["spec"])["suspend"] === true;
    const nothing = {
      suspended,
      writeIntervalMs: undefined,
      entries: [],
      topology: { type: "Full" } as const,
      badCidrs: [],
    };
    return ok({ ...identity, ...nothing, departed: remembered, invalid: detail });
  }
  const { spec } = parsed.data;
  const badCidrs: { entry: string; text: string; reason: string }[] = [];
  const entries = spec.clusters.map((entry) =>
    readEntry(space, entry, (text, reason) => badCidrs.push({ entry: entry.name, text, reason })),
  );
  const listed = new Set(entries.map(({ id }) => id));
  return ok({
    ...identity,
    suspended: spec.suspend ?? false,
    writeIntervalMs: spec.writeInterval === undefined ? undefined : millisecondsOf(spec.writeInterval),
    entries,
    departed: remembered.filter(({ id }) => !listed.has(id)),
    topology: readTopology(spec.topology),
    invalid: undefined,
    badCidrs,
  });
}

/** `200ms` or `2s`, as the schema has it. */
const millisecondsOf = (text: string): number => Number.parseInt(text, 10) * (text.endsWith("ms") ? 1 : 1_000);

/** The clusters a status remembers. The namespace is the mesh's own: a status must not open anybody else's Secrets. */
function readRemembered(namespace: string, status: unknown): Departed[] {
  return listOf(fieldsOf(status)["clusters"])
    .slice(0, clustersMax * 2)
    .flatMap((item): Departed[] => {
      const { name: nameText, local, kubeconfigSecretRef } = fieldsOf(item);
      const name = textOf(nameText);
      const secret = textOf(fieldsOf(kubeconfigSecretRef)["name"]);
      const key = textOf(fieldsOf(kubeconfigSecretRef)["key"]);
      if (name !== undefined && local === true) return [{ name, id: LOCAL, access: undefined }];
      if (name === undefined || secret === undefined || key === undefined) return [];
      const access = { namespace, secret, key };
      return [{ name, id: clusterIdOf(access), access }];
    });
}

/** Lets entries accept no more than these ranges, beside what they say themselves; without ranges they stay as they are. */
export function limitedBy(ranges: readonly Cidr[] | undefined): (entry: Entry) => Entry {
  if (ranges === undefined) return (entry) => entry;
  const flagAccepts = containment(ranges);
  return (entry) => {
    const accepted =
      entry.accepted === undefined
        ? ranges
        : entry.accepted.flatMap((network) => ranges.flatMap((range) => intersect(network, range) ?? []));
    return { ...entry, accepted, accepts: containment(accepted), flagAccepts };
  };
}

/** What is known of a cluster that no access leads to. */
export function unseen({ secret }: Entry): Observed<never> {
  const detail = secret === undefined ? "the entry has no kubeconfigSecretRef" : `Secret ${secret} is missing`;
  return { state: "absent", because: { kind: "missing", detail } };
}

/** The ordered pairs of entries that a mesh joins, each as source and target. */
export function linksOf(mesh: MeshIntent): readonly { readonly source: Entry; readonly target: Entry }[] {
  const linked = linkTest(mesh.topology);
  return mesh.entries.flatMap((target) =>
    mesh.entries
      .filter((source) => source !== target && linked(source.name, target.name))
      .map((source) => ({ source, target })),
  );
}

function linkTest(topology: Topology): (a: string, b: string) => boolean {
  switch (topology.type) {
    case "Full":
      return () => true;
    case "Hub":
      return (a, b) => a === topology.hub || b === topology.hub;
    case "Pairs": {
      const linked = new Set(topology.pairs.flatMap(([a, b]) => [`${a}|${b}`, `${b}|${a}`]));
      return (a, b) => linked.has(`${a}|${b}`);
    }
  }
}

function readEntry(namespace: string, entry: ClusterEntry, complain: (text: string, reason: string) => void): Entry {
  const cidrs = (texts: readonly string[] | undefined): Cidr[] =>
    (texts ?? []).flatMap((text) => {
      const cidr = parseCidr(text);
      if (cidr.ok) return [cidr.value];
      complain(text, cidr.error);
      return [];
    });
  const reference = entry.kubeconfigSecretRef;
  const secretAccess = reference && { namespace, secret: reference.name, key: reference.key };
  const access = secretAccess && clusterIdOf(secretAccess);
  const local = entry.local ?? false;
  const accepted = entry.acceptedNetworks === undefined ? undefined : cidrs(entry.acceptedNetworks);
  return {
    name: entry.name,
    id: local ? LOCAL : access,
    secret: local ? undefined : access,
    access: local ? undefined : secretAccess,
    local,
    ignoredSecretRef: local && reference !== undefined,
    grant: readGrant(entry, cidrs),
    accepted,
    accepts: accepted === undefined ? () => true : containment(accepted),
    selector: normaliseSelector(entry.nodeSelector),
    wireguardPort: entry.wireguardPort,
    keepaliveSeconds: entry.persistentKeepalive ?? 0,
  };
}

function readGrant(entry: ClusterEntry, cidrs: (texts: readonly string[] | undefined) => Cidr[]): Grant {
  if (entry.allowedNetworks !== undefined) {
    const all = cidrs(entry.allowedNetworks);
    return grantOf("flat", { pods: all, wireguard: all, hosts: all, clusterWide: all, all });
  }
  const pods = cidrs(entry.podCIDRs);
  const wireguard = cidrs(entry.wireguardCIDR === undefined ? [] : [entry.wireguardCIDR]);
  // Typed objects in the field hold an empty serviceCIDR where none is meant.
  const services = cidrs(entry.serviceCIDR ? [entry.serviceCIDR] : []);
  const additional = cidrs(entry.additionalCIDRs);
  const clusterWide = [...services, ...additional];
  const hosts = [...pods, ...wireguard, ...additional];
  return grantOf("typed", { pods, wireguard, hosts, clusterWide, all: [...pods, ...wireguard, ...clusterWide] });
}

function grantOf(
  generation: Grant["generation"],
  ranges: Pick<Grant, "pods" | "wireguard" | "hosts" | "clusterWide" | "all">,
): Grant {
  return {
    generation,
    ...ranges,
    holdsPods: containment(ranges.pods),
    holdsWireguard: containment(ranges.wireguard),
    holdsHost: containment(ranges.hosts),
  };
}

type RawTopology = {
  readonly type: "Full" | "Hub" | "Pairs";
  readonly hub?: string | undefined;
  readonly pairs?: readonly { readonly clusters: readonly string[] }[] | undefined;
};

function readTopology(raw: RawTopology | undefined): Topology {
  if (raw?.type === "Hub") return { type: "Hub", hub: raw.hub ?? "" };
  if (raw?.type === "Pairs") {
    return { type: "Pairs", pairs: (raw.pairs ?? []).map(({ clusters: [a = "", b = ""] }) => [a, b] as const) };
  }
  return { type: "Full" };
}

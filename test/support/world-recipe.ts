// A recipe says how a random world differs from a healthy one; `buildWorld` makes the world file of it. Recipes are what
// fast-check makes small, so every field has a plain first choice.

import type { Obj, TestWorld } from "./apply.ts";

/** A value of a node: its own, none at all, that of another node, or any text. */
export type Choice =
  | { readonly is: "own" }
  | { readonly is: "none" }
  | { readonly is: "of"; readonly cluster: number; readonly serial: number }
  | { readonly is: "text"; readonly text: string };

/** What a node saw of other keys. */
export type Sighting = {
  readonly cluster: number;
  readonly serial: number;
  readonly ip: string;
  readonly port: number;
};

/** One Node. `serial` gives it its own key, addresses and ranges; its name is free. */
export type NodeRecipe = {
  readonly serial: number;
  readonly name: string | undefined;
  readonly key: Choice;
  readonly wireguardIp: Choice;
  readonly pods: Choice;
  readonly dual: boolean;
  readonly furtherPods: readonly string[];
  readonly clustermeshEndpoint: Choice;
  readonly forceEndpoint: Choice;
  readonly external: Choice;
  readonly externalV6: boolean;
  readonly internal: Choice;
  readonly granularity: Choice;
  readonly location: string | undefined;
  readonly lastSeen: string | undefined;
  readonly keepalive: string | undefined;
  readonly ready: "True" | "False" | "Unknown" | undefined;
  readonly labelled: boolean;
  readonly uid: Choice;
  readonly discovered: string | readonly Sighting[] | undefined;
  readonly annotations: Readonly<Record<string, string>>;
};

/** One cluster. */
export type ClusterRecipe = {
  readonly nodes: readonly NodeRecipe[];
  readonly granularity: "full" | "location" | "cross" | undefined;
  /** The WireGuard addresses lie inside the pod range, as flat declarations often have it. */
  readonly wireguardInPods: boolean;
  readonly serviceCidr: Choice;
};

/** One cluster of a mesh. */
export type MemberRecipe = {
  readonly cluster: number;
  readonly alias: boolean;
  readonly form: "flat" | "typed";
  readonly service: boolean;
  readonly additional: boolean;
  readonly v6: boolean;
  readonly extra: string | undefined;
  readonly accepted: readonly string[] | undefined;
  readonly selector: Readonly<Record<string, unknown>> | undefined;
  readonly port: number | undefined;
  readonly keepalive: number | undefined;
  readonly secretRef: "given" | "missing" | "wrong";
};

/** One ClusterMesh. */
export type MeshRecipe = {
  readonly name: string;
  readonly namespace: string;
  readonly createdDay: number | undefined;
  readonly members: readonly MemberRecipe[];
  readonly topology: "none" | "Full" | "Hub" | "Pairs" | "Unknown";
  readonly hub: number;
  readonly suspend: boolean;
  readonly terminating: boolean;
};

/** Everything of a world but its Peers. */
export type WorldRecipe = {
  readonly clusters: readonly ClusterRecipe[];
  readonly meshes: readonly MeshRecipe[];
  readonly instance: boolean;
};

/** The time in every random world. */
export const now = "2026-11-15T12:00:00Z";

/** The identity of the control plane in every random world that has one. */
export const instanceUid = "c0ffee00-0000-4000-8000-000000000001";

/** Names of the clusters in the world file; entries of meshes call them otherwise. */
export const clusterNames = ["hub", "edge", "far", "lab", "zoo"] as const;

/** Namespaces that hold meshes; each has its own Secrets for the same clusters. */
export const meshNamespaces = ["kilo-system", "tenant"] as const;

/** A text that stands for a secret; no plan may contain it. */
export const secretMark = "SECRET-d41d8cd98f00b204";

/** The ranges of a cluster as a spec would declare them. */
export const rangesOf = (cluster: number, wireguardInPods = false) => ({
  pods: `10.${cluster}.0.0/16`,
  podsV6: `fd10:${cluster}::/48`,
  wireguard: wireguardInPods ? `10.${cluster}.0.0/16` : `10.${100 + cluster}.0.0/24`,
  service: `10.${200 + cluster}.0.0/16`,
  additional: `172.${16 + cluster}.0.0/16`,
});

/** A public key that no other pair of numbers has. */
export function keyOf(cluster: number, serial: number): string {
  const bytes = new Uint8Array(32).fill(7);
  bytes.set([cluster + 1, serial + 1]);
  return Buffer.from(bytes).toString("base64");
}

/** The addresses and ranges that a healthy node has. */
export const ownOf = (cluster: number, serial: number, wireguardInPods = false) => ({
  key: keyOf(cluster, serial),
  wireguardIp: wireguardInPods ? `10.${cluster}.255.${serial + 1}/16` : `10.${100 + cluster}.0.${serial + 1}/24`,
  pods: `10.${cluster}.${serial}.0/24`,
  podsV6: `fd10:${cluster}:0:${serial}::/64`,
  clustermeshEndpoint: `192.0.2.${cluster * 32 + serial + 1}:51820`,
  forceEndpoint: `192.0.2.${cluster * 32 + serial + 1}:51821`,
  external: `198.51.100.${cluster * 32 + serial + 1}`,
  externalV6: `2001:db8::${cluster}:${serial + 1}`,
  internal: `172.${16 + cluster}.0.${serial + 1}`,
  uid: `00000000-0000-4000-8000-0000000${cluster}${String(serial).padStart(4, "0")}`,
});

/** The world file of a recipe, every cluster synced. */
export function buildWorld(recipe: WorldRecipe): TestWorld {
  const clusters = recipe.clusters.map((cluster, index) => {
    const nodes = cluster.nodes.map((node) => nodeObject(index, cluster, node, recipe.clusters));
    const service = pick(cluster.serviceCidr, rangesOf(index).service, (of) => rangesOf(of).service);
    const objects: unknown[] = [...nodes];
    if (service !== undefined) {
      objects.push({
        apiVersion: "networking.k8s.io/v1",
        kind: "ServiceCIDR",
        metadata: { name: "kubernetes" },
        spec: { cidrs: [service] },
      });
    }
    const name = clusterNames[index] ?? `cluster-${index}`;
    if (index > 0) return { name, access: accessesOf(index) as never, objects };
    if (recipe.instance) {
      objects.push({ apiVersion: "v1", kind: "Namespace", metadata: { name: "kube-system", uid: instanceUid } });
    }
    objects.push(...recipe.meshes.map((mesh) => meshObject(mesh, recipe)), ...secretsOf(recipe.clusters.length));
    return { name, local: true, objects };
  });
  return { apiVersion: "causeway.dev/v1alpha1", kind: "World", now, clusters };
}

const accessesOf = (cluster: number) =>
  meshNamespaces.map((namespace) => ({ namespace, secret: `c${cluster}-kubeconfig`, key: "kubeconfig" }));

const secretsOf = (clusterCount: number): unknown[] =>
  Array.from({ length: clusterCount }, (_, cluster) =>
    meshNamespaces.map((namespace) => ({
      apiVersion: "v1",
      kind: "Secret",
      metadata: { name: `c${cluster}-kubeconfig`, namespace },
      data: { kubeconfig: secretMark },
    })),
  ).flat();

function pick(choice: Choice, own: string, of: (cluster: number, serial: number) => string): string | undefined {
  switch (choice.is) {
    case "own":
      return own;
    case "none":
      return undefined;
    case "of":
      return of(choice.cluster, choice.serial);
    case "text":
      return choice.text;
  }
}

function nodeObject(index: number, cluster: ClusterRecipe, node: NodeRecipe, all: readonly ClusterRecipe[]): Obj {
  const own = ownOf(index, node.serial, cluster.wireguardInPods);
  const chosen = (choice: Choice, field: keyof typeof own): string | undefined =>
    pick(choice, own[field], (of, serial) => ownOf(of, serial, all[of]?.wireguardInPods)[field]);
  const values: Readonly<Record<string, string | undefined>> = {
    key: chosen(node.key, "key"),
    "wireguard-ip": chosen(node.wireguardIp, "wireguardIp"),
    "clustermesh-endpoint": chosen(node.clustermeshEndpoint, "clustermeshEndpoint"),
    "force-endpoint": chosen(node.forceEndpoint, "forceEndpoint"),
    granularity: pick(node.granularity, cluster.granularity ?? "", () => "location") || undefined,
    location: node.location,
    "last-seen": node.lastSeen,
    "persistent-keepalive": node.keepalive,
    "discovered-endpoints": typeof node.discovered === "object" ? sightings(node.discovered) : node.discovered,
  };
  const given = Object.entries(values).flatMap(([key, value]) =>
    value === undefined ? [] : [[`kilo.squat.ai/${key}`, value] as const],
  );
  const pods = chosen(node.pods, "pods");
  const podCIDRs = pods === undefined ? [] : [pods, ...(node.dual ? [own.podsV6] : []), ...node.furtherPods];
  const external = chosen(node.external, "external");
  const internal = chosen(node.internal, "internal");
  const uid = chosen(node.uid, "uid");
  return {
    apiVersion: "v1",
    kind: "Node",
    metadata: {
      name: nameOf(node),
      ...(uid === undefined ? {} : { uid }),
      labels: node.labelled ? { mesh: "yes" } : {},
      annotations: { ...Object.fromEntries(given), ...node.annotations },
    },
    spec: podCIDRs.length === 0 ? {} : { podCIDRs },
    status: {
      addresses: [
        ...(external === undefined ? [] : [{ type: "ExternalIP", address: external }]),
        ...(node.externalV6 ? [{ type: "ExternalIP", address: own.externalV6 }] : []),
        ...(internal === undefined ? [] : [{ type: "InternalIP", address: internal }]),
      ],
      ...(node.ready === undefined ? {} : { conditions: [{ type: "Ready", status: node.ready }] }),
    },
  };
}

/** The name of a node in the world. */
export const nameOf = (node: NodeRecipe): string => node.name ?? `n${node.serial}`;

function sightings(list: readonly Sighting[]): string {
  return JSON.stringify(
    Object.fromEntries(
      list.map(({ cluster, serial, ip, port }) => [keyOf(cluster, serial), { IP: ip, Port: port, Zone: "" }]),
    ),
  );
}

function meshObject(mesh: MeshRecipe, { clusters }: WorldRecipe): Obj {
  const entries = membersOf(mesh, clusters.length);
  const names = entries.map(entryName);
  const [first = "", ...others] = [...names.slice(mesh.hub % names.length), ...names.slice(0, mesh.hub % names.length)];
  const topologies = {
    none: {},
    Full: { topology: { type: "Full" } },
    Hub: { topology: { type: "Hub", hub: first } },
    Pairs: { topology: { type: "Pairs", pairs: others.slice(0, 2).map((other) => ({ clusters: [first, other] })) } },
    Unknown: { topology: { type: "Hub", hub: "nobody" } },
  };
  return {
    apiVersion: "kilo.squat.ai/v1alpha1",
    kind: "ClusterMesh",
    metadata: {
      name: mesh.name,
      namespace: mesh.namespace,
      uid: `6f1f7d0e-0000-4000-8000-${mesh.namespace}-${mesh.name}`,
      ...(mesh.createdDay === undefined ? {} : { creationTimestamp: `2026-01-0${mesh.createdDay}T00:00:00Z` }),
      ...(mesh.terminating ? { deletionTimestamp: now } : {}),
    },
    spec: {
      clusters: entries.map((member) => entryOf(member, clusters[member.cluster])),
      ...topologies[mesh.topology],
      ...(mesh.suspend ? { suspend: true } : {}),
    },
  };
}

/** The members of a mesh that exist; at least two, so that the mesh is one. */
function membersOf({ members }: MeshRecipe, clusterCount: number): readonly MemberRecipe[] {
  const present = members.filter(({ cluster }) => cluster < clusterCount);
  const [any] = members;
  const missing = [0, 1].filter((cluster) => present.every((member) => member.cluster !== cluster));
  if (present.length >= 2 || any === undefined) return present;
  return [...present, ...missing.map((cluster) => ({ ...any, cluster }))].slice(0, 2);
}

const entryName = ({ cluster, alias }: MemberRecipe): string => `${alias ? "x" : "c"}${cluster}`;

function entryOf(member: MemberRecipe, cluster: ClusterRecipe | undefined): Record<string, unknown> {
  const ranges = rangesOf(member.cluster, cluster?.wireguardInPods);
  const pods = member.v6 ? [ranges.pods, ranges.podsV6] : [ranges.pods];
  const further = [
    ...(member.additional ? [ranges.additional] : []),
    ...(member.extra === undefined ? [] : [member.extra]),
  ];
  const flat = [...new Set([...pods, ranges.wireguard, ...(member.service ? [ranges.service] : []), ...further])];
  const declared =
    member.form === "flat" || cluster?.wireguardInPods
      ? { allowedNetworks: flat }
      : {
          podCIDRs: pods,
          wireguardCIDR: ranges.wireguard,
          ...(member.service ? { serviceCIDR: ranges.service } : {}),
          ...(further.length === 0 ? {} : { additionalCIDRs: further }),
        };
  const secret = member.secretRef === "wrong" ? "no-such-secret" : `c${member.cluster}-kubeconfig`;
  const access =
    member.cluster === 0
      ? { local: true }
      : member.secretRef === "missing"
        ? {}
        : { kubeconfigSecretRef: { name: secret, key: "kubeconfig" } };
  return {
    name: entryName(member),
    ...access,
    ...declared,
    ...(member.accepted === undefined ? {} : { acceptedNetworks: member.accepted }),
    ...(member.selector === undefined ? {} : { nodeSelector: member.selector }),
    ...(member.port === undefined ? {} : { wireguardPort: member.port }),
    ...(member.keepalive === undefined ? {} : { persistentKeepalive: member.keepalive }),
  };
}

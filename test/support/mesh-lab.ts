// Meshes of real API servers: nodes as Kilo annotates them, meshes, kubeconfig Secrets and the committed roles.

import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { parseAllDocuments } from "yaml";
import { eventually } from "./eventually.ts";
import { ensureNamespace } from "./server-objects.ts";
import type { Server } from "./servers.ts";

/** The namespace of meshes and Secrets in tests. */
export const meshNamespace = "kilo-system";

/** The name the operator has on test servers. */
export const operatorUser = "causeway";

/** A WireGuard public key made from a text. */
export const keyOf = (text: string): string => createHash("sha256").update(text).digest("base64");

/** What a test may say of a node; the rest is made from the cluster's number and its own. */
export type NodeOptions = {
  readonly key?: string;
  readonly annotations?: Readonly<Record<string, string | null>>;
  readonly addresses?: readonly { readonly type: string; readonly address: string }[];
};

/** The Node `n<index>` of the cluster with this number, as Kilo with granularity `full` leaves it. */
export function nodeOf(cluster: number, index: number, options: NodeOptions = {}) {
  const name = `n${index}`;
  return {
    apiVersion: "v1",
    kind: "Node",
    metadata: {
      name,
      annotations: {
        "kilo.squat.ai/key": options.key ?? keyOf(`${cluster}/${name}`),
        "kilo.squat.ai/wireguard-ip": `10.4.${cluster}.${index}/24`,
        "kilo.squat.ai/granularity": "full",
        "kilo.squat.ai/force-endpoint": `198.51.${100 + cluster}.${index}:51820`,
        "kilo.squat.ai/last-seen": String(Math.floor(Date.now() / 1000)),
        ...options.annotations,
      },
    },
    spec: { podCIDR: `10.${cluster}.${index}.0/24`, podCIDRs: [`10.${cluster}.${index}.0/24`] },
    status: { addresses: options.addresses ?? [] },
  };
}

/** Creates nodes n1 … n<count>. */
export async function createNodes(server: Server, cluster: number, count: number): Promise<void> {
  for (let index = 1; index <= count; index += 1) await createNode(server, nodeOf(cluster, index));
}

/** Creates one node; its status needs a second request. */
export async function createNode(server: Server, node: ReturnType<typeof nodeOf>): Promise<void> {
  await must(server, "POST", "/api/v1/nodes", node);
  if (node.status.addresses.length === 0) return;
  await must(server, "PATCH", `/api/v1/nodes/${node.metadata.name}/status`, { status: node.status });
}

/** Sets, or with null removes, annotations of a node. */
export async function annotate(server: Server, node: string, annotations: Readonly<Record<string, string | null>>) {
  await must(server, "PATCH", `/api/v1/nodes/${node}`, { metadata: { annotations } });
}

/** How a test describes one cluster of a mesh. */
export type MemberSpec = { readonly server: Server; readonly number: number; readonly local?: boolean };

/** The entry of a cluster in `spec.clusters`. */
export const entryOf = ({ server, number, local }: MemberSpec) => ({
  name: server.name,
  ...(local === true
    ? { local: true }
    : { kubeconfigSecretRef: { name: `${server.name}-kubeconfig`, key: "kubeconfig" } }),
  podCIDRs: [`10.${number}.0.0/16`],
  wireguardCIDR: `10.4.${number}.0/24`,
});

/** A ClusterMesh over these clusters. */
export const meshOf = (name: string, members: readonly MemberSpec[], spec: object = {}) => ({
  apiVersion: "kilo.squat.ai/v1alpha1",
  kind: "ClusterMesh",
  metadata: { name, namespace: meshNamespace },
  spec: { clusters: members.map(entryOf), ...spec },
});

const meshes = `/apis/kilo.squat.ai/v1alpha1/namespaces/${meshNamespace}/clustermeshes`;

/** The parts of a stored mesh that tests look at. */
export type StoredMesh = {
  readonly metadata: {
    readonly name: string;
    readonly generation: number;
    readonly resourceVersion: string;
    readonly finalizers?: readonly string[];
    readonly deletionTimestamp?: string;
  };
  readonly status?: {
    readonly conditions?: readonly {
      readonly type: string;
      readonly status: string;
      readonly reason: string;
      readonly message: string;
    }[];
    readonly clusters?: readonly {
      readonly name: string;
      readonly registeredPeers: number;
      readonly skippedNodes: number;
      readonly observed?: string;
      readonly message?: string;
    }[];
    readonly findings?: readonly { readonly code: string; readonly count: number }[];
  };
};

/** Creates or replaces the spec of a mesh. */
export async function putMesh(hub: Server, mesh: ReturnType<typeof meshOf>): Promise<void> {
  const { status } = await hub.admin.request("POST", meshes, mesh);
  if (status === 201) return;
  await must(hub, "PATCH", `${meshes}/${mesh.metadata.name}`, { spec: mesh.spec });
}

/** A mesh as it is stored, or nothing. */
export async function getMesh(hub: Server, name: string): Promise<StoredMesh | undefined> {
  const { status, body } = await hub.admin.request<StoredMesh>("GET", `${meshes}/${name}`);
  return status === 200 ? body : undefined;
}

/** Asks for the deletion of a mesh. */
export async function deleteMesh(hub: Server, name: string): Promise<void> {
  await must(hub, "DELETE", `${meshes}/${name}`);
}

/** Waits for `Ready` to be something, with a reason if one is given. */
export async function meshReady(hub: Server, name: string, status = "True", reason?: string): Promise<StoredMesh> {
  let last = "no mesh";
  return await eventually(`mesh ${name} to be Ready=${status}${reason === undefined ? "" : `/${reason}`}`, async () => {
    const mesh = await getMesh(hub, name);
    const ready = mesh?.status?.conditions?.find(({ type }) => type === "Ready");
    last = JSON.stringify(ready);
    if (mesh !== undefined && ready?.status === status && (reason === undefined || ready.reason === reason))
      return mesh;
    throw new Error(last);
  });
}

/** The parts of a Peer that tests look at. */
export type StoredPeer = {
  readonly metadata: {
    readonly name: string;
    readonly uid: string;
    readonly resourceVersion: string;
    readonly labels?: Readonly<Record<string, string>>;
    readonly annotations?: Readonly<Record<string, string>>;
  };
  readonly spec: {
    readonly publicKey: string;
    readonly allowedIPs: readonly string[];
    readonly endpoint?: { readonly dnsOrIP: { readonly ip?: string; readonly dns?: string }; readonly port: number };
    readonly persistentKeepalive?: number;
    readonly presharedKey?: string;
  };
};

/** Where Peers are. */
export const peersPath = "/apis/kilo.squat.ai/v1alpha1/peers";

/** All Peers of a cluster, by name. */
export async function peersOn(server: Server): Promise<ReadonlyMap<string, StoredPeer>> {
  const { status, body } = await server.admin.request<{ items: readonly StoredPeer[] }>("GET", peersPath);
  return new Map(status === 200 ? body.items.map((peer) => [peer.metadata.name, peer]) : []);
}

/** Waits until a cluster has exactly these Peers. */
export async function peerNames(server: Server, names: readonly string[], msMax?: number): Promise<void> {
  const wanted = [...names].sort().join(" ");
  await eventually(
    `${server.name} to have the Peers ${wanted || "(none)"}`,
    async () => {
      const found = [...(await peersOn(server)).keys()].sort().join(" ");
      if (found === wanted) return true;
      throw new Error(`it has ${found || "(none)"}`);
    },
    msMax,
  );
}

/** Puts a kubeconfig for a cluster where its mesh entry looks for it. */
export async function putKubeconfig(hub: Server, server: Server, kubeconfig = server.kubeconfig(server.operatorToken)) {
  const name = `${server.name}-kubeconfig`;
  const data = { kubeconfig: Buffer.from(kubeconfig).toString("base64") };
  const path = `/api/v1/namespaces/${meshNamespace}/secrets`;
  const { status } = await hub.admin.request("POST", path, { metadata: { name }, data });
  if (status === 409) await must(hub, "PATCH", `${path}/${name}`, { data });
}

/** Binds the committed roles of the operator's own cluster to the operator's user, Secrets by name included. */
export async function grantLocal(hub: Server, secrets: readonly string[]): Promise<void> {
  await ensureNamespace(hub, meshNamespace);
  const local = readRoles("local.yaml");
  const kubeconfigs = readRoles("secrets.yaml").map((object) => ({
    ...object,
    metadata: { ...object.metadata, namespace: meshNamespace },
    ...(object.rules === undefined ? {} : { rules: object.rules.map((rule) => ({ ...rule, resourceNames: secrets })) }),
  }));
  await applyRoles(hub, [...local, ...kubeconfigs]);
}

/** Binds the committed role of a remote cluster to the operator's user. */
export async function grantRemote(server: Server): Promise<void> {
  await applyRoles(server, readRoles("remote.yaml"));
}

type RoleObject = {
  readonly kind: string;
  readonly metadata: { readonly name: string; readonly namespace?: string };
  readonly rules?: readonly object[];
  readonly subjects?: readonly object[];
};

function readRoles(file: string): readonly RoleObject[] {
  const text = readFileSync(join(import.meta.dirname, "../../deploy/rbac", file), "utf8");
  return parseAllDocuments(text).map((document) => document.toJS() as RoleObject);
}

const rolePaths: Readonly<Record<string, string>> = {
  ClusterRole: "clusterroles",
  ClusterRoleBinding: "clusterrolebindings",
  Role: "roles",
  RoleBinding: "rolebindings",
};

async function applyRoles(server: Server, objects: readonly RoleObject[]): Promise<void> {
  for (const object of objects) {
    const plural = rolePaths[object.kind];
    if (object.kind === "Namespace") await ensureNamespace(server, object.metadata.name);
    if (plural === undefined) continue;
    const { namespace, name } = object.metadata;
    const base = `/apis/rbac.authorization.k8s.io/v1${namespace === undefined ? "" : `/namespaces/${namespace}`}`;
    const user = { kind: "User", apiGroup: "rbac.authorization.k8s.io", name: operatorUser };
    const body = object.subjects === undefined ? object : { ...object, subjects: [user] };
    const { status } = await server.admin.request("POST", `${base}/${plural}`, body);
    if (status === 409) await must(server, "PUT", `${base}/${plural}/${name}`, body);
    else if (status !== 201) throw new Error(`${object.kind} ${name}: ${status}`);
  }
}

/** Sends a request as the admin that has to succeed. */
export async function must<Body = unknown>(
  server: Server,
  method: string,
  path: string,
  body?: unknown,
): Promise<Body> {
  const type = method === "PATCH" ? "application/merge-patch+json" : undefined;
  const answer = await server.admin.request<Body>(method, path, body, type);
  if (answer.status >= 300) {
    throw new Error(`${method} ${path} on ${server.name}: ${answer.status} ${JSON.stringify(answer.body)}`);
  }
  return answer.body;
}

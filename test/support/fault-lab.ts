// What tests of faults look at beyond a mesh and its Peers: findings, events, metrics, what the audit logs say of us; and
// what they need beyond one healthy fleet: other nodes, other Secrets, a second control plane.

import ipaddr from "ipaddr.js";
import type { AuditEntry, AuditMark } from "./audit.ts";
import { eventually } from "./eventually.ts";
import {
  createNodes,
  getMesh,
  grantLocal,
  keyOf,
  type MemberSpec,
  meshNamespace,
  must,
  nodeOf,
  type NodeOptions,
  operatorUser,
  peersOn,
  type StoredMesh,
  type StoredPeer,
} from "./mesh-lab.ts";
import type { Lab } from "./operator-lab.ts";
import { type OperatorProcess, startOperator } from "./operator-process.ts";
import { ensureNamespace } from "./server-objects.ts";
import type { Server } from "./servers.ts";

/** A finding as a status holds it. */
export type StoredFinding = {
  readonly code: string;
  readonly severity: string;
  readonly cluster?: string;
  readonly count: number;
  readonly subjects?: readonly string[];
  readonly message: string;
};

/** What a mesh's status says of one cluster. */
export type StoredCluster = {
  readonly name: string;
  readonly registeredPeers: number;
  readonly skippedNodes: number;
  readonly observed?: string;
  readonly message?: string;
  readonly kubeconfigSecretRef?: { readonly name: string; readonly key: string };
};

/** The findings in a status. */
export const findingsOf = (mesh: StoredMesh | undefined): readonly StoredFinding[] =>
  (mesh?.status?.findings ?? []) as readonly StoredFinding[];

/** What a status says of a cluster. */
export const clusterOf = (mesh: StoredMesh | undefined, name: string): StoredCluster | undefined =>
  mesh?.status?.clusters?.find((cluster) => cluster.name === name);

/** Waits until the status of a mesh has a finding, about a subject such as `Node/n1` if one is given. */
export async function found(hub: Server, mesh: string, code: string, subject?: string): Promise<StoredFinding> {
  return await eventually(`mesh ${mesh} to say ${code}`, async () => {
    const findings = findingsOf(await getMesh(hub, mesh));
    const match = findings.find((each) => each.code === code && (!subject || each.subjects?.includes(subject)));
    if (match !== undefined) return match;
    throw new Error(`it says ${findings.map((each) => each.code).join(" ") || "nothing"}`);
  });
}

/** Waits until the status of a mesh no longer has a finding. */
export async function over(hub: Server, mesh: string, code: string): Promise<void> {
  await eventually(`mesh ${mesh} to say ${code} no more`, async () => {
    const stored = await getMesh(hub, mesh);
    return stored !== undefined && !findingsOf(stored).some((each) => each.code === code);
  });
}

/** Waits until the status of a mesh says something of a cluster. */
export async function clusterSays(
  hub: Server,
  mesh: string,
  cluster: string,
  isIt: (said: StoredCluster) => boolean,
): Promise<StoredCluster> {
  return await eventually(`mesh ${mesh} to say the right thing of ${cluster}`, async () => {
    const said = clusterOf(await getMesh(hub, mesh), cluster);
    if (said !== undefined && isIt(said)) return said;
    throw new Error(`it says ${JSON.stringify(said)}`);
  });
}

/** The parts of an event that tests look at. */
export type StoredEvent = {
  readonly type: string;
  readonly reason: string;
  readonly action: string;
  readonly note: string;
  readonly reportingController: string;
  readonly regarding: { readonly kind: string; readonly name: string; readonly namespace: string };
};

/** The events of a namespace, with one reason if one is given. */
export async function eventsOn(hub: Server, reason?: string): Promise<readonly StoredEvent[]> {
  const path = `/apis/events.k8s.io/v1/namespaces/${meshNamespace}/events`;
  const { items } = await must<{ items: readonly StoredEvent[] }>(hub, "GET", path);
  return reason === undefined ? items : items.filter((event) => event.reason === reason);
}

/** Waits for an event. */
export async function eventOn(hub: Server, reason: string): Promise<StoredEvent> {
  return await eventually(`an event ${reason}`, async () => (await eventsOn(hub, reason))[0]);
}

/** What an operator answers at a path of its probes or metrics. */
export async function probe(url: string): Promise<{ readonly status: number; readonly text: string }> {
  const answer = await fetch(url);
  return { status: answer.status, text: await answer.text() };
}

/** The sum of a metric over its labels, or over those that contain a text; a metric that is not there is 0. */
export async function metric(operator: OperatorProcess, name: string, labels = ""): Promise<number> {
  const { text } = await probe(`${operator.metrics}/metrics`);
  return text
    .split("\n")
    .filter((line) => new RegExp(`^${name}[{ ]`).test(line) && line.includes(labels))
    .reduce((total, line) => total + Number(line.slice(line.lastIndexOf(" "))), 0);
}

/** Waits until an operator has seen so many clusters fresh and whole. */
export async function synced(operator: OperatorProcess, clusters: number): Promise<void> {
  await eventually(
    `${clusters} clusters to be synced`,
    async () => (await metric(operator, "causeway_clusters", 'state="synced"')) === clusters,
  );
}

/** Places in the audit logs of several servers. */
export type Marks = ReadonlyMap<Server, AuditMark>;

/** Where the audit logs end now. */
export async function markAll(servers: readonly Server[]): Promise<Marks> {
  return new Map(await Promise.all(servers.map(async (server) => [server, await server.audit().mark()] as const)));
}

const writeVerbs = ["create", "update", "patch", "delete", "deletecollection"];

/** What the operator asked of the servers since the marks, its Lease apart. */
export async function asked(
  marks: Marks,
  verbs?: readonly string[],
): Promise<readonly (AuditEntry & { on: string })[]> {
  const each = [...marks].map(async ([server, since]) => {
    const query = { user: operatorUser, since, ...(verbs === undefined ? {} : { verbs }) };
    return (await server.audit().requests(query)).map((entry) => ({ ...entry, on: server.name }));
  });
  return (await Promise.all(each)).flat().filter(({ resource }) => resource !== "leases");
}

/** What the operator wrote since the marks, its Lease apart, in words. */
export async function written(marks: Marks): Promise<readonly string[]> {
  return (await asked(marks, writeVerbs)).map(inWords);
}

/** A request in words, for comparison and for messages. */
export const inWords = ({ on, verb, resource, subresource, name, code }: AuditEntry & { on: string }): string =>
  `${on}: ${verb} ${resource}${subresource && `/${subresource}`} ${name} ${code}`;

/** The versions of all Peers of a cluster: equal ones were not written in between. */
export async function versionsOn(server: Server): Promise<Readonly<Record<string, string>>> {
  const peers = [...(await peersOn(server))].map(([name, peer]) => [name, peer.metadata.resourceVersion]);
  return Object.fromEntries(peers) as Readonly<Record<string, string>>;
}

/** The names of the Peers that carry an address. */
export function carriersOf(peers: ReadonlyMap<string, StoredPeer>, address: string): readonly string[] {
  const wanted = ipaddr.parse(address);
  const carries = (text: string): boolean => {
    const [range, bits] = ipaddr.parseCIDR(text);
    return range.kind() === wanted.kind() && wanted.match([range, bits] as [ipaddr.IPv4, number]);
  };
  return [...peers].filter(([, { spec }]) => spec.allowedIPs.some(carries)).map(([name]) => name);
}

/** A Node that differs from `nodeOf` in its name or in its pod ranges; without ranges it has none yet. */
export function otherNode(
  cluster: number,
  index: number,
  { name = `n${index}`, podCIDRs, ...options }: NodeOptions & { readonly name?: string; podCIDRs?: readonly string[] },
): ReturnType<typeof nodeOf> {
  const node = nodeOf(cluster, index, { key: keyOf(`${cluster}/${name}`), ...options });
  const spec = podCIDRs === undefined ? node.spec : { podCIDR: podCIDRs[0] ?? "", podCIDRs: [...podCIDRs] };
  return { ...node, metadata: { ...node.metadata, name }, spec };
}

/** Creates or replaces a Secret with one key. */
export async function putSecret(
  hub: Server,
  { namespace = meshNamespace, name, key = "kubeconfig" }: { namespace?: string; name: string; key?: string },
  text: string,
): Promise<void> {
  const path = `/api/v1/namespaces/${namespace}/secrets`;
  const data = { [key]: Buffer.from(text).toString("base64") };
  const { status } = await hub.admin.request("POST", path, { metadata: { name }, data });
  if (status === 409) await must(hub, "PATCH", `${path}/${name}`, { data });
}

/** Lets the operator read these Secrets too, in a namespace that is made if it is not there. */
export async function allowSecrets(hub: Server, namespace: string, names: readonly string[]): Promise<void> {
  await ensureNamespace(hub, namespace);
  const base = `/apis/rbac.authorization.k8s.io/v1/namespaces/${namespace}`;
  const metadata = { name: "more-kubeconfigs" };
  const rules = [{ apiGroups: [""], resources: ["secrets"], resourceNames: names, verbs: ["list", "watch"] }];
  await must(hub, "POST", `${base}/roles`, { metadata, rules });
  await must(hub, "POST", `${base}/rolebindings`, {
    metadata,
    roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "Role", name: metadata.name },
    subjects: [{ apiGroup: "rbac.authorization.k8s.io", kind: "User", name: operatorUser }],
  });
}

/** Operators that act for another server than hub, as its own control plane. */
export type ControlPlane = {
  readonly start: (args?: readonly string[]) => Promise<OperatorProcess>;
  readonly close: () => Promise<void>;
};

/** Grants the operator on a server what it needs on its own cluster; `close` ends what was started. */
export async function openControlPlane(server: Server): Promise<ControlPlane> {
  const operators: OperatorProcess[] = [];
  await grantLocal(
    server,
    ["hub", "edge", "far", "spare"].map((name) => `${name}-kubeconfig`),
  );
  return {
    start: async (args) => {
      const operator = await startOperator(server.kubeconfig(server.operatorToken), args);
      operators.push(operator);
      return operator;
    },
    close: async () => {
      await Promise.all(operators.map((operator) => ended(operator)));
    },
  };
}

/** Ends an operator, if need be by force, and waits for it. */
export async function ended(operator: OperatorProcess): Promise<void> {
  operator.kill("SIGTERM");
  const killer = setTimeout(() => operator.kill("SIGKILL"), 10_000);
  await operator.exited;
  clearTimeout(killer);
}

/** Takes a kind away from a server, with everything of it. */
export async function removeCrd(server: Server, name: string): Promise<void> {
  const path = `/apis/apiextensions.k8s.io/v1/customresourcedefinitions/${name}`;
  const { status } = await server.admin.request("DELETE", path);
  if (status === 404) return;
  await eventually(`${name} to be gone`, async () => (await server.admin.request("GET", path)).status === 404);
}

/** A kubeconfig for an account of its own that may do what the operator may; deleting the account revokes it. */
export async function accountKubeconfig(server: Server, account: string): Promise<string> {
  const token = await server.serviceAccountToken("default", account);
  await must(server, "POST", "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", {
    metadata: { name: `remote-${account}` },
    roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "ClusterRole", name: "causeway-remote" },
    subjects: [{ kind: "ServiceAccount", namespace: "default", name: account }],
  });
  return server.kubeconfig(token);
}

/** Deletes an account, and with it its tokens; answers when they are refused. */
export async function revokeAccount(server: Server, account: string, kubeconfig: string): Promise<void> {
  const { users } = JSON.parse(kubeconfig) as { users: readonly [{ user: { token: string } }] };
  await must(server, "DELETE", `/api/v1/namespaces/default/serviceaccounts/${account}`);
  const client = server.client(users[0].user.token);
  await eventually("the token to be refused", async () => (await client.request("GET", "/api")).status === 401);
  await client.close();
}

/** Gives the operator's role on a server other verbs for Peers. */
export async function allowPeers(server: Server, verbs: readonly string[]): Promise<void> {
  const path = "/apis/rbac.authorization.k8s.io/v1/clusterroles/causeway-remote";
  const role = await must<{ rules: readonly { resources: readonly string[] }[] }>(server, "GET", path);
  const rules = role.rules.map((rule) => (rule.resources.includes("peers") ? { ...rule, verbs } : rule));
  await must(server, "PUT", path, { ...role, rules });
}

/** Takes the operator's role on a server away. */
export async function revokeRemote(server: Server): Promise<void> {
  await must(server, "DELETE", "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/causeway-remote");
}

/**
 * The members of a lab that was opened with `spare: 0`, with spare as cluster 9 and so many nodes: the pods of a
 * cluster 4 would overlap the WireGuard addresses of all.
 */
export async function withSpare({ members }: Pick<Lab, "members">, nodes: number): Promise<readonly MemberSpec[]> {
  const numbered = members.map((member) => (member.server.name === "spare" ? { ...member, number: 9 } : member));
  for (const { server, number } of numbered) if (number === 9) await createNodes(server, number, nodes);
  return numbered;
}

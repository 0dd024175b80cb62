// A fleet to measure on: empty real API servers, filled with nodes as Kilo annotates them, the committed roles, the
// Secrets and one mesh.
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { parse, parseAllDocuments } from "yaml";
import { createClient } from "../test/support/server-client.mjs";
import { livePid } from "../test/support/server-pids.mjs";
import {
  kubeconfigFor,
  launchFleet,
  obtainTools,
  pauseServer,
  resumeServer,
  serverPid,
} from "../test/support/server-processes.mjs";
import { benchAgent } from "./audit-count.mjs";
import { toBeEnded } from "./cleanup.mjs";
import { ToolMissing } from "./errors.mjs";
import { peerDefinition as peerCrd } from "../dist/sim/peer-definition.js";
import { range } from "./statistics.mjs";

const root = join(import.meta.dirname, "..");
const operatorUser = "causeway";
const servedMsMax = 60_000;

/** Where the operator keeps its Lease. */
export const operatorNamespace = "causeway-system";

const meshNamespace = "kilo-system";

/** Where the mesh is. */
export const meshesPath = `/apis/kilo.squat.ai/v1alpha1/namespaces/${meshNamespace}/clustermeshes`;

/** Where Peers are. */
export const peersPath = "/apis/kilo.squat.ai/v1alpha1/peers";

/** The name of the mesh. */
export const meshName = "bench";

/** Finds the API server and what else a fleet needs, or builds it. */
export function findTools() {
  try {
    return obtainTools();
  } catch (error) {
    throw new ToolMissing(error.message);
  }
}

/** Empty API servers with clients for the admin; they end with the bench. */
export async function startServers(names, tools) {
  const fleet = await launchFleet(names, tools);
  const clients = fleet.servers.map((server) =>
    createClient(server, server.adminToken, { connections: 4, userAgent: benchAgent }),
  );
  const stop = toBeEnded(async () => {
    await Promise.all(clients.map((client) => client.close()));
    await fleet.stop();
  });
  return {
    folder: fleet.folder,
    readySeconds: fleet.readyMs / 1000,
    servers: fleet.servers.map((server, index) => ({ ...server, admin: clients[index] })),
    pids: () => [...fleet.servers.map(serverPid), livePid(fleet.folder, "etcd")].filter((pid) => pid !== undefined),
    stop,
  };
}

/** Fills servers for a shape. Access is with the committed roles, or, where they are not known to suffice, as the admin. */
export async function fillFleet(started, { nodes, networks, asAdmin }) {
  const tokenOf = (server) => (asAdmin ? server.adminToken : server.operatorToken);
  const clusters = started.servers.map((server, index) => ({
    server,
    number: index + 1,
    ...nodesOf(index + 1, nodes),
  }));
  const [hub, ...remotes] = clusters;
  const meshCrd = parse(readFileSync(join(root, "crds/kilo.squat.ai_clustermeshes.yaml"), "utf8"));
  await Promise.all([installCrd(hub.server, meshCrd), ...clusters.map(({ server }) => installCrd(server, peerCrd))]);
  await grantLocal(
    hub.server,
    remotes.map(({ server }) => secretOf(server)),
  );
  await Promise.all(clusters.map((cluster) => fillCluster(cluster, cluster !== hub)));
  for (const { server } of remotes) {
    const data = { kubeconfig: Buffer.from(kubeconfigFor(server, tokenOf(server))).toString("base64") };
    const path = `/api/v1/namespaces/${meshNamespace}/secrets`;
    await must(server, hub.server.admin.request("POST", path, { metadata: { name: secretOf(server) }, data }));
  }
  await must(hub.server, hub.server.admin.request("POST", meshesPath, meshOf(clusters, networks)));
  return {
    ...started,
    clusters,
    kubeconfig: kubeconfigFor(hub.server, tokenOf(hub.server)),
    /** How many Peers a full mesh has. */
    peers: clusters.length * (clusters.length - 1) * nodes,
    annotate: (cluster, node, annotations) => annotate(cluster.server, node, annotations),
    /** A node beside those that a cluster has, another one each time. */
    newNode: ({ number, nodes: present }, time) => benchNode(number, present.length + 1, `-${time}`),
    addNode: ({ server, number }, node) =>
      must(server, server.admin.request("POST", "/api/v1/nodes", nodeManifest(number, node))),
    removeNode: ({ server }, { name }) => must(server, server.admin.request("DELETE", `/api/v1/nodes/${name}`)),
    deleteMesh: () => must(hub.server, hub.server.admin.request("DELETE", `${meshesPath}/${meshName}`)),
    pause: ({ server }) => pauseServer(server),
    resume: ({ server }) => resumeServer(server),
  };
}

/** Installs a kind and waits until its objects can be listed. */
export async function installCrd(server, crd) {
  const path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
  await server.admin.ensure(path, crd);
  const { group, names, versions } = crd.spec;
  for (const began = performance.now(); ; await sleep(50)) {
    const { body } = await server.admin.request("GET", `${path}/${crd.metadata.name}`);
    const isEstablished = body.status?.conditions?.some(
      ({ type, status }) => type === "Established" && status === "True",
    );
    const listed = await server.admin.request("GET", `/apis/${group}/${versions[0].name}/${names.plural}?limit=1`);
    if (isEstablished && listed.status === 200) return;
    if (performance.now() - began > servedMsMax)
      throw new Error(`${crd.metadata.name} is not served by ${server.name}`);
  }
}

/** The annotation that a change of a node is made by. */
export const endpointAnnotation = "kilo.squat.ai/force-endpoint";

/** The annotation by which Kilo's agent says that it lives. */
export const lastSeen = () => ({ "kilo.squat.ai/last-seen": String(Math.floor(Date.now() / 1000)) });

function nodesOf(cluster, count) {
  const nodes = range(count).map((index) => benchNode(cluster, index + 1));
  return { nodes, keys: new Set(nodes.map(({ key }) => key)) };
}

function benchNode(cluster, number, suffix = "") {
  const name = `n${number}${suffix}`;
  const host = `198.18.${cluster}.${number}`; // 198.18.0.0/15 is for benchmarks
  return { name, key: createHash("sha256").update(`${cluster}/${name}`).digest("base64"), host, number };
}

function nodeManifest(cluster, { name, key, host, number }) {
  const podCIDR = `10.${cluster}.${number}.0/24`;
  const annotations = {
    "kilo.squat.ai/key": key,
    "kilo.squat.ai/wireguard-ip": `10.200.${cluster}.${number}/24`,
    "kilo.squat.ai/granularity": "full",
    [endpointAnnotation]: `${host}:51820`,
    ...lastSeen(),
  };
  return { metadata: { name, annotations }, spec: { podCIDR, podCIDRs: [podCIDR] } };
}

function meshOf(clusters, networks) {
  const entries = clusters.map(({ server, number }, index) => {
    const typed = {
      podCIDRs: [`10.${number}.0.0/16`],
      wireguardCIDR: `10.200.${number}.0/24`,
      serviceCIDR: `172.20.${number}.0/24`,
    };
    return {
      name: server.name,
      ...(index === 0 ? { local: true } : { kubeconfigSecretRef: { name: secretOf(server), key: "kubeconfig" } }),
      ...(networks === "flat" ? { allowedNetworks: Object.values(typed).flat() } : typed),
    };
  });
  return {
    apiVersion: "kilo.squat.ai/v1alpha1",
    kind: "ClusterMesh",
    metadata: { name: meshName, namespace: meshNamespace },
    spec: { clusters: entries },
  };
}

const secretOf = ({ name }) => `${name}-kubeconfig`;

async function fillCluster({ server, number, nodes }, isRemote) {
  if (isRemote) await applyRoles(server, readRoles("remote.yaml"));
  for (const node of nodes) {
    await must(server, server.admin.request("POST", "/api/v1/nodes", nodeManifest(number, node)));
  }
}

async function annotate(server, node, annotations) {
  const path = `/api/v1/nodes/${node.name}`;
  await must(
    server,
    server.admin.request("PATCH", path, { metadata: { annotations } }, "application/merge-patch+json"),
  );
}

async function grantLocal(server, secrets) {
  for (const name of [meshNamespace, operatorNamespace]) {
    await server.admin.ensure("/api/v1/namespaces", { metadata: { name } });
  }
  const kubeconfigs = readRoles("secrets.yaml").map((object) => ({
    ...object,
    metadata: { ...object.metadata, namespace: meshNamespace },
    ...(object.rules === undefined ? {} : { rules: object.rules.map((rule) => ({ ...rule, resourceNames: secrets })) }),
  }));
  await applyRoles(server, [...readRoles("local.yaml"), ...kubeconfigs]);
}

const readRoles = (file) =>
  parseAllDocuments(readFileSync(join(root, "deploy/rbac", file), "utf8")).map((document) => document.toJS());

const rolePaths = {
  ClusterRole: "clusterroles",
  ClusterRoleBinding: "clusterrolebindings",
  Role: "roles",
  RoleBinding: "rolebindings",
};

async function applyRoles(server, objects) {
  const user = { kind: "User", apiGroup: "rbac.authorization.k8s.io", name: operatorUser };
  for (const object of objects) {
    const plural = rolePaths[object.kind];
    if (plural === undefined) continue;
    const { namespace } = object.metadata;
    const base = `/apis/rbac.authorization.k8s.io/v1${namespace === undefined ? "" : `/namespaces/${namespace}`}`;
    const body = object.subjects === undefined ? object : { ...object, subjects: [user] };
    await server.admin.ensure(`${base}/${plural}`, body);
  }
}

async function must(server, answering) {
  const { status, body } = await answering;
  if (status >= 300) throw new Error(`${server.name} answered ${status}: ${JSON.stringify(body)}`);
  return body;
}

// Every reader of objects from outside, as API servers, kcp and world files bring them: what test/fuzz tries.

import { networkingApiVersion } from "../../dist/api/networking.js";
import { ciliumWatches } from "../../dist/cilium/facts-reader.js";
import { ciliumIntentKinds } from "../../dist/cilium/intent-reader.js";
import { readRecord, recordAnnotation } from "../../dist/cilium/share.js";
import { main } from "../../dist/cli/main.js";
import { defaultBudgets } from "../../dist/core/budgets.js";
import { readManagedCluster } from "../../dist/core/managed-cluster.js";
import { ok } from "../../dist/core/result.js";
import { addressesOf } from "../../dist/fleet/kcp.js";
import { readNode, readPeer, readServiceRanges } from "../../dist/kilo/facts.js";
import { readMesh } from "../../dist/kilo/intent.js";
import { readClusterMtu } from "../../dist/kilo/mtu.js";
import { servedResources, servedVersions } from "../../dist/kube/discovery.js";
import { readPages } from "../../dist/kube/pages.js";
import { ciliumPorts } from "../../dist/operator/cilium-ports.js";
import { objectsOf, worldOf } from "./examples.mjs";

const samples = [
  "clustermesh-flat",
  "clustermesh-hub",
  "clustermesh-typed",
  "mesh-binding",
  "global-service",
  "connectivity-intent",
  "exposed-service",
  "fabric",
].flatMap((name) => objectsOf(`samples/${name}.yaml`));
const kiloWorld = worldOf("test/scenarios/two-clusters.yaml");
const settledWorld = worldOf("test/scenarios/f-anchor-sticky.yaml");
const ciliumWorlds = ["joined", "exposed-and-fabric", "other-workspace", "deny-on-1.19"].map((name) =>
  worldOf(`test/scenarios-cilium/${name}.yaml`),
);
const objects = [kiloWorld, settledWorld, ...ciliumWorlds].flatMap(({ clusters }) =>
  clusters.flatMap((cluster) => cluster.objects),
);
const ofKind = (kind) => [...samples, ...objects].filter((each) => each.kind === kind);

const conditions = [{ type: "Ready", status: "True", reason: "Ready", message: "ready", observedGeneration: 1 }];
const kubernetesCluster = {
  apiVersion: "platform.edge-portal.eu/v1alpha1",
  kind: "KubernetesCluster",
  metadata: { name: "west", namespace: "team", annotations: { "networking.edge-portal.eu/elb-id": "lb-1" } },
  spec: { providerRef: { name: "p" }, region: "eu" },
  status: { phase: "Ready" },
};
const managedCluster = {
  metadata: { name: "west", namespace: "default", annotations: { "kcp.io/cluster": "a" } },
  spec: { provider: "p" },
  status: {
    conditions,
    kubeconfigSecretRef: { name: "west-kubeconfig", key: "kubeconfig" },
    capabilities: [{ name: "cilium-cni", details: { status: "ready" } }],
  },
};
const place = { workspace: "a", namespace: "team", name: "mesh" };

/** The kinds that tenants write, each also with a status, which is an input, too. */
const intentReaders = ciliumIntentKinds.map(({ resource: { kind }, read }) => ({
  name: kind,
  read: (raw) => read(raw, place),
  examples: [
    ...(kind === "KubernetesCluster" ? [kubernetesCluster] : ofKind(kind)),
    { apiVersion: networkingApiVersion, kind, metadata: place, spec: {}, status: { conditions } },
  ],
  kept: true,
}));

/** What is watched on a cluster with Cilium, by the name of the object where only one is. */
const watchReaders = ciliumWatches("kube-system", ciliumPorts).map(({ resource: { kind }, scope, read }) => {
  const only = /^metadata\.name=(.*)$/.exec(scope?.fieldSelector ?? "")?.[1];
  const examples = ofKind(kind).filter(({ metadata }) => only === undefined || metadata.name === only);
  const fallback = { apiVersion: "v1", kind, metadata: { name: only ?? "x", namespace: "a" }, spec: {}, status: {} };
  return {
    name: `${kind} ${only ?? "of Cilium"}`,
    read,
    examples: examples.length > 0 ? examples : [fallback],
    kept: true,
  };
});

const page = { kind: "NodeList", metadata: { resourceVersion: "7", continue: "c" }, items: [{}, { metadata: {} }] };
const lastPage = { kind: "NodeList", metadata: { resourceVersion: "8" }, items: null };

async function listOf(pages) {
  const answers = Array.isArray(pages) ? pages : [pages];
  let at = 0;
  const seen = [];
  const ask = () => Promise.resolve(ok(answers[Math.min(at++, answers.length - 1)]));
  const paging = { budgets: { ...defaultBudgets, objects: 10 }, objects: "objects", pageSize: 500 };
  const read = await readPages(ask, (items) => seen.push(items.length), paging);
  return read.ok ? seen : read.error;
}

/** What `causeway plan` says about a world. Exit code 70 is how it says that something was thrown. */
async function planned(world) {
  let said = "";
  const say = (text) => void (said += text);
  const code = await main(["plan", "-f", "-", "-v"], {
    out: say,
    note: say,
    readStdin: () => Promise.resolve(JSON.stringify(world)),
    environment: {},
    isInteractive: false,
  });
  if (code === 70) throw new Error(said);
  return said;
}

/** Each: its name, how it reads, and objects that it takes. `kept` and `lines` as in text-readers.mjs; of a `dear` one so many times fewer inputs are tried. */
export const objectReaders = [
  { name: "Node", read: readNode, examples: ofKind("Node"), kept: true },
  { name: "Peer", read: readPeer, examples: ofKind("Peer"), kept: true },
  { name: "ClusterMesh", read: readMesh, examples: ofKind("ClusterMesh"), kept: true },
  {
    name: "the ranges of Services",
    read: readServiceRanges,
    examples: [...ofKind("Service"), { kind: "ServiceCIDR", spec: { cidrs: ["10.96.0.0/16", "fd00::/112"] } }],
  },
  {
    name: "the packet sizes of a cluster",
    read: (raw) => readClusterMtu([raw]),
    examples: [
      { kind: "ConfigMap", metadata: { name: "kilo" }, data: { "cni-conf.json": '{"mtu":1420}' } },
      {
        kind: "DaemonSet",
        metadata: { name: "kilo" },
        spec: { template: { spec: { containers: [{ args: ["--mtu=1420"] }] } } },
      },
    ],
  },
  ...intentReaders,
  ...watchReaders,
  { name: "a Cluster of the management plane", read: readManagedCluster, examples: [managedCluster], kept: true },
  {
    name: "the addresses of a virtual workspace",
    read: (raw) => addressesOf(raw, undefined),
    examples: [{ status: { endpoints: [{ url: "https://kcp.example:6443/services/apiexport/a/b" }] } }],
  },
  {
    name: "the groups of an API server",
    read: servedVersions,
    examples: [{ groups: [{ name: "apps", preferredVersion: { groupVersion: "apps/v1", version: "v1" } }] }],
    kept: true,
  },
  {
    name: "the kinds of an API server",
    read: (raw) => servedResources(raw, "apps", "v1"),
    examples: [{ resources: [{ name: "deployments", kind: "Deployment", namespaced: true }] }],
    kept: true,
  },
  {
    name: "a record of a share",
    read: (raw) => readRecord({ [recordAnnotation("i")]: JSON.stringify(raw) ?? "" }, "i"),
    examples: [{ east: { for: ["ClusterMeshBinding/team/mesh"], set: "*", was: null, about: { a: "b" } } }],
    kept: true,
  },
  { name: "a list", read: listOf, examples: [[page, lastPage], [lastPage], [page, page]] },
  { name: "a plan of Peers", read: planned, examples: [kiloWorld, settledWorld], lines: true, dear: 10 },
  { name: "a plan for Cilium", read: planned, examples: ciliumWorlds, lines: true, dear: 100 },
];

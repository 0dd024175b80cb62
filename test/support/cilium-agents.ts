// Stands in for what cannot run here: Cilium's agent, which needs a datapath, and cilium-operator. The agent is a Pod
// whose metrics say what a real one would, given what the real kvstoremesh of its cluster says; the operator judges
// policies, and finds them all valid. Names and texts are those of Cilium 1.19.6.

import { createServer } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import { nodeNameOf, setStatus } from "./cilium-objects.ts";
import type { CiliumCluster, RemoteCluster } from "./cilium-parts.ts";
import { createClient, type ServerClient } from "./server-client.mjs";

const metricsPort = 9962;
const pollMs = 500;
const pods = "/api/v1/namespaces/kube-system/pods";
const policyKinds = ["ciliumnetworkpolicies", "ciliumclusterwidenetworkpolicies"];

/** The stand-ins of one cluster. */
export type CiliumAgents = { readonly stop: () => Promise<void> };

/** Starts them, for a cluster with one node. */
export async function startAgents(cluster: CiliumCluster): Promise<CiliumAgents> {
  const { server, addresses, name } = cluster;
  const client = createClient(server, server.adminToken, { userAgent: "agent-stand-in" });
  const listener = createServer((_, response) => {
    cluster.kvstoremeshStatus().then(
      (remotes) => response.end(metricsOf(remotes)),
      () => response.end(metricsOf([])), // kvstoremesh is down; a real agent would say what it heard last
    );
  });
  await new Promise<void>((resolve) => listener.listen(metricsPort, addresses.node, resolve));
  await createPod(client, name, addresses.node);
  const stopped = new AbortController();
  const judging = judge(client, stopped.signal);
  return {
    stop: async () => {
      stopped.abort();
      await judging;
      await client.close();
      listener.closeAllConnections();
      await new Promise((resolve) => listener.close(resolve));
    },
  };
}

async function createPod(client: ServerClient, cluster: string, address: string): Promise<void> {
  const podName = "cilium-x7k2p";
  await client.ensure(pods, {
    metadata: { name: podName, labels: { "k8s-app": "cilium" } },
    spec: {
      nodeName: nodeNameOf(cluster),
      hostNetwork: true,
      containers: [
        {
          name: "cilium-agent",
          image: "quay.io/cilium/cilium:v1.19.6",
          ports: [{ name: "prometheus", containerPort: metricsPort, hostPort: metricsPort }],
        },
      ],
    },
  });
  await setStatus(client, `${pods}/${podName}`, {
    phase: "Running",
    podIP: address,
    podIPs: [{ ip: address }],
    conditions: ["Ready", "ContainersReady"].map((type) => ({ type, status: "True" })),
  });
}

/** A page of metrics as an agent serves it, as far as it is about other clusters. */
export function metricsOf(remotes: readonly RemoteCluster[]): string {
  const family = (metric: string, help: string, value: (remote: RemoteCluster) => number): readonly string[] => [
    `# HELP cilium_clustermesh_remote_cluster_${metric} ${help}`,
    `# TYPE cilium_clustermesh_remote_cluster_${metric} gauge`,
    ...remotes.map(
      (remote) => `cilium_clustermesh_remote_cluster_${metric}{target_cluster="${remote.name}"} ${value(remote)}`,
    ),
  ];
  return [
    ...family("failures", "The total number of failures related to the remote cluster", () => 0),
    ...family("nodes", "The total number of nodes in the remote cluster", (remote) => remote["num-nodes"] ?? 0),
    ...family("readiness_status", "The readiness status of the remote cluster", ({ ready }) =>
      ready === true ? 1 : 0,
    ),
    "# HELP cilium_clustermesh_remote_clusters The total number of remote clusters meshed with the local cluster",
    "# TYPE cilium_clustermesh_remote_clusters gauge",
    `cilium_clustermesh_remote_clusters ${remotes.length}`,
    "",
  ].join("\n");
}

type Policies = {
  readonly items?: readonly {
    readonly metadata: { readonly name: string; readonly namespace?: string };
    readonly status?: { readonly conditions?: readonly { readonly type: string }[] };
  }[];
};

async function judge(client: ServerClient, signal: AbortSignal): Promise<void> {
  const round = async (): Promise<void> => {
    for (const plural of policyKinds) {
      const { body } = await client.request<Policies>("GET", `/apis/cilium.io/v2/${plural}`);
      for (const { metadata, status } of body.items ?? []) {
        if (status?.conditions?.some(({ type }) => type === "Valid") === true) continue;
        const namespace = metadata.namespace === undefined ? "" : `/namespaces/${metadata.namespace}`;
        await setStatus(client, `/apis/cilium.io/v2${namespace}/${plural}/${metadata.name}`, {
          conditions: [
            {
              type: "Valid",
              status: "True",
              lastTransitionTime: new Date().toISOString(),
              message: "Policy validation succeeded",
            },
          ],
        });
      }
    }
  };
  while (!signal.aborted) {
    await round().catch(() => {}); // the API server may be down, or the policy gone
    await sleep(pollMs, undefined, { signal }).catch(() => {});
  }
}

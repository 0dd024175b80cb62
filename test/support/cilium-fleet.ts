// Clusters with Cilium that the test files share, with a management plane that knows them. They are started when a file
// first asks for them and end with this process; files run one after the other in it, and each leaves them as they were.

import { type CiliumAgents, startAgents } from "./cilium-agents.ts";
import { type CiliumCluster, type CiliumOptions, startCilium } from "./cilium-parts.ts";
import { type ClusterSnapshot, snapshotOf } from "./cluster-snapshot.ts";
import { deployed, type ManagementPlane, openManagementPlane } from "./management-plane.ts";
import { type Server, startFleet } from "./servers.ts";

/**
 * The clusters there are: what tenants and management plane call them, and Cilium's number; Cilium's name is the key. The
 * first two are as Helm installs them; the others are joined and parted in seconds.
 */
export const clusterNames = {
  ffm: { ref: "cluster-ffm-1", id: 1, swift: false },
  ber: { ref: "cluster-ber-2", id: 2, swift: false },
  muc: { ref: "cluster-muc-3", id: 3, swift: true },
  ham: { ref: "cluster-ham-4", id: 4, swift: true },
} as const;

/** What Cilium calls a cluster. */
export type ClusterName = keyof typeof clusterNames;

/** The operator, as the audit log of a cluster calls it. */
export const operatorAccount = "system:serviceaccount:kube-system:causeway";

/** A cluster that tenants may have joined. */
export type TargetCluster = CiliumCluster & {
  /** The name of its KubernetesCluster, and of its Cluster on the management plane. */
  readonly ref: string;
  /** With exactly the rights of the files deploy/rbac/cilium-remote*.yaml. */
  readonly kubeconfig: string;
  readonly snapshot: () => Promise<ClusterSnapshot>;
  /** Starts kvstoremesh anew: one that was told of a peer no more lets nobody tell it again for three minutes. */
  readonly forget: () => Promise<void>;
};

const started = new Map<ClusterName, Promise<TargetCluster>>();
let plane: Promise<ManagementPlane> | undefined;

/** The management plane and the clusters of these names, running and as Helm left them. */
export async function useCiliumFleet<Name extends ClusterName>(
  names: readonly Name[],
): Promise<{ readonly mgmt: ManagementPlane; readonly clusters: Readonly<Record<Name, TargetCluster>> }> {
  const missing = names.filter((name) => !started.has(name));
  const servers = startFleet([...missing, ...(plane === undefined ? ["mgmt"] : [])]).then((fleet) => fleet.servers);
  const serverOf = (name: string): Promise<Server> => servers.then((all) => all[name] as Server);
  plane ??= serverOf("mgmt").then(openManagementPlane);
  for (const name of missing)
    started.set(
      name,
      serverOf(name).then((server) => startTarget(server, name)),
    );
  const clusters = await Promise.all(names.map(async (name) => [name, await started.get(name)] as const));
  return { mgmt: await plane, clusters: Object.fromEntries(clusters) as Record<Name, TargetCluster> };
}

async function startTarget(server: Server, name: ClusterName): Promise<TargetCluster> {
  const { ref, id, swift } = clusterNames[name];
  const { cluster } = await startMember(server, { name, id, swift });
  const kubeconfig = await grantOperator(server);
  return {
    ...cluster,
    ref,
    kubeconfig,
    snapshot: () => snapshotOf(server),
    forget: async () => {
      await cluster.down("kvstoremesh");
      await cluster.up("kvstoremesh");
    },
  };
}

/** A cluster with its programs, its stand-ins, and a Service that tenants may export. */
export async function startMember(
  server: Server,
  options: CiliumOptions,
): Promise<{ readonly cluster: CiliumCluster; readonly agents: CiliumAgents }> {
  const cluster = await startCilium(server, options);
  await putService(server, { namespace: "production", name: "nginx", endpoints: options.id });
  return { cluster, agents: await startAgents(cluster) };
}

/**
 * Gives the operator its rights on a cluster, as committed, and creates what it may change and not create where Helm did
 * not; the answer is a kubeconfig with its token.
 */
export async function grantOperator(server: Server): Promise<string> {
  for (const file of ["cilium-remote", "cilium-remote-metrics", "cilium-remote-aliases"])
    await server.kubectl(["apply", "-f", "-"], deployed(`rbac/${file}.yaml`));
  await server.admin.ensure("/api/v1/namespaces", { metadata: { name: "production" } });
  await server.kubectl(["apply", "-n", "production", "-f", "-"], deployed("rbac/cilium-remote-expose.yaml"));
  await server.kubectl(["create", "-f", "-"], deployed("rbac/cilium-remote-objects.yaml")).catch((error: unknown) => {
    const lines = String(error).split("\n");
    if (!lines.every((line) => line.includes("AlreadyExists"))) throw error;
  });
  return server.kubeconfig(await server.serviceAccountToken("kube-system", "causeway"));
}

/** Makes a Service with so many ready endpoints. */
export async function putService(
  { admin }: Server,
  { namespace, name, endpoints }: { readonly namespace: string; readonly name: string; readonly endpoints: number },
): Promise<void> {
  await admin.ensure("/api/v1/namespaces", { metadata: { name: namespace } });
  const spec = { selector: { app: name }, ports: [{ name: "http", port: 80, targetPort: 8080 }] };
  const metadata = { name, labels: { app: name }, annotations: { "example.org/owner": "web-team" } };
  await admin.ensure(`/api/v1/namespaces/${namespace}/services`, { metadata, spec });
  const addresses = Array.from({ length: endpoints }, (_, index) => `10.9.0.${index + 1}`);
  await admin.ensure(`/apis/discovery.k8s.io/v1/namespaces/${namespace}/endpointslices`, {
    metadata: { name: `${name}-1`, labels: { "kubernetes.io/service-name": name } },
    addressType: "IPv4",
    endpoints: addresses.map((address) => ({ addresses: [address], conditions: { ready: true } })),
    ports: [{ name: "http", port: 8080, protocol: "TCP" }],
  });
}

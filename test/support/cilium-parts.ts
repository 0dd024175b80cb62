// A cluster with Cilium's ClusterMesh, without agents and without nodes: a real kube-apiserver with what Helm leaves in it,
// and the real programs of the clustermesh-apiserver Pod, kept by a stand-in for the kubelet and the controllers. It lays
// Secrets out as files, restarts programs that end, and rolls the Pod out anew when the Deployment's template changes.
//
// Needs a private network: `npm run -s test:cilium`.

import type { Certificate } from "./certificate.ts";
import {
  type AuthMode,
  type CiliumCertificates,
  issueCertificates,
  makeCiliumAuthority,
} from "./cilium-certificates.ts";
import { startKubelet } from "./cilium-kubelet.ts";
import {
  type CiliumAddresses,
  ciliumPaths,
  createInstallation,
  type Installation,
  installCiliumDefinitions,
  nodeNameOf,
  secretsOf,
} from "./cilium-objects.ts";
import { createPod, type PodPart } from "./cilium-pod.ts";
import { guardedFolder } from "./guarded-processes.mjs";
import { createClient, type ServerClient } from "./server-client.mjs";
import type { Server } from "./servers.ts";

const clustersMax = 250;

/** What an installation is like; everything but name and id has a default. */
export type CiliumOptions = {
  readonly name: string;
  readonly id: number;
  /** What the images say, 1.19.6 by default; the programs are always those of the tool `clustermesh-apiserver`. */
  readonly version?: string;
  /** `migration` by default, as in Cilium 1.19. */
  readonly authMode?: AuthMode;
  /** `LoadBalancer` by default, with an address. */
  readonly serviceType?: Installation["serviceType"];
  /** Who signs; a new authority by default. */
  readonly authority?: Certificate;
  readonly podCidr?: string;
  /** More keys for the ConfigMap `cilium-config`. */
  readonly config?: Readonly<Record<string, string>>;
  /**
   * True puts the load balancer's address into the server's certificate, so that peers need no host aliases, and has
   * kvstoremesh keep what it knows of a peer that was taken away: then one can be added again without a wait of minutes.
   */
  readonly swift?: boolean;
  /** False leaves out the ConfigMap `clustermesh-remote-users`: the Pod then waits for it, as a kubelet has it wait. */
  readonly remoteUsers?: boolean;
};

/** How kvstoremesh sees another cluster; what is false or zero is left out. */
export type RemoteCluster = {
  readonly name: string;
  readonly connected?: boolean;
  readonly ready?: boolean;
  readonly status?: string;
  readonly config?: { readonly required?: boolean; readonly retrieved?: boolean; readonly "cluster-id"?: number };
  readonly synced?: Readonly<Record<string, boolean>>;
  readonly "num-nodes"?: number;
};

/** One cluster with the programs of ClusterMesh. */
export type CiliumCluster = {
  readonly name: string;
  readonly id: number;
  readonly server: Server;
  readonly folder: string;
  readonly addresses: CiliumAddresses;
  /** The certificates that are in force, with their keys. */
  readonly certificates: () => CiliumCertificates;
  /** The name of the Pod that runs; every roll-out makes a new one. */
  readonly podName: () => string;
  /** Waits until the Pod runs what the API server says. */
  readonly settled: () => Promise<void>;
  /** What kvstoremesh says of the clusters it is to follow: `GET /v1/cluster`. */
  readonly kvstoremeshStatus: () => Promise<readonly RemoteCluster[]>;
  readonly kvstoremeshMetrics: () => Promise<string>;
  /** The keys in the cluster's etcd that begin so, in order. */
  readonly kvstoreKeys: (prefix: string) => Promise<readonly string[]>;
  /**
   * Puts a new authority and new certificates into the Secrets. Programs trust the old authority as well unless
   * `keepOld` is false. etcd does not read its authority again by itself: `restart` rolls the Pod out, and waits.
   */
  readonly rotateCa: (how?: { readonly keepOld?: boolean; readonly restart?: boolean }) => Promise<void>;
  /** Ends a rotation: the authority before is trusted no more, and the Pod is rolled out. */
  readonly dropOldCa: () => Promise<void>;
  /** Ends a program and keeps it down until `up`. */
  readonly down: (part: PodPart) => Promise<void>;
  /** Lets a program be started again, and waits for it. */
  readonly up: (part: PodPart) => Promise<void>;
  /** Ends every program and removes every file; objects stay in the API server. */
  readonly stop: () => Promise<void>;
};

let clusters = 0;

/** Installs Cilium in an API server, starts the programs and answers when they run, unless the Pod has to wait. */
export async function startCilium(server: Server, options: CiliumOptions): Promise<CiliumCluster> {
  const block = ++clusters;
  if (block > clustersMax) throw new Error(`the private network has room for ${clustersMax} clusters`);
  const addresses = { loadBalancer: `10.255.${block}.1`, pod: `10.255.${block}.2`, node: `10.255.${block}.3` };
  const { name, id, authMode = "migration", remoteUsers = true } = options;
  const isSwift = options.swift === true;
  const bearer = { name, authMode, serverNames: isSwift ? [addresses.loadBalancer] : [] };
  let certificates = issueCertificates(bearer, options.authority ?? makeCiliumAuthority());
  const installation: Installation = {
    name,
    id,
    authMode,
    addresses,
    version: options.version ?? "1.19.6",
    serviceType: options.serviceType ?? "LoadBalancer",
    podCidr: options.podCidr ?? `10.${block}.0.0/24`,
    config: options.config ?? {},
  };
  await installCiliumDefinitions(server.admin);
  await createInstallation(server.admin, installation, certificates, remoteUsers);
  const kubeconfig = server.kubeconfig(await programToken(server));
  const { folder, stop: end } = guardedFolder("causeway-cilium-");
  const client = createClient(server, server.adminToken, { userAgent: "kubelet-stand-in" });
  const pod = createPod({ folder, name, id, addresses, kubeconfig, hasUsers: authMode !== "legacy", isSwift });
  const kubelet = startKubelet(client, pod, { nodeName: nodeNameOf(name), podIp: addresses.pod });
  const stop = async () => {
    // Together: the kubelet may be waiting for a program that never gets ready.
    await Promise.all([kubelet.stop(), end()]);
    await client.close();
  };
  const rotateCa: CiliumCluster["rotateCa"] = async ({ keepOld = true, restart = true } = {}) => {
    const old = keepOld ? certificates.authority.certPem : "";
    await replaceCertificates(issueCertificates(bearer, makeCiliumAuthority(), old), restart);
  };
  const replaceCertificates = async (next: CiliumCertificates, restart: boolean): Promise<void> => {
    certificates = next;
    for (const [secret, content] of Object.entries(secretsOf(certificates)))
      await patch(client, ciliumPaths.secret(secret), content);
    if (restart) {
      const annotations = { "kubectl.kubernetes.io/restartedAt": new Date().toISOString() };
      await patch(client, ciliumPaths.deployment, { spec: { template: { metadata: { annotations } } } });
    }
    await kubelet.settled();
  };
  try {
    if (remoteUsers || authMode === "legacy") await kubelet.settled();
  } catch (error) {
    await stop();
    throw error;
  }
  return {
    name,
    id,
    server,
    folder,
    addresses,
    rotateCa,
    dropOldCa: () => replaceCertificates({ ...certificates, trustPem: certificates.authority.certPem }, true),
    stop,
    certificates: () => certificates,
    podName: kubelet.podName,
    settled: kubelet.settled,
    kvstoremeshStatus: async () => (await pod.remoteClusters()) as readonly RemoteCluster[],
    kvstoremeshMetrics: pod.kvstoremeshMetrics,
    kvstoreKeys: pod.keys,
    down: kubelet.down,
    up: kubelet.up,
  };
}

/** The programs have an account of their own, so that an audit log tells them from whoever is tested. */
async function programToken(server: Server): Promise<string> {
  const account = { kind: "ServiceAccount", namespace: "kube-system", name: "clustermesh-apiserver" };
  await server.admin.ensure("/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", {
    metadata: { name: account.name },
    subjects: [account],
    roleRef: { kind: "ClusterRole", name: "cluster-admin", apiGroup: "rbac.authorization.k8s.io" },
  });
  return await server.serviceAccountToken(account.namespace, account.name);
}

async function patch(client: ServerClient, path: string, body: object): Promise<void> {
  const answer = await client.request("PATCH", `${path}?fieldManager=helm`, body, "application/merge-patch+json");
  if (answer.status !== 200) throw new Error(`PATCH ${path}: ${answer.status} ${JSON.stringify(answer.body)}`);
}

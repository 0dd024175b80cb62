// What a Helm install of Cilium leaves in an API server, as far as somebody who joins clusters looks at it. Written from
// the chart's values and templates; nobody runs the images.

import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { parse as parseYaml } from "yaml";
import type { AuthMode, CiliumCertificates } from "./cilium-certificates.ts";
import { eventually } from "./eventually.ts";
import { modulePath } from "./guarded-processes.mjs";
import type { ServerClient } from "./server-client.mjs";

/** Where a cluster's parts are on the private network. */
export type CiliumAddresses = { readonly loadBalancer: string; readonly pod: string; readonly node: string };

/** What an installation is like. */
export type Installation = {
  readonly name: string;
  readonly id: number;
  readonly version: string;
  readonly authMode: AuthMode;
  readonly serviceType: "LoadBalancer" | "NodePort";
  readonly podCidr: string;
  /** Keys of the ConfigMap `cilium-config` beside those that every installation has. */
  readonly config: Readonly<Record<string, string>>;
  readonly addresses: CiliumAddresses;
};

/** The port of etcd in a Pod and in its Service, and the one on nodes. */
export const etcdPorts = { service: 2379, node: 32_379 } as const;

/** The ports of metrics, as the chart sets them. */
export const metricsPorts = { clustermesh: 9962, etcd: 9963, kvstoremesh: 9964 } as const;

const namespace = "kube-system";
const core = `/api/v1/namespaces/${namespace}`;
const apps = `/apis/apps/v1/namespaces/${namespace}`;
const labels = { "k8s-app": "clustermesh-apiserver" };

/** The paths of the objects that tests and parts look at. */
export const ciliumPaths = {
  secret: (name: string) => `${core}/secrets/${name}`,
  remoteUsers: `${core}/configmaps/clustermesh-remote-users`,
  deployment: `${apps}/deployments/clustermesh-apiserver`,
  pods: `${core}/pods`,
} as const;

/** Installs Cilium's own definitions, from the module that its programs are built from. */
export async function installCiliumDefinitions(admin: ServerClient): Promise<void> {
  const folder = join(modulePath("github.com/cilium/cilium"), "pkg/k8s/apis/cilium.io/client/crds");
  const files = readdirSync(folder, { recursive: true, encoding: "utf8" }).filter((file) => file.endsWith(".yaml"));
  const definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
  await Promise.all(
    files.map(async (file) => {
      await admin.ensure(definitions, parseYaml(readFileSync(join(folder, file), "utf8")) as object);
      const path = `/apis/cilium.io/${file.replace(/\.yaml$/, "")}?limit=1`;
      await eventually(`${path} to be served`, async () => (await admin.request("GET", path)).status === 200);
    }),
  );
}

type KubeObject = {
  readonly metadata: { readonly name: string; readonly labels?: object; readonly annotations?: object };
  readonly [field: string]: unknown;
};

/** Creates everything of an installation but its Pods; `remoteUsers` says whether clusters may be given users of etcd. */
export async function createInstallation(
  admin: ServerClient,
  installation: Installation,
  certificates: CiliumCertificates,
  remoteUsers: boolean,
): Promise<void> {
  const { version, serviceType, authMode, addresses } = installation;
  const create = (collection: string, object: KubeObject) =>
    admin.ensure(`${collection}?fieldManager=helm`, marked(object));
  const users = { metadata: { name: "clustermesh-remote-users" }, data: { "users.yaml": "users: []\n" } };
  await Promise.all([
    createNode(admin, installation),
    create(`${core}/configmaps`, { metadata: { name: "cilium-config" }, data: configOf(installation) }),
    ...(remoteUsers ? [create(`${core}/configmaps`, users)] : []),
    ...Object.entries(secretsOf(certificates)).map(([name, secret]) =>
      create(`${core}/secrets`, { metadata: { name }, ...secret }),
    ),
    create(`${apps}/daemonsets`, daemonSetOf(version)),
    create(`${apps}/deployments`, deploymentOf(version, authMode)),
    create(`${core}/services`, serviceOf(serviceType)),
  ]);
  const ingress = serviceType === "LoadBalancer" ? [{ ip: addresses.loadBalancer }] : [];
  await setStatus(admin, `${core}/services/clustermesh-apiserver`, { loadBalancer: { ingress } });
  await setStatus(admin, `${apps}/daemonsets/cilium`, {
    observedGeneration: 1,
    currentNumberScheduled: 1,
    desiredNumberScheduled: 1,
    updatedNumberScheduled: 1,
    numberMisscheduled: 0,
    numberAvailable: 1,
    numberReady: 1,
  });
}

/** Sets fields of an object's status, as the controllers do that nobody runs here. */
export async function setStatus(admin: ServerClient, path: string, status: object): Promise<void> {
  const patch = `${path}/status?fieldManager=controllers`;
  const answer = await admin.request("PATCH", patch, { status }, "application/merge-patch+json");
  if (answer.status !== 200) throw new Error(`status of ${path}: ${answer.status} ${JSON.stringify(answer.body)}`);
}

/** The Secrets that hold certificates, by name. */
export function secretsOf(certificates: CiliumCertificates): Readonly<Record<string, object>> {
  const { authority, trustPem, ...leaves } = certificates;
  const base64 = (text: string) => Buffer.from(text).toString("base64");
  const ca = { data: { "ca.crt": base64(authority.certPem), "ca.key": base64(authority.keyPem) } };
  const secrets = Object.entries(leaves).map(([use, { certPem, keyPem }]) => [
    `clustermesh-apiserver-${use}-cert`,
    {
      type: "kubernetes.io/tls",
      data: { "ca.crt": base64(trustPem), "tls.crt": base64(certPem), "tls.key": base64(keyPem) },
    },
  ]);
  return { "cilium-ca": ca, ...(Object.fromEntries(secrets) as Record<string, object>) };
}

/** A Pod of the Deployment, as the kubelet reports it. */
export function podOf(name: string, template: PodTemplate, nodeName: string): KubeObject {
  const { metadata, spec } = template;
  return { metadata: { name, ...metadata }, spec: { ...spec, nodeName } };
}

/** As much of a Deployment's template as a kubelet stand-in looks at. */
export type PodTemplate = {
  readonly metadata?: { readonly labels?: Readonly<Record<string, string>> };
  readonly spec: {
    readonly hostAliases?: readonly { readonly ip: string; readonly hostnames?: readonly string[] }[];
    readonly volumes?: readonly { readonly name: string }[];
    readonly containers: readonly { readonly name: string; readonly image: string }[];
  };
};

/** Helm marks what it made, and whoever else writes there has to know. */
function marked(object: KubeObject): KubeObject {
  const { metadata } = object;
  return {
    ...object,
    metadata: {
      ...metadata,
      labels: { ...metadata.labels, "app.kubernetes.io/managed-by": "Helm" },
      annotations: { "meta.helm.sh/release-name": "cilium", "meta.helm.sh/release-namespace": namespace },
    },
  };
}

async function createNode(admin: ServerClient, { name, podCidr, addresses }: Installation): Promise<void> {
  const node = nodeNameOf(name);
  const address = { type: "InternalIP", address: addresses.node };
  await admin.ensure("/api/v1/nodes", { metadata: { name: node }, spec: { podCIDR: podCidr, podCIDRs: [podCidr] } });
  await setStatus(admin, `/api/v1/nodes/${node}`, {
    addresses: [address],
    conditions: [{ type: "Ready", status: "True", reason: "KubeletReady" }],
  });
  await admin.ensure("/apis/cilium.io/v2/ciliumnodes", {
    apiVersion: "cilium.io/v2",
    kind: "CiliumNode",
    metadata: { name: node },
    spec: { addresses: [{ type: "InternalIP", ip: addresses.node }], ipam: { podCIDRs: [podCidr] } },
  });
}

/** The name of a cluster's one node. */
export const nodeNameOf = (cluster: string): string => `${cluster}-node-1`;

function configOf({ name, id, podCidr, version, config }: Installation): Readonly<Record<string, string>> {
  const isLocalByDefault = Number(version.split(".")[1]) >= 19;
  return {
    "cluster-name": name,
    "cluster-id": String(id),
    "max-connected-clusters": "255",
    "policy-default-local-cluster": String(isLocalByDefault),
    "identity-allocation-mode": "crd",
    "routing-mode": "tunnel",
    "tunnel-protocol": "vxlan",
    ipam: "cluster-pool",
    "cluster-pool-ipv4-cidr": podCidr,
    "cluster-pool-ipv4-mask-size": "24",
    "enable-ipv4": "true",
    "enable-ipv6": "false",
    "enable-hubble": "true",
    "cni-chaining-mode": "none",
    "clustermesh-cache-ttl": "0s",
    "clustermesh-enable-endpoint-sync": "false",
    "clustermesh-enable-mcs-api": "false",
    ...config,
  };
}

function daemonSetOf(version: string): KubeObject {
  const agent = { "k8s-app": "cilium" };
  const containers = [{ name: "cilium-agent", image: `quay.io/cilium/cilium:v${version}` }];
  return {
    metadata: { name: "cilium", labels: agent },
    spec: { selector: { matchLabels: agent }, template: { metadata: { labels: agent }, spec: { containers } } },
  };
}

function serviceOf(type: Installation["serviceType"]): KubeObject {
  const nodePort = type === "NodePort" ? { nodePort: etcdPorts.node } : {};
  return {
    metadata: { name: "clustermesh-apiserver", labels },
    spec: { type, selector: labels, ports: [{ port: etcdPorts.service, protocol: "TCP", ...nodePort }] },
  };
}

function deploymentOf(version: string, authMode: AuthMode): KubeObject {
  const image = `quay.io/cilium/clustermesh-apiserver:v${version}`;
  const identity = ["--cluster-name=$(CLUSTER_NAME)", "--cluster-id=$(CLUSTER_ID)"];
  const env = [
    ["CLUSTER_NAME", "cluster-name"],
    ["CLUSTER_ID", "cluster-id"],
  ].map(([name, key]) => ({ name, valueFrom: { configMapKeyRef: { name: "cilium-config", key } } }));
  const usersFlags = ["--cluster-users-enabled", "--cluster-users-config-path=/var/lib/cilium/etcd-config/users.yaml"];
  const usersVolume = { name: "etcd-users-config", configMap: { name: "clustermesh-remote-users" } };
  const container = (name: string, args: readonly string[], ports: Readonly<Record<string, number>>) => ({
    name,
    image,
    command: ["/usr/bin/clustermesh-apiserver"],
    args: [...args, ...identity],
    env,
    ports: Object.entries(ports).map(([port, containerPort]) => ({ name: port, containerPort })),
  });
  const containers = [
    {
      name: "etcd",
      image,
      command: ["/usr/bin/etcd"],
      ports: [
        { name: "etcd", containerPort: etcdPorts.service },
        { name: "etcd-metrics", containerPort: metricsPorts.etcd },
      ],
    },
    container("apiserver", ["clustermesh", ...(authMode === "legacy" ? [] : usersFlags)], {
      "apiserv-metrics": metricsPorts.clustermesh,
    }),
    container("kvstoremesh", ["kvstoremesh", "--clustermesh-config=/var/lib/cilium/clustermesh"], {
      "kvmesh-metrics": metricsPorts.kvstoremesh,
    }),
  ];
  const volumes = [
    { name: "etcd-server-secrets", secret: { secretName: "clustermesh-apiserver-server-cert" } },
    { name: "etcd-admin-client", secret: { secretName: "clustermesh-apiserver-admin-cert" } },
    ...(authMode === "legacy" ? [] : [usersVolume]),
    {
      name: "kvstoremesh-secrets",
      projected: {
        sources: [
          { secret: { name: "cilium-kvstoremesh", optional: true } },
          { secret: { name: "clustermesh-apiserver-remote-cert", optional: true } },
        ],
      },
    },
  ];
  return {
    metadata: { name: "clustermesh-apiserver", labels },
    spec: {
      replicas: 1,
      selector: { matchLabels: labels },
      template: { metadata: { labels }, spec: { containers, volumes } },
    },
  };
}

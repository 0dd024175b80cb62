// What an administrator has installed on a cluster: Cilium with clustermesh-apiserver, as its chart leaves it, and a few
// Services that have nothing to do with it.

import type { Pair } from "./notary.ts";

/** How Cilium is installed on a cluster. */
export type Installation = {
  /** What Cilium calls the cluster, and its number. */
  readonly ciliumName: string;
  readonly ciliumId: number;
  /** From 1 on; addresses come from it. */
  readonly number: number;
  readonly version: string;
  /** How clients of clustermesh-apiserver are told apart. */
  readonly authMode: "legacy" | "migration" | "cluster";
  readonly nodes: number;
  readonly serviceType: "LoadBalancer" | "NodePort";
  /** Whether agents show what they know. */
  readonly agentMetrics: boolean;
};

/** The namespace of Cilium. */
export const ciliumNamespace = "kube-system";

/** The namespaces of pods and Services. */
export const workNamespaces = ["shop", "back"] as const;

/** The Services of those namespaces. */
export const workServices = ["web", "api"] as const;

/** The names of what is looked at again and again. */
export const names = {
  authority: "cilium-ca",
  server: "clustermesh-apiserver-server-cert",
  remote: "clustermesh-apiserver-remote-cert",
  clustermesh: "cilium-clustermesh",
  kvstoremesh: "cilium-kvstoremesh",
  users: "clustermesh-remote-users",
  apiserver: "clustermesh-apiserver",
  agent: "cilium",
} as const;

/** The address at which the load balancer, or a node, of a cluster is reached. */
export const balancerAddress = (number: number): string => `203.0.113.${number}`;

/** The address of a node. */
export const nodeAddress = (number: number, node: number): string => `198.18.${number}.${node}`;

/** The port of the Service on every node. */
export const nodePort = (number: number): number => 32_379 + number;

/** The names that a server certificate is for. */
export const serverNames = [
  "clustermesh-apiserver.cilium.io",
  "*.mesh.cilium.io",
  `clustermesh-apiserver.${ciliumNamespace}.svc`,
  "127.0.0.1",
];

const base64 = (text: string): string => Buffer.from(text).toString("base64");

/** A Secret of Cilium's own. */
export const secret = (name: string, data: Readonly<Record<string, string>>, type = "Opaque") => ({
  apiVersion: "v1",
  kind: "Secret",
  metadata: { name, namespace: ciliumNamespace, labels: { "app.kubernetes.io/part-of": "cilium" } },
  type,
  data: Object.fromEntries(Object.entries(data).map(([key, text]) => [key, base64(text)])),
});

/** A Secret of type kubernetes.io/tls. */
export const tlsSecret = (name: string, { certPem, keyPem }: Pair, authority: Pair) =>
  secret(name, { "tls.crt": certPem, "tls.key": keyPem, "ca.crt": authority.certPem }, "kubernetes.io/tls");

/** ConfigMap cilium-config. */
export const config = ({ ciliumName, ciliumId }: Installation) => ({
  apiVersion: "v1",
  kind: "ConfigMap",
  metadata: { name: "cilium-config", namespace: ciliumNamespace },
  data: {
    "cluster-name": ciliumName,
    "cluster-id": String(ciliumId),
    "max-connected-clusters": "255",
    "identity-allocation-mode": "crd",
    "routing-mode": "tunnel",
    "tunnel-protocol": "vxlan",
    "enable-ipv4": "true",
    "enable-ipv6": "false",
    ipam: "cluster-pool",
    "enable-hubble": "true",
  },
});

const image = (name: string, version: string): string => `quay.io/cilium/${name}:v${version}`;

/** DaemonSet cilium. */
export const agents = ({ version }: Installation) => ({
  apiVersion: "apps/v1",
  kind: "DaemonSet",
  metadata: { name: names.agent, namespace: ciliumNamespace },
  spec: {
    selector: { matchLabels: { "k8s-app": "cilium" } },
    template: {
      metadata: { labels: { "k8s-app": "cilium" } },
      spec: { containers: [{ name: "cilium-agent", image: image("cilium", version) }] },
    },
  },
});

/** Deployment clustermesh-apiserver, with KVStoreMesh. */
export const apiserver = ({ version, authMode }: Installation) => ({
  apiVersion: "apps/v1",
  kind: "Deployment",
  metadata: { name: names.apiserver, namespace: ciliumNamespace },
  spec: {
    replicas: 1,
    selector: { matchLabels: { "k8s-app": "clustermesh-apiserver" } },
    template: {
      metadata: { labels: { "k8s-app": "clustermesh-apiserver" } },
      spec: {
        containers: [
          { name: "etcd", image: image("clustermesh-apiserver", version) },
          {
            name: "apiserver",
            image: image("clustermesh-apiserver", version),
            args: authMode === "legacy" ? ["clustermesh"] : ["clustermesh", "--cluster-users-enabled"],
          },
          { name: "kvstoremesh", image: image("clustermesh-apiserver", version), args: ["kvstoremesh"] },
        ],
        volumes:
          authMode === "legacy"
            ? []
            : [{ name: "etcd-users-config", configMap: { name: names.users, defaultMode: 420 } }],
      },
    },
  },
});

/** Service clustermesh-apiserver. */
export const apiserverService = ({ serviceType, number }: Installation) => ({
  apiVersion: "v1",
  kind: "Service",
  metadata: { name: names.apiserver, namespace: ciliumNamespace },
  spec: {
    type: serviceType,
    clusterIP: `10.5.${number}.1`,
    selector: { "k8s-app": "clustermesh-apiserver" },
    ports: [{ name: "apiserv", port: 2379, targetPort: 2379, protocol: "TCP", nodePort: nodePort(number) }],
  },
});

/** A node. */
export const node = (name: string, cluster: number, number: number) => ({
  apiVersion: "v1",
  kind: "Node",
  metadata: { name },
  spec: { podCIDR: `10.${cluster}.${number}.0/24`, podCIDRs: [`10.${cluster}.${number}.0/24`] },
});

/** A pod of Cilium's own, that shows its metrics on a port. */
export const pod = (
  name: string,
  app: string,
  nodeName: string,
  port: { readonly name: string; readonly number: number } | undefined,
) => ({
  apiVersion: "v1",
  kind: "Pod",
  metadata: { name, namespace: ciliumNamespace, labels: { "k8s-app": app } },
  spec: {
    nodeName,
    containers: [
      {
        name: app,
        image: "quay.io/cilium/any",
        ...(port === undefined ? {} : { ports: [{ name: port.name, containerPort: port.number, protocol: "TCP" }] }),
      },
    ],
  },
});

/** A Service that pods are reached by. */
export const workService = (namespace: string, name: string, cluster: number, annotations: object) => ({
  apiVersion: "v1",
  kind: "Service",
  metadata: { name, namespace, labels: { app: name }, annotations },
  spec: {
    type: "ClusterIP",
    clusterIP: `10.5.${cluster}.${10 + name.length}`,
    selector: { app: name },
    ports: [{ name: "http", port: 80, targetPort: 8080, protocol: "TCP" }],
  },
});

/** Its endpoints. */
export const workSlice = (namespace: string, service: string, cluster: number) => ({
  apiVersion: "discovery.k8s.io/v1",
  kind: "EndpointSlice",
  metadata: { name: `${service}-1`, namespace, labels: { "kubernetes.io/service-name": service } },
  addressType: "IPv4",
  endpoints: [{ addresses: [`10.${cluster}.1.${20 + service.length}`], conditions: { ready: true } }],
  ports: [{ name: "http", port: 8080, protocol: "TCP" }],
});

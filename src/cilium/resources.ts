import type { Resource } from "../core/resource.ts";

const core = { group: "", version: "v1", namespaced: true } as const;
const apps = { group: "apps", version: "v1", namespaced: true } as const;
const cilium = { group: "cilium.io", version: "v2" } as const;

/** What is read of clusters that run Cilium, as their API servers serve it. */
export const resources = {
  configMaps: { ...core, plural: "configmaps", kind: "ConfigMap" },
  secrets: { ...core, plural: "secrets", kind: "Secret" },
  pods: { ...core, plural: "pods", kind: "Pod" },
  services: { ...core, plural: "services", kind: "Service" },
  nodes: { ...core, namespaced: false, plural: "nodes", kind: "Node" },
  namespaces: { ...core, namespaced: false, plural: "namespaces", kind: "Namespace" },
  daemonSets: { ...apps, plural: "daemonsets", kind: "DaemonSet" },
  deployments: { ...apps, plural: "deployments", kind: "Deployment" },
  endpointSlices: {
    group: "discovery.k8s.io",
    version: "v1",
    namespaced: true,
    plural: "endpointslices",
    kind: "EndpointSlice",
  },
  ciliumNodes: { ...cilium, namespaced: false, plural: "ciliumnodes", kind: "CiliumNode" },
  networkPolicies: { ...cilium, namespaced: true, plural: "ciliumnetworkpolicies", kind: "CiliumNetworkPolicy" },
  clusterwidePolicies: {
    ...cilium,
    namespaced: false,
    plural: "ciliumclusterwidenetworkpolicies",
    kind: "CiliumClusterwideNetworkPolicy",
  },
} as const satisfies Readonly<Record<string, Resource>>;

/** The objects of Cilium's own that a mesh is made of. */
export const objectNames = {
  config: "cilium-config",
  remoteUsers: "clustermesh-remote-users",
  authority: "cilium-ca",
  remoteCredential: "clustermesh-apiserver-remote-cert",
  serverCredential: "clustermesh-apiserver-server-cert",
  clustermesh: "cilium-clustermesh",
  kvstoremesh: "cilium-kvstoremesh",
  agent: "cilium",
  apiserver: "clustermesh-apiserver",
} as const;

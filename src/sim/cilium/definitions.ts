// Kinds of others that the Cilium provider reads or writes, as far as their names and scopes are public: what is in them
// is kept as it is written.

import { kubernetesClusterKind } from "../../api/kubernetes-cluster.ts";
import { ciliumCrds } from "../../api/crd.ts";
import { endpointSlices } from "../../fleet/kcp.ts";
import type { Resource } from "../../core/resource.ts";

const whatever = { type: "object", "x-kubernetes-preserve-unknown-fields": true };

function definitionOf({ group, version, plural, kind, namespaced }: Resource): object {
  const properties = {
    apiVersion: { type: "string" },
    kind: { type: "string" },
    metadata: { type: "object" },
    spec: whatever,
    status: whatever,
  };
  return {
    apiVersion: "apiextensions.k8s.io/v1",
    kind: "CustomResourceDefinition",
    metadata: { name: `${plural}.${group}` },
    spec: {
      group,
      scope: namespaced ? "Namespaced" : "Cluster",
      names: { kind, listKind: `${kind}List`, plural, singular: kind.toLowerCase() },
      versions: [
        {
          name: version,
          served: true,
          storage: true,
          subresources: { status: {} },
          schema: { openAPIV3Schema: { type: "object", properties } },
        },
      ],
    },
  };
}

const cilium = { group: "cilium.io", version: "v2" } as const;

/** Policies in a namespace. */
export const networkPolicies: Resource = {
  ...cilium,
  plural: "ciliumnetworkpolicies",
  kind: "CiliumNetworkPolicy",
  namespaced: true,
};

/** Policies of a whole cluster. */
export const clusterwidePolicies: Resource = {
  ...cilium,
  plural: "ciliumclusterwidenetworkpolicies",
  kind: "CiliumClusterwideNetworkPolicy",
  namespaced: false,
};

/** What Cilium says of a node. */
export const ciliumNodes: Resource = { ...cilium, plural: "ciliumnodes", kind: "CiliumNode", namespaced: false };

/** The Cluster of a management plane, in a group of our own choice: theirs is documented nowhere. */
export const managedClusters: Resource = {
  group: "fleet.example.com",
  version: "v1",
  plural: "clusters",
  kind: "Cluster",
  namespaced: true,
};

/** What a cluster with Cilium serves beside what every cluster does. */
export const ciliumDefinitions: readonly object[] = [networkPolicies, clusterwidePolicies, ciliumNodes].map(
  definitionOf,
);

/** What a management plane serves. */
export const managementDefinitions: readonly object[] = [definitionOf(managedClusters)];

/** What the workspace of an APIExport serves. */
export const exportDefinitions: readonly object[] = [definitionOf(endpointSlices)];

let bound: readonly object[] | undefined;

/** What workspaces that are bound to the exports serve; one value for every server, so that it is read once. */
export function boundDefinitions(): readonly object[] {
  bound ??= [...ciliumCrds(), definitionOf(kubernetesClusterKind)];
  return bound;
}

/** Where a cluster with Cilium keeps what is looked at. */
export const kept = {
  secrets: "/secrets",
  configMaps: "/configmaps",
  services: "/services",
  deployments: "apps/deployments",
  daemonSets: "apps/daemonsets",
  policies: `cilium.io/${networkPolicies.plural}`,
  clusterwidePolicies: `cilium.io/${clusterwidePolicies.plural}`,
} as const;

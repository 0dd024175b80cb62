// What the old operator leaves in clusters: its definition of ClusterMesh, and Peers as it writes them.

import { must, peersPath } from "./mesh-lab.ts";
import type { Server } from "./servers.ts";

const text = { type: "string" };
const texts = { type: "array", items: text };
const secretRef = { type: "object", required: ["name", "key"], properties: { name: text, key: text } };
const entry = {
  type: "object",
  required: ["name"],
  properties: {
    name: text,
    local: { type: "boolean" },
    kubeconfigSecretRef: secretRef,
    allowedNetworks: texts,
    podCIDRs: texts,
    wireguardCIDR: text,
    serviceCIDR: text,
    additionalCIDRs: texts,
  },
};
const spec = { type: "object", properties: { clusters: { type: "array", minItems: 2, items: entry } } };
const status = { type: "object", "x-kubernetes-preserve-unknown-fields": true };

/** A definition of ClusterMesh that knows the fields of both old generations and nothing of ours. */
export const oldClusterMeshCrd = (annotations: Readonly<Record<string, string>> = {}) => ({
  apiVersion: "apiextensions.k8s.io/v1",
  kind: "CustomResourceDefinition",
  metadata: { name: "clustermeshes.kilo.squat.ai", labels: { team: "network" }, annotations },
  spec: {
    group: "kilo.squat.ai",
    scope: "Namespaced",
    names: {
      kind: "ClusterMesh",
      listKind: "ClusterMeshList",
      plural: "clustermeshes",
      singular: "clustermesh",
      shortNames: ["cm"],
    },
    versions: [
      {
        name: "v1alpha1",
        served: true,
        storage: true,
        subresources: { status: {} },
        schema: {
          openAPIV3Schema: {
            type: "object",
            required: ["spec"],
            properties: { apiVersion: text, kind: text, metadata: { type: "object" }, spec, status },
          },
        },
      },
    ],
  },
});

/** What a test says of a Peer of the old operator. */
export type OldPeer = {
  readonly mesh: string;
  readonly source: string;
  readonly node: string;
  readonly publicKey: string;
  readonly allowedIPs: readonly string[];
  readonly endpoint?: { readonly ip: string; readonly port: number };
  readonly persistentKeepalive?: number;
};

/** Writes a Peer as the old operator does: two labels, its own name, under its field manager. */
export async function writeOldPeer(server: Server, peer: OldPeer): Promise<void> {
  const { mesh, source, node, publicKey, allowedIPs, endpoint, persistentKeepalive } = peer;
  await must(server, "POST", `${peersPath}?fieldManager=manager`, {
    apiVersion: "kilo.squat.ai/v1alpha1",
    kind: "Peer",
    metadata: {
      name: `${mesh}--${source}--${node}`,
      labels: { "kilo-clustermesh.io/mesh": mesh, "kilo-clustermesh.io/source-cluster": source },
    },
    spec: {
      publicKey,
      allowedIPs,
      ...(endpoint === undefined ? {} : { endpoint: { dnsOrIP: { ip: endpoint.ip }, port: endpoint.port } }),
      ...(persistentKeepalive === undefined ? {} : { persistentKeepalive }),
    },
  });
}

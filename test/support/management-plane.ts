// A management plane: a real API server that knows clusters, with exactly the rights of deploy/rbac/management-plane.yaml
// for whoever reads it.

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { installCrd } from "./server-objects.ts";
import type { Server } from "./servers.ts";

const group = "clusters.example.org";
const clusters = `/apis/${group}/v1/namespaces/default/clusters`;
const secrets = "/api/v1/namespaces/default/secrets";
const mergePatch = "application/merge-patch+json";

/** What a Cluster says beside where its kubeconfig is. */
export type ClusterWords = {
  readonly ready?: boolean;
  readonly cilium?: string;
  readonly annotations?: Readonly<Record<string, string>>;
};

/** The management plane. */
export type ManagementPlane = {
  readonly server: Server;
  /** Who reads it, as its audit log calls him, and with what. */
  readonly user: string;
  readonly kubeconfig: string;
  /** Makes a Cluster, or says something else of one that is there; its kubeconfig is in a Secret beside it. */
  readonly putCluster: (name: string, kubeconfig: string, words?: ClusterWords) => Promise<void>;
  readonly secretOf: (name: string) => string;
};

/** Makes an API server the management plane. */
export async function openManagementPlane(server: Server): Promise<ManagementPlane> {
  const { admin } = server;
  await installCrd(server, clusterKind);
  await server.kubectl(["apply", "-f", "-"], deployed("rbac/management-plane.yaml"));
  const token = await server.serviceAccountToken("default", "causeway");
  const must = async (method: string, path: string, body: object): Promise<void> => {
    const answer = await admin.request(method, path, body, mergePatch);
    if (answer.status >= 300) throw new Error(`${method} ${path}: ${answer.status} ${JSON.stringify(answer.body)}`);
  };
  const secretOf = (name: string): string => `${name}-kubeconfig`;
  return {
    server,
    user: "system:serviceaccount:default:causeway",
    kubeconfig: server.kubeconfig(token),
    secretOf,
    putCluster: async (name, kubeconfig, { ready = true, cilium = "ready", annotations = {} } = {}) => {
      const secret = { metadata: { name: secretOf(name) } };
      await admin.ensure(secrets, secret);
      await must("PATCH", `${secrets}/${secretOf(name)}`, { stringData: { kubeconfig } });
      const object = { apiVersion: `${group}/v1`, kind: "Cluster", metadata: { name, annotations } };
      await admin.ensure(clusters, object);
      await must("PATCH", `${clusters}/${name}`, { metadata: { annotations } });
      const status = {
        conditions: [{ type: "Ready", status: ready ? "True" : "False", message: ready ? "" : "still being made" }],
        kubeconfigSecretRef: { name: secretOf(name), key: "kubeconfig" },
        capabilities: [{ name: "cilium-cni", details: { status: cilium, version: "1.19.6" } }],
      };
      await must("PATCH", `${clusters}/${name}/status`, { status });
    },
  };
}

/** A file of `deploy/`, as it is. */
export const deployed = (file: string): string => readFileSync(join(import.meta.dirname, "../../deploy", file), "utf8");

const open = { type: "object", "x-kubernetes-preserve-unknown-fields": true };

const clusterKind = {
  apiVersion: "apiextensions.k8s.io/v1",
  kind: "CustomResourceDefinition",
  metadata: { name: `clusters.${group}` },
  spec: {
    group,
    scope: "Namespaced",
    names: { plural: "clusters", singular: "cluster", kind: "Cluster", listKind: "ClusterList" },
    versions: [
      {
        name: "v1",
        served: true,
        storage: true,
        subresources: { status: {} },
        schema: { openAPIV3Schema: { type: "object", properties: { spec: open, status: open } } },
      },
    ],
  },
};

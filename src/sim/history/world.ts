import { stringify } from "yaml";
import { fieldsOf, textOf } from "../../core/json.ts";
import { type Box, meshNamespace } from "../box/box.ts";
import { storages } from "../storages.ts";
import type { Fields } from "../value.ts";

const kept = [storages.nodes, storages.peers, storages.meshes];

/** A fleet as a world file: what `causeway plan -f` and test/scenarios read. Secrets are named, their data is not. */
export function worldOf(box: Box, nowMs: number): string {
  const secrets = box.hub.server
    .objects(storages.secrets)
    .map(({ metadata }) => ({ apiVersion: "v1", kind: "Secret", metadata }));
  const meshes = box.hub.server.objects(storages.meshes);
  const spaces = meshes.map(({ metadata }) => textOf(fieldsOf(metadata)["namespace"]) ?? meshNamespace);
  const namespaces = [...new Set([meshNamespace, ...spaces])];
  const clusters = box.clusters.map((cluster) => ({
    name: cluster.name,
    ...(cluster === box.hub
      ? { local: true }
      : {
          access: namespaces.map((namespace) => ({
            namespace,
            secret: `${cluster.name}-kubeconfig`,
            key: "kubeconfig",
          })),
        }),
    objects: [
      ...kept.flatMap((storage) => cluster.server.objects(storage)).map(withoutManagers),
      ...(cluster === box.hub ? secrets.map(withoutManagers) : []),
    ],
  }));
  const now = new Date(nowMs).toISOString();
  return stringify({ apiVersion: "causeway.dev/v1alpha1", kind: "World", now, clusters });
}

function withoutManagers(object: Fields): Fields {
  const { managedFields: _, ...metadata } = fieldsOf(object["metadata"]);
  return { ...object, metadata };
}

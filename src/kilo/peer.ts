// The Peer as value and as manifest: its labels, its comparable fields and what is sent to the API server.

import { kiloApiVersion } from "../api/cluster-mesh.ts";
import { meshLabel, sourceClusterLabel } from "../api/peer.ts";
import { labelValue, shortHash } from "../core/naming.ts";
import type { Fields } from "../core/plan.ts";
import type { ClusterId } from "../core/world.ts";
import { carriedEndpoint } from "./endpoint.ts";
import type { Entry, MeshIntent } from "./intent.ts";

/** The label that says we manage an object, and its value. */
export const managedByLabel = "app.kubernetes.io/managed-by";
/** The value of the managed-by label on everything we write. */
export const managedBy = "causeway";

/** Our own labels on a Peer: together with the mesh and source labels they are its identity. */
export const peerLabels = {
  instance: "causeway.dev/instance",
  meshNamespace: "causeway.dev/mesh-namespace",
  meshUid: "causeway.dev/mesh-uid",
  source: "causeway.dev/source",
  /** Which cluster the Secret led to: the UID of its namespace kube-system. */
  sourceUid: "causeway.dev/source-uid",
  node: "causeway.dev/node",
  endpointFrom: "causeway.dev/endpoint-from",
} as const;

/** Whether a label of a Peer is one that we write. */
export const isPeerLabel = (key: string): boolean =>
  key === managedByLabel || key === meshLabel || key === sourceClusterLabel || key.startsWith("causeway.dev/");

/** The field of a Peer that lists its ranges. */
export const allowedIpsPath = "spec.allowedIPs";

/** Why a Peer changes, by the field that differs; the first that does names the reason. */
export const peerReasons: Readonly<Record<string, string>> = {
  "spec.publicKey": "KeyRotated",
  [allowedIpsPath]: "RangesChanged",
  "spec.endpoint": "EndpointChanged",
  "spec.persistentKeepalive": "KeepaliveChanged",
};

/** Without the right key and endpoint there is no tunnel to the node at all. */
export const urgentPaths: readonly string[] = ["spec.publicKey", "spec.endpoint"];

/** The identity that all Peers of a source in a mesh share, worked out once. */
export type PeerIdentity = {
  readonly labels: (node: string) => Readonly<Record<string, string>>;
  readonly origin: (node: string) => string;
};

/** Makes the labels and the origin of the Peers of a source. */
export function peerIdentity(
  mesh: MeshIntent,
  entry: Entry,
  source: ClusterId,
  instance: string | undefined,
): PeerIdentity {
  const space = labelValue(mesh.namespace);
  const name = labelValue(mesh.name);
  const cluster = labelValue(entry.name);
  const hash = sourceHash(source);
  const known = {
    [managedByLabel]: managedBy,
    ...(instance === undefined ? {} : { [peerLabels.instance]: labelValue(instance) }),
    [peerLabels.meshNamespace]: space,
    ...(mesh.uid === undefined ? {} : { [peerLabels.meshUid]: labelValue(mesh.uid) }),
  };
  return {
    labels: (node) => ({
      ...known,
      [peerLabels.node]: labelValue(node),
      [peerLabels.source]: hash,
      [meshLabel]: name,
      [sourceClusterLabel]: cluster,
    }),
    origin: (node) => `${space}|${name}|${cluster}|${labelValue(node)}`,
  };
}

const hashes = new Map<ClusterId, string>();
const hashesMax = 10_000;

/** A cluster's identity as a label value: accesses are longer than labels may be. */
export function sourceHash(source: ClusterId): string {
  const known = hashes.get(source);
  if (known !== undefined) return known;
  const made = shortHash(source);
  if (hashes.size >= hashesMax) hashes.clear();
  hashes.set(source, made);
  return made;
}

/** What a Peer was made from, as its labels tell it. */
export const originOf = (namespace: string, mesh: string, source: string, node: string): string =>
  [namespace, mesh, source, node].map(labelValue).join("|");

/** The comparable content of a Peer. */
export function peerFields(
  key: string,
  allowedIps: readonly string[],
  endpoint: string | null,
  keepaliveSeconds: number,
): Fields {
  return {
    "spec.publicKey": key,
    "spec.allowedIPs": allowedIps,
    "spec.endpoint": endpoint,
    "spec.persistentKeepalive": keepaliveSeconds === 0 ? null : keepaliveSeconds,
  };
}

/** The object to apply for a Peer's name, labels and fields. */
export function peerManifest(
  name: string,
  labels: Readonly<Record<string, string>>,
  fields: Fields,
): Readonly<Record<string, unknown>> {
  const endpoint = carriedEndpoint(fields["spec.endpoint"]);
  const keepalive = fields["spec.persistentKeepalive"];
  return {
    apiVersion: kiloApiVersion,
    kind: "Peer",
    metadata: { name, labels },
    spec: {
      publicKey: fields["spec.publicKey"],
      allowedIPs: fields[allowedIpsPath],
      ...(endpoint === undefined ? {} : { endpoint: { dnsOrIP: { ip: endpoint.ip }, port: endpoint.port } }),
      ...(keepalive === null ? {} : { persistentKeepalive: keepalive }),
    },
  };
}

// Objects and paths that cases are about.

import { afterAll, beforeAll } from "vitest";
import { caseNamespace, realTarget, simTarget, type Target } from "./conformance-target.ts";
import { useFleet } from "./servers.ts";

/** Where Peers are. */
export const peers = "/apis/kilo.squat.ai/v1alpha1/peers";

/** Where ClusterMeshes are. */
export const meshes = `/apis/kilo.squat.ai/v1alpha1/namespaces/${caseNamespace}/clustermeshes`;

/** Where Nodes are. */
export const nodes = "/api/v1/nodes";

/** Where ConfigMaps are. */
export const configMaps = `/api/v1/namespaces/${caseNamespace}/configmaps`;

/** Where Secrets are. */
export const secrets = `/api/v1/namespaces/${caseNamespace}/secrets`;

/** Where Leases are. */
export const leases = `/apis/coordination.k8s.io/v1/namespaces/${caseNamespace}/leases`;

/** Where Events are, as we write them. */
export const events = `/apis/events.k8s.io/v1/namespaces/${caseNamespace}/events`;

/** How a patch is sent. */
export const merge = { type: "application/merge-patch+json" };

/** How a JSON patch is sent. */
export const jsonPatch = { type: "application/json-patch+json" };

/** How kubectl patches kinds that are built in. */
export const strategic = { type: "application/strategic-merge-patch+json" };

/** How a configuration is applied. */
export const apply = { type: "application/apply-patch+yaml" };

/** A Peer. */
export const peer = (name: string, spec: object = {}, metadata: object = {}) => ({
  apiVersion: "kilo.squat.ai/v1alpha1",
  kind: "Peer",
  metadata: { name, ...metadata },
  spec: { allowedIPs: ["10.0.0.0/24"], publicKey: "key", ...spec },
});

/** An entry of a mesh. */
export const entry = (name: string, more: object = {}) => ({ name, allowedNetworks: ["10.0.0.0/8"], ...more });

/** A ClusterMesh. */
export const mesh = (name: string, spec: object = {}, metadata: object = {}) => ({
  apiVersion: "kilo.squat.ai/v1alpha1",
  kind: "ClusterMesh",
  metadata: { name, ...metadata },
  spec: { clusters: [entry("a"), entry("b")], ...spec },
});

/** A ConfigMap. */
export const configMap = (name: string, data: object, metadata: object = {}) => ({
  apiVersion: "v1",
  kind: "ConfigMap",
  metadata: { name, ...metadata },
  data,
});

/** A Node. */
export const node = (name: string, more: object = {}) => ({
  apiVersion: "v1",
  kind: "Node",
  metadata: { name },
  ...more,
});

/** Both servers, for the tests of one file; the real one is `spare`, which no other test uses meanwhile. */
export function useTargets(): () => { readonly real: Target; readonly sim: Target } {
  let targets: { readonly real: Target; readonly sim: Target } | undefined;
  beforeAll(async () => {
    targets = { real: await realTarget(useFleet().spare), sim: simTarget() };
  });
  afterAll(async () => {
    await targets?.real.reset();
    await targets?.real.close();
    await targets?.sim.close();
  });
  return () => {
    if (targets === undefined) throw new Error("no servers yet");
    return targets;
  };
}

// Whose a cluster is. No connection is ever opened to a cluster that the workspace of an intent has not shown to be its
// own: names are free for everybody to write, also into a status. Of several claims to one name the oldest counts, unless
// the management plane marks the cluster as somebody's: that is not known here, so it goes with the access.

import { noWorkspace } from "../api/management-cluster.ts";
import type { IntentPlace, Member } from "../core/provider.ts";
import { type ClusterId, clusterIdOf, type ClusterView, compareText, type SecretAccess } from "../core/world.ts";
import type { BindingIntent, CiliumIntent, KubernetesClusterIntent } from "./intent.ts";

/** Where the management plane keeps the credentials of a cluster, and for whose sake they are asked for. */
export const managedAccess = (at: {
  readonly namespace: string;
  readonly cluster: string;
  readonly workspace: string | undefined;
  readonly onlyMarked?: boolean;
}): SecretAccess => ({
  namespace: at.namespace,
  secret: at.cluster,
  key: at.workspace ?? noWorkspace,
  ...(at.onlyMarked === true ? { onlyMarked: true } : {}),
});

/** Whether an intent may name a cluster, or why not. */
export type Admission =
  | { readonly ok: true; readonly member: Member; readonly cluster: KubernetesClusterIntent | undefined }
  | {
      readonly ok: false;
      readonly detail: string;
      /** Who it would be. */
      readonly id: ClusterId;
    };

/** Judges the clusters that intents name. */
export type Gate = {
  readonly admit: (place: IntentPlace, name: string) => Admission;
  /**
   * The same for clean-up alone, when a KubernetesCluster may be gone before the objects that named it. A cluster that
   * another workspace claims is still not for this one, and nothing is taken away but what was written for the object.
   */
  readonly reach: (place: IntentPlace, name: string) => Admission;
  /** The mesh that an object of the same workspace and namespace refers to. */
  readonly bindingOf: (place: IntentPlace, name: string) => BindingIntent | undefined;
};

/** Makes the judge for a list of intents. */
export function gateFor(all: readonly CiliumIntent[], mgmtNamespace: string): Gate {
  const clusters = new Map<string, KubernetesClusterIntent>();
  const oldest = new Map<string, KubernetesClusterIntent>();
  const bindings = new Map<string, BindingIntent>();
  for (const intent of all) {
    if (intent.kind === "ClusterMeshBinding") bindings.set(placeKey(intent.place, intent.place.name), intent);
    if (intent.kind !== "KubernetesCluster") continue;
    clusters.set(placeKey(intent.place, intent.place.name), intent);
    const other = oldest.get(intent.place.name);
    if (other === undefined || compareAge(intent, other) < 0) oldest.set(intent.place.name, intent);
  }
  const judge = (place: IntentPlace, name: string, isCleanUp: boolean): Admission => {
    const { workspace } = place;
    const first = oldest.get(name);
    const onlyMarked = workspace !== undefined && first !== undefined && first.place.workspace !== workspace;
    const access = managedAccess({ namespace: mgmtNamespace, cluster: name, workspace, onlyMarked });
    const id = clusterIdOf(access);
    if (!isName(name)) return { ok: false, detail: "it is no name of a cluster", id };
    const cluster = clusters.get(placeKey(place, name));
    if (cluster === undefined && !isCleanUp) {
      if (workspace !== undefined) {
        return { ok: false, detail: "no KubernetesCluster of that name is in the namespace", id };
      }
      // Without workspaces the name is enough, but a KubernetesCluster says in which namespace the cluster may be used.
      if (first !== undefined) return { ok: false, detail: "its KubernetesCluster is in another namespace", id };
    }
    return { ok: true, member: { id, access, name }, cluster };
  };
  return {
    admit: (place, name) => judge(place, name, false),
    reach: (place, name) => judge(place, name, true),
    bindingOf: (place, name) => bindings.get(placeKey(place, name)),
  };
}

/** Whether two identities are of one cluster, whoever asks for it. */
export const isSameCluster = (one: ClusterId, other: ClusterId): boolean => withoutWho(one) === withoutWho(other);

const withoutWho = (id: ClusterId): string => id.slice(0, id.lastIndexOf("/"));

/** Whether a cluster is among those that the status of an intent names. */
export const isNamedInStatus = (intent: CiliumIntent, { accesses }: Pick<ClusterView<unknown>, "accesses">): boolean =>
  namesInStatus(intent).some((name) => accesses.some((id) => withoutWho(id).endsWith(`/${name}`)));

/** Every cluster that an intent names or, by its status, has named, as far as it may. */
export function membersOf(intent: CiliumIntent, gate: Gate): readonly Member[] {
  const { place, terminating } = intent;
  const listed = new Set(listedNames(intent, gate));
  const left = new Set(namesInStatus(intent).filter((name) => !listed.has(name)));
  const staying = [...listed].flatMap((name): Member[] => {
    const admission = terminating ? gate.reach(place, name) : gate.admit(place, name);
    return admission.ok ? [admission.member] : [];
  });
  const leaving = [...left].flatMap((name): Member[] => {
    const admission = gate.reach(place, name);
    return admission.ok ? [{ ...admission.member, left: true }] : [];
  });
  return [...staying, ...leaving];
}

/** The name under which an intent has a cluster among its own, if it has. */
export const nameOn = (intent: CiliumIntent, { accesses }: { readonly accesses: readonly ClusterId[] }, gate: Gate) =>
  membersOf(intent, gate).find(({ id }) => accesses.includes(id))?.name;

function listedNames(intent: CiliumIntent, gate: Gate): readonly string[] {
  switch (intent.kind) {
    case "ClusterMeshBinding":
      return intent.object.spec.clusterRefs.map(({ name }) => name);
    case "GlobalService":
    case "ConnectivityIntent":
    case "ExposedService": {
      const binding = gate.bindingOf(intent.place, intent.object.spec.meshRef.name);
      return binding?.object.spec.clusterRefs.map(({ name }) => name) ?? [];
    }
    // A picture writes nothing to clusters, so nothing of it has to be cleaned up there.
    case "Fabric":
    case "KubernetesCluster":
      return [];
  }
}

function namesInStatus(intent: CiliumIntent): readonly string[] {
  switch (intent.kind) {
    case "ClusterMeshBinding":
      return intent.object.status?.meshStatus?.map(({ clusterName }) => clusterName) ?? [];
    case "GlobalService":
      return intent.object.status?.exportedClusters ?? [];
    case "ConnectivityIntent":
      return intent.object.status?.appliedClusters ?? [];
    case "ExposedService":
      return intent.object.status?.endpoints?.map(({ clusterName }) => clusterName) ?? [];
    case "Fabric":
    case "KubernetesCluster":
      return [];
  }
}

/** A name with a slash in it could be read as another cluster's identity. */
const isName = (name: string): boolean => name.length <= 253 && /^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$/.test(name);

const placeKey = ({ workspace, namespace }: IntentPlace, name: string): string =>
  JSON.stringify([workspace ?? null, namespace, name]);

const compareAge = (a: KubernetesClusterIntent, b: KubernetesClusterIntent): number =>
  a.createdMs - b.createdMs || compareText(a.uid ?? "", b.uid ?? "") || compareText(a.id, b.id);

const gates = new WeakMap<readonly CiliumIntent[], Map<string, Gate>>();

/** The judge for a list of intents, made once for each list: every intent of a world asks. */
export function sharedGate(all: readonly CiliumIntent[], mgmtNamespace: string): Gate {
  const known = gates.get(all) ?? new Map<string, Gate>();
  gates.set(all, known);
  const gate = known.get(mgmtNamespace) ?? gateFor(all, mgmtNamespace);
  known.set(mgmtNamespace, gate);
  return gate;
}

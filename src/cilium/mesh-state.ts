// What planning a ClusterMeshBinding tells the kinds that refer to it.

import type { Edit } from "../core/plan.ts";
import type { ClusterId, ClusterView } from "../core/world.ts";
import type { LinkedPeers } from "./connection.ts";
import type { DoubtfulEdit, MeshDoubt } from "./edit.ts";
import type { CiliumFacts } from "./facts.ts";
import type { BindingIntent } from "./intent.ts";

/** The phases of a ClusterMeshBinding. */
export type MeshPhase = "Pending" | "Connecting" | "Connected" | "Degraded" | "Error";

/** A cluster of a mesh that may be looked at: its workspace has shown that it is its own. */
export type MeshMember = {
  /** The name of its KubernetesCluster. */
  readonly name: string;
  readonly id: ClusterId;
  readonly view: ClusterView<CiliumFacts>;
  /** What Cilium there calls it, if it says so and the name can be that of a cluster of a mesh. */
  readonly ciliumName: string | undefined;
  readonly version: Version | undefined;
  /** Why nothing new may be decided or written there, if pre-flight found a fault in it. */
  readonly fault?: string;
  /** The load balancer that the management plane has bound it to, on clouds that want one named. */
  readonly elbId: string | undefined;
  /** What Cilium there calls the clusters that it is linked with, those that have left the mesh among them. */
  readonly linked?: LinkedPeers;
};

/** A version of Cilium. */
export type Version = { readonly major: number; readonly minor: number; readonly patch: number; readonly text: string };

/** What one cluster of a mesh says of another; `ready` is not there if nobody can know. */
export type LinkState = {
  readonly from: string;
  readonly to: string;
  readonly ready: boolean | undefined;
  /** Why it is not known to be ready, in one word and for a human. */
  readonly reason: string;
  readonly message: string;
};

/** A binding as others see it. */
export type MeshState = {
  readonly binding: BindingIntent;
  readonly phase: MeshPhase;
  /** In the order of `spec.clusterRefs`. */
  readonly members: readonly MeshMember[];
  /** Clusters that are named and may not even be looked at, and why. None of them is among the members. */
  readonly unusable: readonly { readonly name: string; readonly id: ClusterId; readonly detail: string }[];
  /** Every link that the topology asks for, in both directions. */
  readonly links: readonly LinkState[];
  /** Why nobody can tell which clusters the spec means, if so: until that is settled nothing of the mesh is released. */
  readonly doubt?: MeshDoubt;
  /** Members that are not the clusters they should be, and where their kubeconfigs lead instead. */
  readonly strangers: ReadonlyMap<string, string>;
  /** The edit by which something goes that is about a peer, by the name that Cilium has for it. */
  readonly parting: (peer: string) => Edit | DoubtfulEdit;
  /** Whether a cluster that is no member shows that it was one: that it is not any more is an edit of the binding. */
  readonly wasMember: (view: ClusterView<CiliumFacts>) => boolean;
};

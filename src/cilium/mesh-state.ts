// What planning a ClusterMeshBinding tells the kinds that refer to it.

import type { ClusterId, ClusterView } from "../core/world.ts";
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
  /** The load balancer that its KubernetesCluster is bound to, on clouds that want one named. */
  readonly elbId: string | undefined;
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
};

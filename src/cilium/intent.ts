// The objects of a tenant, as the planner sees them: parsed, with their identity.

import type { ClusterMeshBinding } from "../api/cluster-mesh-binding.ts";
import type { ConnectivityIntent } from "../api/connectivity-intent.ts";
import type { ExposedService } from "../api/exposed-service.ts";
import type { Fabric } from "../api/fabric.ts";
import type { GlobalService } from "../api/global-service.ts";
import type { KubernetesCluster } from "../api/kubernetes-cluster.ts";
import type { IntentPlace } from "../core/provider.ts";

/** What every intent has. */
type Common = {
  /** `<Kind>/<namespace>/<name>`, with `<workspace>/` in between where there are workspaces. */
  readonly id: string;
  readonly place: IntentPlace;
  readonly uid: string | undefined;
  readonly generation: number;
  readonly createdMs: number;
  readonly terminating: boolean;
  /** Why the spec cannot be used as it is written, if so: the object exists, and what was made for it is kept. */
  readonly invalid: string | undefined;
};

/** A wish to join clusters. */
export type BindingIntent = Common & { readonly kind: "ClusterMeshBinding"; readonly object: ClusterMeshBinding };

/** A wish to export Services. */
export type GlobalServiceIntent = Common & { readonly kind: "GlobalService"; readonly object: GlobalService };

/** A wish to allow or deny traffic. */
export type ConnectivityIntentIntent = Common & {
  readonly kind: "ConnectivityIntent";
  readonly object: ConnectivityIntent;
};

/** A wish to make a Service reachable from outside. */
export type ExposedServiceIntent = Common & { readonly kind: "ExposedService"; readonly object: ExposedService };

/** A wish to see everything together. */
export type FabricIntent = Common & { readonly kind: "Fabric"; readonly object: Fabric };

/** A cluster that a workspace says is its own; only looked at. */
export type KubernetesClusterIntent = Common & {
  readonly kind: "KubernetesCluster";
  readonly object: KubernetesCluster;
};

/** Everything that is read from tenants. */
export type CiliumIntent =
  | BindingIntent
  | GlobalServiceIntent
  | ConnectivityIntentIntent
  | ExposedServiceIntent
  | FabricIntent
  | KubernetesClusterIntent;

import type { Brand } from "./brand.ts";
import type { Address } from "./net/address.ts";

/** Where a cluster's access comes from: `local`, or `<namespace>/<secret>/<key>`. A spec's name for it is only an alias. */
export type ClusterId = Brand<string, "ClusterId">;

/** The Secret, and the key in it, through which a remote cluster is reached. */
export type SecretAccess = {
  readonly namespace: string;
  readonly secret: string;
  readonly key: string;
  /** Somebody else has the better claim, unless the cluster itself is marked as that of the workspace `key`. */
  readonly onlyMarked?: true;
};

/** The operator's own cluster. */
export const LOCAL = clusterId("local");

/** The identity of a cluster that is reached through a Secret. */
export const clusterIdOf = ({ namespace, secret, key }: SecretAccess): ClusterId =>
  clusterId(`${namespace}/${secret}/${key}`);

function clusterId(text: string): ClusterId {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the only place that makes one
  return text as ClusterId;
}

/** Why a cluster could not be observed; a closed set, sorted by what to do next. */
export type Failure =
  | { readonly kind: "unreachable"; readonly detail: string } // back off, keep everything
  | { readonly kind: "unauthorized"; readonly detail: string } // wait for the Secret to change
  | { readonly kind: "forbidden"; readonly detail: string } // wait for RBAC to change
  | { readonly kind: "refused"; readonly detail: string } // the kubeconfig asks for something we never do
  | { readonly kind: "missing"; readonly detail: string } // no Secret: there is no way in
  | { readonly kind: "taken"; readonly detail: string } // it is somebody else's: there is no way in for us
  | { readonly kind: "unusable"; readonly detail: string } // whoever keeps it says it does not run what we need: wait
  | { readonly kind: "overBudget"; readonly detail: string; readonly flag: string } // more than one place is granted
  | { readonly kind: "incomplete"; readonly detail: string }; // listed, but part of it cannot be read

/** Whether there is no way in, and none will come by itself. */
export const isShut = ({ kind }: Failure): boolean => kind === "missing" || kind === "taken";

/** How sure we are of what a cluster holds. `stale` may be used to keep things, never to delete them. */
export type Observed<T> =
  | { readonly state: "synced"; readonly value: T }
  | { readonly state: "stale"; readonly because: Failure; readonly value: T }
  | {
      readonly state: "absent";
      readonly because: Failure;
      /** Its first answer, good or bad, is still awaited. */
      readonly isSettling?: boolean;
    };

/** One cluster as it was last seen. */
export type ClusterView<Facts> = {
  readonly id: ClusterId;
  /** Every access that leads here; `id` is one of them. */
  readonly accesses: readonly ClusterId[];
  /** What people call it: the name in the world file, else the spec's alias. */
  readonly name: string;
  readonly observed: Observed<Facts>;
  /** The addresses of its API server, where the operator reaches it by an address and not by a name. */
  readonly servers?: readonly Address[];
  /** The load balancer that whoever keeps the cluster has bound it to. */
  readonly loadBalancer?: string;
  /** Why newer credentials are not used, while older ones still work. */
  readonly unused?: Failure;
  /** It mentions more names than are looked up for one cluster. */
  readonly unasked?: NameQuota;
};

/** How many names a cluster mentions in endpoints, and how many of them are looked up. */
export type NameQuota = { readonly names: number; readonly max: number };

/** Everything a provider may look at, as one immutable value. */
export type World<Intent, Facts> = {
  readonly revision: number;
  /** Milliseconds since the epoch, 0 when unknown; grace periods and the age of check-ins look at it. */
  readonly nowMs: number;
  /** Identity of this control plane: the UID of the local cluster, when it is known. */
  readonly instance: string | undefined;
  readonly intents: Observed<readonly Intent[]>;
  readonly clusters: readonly ClusterView<Facts>[];
  /** What the resolver port answered for each DNS name that an endpoint mentions. */
  readonly dns: ReadonlyMap<string, string>;
  /** Every running grace period, by `graceKey`. */
  readonly held: ReadonlyMap<string, Held>;
};

/** A grace period: when it began, and why its object is held; no reason, where nobody wrote it down. */
export type Held = { readonly sinceMs: number; readonly reason: string | undefined };

/** The key of a grace period in `World.held`. */
export const graceKey = (target: ClusterId, object: string): string => `${target}|${object}`;

/** The last value seen, fresh or not. */
export function lastSeen<T>(observed: Observed<T>): T | undefined {
  return observed.state === "absent" ? undefined : observed.value;
}

/** Orders text by code unit, the same on every machine and in every locale. */
export const compareText = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);

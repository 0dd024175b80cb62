// Credentials from a management plane, which is only ever read: a Cluster there says whether it is ready, whether Cilium
// runs on it and which Secret holds its kubeconfig.
//
//   the Cluster …                                the credentials are …
//   is not there, or not this workspace's        missing
//   is not ready, or Cilium does not run on it   not to be had: what is known of the cluster stays as it is
//   names a Secret                               in that Secret: under its key, else `kubeconfig`, else `value`
//   names none                                   in Secret kind-<name>-kubeconfig

import { sameJson } from "../core/json.ts";
import {
  belongsTo,
  type ManagedCluster,
  noSuchCluster,
  readManagedCluster,
  unusableCluster,
} from "../core/managed-cluster.ts";
import type { Resource } from "../core/resource.ts";
import { err, ok, type Result } from "../core/result.ts";
import type { Failure, SecretAccess } from "../core/world.ts";
import type { KubeApi } from "../kube/api.ts";
import { asWorldFailure, type KubeFailure } from "../kube/failure.ts";
import { type Informer, startInformer } from "../kube/informer.ts";
import type { Runtime } from "../kube/runtime.ts";
import { secretKeyOf, type SecretValue, type SecretWatch, watchSecrets } from "./secrets.ts";

/** What reading credentials from a management plane needs. */
export type ManagementPlaneOptions = {
  readonly api: KubeApi;
  /** The kind Cluster as `clusters.<version>.<group>`; without it, the only kind called clusters that is served. */
  readonly clusterResource: string | undefined;
  readonly namespace: string;
  /** Whether a Cluster that is marked for no workspace is for the one that has claimed it first. */
  readonly trustUnmarkedClusters: boolean;
  readonly runtime: Runtime;
};

const searchMs = 10_000;

/**
 * Watches Clusters of the management plane and the Secrets they name. An access is asked for as
 * `<namespace>/<Cluster>/<workspace>`: whose cluster it is counts, too.
 */
export function watchManagementPlane(
  options: ManagementPlaneOptions,
  onChange: (cluster?: string) => void,
): SecretWatch {
  const { api, runtime, namespace } = options;
  const stop = new AbortController();
  let wanted: readonly SecretAccess[] = [];
  let clusters: Informer<ManagedCluster> | undefined;
  let notFound: Failure | undefined;
  /** The Clusters that name a Secret. */
  let clustersOf: ReadonlyMap<string, ReadonlySet<string>> = new Map();
  const secrets = watchSecrets(api, runtime, (secret) => {
    for (const cluster of clustersOf.get(secret) ?? []) onChange(cluster);
  });
  const begin = async (): Promise<void> => {
    for (;;) {
      const resource = await findClusterKind(api, options.clusterResource, stop.signal);
      if (resource.ok) {
        clusters = startInformer<ManagedCluster>({
          api,
          resource: resource.value,
          scope: { namespace },
          read: readManagedCluster,
          same: sameJson,
          onChange: (cluster) => {
            follow();
            onChange(cluster);
          },
          runtime,
          objects: "objects.intents",
          signal: stop.signal,
        });
        return await clusters.done;
      }
      const { detail } = resource.error;
      if (notFound?.detail !== detail) runtime.log.warn("the management plane cannot be read", { detail });
      notFound = { kind: "unreachable", detail: `the management plane cannot be read: ${detail}` };
      onChange();
      await runtime.clock.sleep(searchMs, stop.signal);
    }
  };
  const done = begin().catch((error: unknown) => {
    if (!stop.signal.aborted) throw error;
  });

  const managed = (access: SecretAccess): Result<ManagedCluster, SecretValue> => {
    const failed = (because: Failure): Result<never, SecretValue> => err({ state: "unknown", because });
    const view = clusters?.view();
    if (access.namespace !== namespace) {
      return err({
        state: "missing",
        because: { kind: "missing", detail: `namespace ${access.namespace} is not ours` },
      });
    }
    if (view === undefined) return notFound === undefined ? err({ state: "pending" }) : failed(notFound);
    if (view.state === "syncing") {
      if (view.failure === undefined) return err({ state: "pending" });
      return failed(away(view.failure));
    }
    const cluster = view.objects.get(`${namespace}/${access.secret}`)?.fact;
    if (cluster === undefined && view.state === "stale") return failed(away(view.failure));
    if (cluster === undefined || !belongsTo(cluster, access, options.trustUnmarkedClusters)) {
      return err({ state: "missing", because: noSuchCluster(access, cluster) });
    }
    return ok(cluster);
  };

  const secretOf = (access: SecretAccess, cluster: ManagedCluster): SecretAccess => ({
    namespace,
    secret: cluster.secret?.name ?? `kind-${access.secret}-kubeconfig`,
    key: cluster.secret?.key ?? "kubeconfig",
  });

  const follow = (): void => {
    const following = new Map<string, Set<string>>();
    const accesses = wanted.flatMap((access) => {
      const found = managed(access);
      if (!found.ok) return [];
      const secret = secretOf(access, found.value);
      const others = following.get(secretKeyOf(secret)) ?? new Set();
      following.set(secretKeyOf(secret), others.add(secretKeyOf(access)));
      return [secret];
    });
    clustersOf = following;
    secrets.want(accesses);
  };

  return {
    want: (accesses) => {
      wanted = accesses;
      follow();
    },
    value: (access) => {
      const found = managed(access);
      if (!found.ok) return found.error;
      const because = unusableCluster(found.value);
      if (because !== undefined) return { state: "unknown", because };
      const { loadBalancer } = found.value;
      const value = kubeconfigOf(secrets, secretOf(access, found.value));
      return value.state === "known" ? { ...value, loadBalancer } : value;
    },
    stop: async () => {
      stop.abort();
      await Promise.all([done, secrets.stop()]);
    },
  };
}

/** Whatever keeps us from the management plane is no fault of a cluster. */
const away = (failure: KubeFailure): Failure => ({
  kind: "unreachable",
  detail: `Clusters of the management plane cannot be read: ${asWorldFailure(failure).detail}`,
});

/** The kubeconfig in a Secret: under the key that was named, or where kubeconfigs are usually kept. */
function kubeconfigOf(secrets: SecretWatch, access: SecretAccess): SecretValue {
  let first: SecretValue | undefined;
  for (const key of new Set([access.key, "kubeconfig", "value"])) {
    const value = secrets.value({ ...access, key });
    if (value.state !== "missing") return named(value);
    first ??= value;
  }
  return first === undefined ? { state: "pending" } : named(first);
}

/** The words that people look for in a log. */
function named(value: SecretValue): SecretValue {
  if (value.state !== "missing" && value.state !== "unknown") return value;
  const { because } = value;
  return { ...value, because: { ...because, detail: `reading kubeconfig secret: ${because.detail}` } };
}

/**
 * The kind Cluster of a management plane: the one that was named as `clusters.<version>.<group>`, else the only one of
 * that name which is served.
 */
export async function findClusterKind(
  api: KubeApi,
  given: string | undefined,
  signal: AbortSignal,
): Promise<Result<Resource, { readonly detail: string; readonly mayPass: boolean }>> {
  const served = await api.resources(signal);
  if (!served.ok) return err({ detail: served.error.detail, mayPass: true });
  const found = served.value.filter(({ plural, namespaced }) => plural === "clusters" && namespaced);
  const text = ({ plural, version, group }: Resource): string => `${plural}.${version}.${group}`;
  const choices = found.map(text).sort().join(", ");
  const none = "the management plane serves no kind called clusters";
  if (given !== undefined) {
    const [plural = "", version = "", ...group] = given.split(".");
    const resource = { plural, version, group: group.join("."), kind: "Cluster", namespaced: true };
    if (resource.group === "") {
      return err({ detail: `${given} is not of the form clusters.<version>.<group>`, mayPass: false });
    }
    const isServed = served.value.some((each) => each.plural === plural && each.group === resource.group);
    if (isServed) return ok(resource);
    return err({ detail: found.length === 0 ? none : `it serves no ${given}, but ${choices}`, mayPass: true });
  }
  const [only, ...others] = found;
  if (only === undefined) return err({ detail: none, mayPass: true });
  if (others.length === 0) return ok(only);
  return err({
    detail: `the management plane serves several kinds called clusters: say which with --mgmt-cluster-resource (${choices})`,
    mayPass: false,
  });
}

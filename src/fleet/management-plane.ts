// Credentials from a management plane, which is only ever read: a Cluster there says whether it is ready, whether Cilium
// runs on it and which Secret holds its kubeconfig.
//
//   the Cluster …                                the credentials are …
//   is not there, or is another workspace's      missing
//   is not ready, or Cilium does not run on it   not to be had: what is known of the cluster stays as it is
//   names a Secret                               in that Secret: under its key, else `kubeconfig`, else `value`
//   names none                                   in Secret kind-<name>-kubeconfig

import { ciliumCapability, type ManagementCluster, managementClusterSchema } from "../api/management-cluster.ts";
import { fieldsOf, sameJson, textOf } from "../core/json.ts";
import type { Resource } from "../core/resource.ts";
import { err, ok, type Result } from "../core/result.ts";
import type { Failure, SecretAccess } from "../core/world.ts";
import type { KubeApi } from "../kube/api.ts";
import { asWorldFailure } from "../kube/failure.ts";
import { type Informer, startInformer } from "../kube/informer.ts";
import type { Runtime } from "../kube/runtime.ts";
import { type SecretValue, type SecretWatch, watchSecrets } from "./secrets.ts";

/** What reading credentials from a management plane needs. */
export type ManagementPlaneOptions = {
  readonly api: KubeApi;
  /** The kind Cluster as `clusters.<version>.<group>`; without it, the only kind called clusters that is served. */
  readonly clusterResource: string | undefined;
  readonly namespace: string;
  readonly runtime: Runtime;
};

const searchMs = 10_000;

/** Stands for the workspace where there are none. */
export const noWorkspace = "-";

/** The annotation, or label, of a Cluster that says which workspace it belongs to. */
const workspaceMark = "kcp.io/cluster";

/** What is read of a Cluster. */
type Managed = {
  readonly isReady: boolean;
  readonly notReady: string;
  readonly secret: { readonly name: string; readonly key: string | undefined } | undefined;
  readonly cilium: { readonly status: string; readonly detail: string } | undefined;
  readonly workspace: string | undefined;
};

/**
 * Watches Clusters of the management plane and the Secrets they name. An access is asked for as
 * `<namespace>/<Cluster>/<workspace>`: whose cluster it is counts, too.
 */
export function watchManagementPlane(options: ManagementPlaneOptions, onChange: () => void): SecretWatch {
  const { api, runtime, namespace } = options;
  const stop = new AbortController();
  let wanted: readonly SecretAccess[] = [];
  let clusters: Informer<Managed> | undefined;
  let notFound: Failure | undefined;
  const secrets = watchSecrets(api, runtime, onChange);
  const begin = async (): Promise<void> => {
    for (;;) {
      const resource = await findClusterKind(api, options.clusterResource, stop.signal);
      if (resource.ok) {
        clusters = startInformer<Managed>({
          api,
          resource: resource.value,
          scope: { namespace },
          read: readCluster,
          same: sameJson,
          onChange: () => {
            follow();
            onChange();
          },
          runtime,
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

  const managed = (access: SecretAccess): Result<Managed, SecretValue> => {
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
      const { kind, detail } = asWorldFailure(view.failure);
      return failed({ kind, detail: `Clusters of the management plane cannot be read: ${detail}` });
    }
    const cluster = view.objects.get(`${namespace}/${access.secret}`)?.fact;
    if (cluster === undefined && view.state === "stale") return failed(asWorldFailure(view.failure));
    const isAnothers =
      cluster?.workspace !== undefined && access.key !== noWorkspace && cluster.workspace !== access.key;
    if (cluster === undefined || isAnothers) {
      const detail = `the management plane has no Cluster ${JSON.stringify(access.secret)} in namespace ${namespace}${
        isAnothers ? " that belongs to this workspace" : ""
      }`;
      return err({ state: "missing", because: { kind: "missing", detail } });
    }
    return ok(cluster);
  };

  const secretOf = (access: SecretAccess, cluster: Managed): SecretAccess => ({
    namespace,
    secret: cluster.secret?.name ?? `kind-${access.secret}-kubeconfig`,
    key: cluster.secret?.key ?? "kubeconfig",
  });

  const follow = (): void =>
    secrets.want(
      wanted.flatMap((access) => {
        const found = managed(access);
        return found.ok ? [secretOf(access, found.value)] : [];
      }),
    );

  return {
    want: (accesses) => {
      wanted = accesses;
      follow();
    },
    value: (access) => {
      const found = managed(access);
      if (!found.ok) return found.error;
      const { isReady, notReady, cilium } = found.value;
      if (!isReady) return { state: "unknown", because: { kind: "unreachable", detail: notReady } };
      if (cilium !== undefined && cilium.status !== "ready") {
        return { state: "unknown", because: { kind: "unreachable", detail: `Cilium not found: ${cilium.detail}` } };
      }
      return kubeconfigOf(secrets, secretOf(access, found.value));
    },
    stop: async () => {
      stop.abort();
      await Promise.all([done, secrets.stop()]);
    },
  };
}

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

function readCluster(raw: unknown): Managed {
  const parsed = managementClusterSchema.safeParse(raw);
  const cluster: ManagementCluster | undefined = parsed.success ? parsed.data : undefined;
  const { annotations, labels } = fieldsOf(fieldsOf(raw)["metadata"]);
  const ready = cluster?.status?.conditions?.find(({ type }) => type === "Ready");
  const capability = cluster?.status?.capabilities?.find(({ name }) => name === ciliumCapability);
  const details = capability?.details ?? {};
  const ref = cluster?.status?.kubeconfigSecretRef;
  return {
    isReady: ready?.status === "True",
    notReady: `the management plane says that the cluster is not ready${
      ready?.message === undefined ? "" : `: ${ready.message.slice(0, 500)}`
    }`,
    secret: ref === undefined ? undefined : { name: ref.name, key: ref.key },
    cilium:
      capability === undefined || details["status"] === undefined
        ? undefined
        : {
            status: details["status"],
            detail: `capability ${ciliumCapability} of the management plane is ${JSON.stringify(details["status"])}`,
          },
    workspace: textOf(fieldsOf(annotations)[workspaceMark]) ?? textOf(fieldsOf(labels)[workspaceMark]),
  };
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

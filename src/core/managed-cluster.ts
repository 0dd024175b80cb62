// A Cluster of the management plane: what it says about whose it is, and whether it can be used.

import {
  ciliumCapability,
  elbIdAnnotation,
  type ManagementCluster,
  managementClusterSchema,
  noWorkspace,
} from "../api/management-cluster.ts";
import { kcpClusterAnnotation } from "../api/networking.ts";
import { parseWith } from "../api/problem.ts";
import { fieldsOf, textOf } from "./json.ts";
import { quote, shown, shownMax } from "./shown.ts";
import type { Failure, SecretAccess } from "./world.ts";

/** What is read of a Cluster. */
export type ManagedCluster = {
  readonly isReady: boolean;
  readonly notReady: string;
  readonly secret: { readonly name: string; readonly key: string | undefined } | undefined;
  readonly cilium: { readonly status: string; readonly detail: string } | undefined;
  readonly workspace: string | undefined;
  /** The load balancer that it is bound to, on clouds that want one named. A tenant's word for it would be anybody's. */
  readonly loadBalancer: string | undefined;
};

/** Reads a Cluster; what is not of the form that is known reads as not there. */
export function readManagedCluster(raw: unknown): ManagedCluster {
  const parsed = parseWith(managementClusterSchema, raw);
  const cluster: ManagementCluster | undefined = parsed.success ? parsed.data : undefined;
  const { annotations, labels } = fieldsOf(fieldsOf(raw)["metadata"]);
  const ready = cluster?.status?.conditions?.find(({ type }) => type === "Ready");
  const capability = cluster?.status?.capabilities?.find(({ name }) => name === ciliumCapability);
  const details = capability?.details ?? {};
  const ref = cluster?.status?.kubeconfigSecretRef;
  return {
    isReady: ready?.status === "True",
    notReady: `the management plane says that the cluster is not ready${
      ready?.message === undefined ? "" : `: ${shown(ready.message, 500)}`
    }`,
    secret: ref === undefined ? undefined : { name: ref.name, key: ref.key },
    cilium:
      capability === undefined || details["status"] === undefined
        ? undefined
        : {
            status: details["status"],
            detail: `capability ${ciliumCapability} of the management plane is ${quote(details["status"])}`,
          },
    workspace: textOf(fieldsOf(annotations)[kcpClusterAnnotation]) ?? textOf(fieldsOf(labels)[kcpClusterAnnotation]),
    loadBalancer: textOf(fieldsOf(annotations)[elbIdAnnotation]),
  };
}

/**
 * Whether a Cluster may be asked for on behalf of the workspace that an access names. One that nobody marked is for whoever
 * claims it only if that is trusted.
 */
export function belongsTo(
  { workspace }: ManagedCluster,
  { key, onlyMarked }: SecretAccess,
  trustUnmarkedClusters: boolean,
): boolean {
  if (workspace === key) return true;
  if (onlyMarked === true) return false;
  return key === noWorkspace || (workspace === undefined && trustUnmarkedClusters);
}

/** Why there is no way in: the Cluster is not there, or it is another workspace's. */
export function noSuchCluster(access: SecretAccess, found: ManagedCluster | undefined): Failure {
  const { namespace, secret, onlyMarked } = access;
  const isTaken = found !== undefined || onlyMarked === true;
  const whose = isTaken ? " that belongs to this workspace" : "";
  const detail = `the management plane has no Cluster ${quote(secret, shownMax.name)} in namespace ${namespace}${whose}`;
  return { kind: isTaken ? "taken" : "missing", detail };
}

/** Why a Cluster is not looked at for the time being; what is known of it stays as it is. */
export function unusableCluster({ isReady, notReady, cilium }: ManagedCluster): Failure | undefined {
  if (!isReady) return { kind: "unreachable", detail: notReady };
  if (cilium === undefined || cilium.status === "ready") return undefined;
  return { kind: "unusable", detail: `Cilium not found: ${cilium.detail}` };
}

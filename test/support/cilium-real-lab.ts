// Everything that a mesh of Cilium clusters needs, all of it real: kcp with tenants, a management plane, clusters, and the
// operator as a process with the committed roles. Each file has workspaces of its own; kcp and the clusters are shared.

import { expect } from "vitest";
import { type ClusterName, operatorAccount, type TargetCluster, useCiliumFleet } from "./cilium-fleet.ts";
import type { AuditEntry, AuditMark } from "./audit.ts";
import { type ClusterSnapshot, differences } from "./cluster-snapshot.ts";
import { eventually } from "./eventually.ts";
import { type Kcp, useKcp } from "./kcp.ts";
import {
  openTenancy,
  type StoredCondition,
  type StoredIntent,
  type Tenancy,
  type Tenant,
  type TenantKind,
} from "./kcp-tenancy.ts";
import type { ManagementPlane } from "./management-plane.ts";
import { allLogs, type OperatorProcess, startOperatorWith } from "./operator-process.ts";

const phaseMsMax = 120_000;
const goneMsMax = 60_000;

/** A lab, with the operator not yet started. */
export type CiliumLab<Name extends ClusterName, TenantName extends string> = {
  readonly kcp: Kcp;
  readonly mgmt: ManagementPlane;
  readonly clusters: Readonly<Record<Name, TargetCluster>>;
  readonly tenancy: Tenancy;
  readonly tenants: Readonly<Record<TenantName, Tenant>>;
  /** What the clusters held when the file began. */
  readonly before: Readonly<Record<Name, ClusterSnapshot>>;
  /** Marks a cluster on the management plane as a tenant's. */
  readonly give: (name: Name, tenant: Pick<Tenant, "cluster">) => Promise<void>;
  /** Starts the operator; one at a time is enough. */
  readonly start: (args?: readonly string[]) => Promise<OperatorProcess>;
  /** Fails unless a cluster holds what it held when the file began, byte by byte; waits for that a little. */
  readonly expectUntouched: (...names: readonly Name[]) => Promise<void>;
  /** Removes what tenants wrote, waits until the clusters are as before, and ends the operator. */
  readonly close: () => Promise<void>;
};

/** Opens a lab for a file: each tenant gets KubernetesClusters for the clusters it owns. */
export async function openCiliumLab<Name extends ClusterName, TenantName extends string>(
  file: string,
  owned: Readonly<Record<TenantName, readonly Name[]>>,
): Promise<CiliumLab<Name, TenantName>> {
  const names = [...new Set(Object.values<readonly Name[]>(owned).flat())];
  const kcp = await useKcp();
  const tenantNames = Object.keys(owned) as TenantName[];
  const opening = openTenancy(kcp, `root:${file}`);
  const [{ mgmt, clusters }, tenancy, tenants] = await Promise.all([
    useCiliumFleet(names),
    opening,
    opening.then((open) =>
      Promise.all(tenantNames.map(async (name) => [name, await open.createTenant(name)] as const)),
    ),
  ]);
  const byName = Object.fromEntries(tenants) as Record<TenantName, Tenant>;
  const give = async (name: Name, { cluster }: Pick<Tenant, "cluster">): Promise<void> =>
    await mgmt.putCluster(clusters[name].ref, clusters[name].kubeconfig, {
      annotations: { "kcp.io/cluster": cluster },
    });
  for (const name of tenantNames) {
    for (const cluster of owned[name]) await give(cluster, byName[name]);
    await byName[name].apply(owned[name].map((cluster) => kubernetesCluster(clusters[cluster].ref)));
  }
  await Promise.all(names.map((name) => clusters[name].settled()));
  const snapshots = await Promise.all(names.map(async (name) => [name, await clusters[name].snapshot()] as const));
  const before = Object.fromEntries(snapshots) as Record<Name, ClusterSnapshot>;
  const operators: OperatorProcess[] = [];
  const expectUntouched = async (...which: readonly Name[]): Promise<void> => {
    for (const name of which) {
      const changed = async () => differences(before[name], await clusters[name].snapshot());
      await eventually(`${name} to be as before`, async () => Object.keys(await changed()).length === 0).catch(
        async () => expect(await changed()).toEqual({}),
      );
    }
  };
  return {
    kcp,
    mgmt,
    clusters,
    tenancy,
    tenants: byName,
    before,
    give,
    expectUntouched,
    start: async (args = []) => {
      const kubeconfigs = { "--kcp-kubeconfig": tenancy.operatorKubeconfig, "--mgmt-kubeconfig": mgmt.kubeconfig };
      const operator = await startOperatorWith(kubeconfigs, ["--node-id", file, ...args]);
      operators.push(operator);
      return operator;
    },
    close: async () => {
      await Promise.all(Object.values<Tenant>(byName).map((tenant) => emptyTenant(tenant)));
      for (const operator of operators) await operator.stop();
      expectNoSecretsLogged(kcp, mgmt, Object.values<TargetCluster>(clusters));
      await kcp.close();
    },
  };
}

/** A KubernetesCluster, as the fleet's own provider has it. */
export const kubernetesCluster = (name: string) => ({
  apiVersion: "platform.edge-portal.eu/v1alpha1",
  kind: "KubernetesCluster",
  metadata: { name, namespace: "default" },
  spec: { region: "eu-de", nodeCount: 1 },
});

/** A ClusterMeshBinding of clusters. */
export const bindingOf = (name: string, refs: readonly string[], spec: object = {}) => ({
  apiVersion: "networking.edge-portal.eu/v1alpha1",
  kind: "ClusterMeshBinding",
  metadata: { name, namespace: "default" },
  spec: { clusterRefs: refs.map((ref) => ({ name: ref })), ...spec },
});

const tenantKinds: readonly TenantKind[] = [
  "ExposedService",
  "ConnectivityIntent",
  "GlobalService",
  "Fabric",
  "ClusterMeshBinding",
  "KubernetesCluster",
];

/** Deletes everything of a tenant, what others depend on last. */
export async function emptyTenant(tenant: Tenant): Promise<void> {
  for (const kind of tenantKinds) {
    const names = await tenant.list(kind).catch(() => []); // a tenant that has no workspace any more
    for (const name of names) await tenant.remove(kind, name).catch(() => {});
    for (const name of names) await gone(tenant, kind, name);
  }
}

/** Waits until an object is no more. */
export async function gone(tenant: Tenant, kind: TenantKind, name: string): Promise<void> {
  await eventually(
    `${kind} ${name} to be gone`,
    async () => {
      const left = await tenant.get(kind, name);
      if (left === undefined) return true;
      throw new Error(`it says ${words(left)}`);
    },
    goneMsMax,
  );
}

/** Waits until an object is in a phase, and more if more is asked. */
export async function reaches(
  tenant: Tenant,
  kind: TenantKind,
  name: string,
  isIt: string | ((object: StoredIntent) => boolean),
  msMax = phaseMsMax,
): Promise<StoredIntent> {
  const what = typeof isIt === "string" ? isIt : "what is waited for";
  return await eventually(
    `${kind} ${name} to be ${what}`,
    async () => {
      const object = await tenant.get(kind, name);
      if (object === undefined) throw new Error("there is none");
      if (typeof isIt === "string" ? object.status?.phase === isIt : isIt(object)) return object;
      throw new Error(`it says ${words(object)}`);
    },
    msMax,
  );
}

/** One condition of an object. */
export const conditionOf = (object: StoredIntent | undefined, type: string): StoredCondition | undefined =>
  object?.status?.conditions?.find((condition) => condition.type === type);

const words = ({ metadata, status }: StoredIntent): string =>
  JSON.stringify({ deleted: metadata.deletionTimestamp, ...status }).slice(0, 4000);

/** What the operator asked of a cluster since a mark. */
export async function askedOf(
  { server }: TargetCluster,
  since: AuditMark,
  verbs?: readonly string[],
): Promise<readonly AuditEntry[]> {
  return await server.audit().requests({ user: operatorAccount, since, ...(verbs === undefined ? {} : { verbs }) });
}

/** Requests as lines that a person can read. */
export const inWords = ({ verb, requestURI, code }: AuditEntry): string => `${verb} ${requestURI} ${code}`;

/** No token and no key may stand in any log. */
function expectNoSecretsLogged(kcp: Kcp, mgmt: ManagementPlane, clusters: readonly TargetCluster[]): void {
  const text = allLogs.join("");
  const tokens = [kcp, ...[mgmt, ...clusters].map(({ server }) => server)].flatMap((server) => [
    server.adminToken,
    server.operatorToken,
  ]);
  const granted = [mgmt, ...clusters].map(({ kubeconfig }) => /"token": "([^"]+)"/.exec(kubeconfig)?.[1] ?? "none");
  for (const token of [...tokens, ...granted]) expect(text.includes(token)).toBe(false);
  expect(text).not.toContain("PRIVATE KEY");
}

// The status of a ClusterMesh: what `meshStatus` says of the plan, with what is left where the mesh is being undone.

import { listSome } from "../core/diagnostic.ts";
import { type Evidence, isClean, type Remainder, type Report } from "../core/provider.ts";
import { type Condition, summariseFindings } from "../core/status.ts";
import { type ClusterId, LOCAL } from "../core/world.ts";
import type { Departed, MeshIntent } from "./intent.ts";
import type { KiloPlan, MeshPlan } from "./plan.ts";
import { type MemberStatus, meshStatus } from "./status.ts";

/** What the status of a mesh should say. */
export function meshReport(plan: KiloPlan, mesh: MeshIntent, evidence: Evidence): Report {
  const own = meshPlans(plan).get(mesh.id);
  if (own === undefined) return { status: {}, conditions: [], findings: [] };
  const { conditions, clusters } = meshStatus({ ...evidence, plan: own });
  const leaving = evidence.forced
    ? []
    : mesh.departed.flatMap((departed) => leavingStatus(departed, evidence.remainders));
  const findings = evidence.diagnostics.filter(
    (diagnostic) => diagnostic.mesh === mesh.id && diagnostic.severity !== "info",
  );
  return {
    status: {
      observedGeneration: mesh.generation,
      clusterCount: mesh.entries.length,
      peers: sum(clusters, (cluster) => cluster.registeredPeers),
      skipped: sum(clusters, (cluster) => cluster.skippedNodes),
      clusters: [...clusters.map((cluster, index) => withAccess(cluster, mesh.entries[index])), ...leaving],
      findings: summariseFindings(findings),
    },
    conditions: conditions.map((condition) => explain(condition, mesh, evidence.remainders)),
    findings,
  };
}

const indexes = new WeakMap<KiloPlan, ReadonlyMap<string, MeshPlan>>();

/** The meshes of a plan by id; every mesh of it asks. */
function meshPlans(plan: KiloPlan): ReadonlyMap<string, MeshPlan> {
  const known = indexes.get(plan);
  if (known !== undefined) return known;
  const index = new Map(plan.meshes.map((each) => [each.mesh.id, each]));
  indexes.set(plan, index);
  return index;
}

type ClusterStatus = Omit<MemberStatus, "message"> & {
  readonly message?: string;
  readonly local?: true;
  readonly kubeconfigSecretRef?: { readonly name: string; readonly key: string };
};

function withAccess(
  { message, ...cluster }: MemberStatus,
  place: (Pick<Departed, "access"> & { readonly id?: ClusterId | undefined }) | undefined,
): ClusterStatus {
  const access = place?.access;
  return {
    ...cluster,
    ...(message === "" ? {} : { message }),
    ...(place?.id === LOCAL ? { local: true } : {}),
    ...(access === undefined ? {} : { kubeconfigSecretRef: { name: access.secret, key: access.key } }),
  };
}

/** A cluster that left stays in the status until it was seen to hold nothing of the mesh, or there is no way in any more. */
function leavingStatus(departed: Departed, remainders: readonly Remainder[]): ClusterStatus[] {
  const { name, id } = departed;
  const rest = remainders.find(({ member }) => member.id === id);
  if (rest === undefined || isClean(rest)) return [];
  if (rest.observed.state === "absent" && rest.observed.because.kind === "missing") return [];
  const message = `left the mesh: ${remainderText(rest)}`;
  const counts = { registeredPeers: 0, skippedNodes: 0 };
  return [withAccess({ name, ...counts, observed: rest.observed.state, message }, departed)];
}

function remainderText({ observed, objects }: Remainder): string {
  const count = objects === 1 ? "1 Peer is" : `${objects} Peers are`;
  if (observed.state === "synced") return `${count} to be deleted`;
  return observed.state === "stale"
    ? `${count} to be deleted once it is reached again (${observed.because.detail})`
    : `its Peers are to be deleted once it is reached (${observed.because.detail})`;
}

/** While a mesh is deleted, `Ready` says what is left, where. */
function explain(condition: Condition, mesh: MeshIntent, remainders: readonly Remainder[]): Condition {
  if (!mesh.terminating || condition.type !== "Ready") return condition;
  const left = remainders.filter((rest) => !isClean(rest));
  const where = left.map((rest) => `${rest.member.name}: ${remainderText(rest)}`);
  return { ...condition, message: `${condition.message}; ${listSome(where) || "nothing of it is left"}` };
}

const sum = <T>(items: readonly T[], of: (item: T) => number): number =>
  items.reduce((total, item) => total + of(item), 0);

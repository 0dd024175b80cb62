import type { Diagnostic } from "../core/diagnostic.ts";
import { listSome } from "../core/diagnostic.ts";
import type { Item, Operation } from "../core/plan.ts";
import type { ApplyReport, Condition } from "../core/status.ts";
import { compareText } from "../core/world.ts";
import type { MeshPlan } from "./plan.ts";

/** What a mesh's status says of one of its clusters. */
export type MemberStatus = {
  readonly name: string;
  readonly registeredPeers: number;
  readonly skippedNodes: number;
  readonly observed: "synced" | "stale" | "absent";
  readonly message: string;
};

/** The status of a mesh. */
export type MeshStatus = {
  readonly conditions: readonly Condition[];
  readonly clusters: readonly MemberStatus[];
};

/** What `meshStatus` looks at: the plan, what is still to be written for the mesh, and what came of the last writes. */
export type StatusInput = {
  readonly plan: MeshPlan;
  readonly diagnostics: readonly Diagnostic[];
  readonly pending: readonly Operation[];
  /** Peers of the mesh that nothing desires and that are kept all the same. */
  readonly kept: readonly Item[];
  readonly reports: readonly ApplyReport[];
};

/** Codes that mean a pair of clusters, or a node in it, is not joined although the mesh asks for it. */
const unjoined = new Set([
  "PeerKindMissing",
  "RangeContainsObserved",
  "ForeignKeyConflict",
  "ForeignRangeConflict",
  "PublicKeyConflict",
  "ClusterRangesUncarried",
  "RangeHoldsOlderEndpoint",
  "RangeHeldBack",
  "PeerHeldBack",
  "SourceExchangeHeld",
  "RangeFragmented",
  "TargetLimit",
]);

/** Says what is true of a mesh; `Ready` is True only when everything it asks for is in place and was seen to be. */
export function meshStatus(input: StatusInput): MeshStatus {
  const { plan } = input;
  const own = input.diagnostics.filter((diagnostic) => diagnostic.mesh === plan.mesh.id);
  return {
    conditions: [readyCondition(input, own), overlapCondition(plan, own)],
    clusters: plan.members.map(({ entry, observed, source }) => ({
      name: entry.name,
      registeredPeers: source?.candidates.length ?? 0,
      skippedNodes: source?.skipped ?? 0,
      observed: observed.state,
      message: observed.state === "synced" ? "" : observed.because.detail,
    })),
  };
}

function overlapCondition({ state }: MeshPlan, own: readonly Diagnostic[]): Condition {
  const type = "NetworksOverlap";
  const overlap = own.find((diagnostic) => diagnostic.code === "CIDROverlap");
  if (overlap !== undefined) return { type, status: "True", reason: "CIDROverlap", message: overlap.message };
  if (state === "refused" || state === "terminating") {
    return { type, status: "Unknown", reason: "NotChecked", message: `the mesh is ${state}` };
  }
  return { type, status: "False", reason: "NoOverlap", message: "all CIDRs are disjoint" };
}

function readyCondition({ plan, pending, kept, reports }: StatusInput, own: readonly Diagnostic[]): Condition {
  const type = "Ready";
  const no = (reason: string, message: string): Condition => ({ type, status: "False", reason, message });
  const unknown = (reason: string, message: string): Condition => ({ type, status: "Unknown", reason, message });
  switch (plan.state) {
    case "terminating":
      return no("Terminating", "the mesh is being deleted");
    case "suspended":
      return unknown("Suspended", "spec.suspend is true: nothing is written on behalf of this mesh");
    case "refused": {
      const first = own.find((diagnostic) => diagnostic.severity === "error");
      if (first === undefined || first.code === "CIDROverlap") {
        return no("NetworksOverlap", "CIDR overlap detected across meshes");
      }
      return no(first.code, first.message);
    }
    case "active":
  }
  const inState = (state: "absent" | "stale"): string[] =>
    plan.members.flatMap(({ entry, observed }) =>
      observed.state === state ? [`${entry.name} (${observed.because.detail})`] : [],
    );
  const absent = inState("absent");
  if (absent.length > 0) return no("ClusterAbsent", `not reached: ${listSome(absent, 3)}`);
  const failed = reports.flatMap(({ cluster, failed: objects }) =>
    objects.map(({ object, failure }) => `${object} on ${cluster}: ${failure.detail}`),
  );
  if (failed.length > 0) return no("ApplyFailed", listSome(failed, 3));
  const empty = plan.members
    .filter((member) => member.source?.candidates.length === 0)
    .map((member) => member.entry.name);
  if (empty.length > 0) return no("NoValidNodes", `no usable node in ${listSome(empty)}`);
  const hole = own.find((diagnostic) => unjoined.has(diagnostic.code));
  if (hole !== undefined) return no(hole.code, placed(hole));
  if (pending.length > 0)
    return no("Pending", `${pending.length === 1 ? "1 write is" : `${pending.length} writes are`} to be done`);
  const stale = inState("stale");
  if (stale.length > 0) return unknown("ClusterStale", `known only from before: ${listSome(stale, 3)}`);
  const message = `all clusters reconciled successfully${keptText(kept)}`;
  return { type, status: "True", reason: "Reconciled", message };
}

/** The finding with its cluster, where its text does not name it. */
function placed({ message, subject: { cluster } }: Diagnostic): string {
  return cluster === undefined || message.includes(cluster) ? message : `${cluster}: ${message}`;
}

function keptText(kept: readonly Item[]): string {
  if (kept.length === 0) return "";
  const reasons = new Set(
    kept.flatMap(({ standing }) => (standing.owner === "us" ? [standing.ifUnwanted.reason] : [])),
  );
  return `; ${kept.length === 1 ? "1 Peer is" : `${kept.length} Peers are`} kept for now: ${[...reasons].sort(compareText).join(", ")}`;
}

// Whether an intent may act now, and if not, why. While it may not, everything that was written for it stays.

import type { Diagnostic } from "../core/diagnostic.ts";
import type { Edit } from "../core/plan.ts";
import type { ClusterId, ClusterView } from "../core/world.ts";
import { find } from "./diagnostics-kinds.ts";
import { type DoubtfulEdit, editOf } from "./edit.ts";
import type { CiliumFacts } from "./facts.ts";
import type { ConnectivityIntentIntent, ExposedServiceIntent, GlobalServiceIntent } from "./intent.ts";
import type { PlanContext } from "./kind-plan.ts";
import { isSameCluster } from "./members.ts";
import type { MeshMember, MeshState } from "./mesh-state.ts";

/** An intent that needs a mesh. */
export type MeshedIntent = GlobalServiceIntent | ConnectivityIntentIntent | ExposedServiceIntent;

/** Why an intent does not act. */
export type ShutReason = "Terminating" | "SpecInvalid" | "MeshNotFound" | "Suspended" | "MeshNotReady";

/** Whether an intent acts. `mesh` is the one it refers to, where there is one. */
export type Gate =
  | { readonly state: "open"; readonly mesh: MeshState; readonly intent: MeshedIntent }
  | {
      readonly state: "shut";
      readonly mesh: MeshState | undefined;
      readonly reason: ShutReason;
      readonly message: string;
    };

/** Finds the mesh that an intent refers to: by name, in its own workspace and namespace and nowhere else. */
export type MeshFinder = (intent: MeshedIntent) => MeshState | undefined;

/** Indexes the meshes of a plan by where they are. */
export function meshFinder(meshes: PlanContext["meshes"]): MeshFinder {
  const key = (workspace: string | undefined, namespace: string, name: string): string =>
    JSON.stringify([workspace ?? null, namespace, name]);
  const index = new Map(
    [...meshes.values()].map((mesh) => {
      const { workspace, namespace, name } = mesh.binding.place;
      return [key(workspace, namespace, name), mesh] as const;
    }),
  );
  return ({ place, object }) => index.get(key(place.workspace, place.namespace, object.spec.meshRef.name));
}

/** Decides whether an intent acts; `problems` says what is wrong with its spec, if it can be read at all. */
export function gateOf(
  intent: MeshedIntent,
  meshOf: MeshFinder,
  problems: () => readonly string[],
): { readonly gate: Gate; readonly findings: readonly Diagnostic[] } {
  const shut = (reason: ShutReason, message: string, mesh?: MeshState): Gate => ({
    state: "shut",
    mesh,
    reason,
    message,
  });
  if (intent.terminating) return { gate: shut("Terminating", "it is being deleted"), findings: [] };
  const wrong = intent.invalid === undefined ? problems() : [intent.invalid];
  if (wrong.length > 0) {
    const detail = wrong.join("; ").replace(/^validation failed: /, "");
    const finding = find("SpecInvalid", intent, undefined, { detail });
    return { gate: shut("SpecInvalid", finding.message), findings: [finding] };
  }
  const { name } = intent.object.spec.meshRef;
  const mesh = meshOf(intent);
  if (mesh === undefined) {
    const finding = find("MeshNotFound", intent, undefined, { name });
    return { gate: shut("MeshNotFound", finding.message), findings: [finding] };
  }
  if (intent.object.spec.suspend === true) {
    return { gate: shut("Suspended", "spec.suspend is true: nothing is written on behalf of it", mesh), findings: [] };
  }
  if (mesh.binding.terminating) {
    return { gate: shut("MeshNotReady", `ClusterMeshBinding ${name} is being deleted`, mesh), findings: [] };
  }
  if (mesh.phase !== "Connected" && mesh.phase !== "Degraded") {
    const message = `ClusterMeshBinding ${name} is ${mesh.phase}: it has to be Connected or Degraded first`;
    return { gate: shut("MeshNotReady", message, mesh), findings: [] };
  }
  return { gate: { state: "open", mesh, intent }, findings: [] };
}

/** The member of a mesh that a cluster is. */
export const memberAt = (mesh: MeshState, target: ClusterId): MeshMember | undefined =>
  mesh.members.find(({ view }) => view.id === target || view.accesses.includes(target));

/** Why nothing new can be decided for a member now, if so. */
export function memberGap({ name, view, fault, version }: MeshMember): OutcomeGap | undefined {
  const { observed } = view;
  if (observed.state === "absent") {
    return { reason: "ClusterNotReached", message: `${name} is not reached: ${observed.because.detail}` };
  }
  if (observed.state === "stale") {
    return { reason: "ClusterStale", message: `${name} is known only from before: ${observed.because.detail}` };
  }
  if (fault !== undefined) return { reason: "ClusterUnusable", message: `${name} cannot be used: ${fault}` };
  if (version === undefined) {
    return { reason: "VersionUnknown", message: `${name}: the version of Cilium is not known` };
  }
  return undefined;
}

/** Why nothing can be decided, in a word and for a human. */
export type OutcomeGap = { readonly reason: string; readonly message: string };

/** Why what an existing intent has on a cluster stays although nothing wants it there now; undefined if it goes. */
export function keptBecause(
  gate: Gate,
  view: ClusterView<CiliumFacts>,
  isBlocked: (member: MeshMember) => boolean,
): OutcomeGap | undefined {
  if (gate.state === "shut") {
    return gate.reason === "Terminating" ? undefined : { reason: gate.reason, message: gate.message };
  }
  const member = memberAt(gate.mesh, view.id);
  if (member === undefined) {
    const unusable = gate.mesh.unusable.find(({ id }) => view.accesses.some((access) => isSameCluster(access, id)));
    return unusable && { reason: "ClusterUnusable", message: `${unusable.name}: ${unusable.detail}` };
  }
  const gap = memberGap(member);
  if (gap !== undefined) return gap;
  return isBlocked(member) ? { reason: "NotApplicable", message: `see the findings about ${member.name}` } : undefined;
}

/**
 * The edit by which something of an intent goes that acts: that of its mesh, where the cluster has left it, or its own.
 * `always` says that its own is to be doubted whatever its size. What goes from a cluster that is no member is doubted in
 * any case, for as long as it is there. Only who approves it depends on whether the cluster ever was one: where nothing
 * shows that, it may be the intent that was given another mesh.
 */
export function editAt(
  { intent, mesh }: Gate & { readonly state: "open" },
  view: ClusterView<CiliumFacts>,
  about: string,
  always = false,
): Edit | DoubtfulEdit {
  if (memberAt(mesh, view.id) !== undefined) return editOf(intent, about, always ? { always } : {});
  const { binding, doubt, wasMember } = mesh;
  const ofMesh = editOf(binding, intent.id, { always: true, doubt });
  if (doubt !== undefined || wasMember(view)) return ofMesh;
  const { isApproved, approve } = editOf(intent, about);
  return { ...ofMesh, isApproved, approve };
}

/** Why not every intent is known, if so: then whatever has no intent may still have one. */
export function intentsGap({ world }: Pick<PlanContext, "world">): string | undefined {
  if (world.intents.state !== "synced") return world.intents.because.detail;
  return world.unreadableIntents[0]?.detail;
}

/** The older of two intents first: where both want one thing, it decides. */
export const byAge = (
  a: { readonly createdMs: number; readonly id: string },
  b: { readonly createdMs: number; readonly id: string },
): number => a.createdMs - b.createdMs || (a.id < b.id ? -1 : a.id > b.id ? 1 : 0);

// Everything that the Cilium provider decides: world → plan. Bindings come first, since the other kinds act on the
// meshes that come of them; then the wishes of all kinds are joined, object by object.

import { type Diagnostic, sortDiagnostics } from "../core/diagnostic.ts";
import { appendAll, appendTo } from "../core/list.ts";
import type { Desired, HeldRemoval, Item, Part, Plan, Stay, TargetPlan } from "../core/plan.ts";
import type { Evidence, Poll, Report, Sample } from "../core/provider.ts";
import { type ClusterId, type ClusterView, compareText, lastSeen } from "../core/world.ts";
import { type CertificateMemory, certificateMemory } from "./credential.ts";
import { atCluster, diagnose } from "./diagnostics.ts";
import { planConnectivityIntents } from "./connectivity-intent.ts";
import { planExposedServices } from "./exposed-service.ts";
import { planFabrics } from "./fabric.ts";
import type { CiliumFact } from "./fact.ts";
import type { CiliumFacts } from "./facts.ts";
import { planGlobalServices } from "./global-service.ts";
import { doubtedRemovals, heldRemovals } from "./held-removals.ts";
import type { CiliumIntent } from "./intent.ts";
import type {
  CiliumOptions,
  CiliumWorld,
  IntentsByKind,
  KindPlan,
  Narrowed,
  PlanContext,
  TargetPart,
} from "./kind-plan.ts";
import { leftBehind } from "./left-behind.ts";
import { sharedGate } from "./members.ts";
import { planMeshes } from "./mesh.ts";
import type { MeshState } from "./mesh-state.ts";
import type { ShareFate, ShareWish } from "./share.ts";
import { type LostSecret, planShares } from "./share-objects.ts";
import { spoiltRecords } from "./spoilt-record.ts";

/** What was decided for the whole fleet. */
export type CiliumPlan = Plan & {
  readonly meshes: ReadonlyMap<string, MeshState>;
  readonly reports: ReadonlyMap<string, (evidence: Evidence) => Report>;
  readonly polls: ReadonlyMap<ClusterId, readonly Poll<CiliumFact>[]>;
  readonly samples: readonly Sample[];
};

type KindPlanner = (context: PlanContext) => KindPlan;

/** The planners of the kinds that act on meshes, in the order in which their wishes count. */
const kindPlanners: readonly (readonly [CiliumIntent["kind"], KindPlanner])[] = [
  ["GlobalService", planGlobalServices],
  ["ConnectivityIntent", planConnectivityIntents],
  ["ExposedService", planExposedServices],
  ["Fabric", planFabrics],
];

/** Makes the planner; what it remembers from one plan to the next are only facts about certificates. */
export function ciliumPlanner(options: CiliumOptions): (world: CiliumWorld) => CiliumPlan {
  const memory = certificateMemory(options.ports);
  return (world) => planCilium(world, options, memory);
}

function planCilium(world: CiliumWorld, options: CiliumOptions, memory: CertificateMemory): CiliumPlan {
  const instance = options.instance ?? world.instance;
  const all = lastSeen(world.intents) ?? [];
  const context = { world, intents: byKind(all), instance: instance ?? "", options };
  const { meshes, plan: ofBindings } = planMeshes(context, sharedGate(all, options.mgmtNamespace), memory);
  const kinds = new Map<CiliumIntent["kind"], KindPlan>([["ClusterMeshBinding", ofBindings]]);
  for (const [kind, planner] of kindPlanners) kinds.set(kind, planner({ ...context, meshes }));
  const viewOf = new Map(world.clusters.flatMap((view) => view.accesses.map((access) => [access, view.id] as const)));
  const joined = joinKinds([...kinds.values()], (target) => viewOf.get(target) ?? target);
  const fateOf = fates(world, all, kinds, joined.wishes);
  const found: Diagnostic[] = [];
  const targets = world.clusters.map((view): TargetPlan => {
    const facts = lastSeen(view.observed);
    const gap = gapOf(view, instance);
    const part = joined.parts.get(view.id);
    const sharesWith = (stayOf: (slot: string, path: string) => Stay | undefined) =>
      facts === undefined || instance === undefined
        ? { desired: [], items: [], parts: [], doubted: [], lost: [], spoilt: [] }
        : planShares({
            facts,
            namespace: options.ciliumNamespace,
            instance,
            wishes: joined.wishes.get(view.id) ?? new Map<string, ShareWish[]>(),
            fateOf: (intent, object, path) => fateOf(intent, view.id, object, path),
            stayOf,
          });
    const shares = sharesWith(() => undefined);
    appendAll(found, gap === undefined ? lostSecrets(shares.lost, view.name) : []);
    appendAll(found, doubtedRemovals([...shares.doubted, ...(part?.doubted ?? [])], view.name));
    appendAll(found, spoiltRecords(shares.spoilt, view, context));
    const together = (
      of: Pick<typeof shares, "desired" | "items">,
      whole: readonly Item[],
      desired: readonly Desired[],
    ) => ({
      desired: [...of.desired, ...desired],
      items: [...of.items, ...whole],
    });
    const plan = { target: view.id, gap, ...together(shares, part?.items ?? [], part?.desired ?? []) };
    const narrowed = part?.narrowed ?? [];
    const parts = [...shares.parts, ...narrowed.flatMap((each) => each.parts)];
    if (parts.length === 0) return plan;
    return {
      ...plan,
      shared: {
        parts,
        keeping: (stays, items) => {
          const bySlot = new Map([...stays].map(([each, stay]) => [partKey(each.slot, each.path), stay]));
          const kept = sharesWith((slot, path) => bySlot.get(partKey(slot, path)));
          return together(kept, items.slice(shares.items.length), keepingParts(part?.desired ?? [], narrowed, stays));
        },
      },
    };
  });
  const left = leftBehind(all, { ...context, meshes });
  const diagnostics = sortDiagnostics([...joined.diagnostics, ...found, ...left.diagnostics]);
  const suspects = [...joined.rest.suspects, ...left.suspects];
  const tellHeld = (held: readonly HeldRemoval[]) => heldRemovals(held, all, world.clusters);
  return { targets, meshes, ...joined.rest, suspects, diagnostics, tellHeld };
}

/** Objects of ours with what stays of what they would lose. */
function keepingParts(
  desired: readonly Desired[],
  narrowed: readonly Narrowed[],
  stays: ReadonlyMap<Part, Stay>,
): readonly Desired[] {
  const bySlot = new Map(narrowed.map((each) => [each.slot, each]));
  return desired.map((each) => {
    const less = bySlot.get(each.slot);
    const paths = new Set(less?.parts.flatMap((part) => (stays.has(part) ? [part.path] : [])));
    return less === undefined || paths.size === 0 ? each : { ...each, fields: less.keeping(paths) };
  });
}

const partKey = (slot: string, path: string): string => JSON.stringify([slot, path]);

/** What its people should know of a secret that was theirs, before the plan that takes ours away is carried out. */
function lostSecrets(lost: readonly LostSecret[], cluster: string): readonly Diagnostic[] {
  return lost.flatMap(({ object, path, intents }) => {
    const [namespace = "", secret = ""] = object.split("/");
    return intents.map((intent) =>
      diagnose("KeyNotRestored", atCluster(intent, cluster), { secret, namespace, key: path }),
    );
  });
}

function byKind(all: readonly CiliumIntent[]): IntentsByKind {
  const sorted = [...all].sort((a, b) => compareText(a.id, b.id));
  return {
    bindings: sorted.filter((intent) => intent.kind === "ClusterMeshBinding"),
    globalServices: sorted.filter((intent) => intent.kind === "GlobalService"),
    connectivityIntents: sorted.filter((intent) => intent.kind === "ConnectivityIntent"),
    exposedServices: sorted.filter((intent) => intent.kind === "ExposedService"),
    fabrics: sorted.filter((intent) => intent.kind === "Fabric"),
    kubernetesClusters: sorted.filter((intent) => intent.kind === "KubernetesCluster"),
  };
}

function joinKinds(plans: readonly KindPlan[], viewIdOf: (target: ClusterId) => ClusterId) {
  const wishes = new Map<ClusterId, Map<string, ShareWish[]>>();
  const parts = new Map<ClusterId, TargetPart>();
  const polls = new Map<ClusterId, Poll<CiliumFact>[]>();
  const reports = new Map<string, (evidence: Evidence) => Report>();
  const diagnostics: Diagnostic[] = [];
  const samples: Sample[] = [];
  const suspects: NonNullable<Plan["suspects"]>[number][] = [];
  for (const plan of plans) {
    for (const [target, objects] of plan.shareWishes) {
      const known = wishes.get(viewIdOf(target)) ?? new Map<string, ShareWish[]>();
      wishes.set(viewIdOf(target), known);
      for (const [key, list] of objects) for (const wish of list) appendTo(known, key, wish);
    }
    for (const [target, part] of plan.perTarget) {
      const known = parts.get(viewIdOf(target));
      const desired = [...(known?.desired ?? []), ...part.desired];
      parts.set(viewIdOf(target), {
        desired,
        items: [...(known?.items ?? []), ...part.items],
        narrowed: [...(known?.narrowed ?? []), ...(part.narrowed ?? [])],
        doubted: [...(known?.doubted ?? []), ...(part.doubted ?? [])],
      });
    }
    for (const [target, list] of plan.polls) for (const poll of list) appendTo(polls, viewIdOf(target), poll);
    for (const [id, report] of plan.reports) reports.set(id, report);
    appendAll(diagnostics, plan.diagnostics);
    appendAll(samples, plan.samples);
    appendAll(suspects, plan.suspects ?? []);
  }
  return { wishes, parts, diagnostics, rest: { polls, reports, samples, suspects } };
}

/** What is known of an intent that holds a share which nothing wishes for; without complete evidence, nothing. */
function fates(
  world: CiliumWorld,
  all: readonly CiliumIntent[],
  kinds: ReadonlyMap<CiliumIntent["kind"], KindPlan>,
  wishes: ReadonlyMap<ClusterId, ReadonlyMap<string, readonly ShareWish[]>>,
) {
  const byId = new Map(all.map((intent) => [intent.id, intent]));
  const isComplete = world.intents.state === "synced" && world.unreadableIntents.length === 0;
  const twinsOf = twinViews(world.clusters);
  return (id: string, target: ClusterId, object: string, path: string): ShareFate => {
    const intent = byId.get(id);
    if (world.intents.state !== "synced") return "doubtful";
    if (intent === undefined) return isComplete ? "gone" : "doubtful";
    if (intent.terminating) return "gone";
    const plan = kinds.get(intent.kind);
    // Of a kind that is not planned nothing is known.
    if (plan === undefined) return "doubtful";
    const isKept = (at: ClusterId): boolean => plan.keeps?.(id, at, object, path) === true;
    const isWished = (at: ClusterId): boolean =>
      wishes
        .get(at)
        ?.get(object)
        ?.some((wish) => wish.path === path) === true;
    const twins = twinsOf.get(target) ?? [];
    if (isKept(target) || twins.some((twin) => isKept(twin) || isWished(twin))) return "doubtful";
    return plan.editOf?.(id, target, object, path) ?? "gone";
  };
}

/**
 * Views that may show one cluster under several names. A cluster says itself which one it is, so this is only believed
 * to keep things: whoever is one cluster with another is given nothing of it.
 */
function twinViews(clusters: readonly ClusterView<CiliumFacts>[]): ReadonlyMap<ClusterId, readonly ClusterId[]> {
  const byUid = new Map<string, ClusterId[]>();
  for (const { id, observed } of clusters) {
    const uid = lastSeen(observed)?.uid;
    if (uid !== undefined) appendTo(byUid, uid, id);
  }
  return new Map(
    [...byUid.values()].flatMap((ids) =>
      ids.length < 2 ? [] : ids.map((id) => [id, ids.filter((other) => other !== id)] as const),
    ),
  );
}

function gapOf({ observed }: ClusterView<CiliumFacts>, instance: string | undefined): TargetPlan["gap"] {
  if (instance === undefined) return { reason: "InstanceUnknown", detail: "who we are is not known yet" };
  if (observed.state === "synced") return undefined;
  return { reason: observed.state === "stale" ? "TargetStale" : "TargetAbsent", detail: observed.because.detail };
}

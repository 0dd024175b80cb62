// The whole fleet as one decision: world → plan. Pure and total: whatever the objects say, nothing here throws.

import { meshLabel, sourceClusterLabel } from "../api/peer.ts";
import { type Diagnostic, sortDiagnostics } from "../core/diagnostic.ts";
import { canonicalText } from "../core/json.ts";
import { appendAll, appendTo } from "../core/list.ts";
import { type IfUnwanted, type Item, type Plan, type TargetPlan, withFate } from "../core/plan.ts";
import { applyPolicy, defaultPolicy, isDoubtful, massDelete, type Policy } from "../core/policy.ts";
import {
  type ClusterId,
  type ClusterView,
  compareText,
  graceKey,
  lastSeen,
  type Observed,
  type World,
} from "../core/world.ts";
import { findCrossings } from "./crossings.ts";
import { at, diagnose } from "./diagnostics.ts";
import { electLeaders, type Election, type Leader, type Led } from "./election.ts";
import { type Established, findEstablished } from "./established.ts";
import type { KiloFacts, NodeFacts } from "./facts.ts";
import { type Entry, type MeshIntent, unseen } from "./intent.ts";
import { type Context, graceSinceMs, hasExpired, intentsGap, recordOf, takeInventory } from "./inventory.ts";
import { checkMeshes, type MeshState } from "./mesh-checks.ts";
import { estateOf } from "./ownership.ts";
import { refusePairs } from "./pairs.ts";
import type { Offer } from "./slots.ts";
import { planSource, type SourcePlan } from "./source.ts";
import { type DesiredPeer, planTarget, rangesReassigned, type TargetLimits, type TargetWish } from "./target.ts";
import { type Twins, twinsOf } from "./twins.ts";

/** The world as the Kilo provider sees it. */
export type KiloWorld = World<MeshIntent, KiloFacts> & {
  /** ClusterMeshes that could not even be named: as long as there is one, the list of meshes is not complete. */
  readonly unreadableMeshes: readonly { readonly detail: string }[];
  /** What the last plan knew of the leaders of locations; nothing, if there was none. */
  readonly led?: LedByCluster;
};

/** What is known of the leaders of each cluster's locations. */
export type LedByCluster = ReadonlyMap<ClusterId, ReadonlyMap<string, Led>>;

/** What the people who run the fleet may choose. */
export type KiloOptions = {
  readonly policy: Policy;
  readonly graceMs: number;
  /** Delete Peers that carry only the old operator's labels and that no mesh of ours declares. */
  readonly pruneLegacy: boolean;
  readonly limits: TargetLimits;
};

/** The defaults: five minutes of grace, nothing legacy pruned. */
export const defaultOptions: KiloOptions = {
  policy: defaultPolicy,
  graceMs: 300_000,
  pruneLegacy: false,
  limits: { peersMax: 20_000, rangesWarn: 200 },
};

/** A plan with what the views and the status need to know about its Peers. */
export type KiloPlan = Omit<Plan, "targets"> & {
  readonly targets: readonly KiloTargetPlan[];
  readonly meshes: readonly MeshPlan[];
  readonly led: LedByCluster;
};

/** What is wanted of one target, with a note on every Peer. */
export type KiloTargetPlan = Omit<TargetPlan, "desired"> & { readonly desired: readonly DesiredPeer[] };

/** What was decided for one mesh. */
export type MeshPlan = {
  readonly mesh: MeshIntent;
  readonly state: MeshState;
  readonly members: readonly MemberPlan[];
};

/** What was decided for one cluster of a mesh. */
export type MemberPlan = {
  readonly entry: Entry;
  readonly cluster: ClusterId | undefined;
  readonly observed: Observed<KiloFacts>;
  readonly source: SourcePlan | undefined;
};

/** Decides what should exist on every cluster, what must be left alone, and what people should know. */
export function planKilo(world: KiloWorld, options: KiloOptions = defaultOptions): KiloPlan {
  const views = world.clusters.map((view) => inOrder(view, world.nowMs));
  const viewOf = new Map(views.flatMap((view) => view.accesses.map((access) => [access, view] as const)));
  const resolve = (id: ClusterId): ClusterId => viewOf.get(id)?.id ?? id;
  const meshes = [...(lastSeen(world.intents) ?? [])].sort((a, b) => compareText(a.id, b.id));
  const verdicts = checkMeshes(meshes, resolve);
  const established = findEstablished(views);
  const elections = new Map(views.map((view) => [view.id, electionOf(view, world.led)]));
  const meshPlans = meshes.map((mesh) =>
    planMesh(mesh, verdicts.states.get(mesh.id) ?? "refused", viewOf, { ...world, established, elections }),
  );
  const refusals = refusePairs(
    meshPlans.filter(({ state }) => state === "active").map(({ mesh }) => mesh),
    viewOf,
  );
  const records = new Map(meshPlans.map((plan) => [plan.mesh, recordOf(plan, resolve)]));
  const sources = meshPlans.flatMap(({ members }) => members.flatMap((member) => member.source ?? []));
  const crossings = findCrossings(sources);
  const estate = estateOf(meshes, world.instance);
  const meshesOf = new Map<ClusterId, MeshIntent[]>();
  const sourcesOf = new Map<ClusterId, SourcePlan[]>();
  for (const { mesh, state, members } of meshPlans) {
    for (const { cluster, source } of members) {
      if (cluster !== undefined && state === "active") appendTo(meshesOf, cluster, mesh);
      if (source !== undefined) appendTo(sourcesOf, source.cluster, source);
    }
  }
  const context: Context = { world, options, resolve, records, meshesOf, sourcesOf, refusals, crossings, estate };
  const twins = twinsOf(views);
  const planned = planViews(views, twins, context);
  const againSeconds = earliest([...elections.values()]);
  return {
    targets: planned.map((each) => each.plan),
    meshes: meshPlans,
    led: new Map(Array.from(elections, ([id, { led }]) => [id, led])),
    ...(againSeconds === undefined ? {} : { againMs: 1000 * againSeconds }),
    diagnostics: sortDiagnostics([
      ...verdicts.diagnostics,
      ...intentFindings(world),
      ...meshPlans.flatMap((mesh) => memberFindings(mesh, viewOf)),
      ...refusals.diagnostics,
      ...planned.flatMap((each) => each.diagnostics),
      ...twinFindings(twins),
    ]),
  };
}

/** Plans every cluster of a mesh as a source. Only an active mesh offers anything. */
export function planMesh(
  mesh: MeshIntent,
  state: MeshState,
  viewOf: ReadonlyMap<ClusterId, ClusterView<KiloFacts>>,
  world: Pick<KiloWorld, "dns" | "instance" | "nowMs"> & {
    readonly established: Established;
    readonly elections: ReadonlyMap<ClusterId, Election>;
  },
): MeshPlan {
  const members = mesh.entries.map((entry): MemberPlan => {
    const view = entry.id === undefined ? undefined : viewOf.get(entry.id);
    const observed = view?.observed ?? unseen(entry);
    const facts = lastSeen(observed);
    if (view === undefined || facts === undefined || state !== "active") {
      return { entry, cluster: view?.id, observed, source: undefined };
    }
    const { dns, instance, established, elections } = world;
    const nowSeconds = Math.floor(world.nowMs / 1000);
    const { id: cluster, name } = view;
    const leaders = elections.get(view.id)?.leaders ?? new Map<string, Leader>();
    const source = planSource({ mesh, entry, cluster, name, facts, instance, dns, established, leaders, nowSeconds });
    return { entry, cluster: view.id, observed, source };
  });
  return { mesh, state, members };
}

function electionOf({ id, observed }: ClusterView<KiloFacts>, before: LedByCluster | undefined): Election {
  const facts = lastSeen(observed);
  const led = before?.get(id) ?? new Map<string, Led>();
  return facts === undefined ? { leaders: new Map(), led, againSeconds: undefined } : electLeaders(facts, led);
}

function earliest(elections: readonly Election[]): number | undefined {
  const first = elections.reduce(
    (least, { againSeconds }) => Math.min(least, againSeconds ?? least),
    Number.POSITIVE_INFINITY,
  );
  return first === Number.POSITIVE_INFINITY ? undefined : first;
}

/** The same cluster with its objects in a fixed order: what is decided must not depend on how they arrived. */
function inOrder(view: ClusterView<KiloFacts>, nowMs: number): ClusterView<KiloFacts> {
  if (view.observed.state === "absent") return view;
  const { nodes, peers, unreadable, ...rest } = view.observed.value;
  const byName = (a: { readonly name: string }, b: { readonly name: string }): number => compareText(a.name, b.name);
  const value = {
    ...rest,
    nodes: nodes.map((node) => notFromTheFuture(node, nowMs)).sort(byName),
    peers: [...peers].sort(byName),
    unreadable: [...unreadable].sort((a, b) => compareText(canonicalText(a), canonicalText(b))),
  };
  return { ...view, observed: { ...view.observed, value } };
}

/** A check-in later than now is a wrong clock or a forgery; either way it must not win a dispute. */
function notFromTheFuture(node: NodeFacts, nowMs: number): NodeFacts {
  const nowSeconds = Math.floor(nowMs / 1000);
  if (nowMs === 0 || node.lastSeen === undefined || node.lastSeen <= nowSeconds) return node;
  return { ...node, lastSeen: nowSeconds };
}

type ViewPlan = {
  readonly plan: KiloTargetPlan;
  readonly diagnostics: readonly Diagnostic[];
};

/** The kinds of delete that losing most of a source at once makes doubtful. */
const doubted: ReadonlySet<string> = new Set(["NodeGone"]);

function planView(view: ClusterView<KiloFacts>, context: Context, wantedElsewhere: ReadonlySet<string>): ViewPlan {
  const { options, world } = context;
  const facts = lastSeen(view.observed);
  const diagnostics: Diagnostic[] = [];
  const offers = offersTo(view, context);
  const ownSources = context.sourcesOf.get(view.id) ?? [];
  const wishFor = (items: readonly Item[]): TargetWish =>
    planTarget({
      id: view.id,
      name: view.name,
      facts,
      offers,
      ownSources,
      items,
      crossings: context.crossings,
      limits: options.limits,
      keepsAll: options.policy.upsertOnly,
    });
  const found =
    facts === undefined ? [] : holdForTwin(takeInventory(view, facts, context, diagnostics), wantedElsewhere);
  const first = wishFor(found);
  const draft: TargetPlan = { target: view.id, gap: gapOf(view), desired: first.desired, items: found };
  const guarded = applyPolicy(draft, options.policy, {
    groupOf,
    doubted,
    nowMs: world.nowMs,
    sinceMs: doubtedSince(view.id, found, context),
    expired: (sinceMs) => hasExpired(world, options, sinceMs),
  });
  const { wish, items } = settleHeld(guarded.items === found ? first : wishFor(guarded.items), guarded.items, wishFor);
  for (const { standing } of items) {
    if (standing.owner !== "us" || standing.ifUnwanted.reason !== massDelete || standing.ifUnwanted.do !== "hold")
      continue;
    const where = at(undefined, view.name, "Cluster", view.name);
    diagnostics.push(diagnose("MassDeleteHeld", where, { detail: standing.ifUnwanted.detail }));
  }
  appendAll(diagnostics, wish.diagnostics);
  return { plan: { ...guarded, items, desired: wish.desired }, diagnostics };
}

/** How often a target is planned again because nothing is left of a held Peer; in practice once. */
const roundsMax = 5;

/** A held Peer of which nothing is left goes, and what depends on its being there is decided once more without it. */
function settleHeld(
  first: TargetWish,
  all: readonly Item[],
  wishFor: (items: readonly Item[]) => TargetWish,
): { readonly wish: TargetWish; readonly items: readonly Item[] } {
  let [wish, items] = [first, all];
  for (let round = 1; wish.emptied.size > 0; round++) {
    const { emptied } = wish;
    items = items.map((item) =>
      emptied.has(item) ? withFate(item, { do: "delete", reason: rangesReassigned }) : item,
    );
    if (round === roundsMax) break;
    wish = wishFor(items);
  }
  return { wish, items };
}

const groupOf = ({ intent, labels }: Item): string => `${intent ?? labels[meshLabel]}/${labels[sourceClusterLabel]}`;

/**
 * Since when the guard has doubted that the node of a Peer is gone, if it has. Where a world file does not say why Peers
 * are held, the guard held them if there are so many.
 */
function doubtedSince(
  target: ClusterId,
  items: readonly Item[],
  { world, options }: Context,
): (item: Item) => number | undefined {
  const isUnexplained = ({ name }: Item): boolean => {
    const held = world.held.get(graceKey(target, name));
    return held !== undefined && held.reason === undefined;
  };
  const isMass = (group: string): boolean => {
    const ofGroup = items.filter((item) => item.standing.owner === "us" && groupOf(item) === group);
    return isDoubtful(ofGroup.filter(isUnexplained).length, ofGroup.length, options.policy);
  };
  return (item) =>
    isUnexplained(item) && !isMass(groupOf(item)) ? undefined : graceSinceMs(world, target, item.name, massDelete);
}

function holdForTwin(items: readonly Item[], wantedElsewhere: ReadonlySet<string>): readonly Item[] {
  if (wantedElsewhere.size === 0) return items;
  const detail = "wanted through another access to this cluster";
  const ifUnwanted: IfUnwanted = { do: "hold", reason: "SameClusterTwice", detail };
  return items.map((item) => (wantedElsewhere.has(item.slot) ? withFate(item, ifUnwanted) : item));
}

const peerKindMissing = "its API server does not know peers.kilo.squat.ai";

function gapOf({ observed }: ClusterView<KiloFacts>): TargetPlan["gap"] {
  if (observed.state === "synced") {
    return observed.value.peersServed ? undefined : { reason: "PeerKindMissing", detail: peerKindMissing };
  }
  return { reason: observed.state === "stale" ? "TargetStale" : "TargetAbsent", detail: observed.because.detail };
}

function offersTo(view: ClusterView<KiloFacts>, { records, meshesOf, refusals }: Context): Offer[] {
  return (meshesOf.get(view.id) ?? []).flatMap((mesh) => {
    const record = records.get(mesh);
    const target = record?.roll.byCluster.get(view.id);
    const linked = target && record?.sourcesOf.get(target);
    if (record === undefined || target === undefined || linked === undefined) return [];
    return record.plan.members.flatMap(({ entry, source }) => {
      if (source === undefined || !linked.has(entry) || source.cluster === view.id) return [];
      if (refusals.of(mesh, entry, view.id) !== undefined) return [];
      return [{ source, target, doubtful: refusals.doubtful(target) }];
    });
  });
}

function intentFindings(world: KiloWorld): Diagnostic[] {
  const detail = intentsGap(world);
  return detail === undefined
    ? []
    : [diagnose("IntentsUnknown", at(undefined, undefined, "ClusterMesh", "*"), { detail })];
}

function memberFindings(
  { mesh, members }: MeshPlan,
  viewOf: ReadonlyMap<ClusterId, ClusterView<KiloFacts>>,
): Diagnostic[] {
  return members.flatMap(({ entry, cluster, observed, source }) => {
    const where = at(mesh.id, source?.name ?? entry.name, "Cluster", source?.name ?? entry.name);
    if (cluster === undefined) {
      return entry.secret === undefined
        ? []
        : [diagnose("SecretMissing", where, { entry: entry.name, secret: entry.secret })];
    }
    const found: Diagnostic[] = [...(source?.diagnostics ?? [])];
    const unused = viewOf.get(cluster)?.unused;
    if (unused !== undefined) found.push(diagnose("CredentialsUnused", where, { detail: unused.detail }));
    if (lastSeen(observed)?.peersServed === false) found.push(diagnose("PeerKindMissing", where, {}));
    if (observed.state === "absent") found.push(diagnose("ClusterAbsent", where, { detail: observed.because.detail }));
    if (observed.state === "stale") found.push(diagnose("ClusterStale", where, { detail: observed.because.detail }));
    return found;
  });
}

/**
 * Plans every cluster. What looks like one cluster reached through two accesses is planned twice: what one access wants is
 * not deleted through the other.
 */
function planViews(
  views: readonly ClusterView<KiloFacts>[],
  twins: readonly Twins[],
  context: Context,
): readonly ViewPlan[] {
  const planned = new Map(views.map((view) => [view.id, planView(view, context, new Set())]));
  for (const [a, b] of twins) {
    for (const [view, other] of [
      [a, b],
      [b, a],
    ] as const) {
      const wanted = new Set(planned.get(other.id)?.plan.desired.map(({ slot }) => slot));
      planned.set(view.id, planView(view, context, wanted));
    }
  }
  return [...planned.values()];
}

function twinFindings(twins: readonly Twins[]): Diagnostic[] {
  return twins.map(([a, b]) =>
    diagnose("SameClusterTwice", at(undefined, a.name, "Cluster", a.name), { first: a.name, second: b.name }),
  );
}

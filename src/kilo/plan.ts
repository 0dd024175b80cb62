// The whole fleet as one decision: world → plan. Pure and total: whatever the objects say, nothing here throws.

import { type Diagnostic, sortDiagnostics } from "../core/diagnostic.ts";
import { canonicalText } from "../core/json.ts";
import { matchItems } from "../core/diff.ts";
import { appendAll, appendTo } from "../core/list.ts";
import { type Item, type Plan, type TargetPlan, withFate } from "../core/plan.ts";
import { applyPolicy, defaultPolicy, massDelete, type Policy, upsertOnlyStay } from "../core/policy.ts";
import {
  type ClusterId,
  type ClusterView,
  compareText,
  LOCAL,
  lastSeen,
  type Observed,
  type World,
} from "../core/world.ts";
import { type ClaimRules, defaultClaims, isClaimable } from "./claims.ts";
import { findCrossings } from "./crossings.ts";
import { silentClusters, unprovenClusters } from "./descent.ts";
import { at, diagnose } from "./diagnostics.ts";
import { electLeaders, type Election, type Leader, type Led } from "./election.ts";
import { type Established, findEstablished } from "./established.ts";
import { type Extent, extentOf, nodesBehind } from "./extent.ts";
import type { KiloFacts, NodeFacts } from "./facts.ts";
import { type Entry, limitedBy, type MeshIntent, unseen } from "./intent.ts";
import {
  type Context,
  doubtedSince,
  hasExpired,
  type Inventory,
  namesInPeers,
  recordOf,
  takeInventory,
} from "./inventory.ts";
import { checkMeshes, type MeshState } from "./mesh-checks.ts";
import { estateOf, groupOf } from "./ownership.ts";
import { intentFindings, memberFindings } from "./member-findings.ts";
import { refusePairs } from "./pairs.ts";
import { findServers } from "./servers.ts";
import type { Offer } from "./slots.ts";
import { once, planSource, type SourcePlan } from "./source.ts";
import { type Draft, guardSpec, lossesOf } from "./spec-guard.ts";
import { type DesiredPeer, planTarget, rangesReassigned, type TargetLimits, type TargetWish } from "./target.ts";
import {
  holdForTwin,
  noTwin,
  sharedMeshes,
  type Twin,
  twinEntries,
  twinFindings,
  type Twins,
  twinsOf,
} from "./twins.ts";

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
  /** How far apart writes on one target are, where no mesh of it says something else. */
  readonly writeIntervalMs: number;
  readonly claims: ClaimRules;
};

/** The defaults: five minutes of grace, nothing legacy pruned, five writes a second. */
export const defaultOptions: KiloOptions = {
  policy: defaultPolicy,
  graceMs: 300_000,
  pruneLegacy: false,
  limits: { peersMax: 20_000, rangesWarn: 200 },
  writeIntervalMs: 200,
  claims: defaultClaims,
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
  const verdicts = checkMeshes(meshes, resolve, options.claims);
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
  const calledNames = once(() => namesInPeers(views));
  const facts = { world, options, resolve, records, estate, calledNames };
  const servers = findServers(views, meshes, resolve);
  const twins = twinsOf(views);
  const doubts = { unproven: unprovenClusters(views, records, estate), twins: twinEntries(twins, records) };
  const context: Context = { ...facts, ...doubts, meshesOf, sourcesOf, refusals, servers, crossings };
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

/** A target as the meshes ask for it, before any guard. */
type ViewDraft = Draft & {
  readonly asked: TargetWish;
  readonly diagnostics: readonly Diagnostic[];
  readonly wishFor: (items: readonly Item[], frozen: ReadonlySet<string>) => TargetWish;
};

function draftView(inventory: Inventory, silent: ReadonlySet<ClusterId>, context: Context, twin: Twin): ViewDraft {
  const { options } = context;
  const { view, diagnostics } = inventory;
  const facts = lastSeen(view.observed);
  const offers = offersTo(view, context).filter(({ source }) => !silent.has(source.cluster));
  const ownSources = context.sourcesOf.get(view.id) ?? [];
  const wishFor = (items: readonly Item[], frozen: ReadonlySet<string>): TargetWish =>
    planTarget({
      id: view.id,
      name: view.name,
      facts,
      offers,
      ownSources,
      items,
      frozen,
      crossings: context.crossings,
      limits: options.limits,
      keepsAll: options.policy.upsertOnly,
      isClaimable: (range) => isClaimable(range, options.claims),
    });
  const items = holdForTwin(inventory.items, twin);
  const asked = wishFor(items, new Set());
  const { desired } = asked;
  const behind = nodesBehind(items, context);
  return {
    view,
    offers,
    items,
    desired,
    losses: lossesOf(items, desired, offers, context, behind),
    behind,
    asked,
    diagnostics,
    wishFor,
  };
}

function planView(draft: ViewDraft, extent: Extent, context: Context): ViewPlan {
  const { options, world } = context;
  const { view, asked } = draft;
  const diagnostics: Diagnostic[] = [...draft.diagnostics];
  const meant = guardSpec(draft, extent, context);
  const wishFor = (items: readonly Item[]): TargetWish => draft.wishFor(items, meant.frozen);
  const first = meant.items === draft.items ? asked : wishFor(meant.items);
  const intervalMs = intervalOf(view, context);
  const unguarded: TargetPlan = {
    target: view.id,
    gap: gapOf(view),
    desired: first.desired,
    items: meant.items,
    intervalMs,
  };
  const guarded = applyPolicy(unguarded, options.policy, {
    groupOf,
    doubted,
    nowMs: world.nowMs,
    sinceMs: doubtedSince(view.id, meant.items, context),
    expired: (sinceMs) => hasExpired(world, options, sinceMs),
  });
  const settled = settleHeld(guarded.items === meant.items ? first : wishFor(guarded.items), guarded.items, wishFor);
  const { wish, items } = options.policy.upsertOnly ? keepDisplaced(settled, view.id, wishFor) : settled;
  for (const { standing } of items) {
    if (standing.owner !== "us" || standing.ifUnwanted.reason !== massDelete || standing.ifUnwanted.do !== "hold")
      continue;
    const where = at(undefined, view.name, "Cluster", view.name);
    diagnostics.push(diagnose("MassDeleteHeld", where, { detail: standing.ifUnwanted.detail }));
  }
  appendAll(diagnostics, meant.diagnostics);
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

/**
 * Where no deletes are allowed: what a Peer that has to stay still holds is not given to others, and one that is left with
 * nothing for it has to stay, too.
 */
function keepDisplaced(
  settled: { readonly wish: TargetWish; readonly items: readonly Item[] },
  target: ClusterId,
  wishFor: (items: readonly Item[]) => TargetWish,
): typeof settled {
  let { wish, items } = settled;
  for (;;) {
    const { surplus, unwanted } = matchItems({ desired: wish.desired, items });
    const leaving = new Set([...surplus, ...unwanted].filter(isDeletable));
    if (leaving.size === 0) return { wish, items };
    items = items.map((item) => (leaving.has(item) ? withFate(item, { do: "hold", ...upsertOnlyStay }) : item));
    wish = wishFor(items);
  }
}

const isDeletable = ({ standing }: Item): boolean => standing.owner === "us" && standing.ifUnwanted.do === "delete";

/** Kilo writes its whole device again for every Peer: the longest distance that an active mesh with this cluster asks for. */
function intervalOf({ id }: ClusterView<KiloFacts>, { meshesOf, options }: Context): number {
  const asked = (meshesOf.get(id) ?? []).map(({ writeIntervalMs }) => writeIntervalMs ?? options.writeIntervalMs);
  return asked.length === 0 ? options.writeIntervalMs : asked.reduce((longest, ms) => Math.max(longest, ms), 0);
}

const peerKindMissing = "its API server does not know peers.kilo.squat.ai";

function gapOf({ observed }: ClusterView<KiloFacts>): TargetPlan["gap"] {
  if (observed.state === "synced") {
    return observed.value.peersServed ? undefined : { reason: "PeerKindMissing", detail: peerKindMissing };
  }
  return { reason: observed.state === "stale" ? "TargetStale" : "TargetAbsent", detail: observed.because.detail };
}

function offersTo(view: ClusterView<KiloFacts>, context: Context): Offer[] {
  const { records, meshesOf, refusals, servers } = context;
  const limited = limitedBy(view.id === LOCAL ? context.options.claims.localAccepts : undefined);
  return (meshesOf.get(view.id) ?? []).flatMap((mesh) => {
    const record = records.get(mesh);
    const target = record?.roll.byCluster.get(view.id);
    const linked = target && record?.sourcesOf.get(target);
    if (record === undefined || target === undefined || linked === undefined) return [];
    return record.plan.members.flatMap(({ entry, source }) => {
      if (source === undefined || !linked.has(entry) || source.cluster === view.id) return [];
      if (refusals.of(mesh, entry, view.id) !== undefined) return [];
      const doubtful = refusals.doubtful(target);
      return [{ source, target: limited(target), doubtful, servers: servers.within(mesh, entry, view.id) }];
    });
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
  const inventories = views.map((view) => takeInventory(view, context));
  const silent = silentClusters(inventories, context.unproven);
  const drafts = inventories.map((inventory) => draftView(inventory, silent, context, noTwin));
  const takings = drafts.map(({ view, items, behind, losses }) => {
    return { target: view.id, items, behind, taken: [...losses.values()].flat() };
  });
  const extent = extentOf(takings, context.options.policy);
  const planned = new Map(drafts.map((draft) => [draft.view.id, planView(draft, extent, context)]));
  for (const [a, b] of twins) {
    for (const [view, other] of [
      [a, b],
      [b, a],
    ] as const) {
      const wanted = new Set(planned.get(other.id)?.plan.desired.map(({ slot }) => slot));
      const twin = { wanted, meshes: sharedMeshes(a, b, context) };
      const inventory = inventories.find((each) => each.view.id === view.id);
      if (inventory === undefined) continue;
      planned.set(view.id, planView(draftView(inventory, silent, context, twin), extent, context));
    }
  }
  return [...planned.values()];
}

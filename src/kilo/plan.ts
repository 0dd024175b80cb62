// The whole fleet as one decision: world → plan. Pure and total: whatever the objects say, nothing here throws.

import { type Diagnostic, sortDiagnostics } from "../core/diagnostic.ts";
import type { CidrIndex } from "../core/net/cidr-index.ts";
import type { IfUnwanted, Item, Plan, Standing, TargetPlan } from "../core/plan.ts";
import { applyPolicy, defaultPolicy, type Policy } from "../core/policy.ts";
import {
  type ClusterId,
  type ClusterView,
  compareText,
  graceKey,
  lastSeen,
  type Observed,
  type World,
} from "../core/world.ts";
import { meshLabel, sourceClusterLabel } from "../api/peer.ts";
import { type Crossings, findCrossings } from "./crossings.ts";
import { at, diagnose } from "./diagnostics.ts";
import { type Established, findEstablished } from "./established.ts";
import type { KiloFacts, PeerFacts, Unreadable } from "./facts.ts";
import { type Entry, linksOf, type MeshIntent } from "./intent.ts";
import { checkMeshes, type MeshState } from "./mesh-checks.ts";
import { addressesInUse, rangeInUse, type Ungranted, ungrantedUse } from "./observed-ranges.ts";
import { estateOf, type FateContext, fateOf, ownershipOf, type Roll, rollOf, sourceEntryOf } from "./ownership.ts";
import { peerFields } from "./peer.ts";
import type { Offer } from "./slots.ts";
import { planSource, type SourcePlan } from "./source.ts";
import { type DesiredPeer, planTarget, type TargetLimits, type TargetWish } from "./target.ts";
import { twinsOf } from "./twins.ts";

/** The world as the Kilo provider sees it. */
export type KiloWorld = World<MeshIntent, KiloFacts> & {
  /** ClusterMeshes that could not even be named: as long as there is one, the list of meshes is not complete. */
  readonly unreadableMeshes: readonly { readonly detail: string }[];
};

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
  const views = world.clusters.map(inOrder);
  const viewOf = new Map(views.flatMap((view) => view.accesses.map((access) => [access, view] as const)));
  const resolve = (id: ClusterId): ClusterId => viewOf.get(id)?.id ?? id;
  const meshes = [...(lastSeen(world.intents) ?? [])].sort((a, b) => compareText(a.id, b.id));
  const verdicts = checkMeshes(meshes, resolve);
  const established = findEstablished(views);
  const meshPlans = meshes.map((mesh) =>
    planMesh(mesh, verdicts.states.get(mesh.id) ?? "refused", viewOf, { ...world, established }),
  );
  const refusals = refusePairs(meshPlans, viewOf);
  const records = new Map(meshPlans.map((plan) => [plan.mesh, recordOf(plan, resolve)]));
  const sources = meshPlans.flatMap(({ members }) => members.flatMap((member) => member.source ?? []));
  const crossings = findCrossings(sources);
  const estate = estateOf(meshes, world.instance);
  const context = { world, options, resolve, meshPlans, records, refusals, crossings, estate };
  const planned = views.map((view) => planView(view, context));
  const targets = guardTwins(
    planned.map((each) => each.plan),
    views,
  );
  return {
    targets,
    meshes: meshPlans,
    diagnostics: sortDiagnostics([
      ...verdicts.diagnostics,
      ...intentFindings(world),
      ...meshPlans.flatMap(memberFindings),
      ...refusals.diagnostics,
      ...planned.flatMap((each) => each.diagnostics),
      ...twinFindings(views),
    ]),
  };
}

/** Plans every cluster of a mesh as a source. Only an active mesh offers anything. */
export function planMesh(
  mesh: MeshIntent,
  state: MeshState,
  viewOf: ReadonlyMap<ClusterId, ClusterView<KiloFacts>>,
  world: Pick<KiloWorld, "dns" | "instance"> & { readonly established: Established },
): MeshPlan {
  const members = mesh.entries.map((entry): MemberPlan => {
    const view = entry.id === undefined ? undefined : viewOf.get(entry.id);
    const observed = view?.observed ?? absent(entry);
    const facts = lastSeen(observed);
    if (view === undefined || facts === undefined || state !== "active") {
      return { entry, cluster: view?.id, observed, source: undefined };
    }
    const { dns, instance, established } = world;
    const source = planSource({ mesh, entry, cluster: view.id, name: view.name, facts, instance, dns, established });
    return { entry, cluster: view.id, observed, source };
  });
  return { mesh, state, members };
}

function absent({ secret }: Entry): Observed<KiloFacts> {
  const detail = secret === undefined ? "the entry has no kubeconfigSecretRef" : `Secret ${secret} is missing`;
  return { state: "absent", because: { kind: "missing", detail } };
}

/** The same cluster with its objects in a fixed order: what is decided must not depend on how they arrived. */
function inOrder(view: ClusterView<KiloFacts>): ClusterView<KiloFacts> {
  if (view.observed.state === "absent") return view;
  const { nodes, peers, ...rest } = view.observed.value;
  const byName = (a: { readonly name: string }, b: { readonly name: string }): number => compareText(a.name, b.name);
  const value = { ...rest, nodes: [...nodes].sort(byName), peers: [...peers].sort(byName) };
  return { ...view, observed: { ...view.observed, value } };
}

type Refusals = {
  readonly of: (mesh: MeshIntent, source: Entry, target: ClusterId) => string | undefined;
  /** What only a doubtful node of the target claims: kept out of what is written there, and no more. */
  readonly doubtful: (target: Entry) => CidrIndex<string> | undefined;
  readonly diagnostics: readonly Diagnostic[];
};

/** Refuses a source on a target that itself uses what the source declares. Only that pair is affected. */
function refusePairs(meshPlans: readonly MeshPlan[], viewOf: ReadonlyMap<ClusterId, ClusterView<KiloFacts>>): Refusals {
  const refused = new Map<string, string>();
  const diagnostics: Diagnostic[] = [];
  const addresses = new Map<ClusterId, CidrIndex<string>>();
  const ungranted = new Map<Entry, Ungranted>();
  for (const { mesh, state } of meshPlans) {
    if (state !== "active") continue;
    for (const { source, target } of linksOf(mesh)) {
      const view = target.id === undefined ? undefined : viewOf.get(target.id);
      const facts = view && lastSeen(view.observed);
      if (view === undefined || facts === undefined) continue;
      const own = addresses.get(view.id) ?? addressesInUse(facts);
      const beyond = ungranted.get(target) ?? ungrantedUse(facts, target);
      addresses.set(view.id, own);
      ungranted.set(target, beyond);
      const use = rangeInUse(source, [own, beyond.believed]);
      if (use === undefined) continue;
      refused.set(pairKey(mesh, source, view.id), `${use.range} of ${source.name} contains ${use.found}`);
      const name = (source.id === undefined ? undefined : viewOf.get(source.id)?.name) ?? source.name;
      const where = at(mesh.id, name, "Cluster", name);
      diagnostics.push(diagnose("RangeContainsObserved", where, { ...use, source: source.name, target: view.name }));
    }
  }
  return {
    of: (mesh, source, target) => refused.get(pairKey(mesh, source, target)),
    doubtful: (target) => {
      const index = ungranted.get(target)?.doubtful;
      return index === undefined || index.size === 0 ? undefined : index;
    },
    diagnostics,
  };
}

const pairKey = (mesh: MeshIntent, source: Entry, target: ClusterId): string => `${mesh.id}|${source.name}|${target}`;

type Context = {
  readonly world: KiloWorld;
  readonly options: KiloOptions;
  readonly resolve: (id: ClusterId) => ClusterId;
  readonly meshPlans: readonly MeshPlan[];
  readonly records: ReadonlyMap<MeshIntent, MeshRecord>;
  readonly refusals: Refusals;
  readonly crossings: Crossings;
  readonly estate: ReturnType<typeof estateOf>;
};

/** A mesh with everything that is asked of it once per Peer. */
type MeshRecord = {
  readonly plan: MeshPlan;
  readonly roll: Roll;
  readonly members: ReadonlyMap<Entry, MemberPlan>;
  readonly sourcesOf: ReadonlyMap<Entry, ReadonlySet<Entry>>;
};

function recordOf(plan: MeshPlan, resolve: (id: ClusterId) => ClusterId): MeshRecord {
  const sourcesOf = new Map<Entry, Set<Entry>>(plan.mesh.entries.map((entry) => [entry, new Set()]));
  for (const { source, target } of linksOf(plan.mesh)) sourcesOf.get(target)?.add(source);
  const members = new Map(plan.members.map((member) => [member.entry, member]));
  return { plan, roll: rollOf(plan.mesh, resolve), members, sourcesOf };
}

type ViewPlan = {
  readonly plan: KiloTargetPlan;
  readonly diagnostics: readonly Diagnostic[];
};

/** The kinds of delete that losing most of a source at once makes doubtful. */
const doubted: ReadonlySet<string> = new Set(["NodeGone"]);

function planView(view: ClusterView<KiloFacts>, context: Context): ViewPlan {
  const { options, world } = context;
  const facts = lastSeen(view.observed);
  const diagnostics: Diagnostic[] = [];
  const offers = offersTo(view, context);
  const ownSources = context.meshPlans.flatMap(({ members }) =>
    members.flatMap((member) => (member.cluster === view.id && member.source ? [member.source] : [])),
  );
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
    });
  const found = facts === undefined ? [] : takeInventory(view, facts, context, diagnostics);
  const first = wishFor(found);
  const draft: TargetPlan = { target: view.id, gap: gapOf(view), desired: first.desired, items: found };
  const guarded = applyPolicy(draft, options.policy, {
    groupOf: ({ labels }) => `${labels[meshLabel]}/${labels[sourceClusterLabel]}`,
    doubted,
    expired: (item) => hasExpired(world, options, view.id, item.name),
  });
  const wish = guarded.items === found ? first : wishFor(guarded.items);
  for (const { standing } of guarded.items) {
    if (standing.owner !== "us" || standing.ifUnwanted.reason !== "MassDelete" || standing.ifUnwanted.do !== "hold")
      continue;
    const where = at(undefined, view.name, "Cluster", view.name);
    diagnostics.push(diagnose("MassDeleteHeld", where, { detail: standing.ifUnwanted.detail }));
  }
  diagnostics.push(...wish.diagnostics);
  return { plan: { ...guarded, desired: wish.desired }, diagnostics };
}

function gapOf({ observed }: ClusterView<KiloFacts>): TargetPlan["gap"] {
  if (observed.state === "synced") return undefined;
  return { reason: observed.state === "stale" ? "TargetStale" : "TargetAbsent", detail: observed.because.detail };
}

function offersTo(view: ClusterView<KiloFacts>, { meshPlans, records, refusals }: Context): Offer[] {
  return meshPlans.flatMap(({ mesh, state, members }) => {
    if (state !== "active") return [];
    const record = records.get(mesh);
    const target = record?.roll.byCluster.get(view.id);
    const linked = target && record?.sourcesOf.get(target);
    if (target === undefined || linked === undefined) return [];
    return members.flatMap(({ entry, source }) => {
      if (source === undefined || !linked.has(entry) || source.cluster === view.id) return [];
      if (refusals.of(mesh, entry, view.id) !== undefined) return [];
      return [{ source, target, doubtful: refusals.doubtful(target) }];
    });
  });
}

/** Every Peer on a target with its standing; what cannot be told or read is reported and left alone. */
function takeInventory(
  view: ClusterView<KiloFacts>,
  facts: KiloFacts,
  context: Context,
  diagnostics: Diagnostic[],
): readonly Item[] {
  const fate = fateContext(view, context);
  for (const { kind, name, detail } of facts.unreadable) {
    if (kind === "Node") continue; // reported by each mesh that has the node
    const code = kind === "Peer" ? "PeerUnreadable" : "ObjectUnreadable";
    diagnostics.push(diagnose(code, at(undefined, view.name, kind, name ?? "(no name)"), { detail }));
  }
  const unreadable = facts.unreadable.filter((object) => object.kind === "Peer");
  const known = facts.peers.map((peer): Item => {
    const own = ownershipOf(peer, context.estate, (mesh) => fate.memberOf(mesh, view.id) !== undefined);
    if (own.owner === "us") {
      if (own.missing.length > 0) {
        const where = at(undefined, view.name, "Peer", peer.name);
        diagnostics.push(diagnose("PeerIdentityDamaged", where, { peer: peer.name, missing: own.missing.join(", ") }));
      }
      const { ifUnwanted, origin, source } = fateOf(peer, own, fate);
      const party = source?.id === undefined ? undefined : context.resolve(source.id);
      const standing: Standing = { owner: "us", ifUnwanted, adopted: own.adopted };
      return itemOf(peer, standing, { origin, intent: own.mesh?.id, party });
    }
    if (own.unclaimedLegacy !== undefined) {
      const { detail, prunable } = own.unclaimedLegacy;
      if (context.options.pruneLegacy && prunable && fate.intentsGap === undefined) {
        return itemOf(peer, { owner: "us", ifUnwanted: { do: "delete", reason: "LegacyPruned" }, adopted: true });
      }
      const where = at(undefined, view.name, "Peer", peer.name);
      const pair = `${peer.labels[meshLabel]}/${peer.labels[sourceClusterLabel]}`;
      diagnostics.push(diagnose("LegacyPeerUnclaimed", where, { peer: peer.name, pair, detail }));
    }
    return itemOf(peer, { owner: "other", who: own.who });
  });
  return holdContested([...known, ...unreadable.map(unreadableItem)], view, diagnostics);
}

/**
 * Kilo forgets a key when any Peer that holds it is deleted or gets another one. So a Peer of ours that shares its key
 * with somebody else's is left as it is, wanted or not: to remove it would cut the other one off.
 */
function holdContested(
  items: readonly Item[],
  view: ClusterView<KiloFacts>,
  diagnostics: Diagnostic[],
): readonly Item[] {
  const foreign = new Map(items.flatMap((item) => (item.standing.owner === "other" ? [[item.slot, item.name]] : [])));
  if (foreign.size === 0) return items;
  return items.map((item) => {
    const other = foreign.get(item.slot);
    if (item.standing.owner !== "us" || other === undefined) return item;
    const where = at(item.intent, view.name, "Peer", item.name);
    diagnostics.push(diagnose("PeerKeyContested", where, { peer: item.name, other }));
    const ifUnwanted: IfUnwanted = {
      do: "hold",
      reason: "KeyContested",
      detail: `Peer ${other} of somebody else has the same key`,
    };
    return { ...item, origin: undefined, standing: { ...item.standing, ifUnwanted } };
  });
}

/** A Peer of which we know at most the name and the key: nobody's, and neither can be used. */
const unreadableItem = ({ name, key }: Unreadable): Item => ({
  ...unknownDescent,
  kind: "Peer",
  name: name ?? "(no name)",
  uid: undefined,
  resourceVersion: undefined,
  slot: key ?? `unreadable/${name}`,
  claims: [],
  labels: {},
  fields: {},
  standing: { owner: "other", who: "somebody else" },
});

type Descent = Pick<Item, "origin" | "intent" | "party">;

const unknownDescent: Descent = { origin: undefined, intent: undefined, party: undefined };

const itemOf = (peer: PeerFacts, standing: Standing, descent: Descent = unknownDescent): Item => ({
  kind: "Peer",
  name: peer.name,
  uid: peer.uid,
  resourceVersion: peer.resourceVersion,
  slot: peer.key,
  origin: descent.origin,
  intent: descent.intent,
  party: descent.party,
  claims: peer.ranges,
  labels: peer.labels,
  fields: peerFields(peer.key, peer.allowedIps, peer.endpoint, peer.keepaliveSeconds),
  standing,
});

function fateContext(view: ClusterView<KiloFacts>, context: Context): FateContext {
  const { world, options, records, refusals } = context;
  return {
    target: view.id,
    intentsGap: intentsGap(world),
    stateOf: (mesh) => records.get(mesh)?.plan.state ?? "refused",
    memberOf: (mesh, cluster) => records.get(mesh)?.roll.byCluster.get(cluster),
    sourceEntryOf: (mesh, labels) => {
      const record = records.get(mesh);
      return record && sourceEntryOf(record.roll, labels);
    },
    linked: (mesh, source, target) => records.get(mesh)?.sourcesOf.get(target)?.has(source) ?? false,
    observed: (mesh, entry) => records.get(mesh)?.members.get(entry)?.observed ?? absent(entry),
    sourcePlan: (mesh, entry) => records.get(mesh)?.members.get(entry)?.source,
    pairRefused: (mesh, source) => refusals.of(mesh, source, view.id),
    grace: (peer, reason, detail) =>
      hasExpired(world, options, view.id, peer.name)
        ? { do: "delete", reason }
        : {
            do: "hold",
            reason,
            detail: `${detail}; kept for ${options.graceMs / 1000} s from when it was first seen`,
            graceSinceMs: world.heldSinceMs.get(graceKey(view.id, peer.name)) ?? world.nowMs,
          },
  };
}

function hasExpired(world: KiloWorld, options: KiloOptions, target: ClusterId, object: string): boolean {
  const since = world.heldSinceMs.get(graceKey(target, object));
  return since !== undefined && world.nowMs - since >= options.graceMs;
}

function intentsGap(world: KiloWorld): string | undefined {
  if (world.intents.state !== "synced") return world.intents.because.detail;
  const [unreadable] = world.unreadableMeshes;
  return unreadable === undefined ? undefined : `a ClusterMesh cannot be read: ${unreadable.detail}`;
}

function intentFindings(world: KiloWorld): Diagnostic[] {
  const detail = intentsGap(world);
  return detail === undefined
    ? []
    : [diagnose("IntentsUnknown", at(undefined, undefined, "ClusterMesh", "*"), { detail })];
}

function memberFindings({ mesh, members }: MeshPlan): Diagnostic[] {
  return members.flatMap(({ entry, cluster, observed, source }) => {
    const where = at(mesh.id, source?.name ?? entry.name, "Cluster", source?.name ?? entry.name);
    if (cluster === undefined) {
      return entry.secret === undefined
        ? []
        : [diagnose("SecretMissing", where, { entry: entry.name, secret: entry.secret })];
    }
    const found: Diagnostic[] = [...(source?.diagnostics ?? [])];
    if (observed.state === "absent") found.push(diagnose("ClusterAbsent", where, { detail: observed.because.detail }));
    if (observed.state === "stale") found.push(diagnose("ClusterStale", where, { detail: observed.because.detail }));
    return found;
  });
}

/** What one access wants is not deleted through another access to what looks like the same cluster. */
function guardTwins(
  targets: readonly KiloTargetPlan[],
  views: readonly ClusterView<KiloFacts>[],
): readonly KiloTargetPlan[] {
  const twins = twinsOf(views);
  if (twins.length === 0) return targets;
  const wanted = new Map(targets.map(({ target, desired }) => [target, new Set(desired.map(({ slot }) => slot))]));
  return targets.map((plan) => {
    const others = twins.flatMap(([a, b]) => (a.id === plan.target ? [b.id] : b.id === plan.target ? [a.id] : []));
    if (others.length === 0) return plan;
    const items = plan.items.map((item): Item => {
      if (item.standing.owner !== "us" || !others.some((other) => wanted.get(other)?.has(item.slot))) return item;
      const ifUnwanted: IfUnwanted = {
        do: "hold",
        reason: "SameClusterTwice",
        detail: "wanted through another access to this cluster",
      };
      return { ...item, standing: { ...item.standing, ifUnwanted } };
    });
    return { ...plan, items };
  });
}

function twinFindings(views: readonly ClusterView<KiloFacts>[]): Diagnostic[] {
  return twinsOf(views).map(([a, b]) =>
    diagnose("SameClusterTwice", at(undefined, a.name, "Cluster", a.name), { first: a.name, second: b.name }),
  );
}

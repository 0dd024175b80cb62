// What is on a target: every Peer with its standing. What cannot be told or read is reported and left alone.

import { meshLabel, sourceClusterLabel } from "../api/peer.ts";
import type { Diagnostic } from "../core/diagnostic.ts";
import { labelValue } from "../core/naming.ts";
import { type IfUnwanted, type Item, type Standing, withFate } from "../core/plan.ts";
import { isDoubtful, massDelete } from "../core/policy.ts";
import { type ClusterId, type ClusterView, graceKey, lastSeen } from "../core/world.ts";
import type { Crossings } from "./crossings.ts";
import { at, diagnose } from "./diagnostics.ts";
import type { KiloFacts, PeerFacts, Unreadable } from "./facts.ts";
import { type Entry, linksOf, type MeshIntent, unseen } from "./intent.ts";
import {
  anotherCauseway,
  type Estate,
  type FateContext,
  fateOf,
  groupOf,
  ownershipOf,
  type Roll,
  rollOf,
  sourceEntryOf,
  sourceExchanged,
  specChange,
} from "./ownership.ts";
import type { Refusals } from "./pairs.ts";
import { peerFields, peerLabels, sourceHash } from "./peer.ts";
import type { Servers } from "./servers.ts";
import type { SourcePlan } from "./source.ts";
import type { KiloOptions, KiloWorld, MemberPlan, MeshPlan } from "./plan.ts";

/** What is known of the whole fleet when one cluster is planned. */
export type Context = {
  readonly world: KiloWorld;
  readonly options: KiloOptions;
  readonly resolve: (id: ClusterId) => ClusterId;
  /** The active meshes a cluster is a member of, and the cluster as a source in each mesh. */
  readonly meshesOf: ReadonlyMap<ClusterId, readonly MeshIntent[]>;
  readonly sourcesOf: ReadonlyMap<ClusterId, readonly SourcePlan[]>;
  readonly records: ReadonlyMap<MeshIntent, MeshRecord>;
  readonly refusals: Refusals;
  readonly servers: Servers;
  readonly crossings: Crossings;
  readonly estate: Estate;
  /** Clusters of which no Peer shows that they are the ones that Secrets led to before. */
  readonly unproven: ReadonlySet<ClusterId>;
  /** Entries that lead to what looks like the cluster of another entry of their mesh, with that one. */
  readonly twins: ReadonlyMap<Entry, Entry>;
  /** What Peers anywhere call the cluster with this hash, by mesh: `namespace|name|entry`. */
  readonly calledNames: () => ReadonlyMap<string, ReadonlySet<string>>;
};

/** A mesh with everything that is asked of it once per Peer. */
export type MeshRecord = {
  readonly plan: MeshPlan;
  readonly roll: Roll;
  readonly members: ReadonlyMap<Entry, MemberPlan>;
  readonly sourcesOf: ReadonlyMap<Entry, ReadonlySet<Entry>>;
};

/** Prepares a mesh for those questions. */
export function recordOf(plan: MeshPlan, resolve: (id: ClusterId) => ClusterId): MeshRecord {
  const sourcesOf = new Map<Entry, Set<Entry>>(plan.mesh.entries.map((entry) => [entry, new Set()]));
  for (const { source, target } of linksOf(plan.mesh)) sourcesOf.get(target)?.add(source);
  const members = new Map(plan.members.map((member) => [member.entry, member]));
  return { plan, roll: rollOf(plan.mesh, resolve), members, sourcesOf };
}

/** Every Peer on a target with its standing; what cannot be told or read is reported and left alone. */
export type Inventory = {
  readonly view: ClusterView<KiloFacts>;
  readonly items: readonly Item[];
  readonly diagnostics: readonly Diagnostic[];
};

/** Takes the inventory of a target; of one that was never seen it is empty. */
export function takeInventory(view: ClusterView<KiloFacts>, context: Context): Inventory {
  const facts = lastSeen(view.observed);
  const diagnostics: Diagnostic[] = [];
  if (facts === undefined) return { view, items: [], diagnostics };
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
      const { ifUnwanted, origin, source, intent } = fateOf(peer, own, fate);
      const party = source?.id === undefined ? undefined : context.resolve(source.id);
      const standing: Standing = { owner: "us", ifUnwanted, adopted: own.adopted };
      return itemOf(peer, standing, { origin, intent, party });
    }
    if (own.unclaimedLegacy !== undefined) {
      const { detail, prunable } = own.unclaimedLegacy;
      if (context.options.pruneLegacy && prunable && fate.intentsGap === undefined) {
        return itemOf(peer, { owner: "us", ifUnwanted: { do: "delete", reason: "LegacyPruned" }, adopted: true });
      }
      const where = at(undefined, view.name, "Peer", peer.name);
      const pair = `${peer.labels[meshLabel]}/${peer.labels[sourceClusterLabel]}`;
      diagnostics.push(diagnose("LegacyPeerUnclaimed", where, { peer: peer.name, pair, detail, prunable }));
    }
    if (own.who === anotherCauseway) {
      diagnostics.push(diagnose("PeerOfAnother", at(undefined, view.name, "Peer", peer.name), { peer: peer.name }));
    }
    return itemOf(peer, { owner: "other", who: own.who });
  });
  return { view, items: holdContested([...known, ...unreadable.map(unreadableItem)], view, diagnostics), diagnostics };
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
    return { ...withFate(item, ifUnwanted), origin: undefined };
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
    meshes: [...records.keys()],
    intentsGap: intentsGap(world),
    stateOf: (mesh) => records.get(mesh)?.plan.state ?? "refused",
    memberOf: (mesh, cluster) => records.get(mesh)?.roll.byCluster.get(cluster),
    sourceEntryOf: (mesh, peer) => {
      const record = records.get(mesh);
      return record && entryOf(peer, record);
    },
    linked: (mesh, source, target) => records.get(mesh)?.sourcesOf.get(target)?.has(source) ?? false,
    observed: (mesh, entry) => records.get(mesh)?.members.get(entry)?.observed ?? unseen(entry),
    sourcePlan: (mesh, entry) => records.get(mesh)?.members.get(entry)?.source,
    pairRefused: (mesh, source) => refusals.of(mesh, source, view.id),
    isUnproven: ({ id }) => id !== undefined && context.unproven.has(context.resolve(id)),
    twinOf: (entry) => context.twins.get(entry),
    formerEntry: (mesh) => formerEntryOf(view, mesh, context),
    grace: (peer, reason, detail) => {
      const sinceMs = graceSinceMs(world, view.id, peer.name, reason);
      return hasExpired(world, options, sinceMs)
        ? { do: "delete", reason, ...(sinceMs === undefined ? {} : { grace: { sinceMs, reason } }) }
        : {
            do: "hold",
            reason,
            detail: `${detail}; kept for ${options.graceMs / 1000} s from when it was first seen`,
            graceSinceMs: sinceMs ?? world.nowMs,
          };
    },
  };
}

/** The entry of a mesh under whose name other clusters know this one, which has no entry there any more. */
export function formerEntryOf(
  view: ClusterView<KiloFacts>,
  mesh: MeshIntent,
  { calledNames }: Context,
): Entry | undefined {
  const names = view.accesses.flatMap((access) => [...(calledNames().get(sourceHash(access)) ?? [])]);
  return mesh.entries.find((entry) => names.includes(calledName(mesh.namespace, mesh.name, entry.name)));
}

/** The entry that a Peer came from, as far as its labels and the clusters tell. */
export const entryOf = ({ labels, key }: PeerFacts, record: MeshRecord): Entry | undefined =>
  entryBySelf(labels, key, record) ?? sourceEntryOf(record.roll, labels);

/**
 * The entry that leads to the cluster a Peer was made from, under whatever name and Secret: no entry has the Peer's access,
 * but the cluster is the same, and has a node with that key.
 */
function entryBySelf(
  labels: Readonly<Record<string, string>>,
  key: string,
  { roll, members }: MeshRecord,
): Entry | undefined {
  if (roll.bySourceHash.has(labels[peerLabels.source] ?? "")) return undefined;
  const uid = labels[peerLabels.sourceUid];
  return [...members.values()].find(
    ({ source }) => source?.uid !== undefined && labelValue(source.uid) === uid && source.nodeByKey.has(key),
  )?.entry;
}

/** How the Peers of a mesh call a cluster that they come from. */
export const calledName = (namespace: string, mesh: string, entry: string): string =>
  [namespace, mesh, entry].map(labelValue).join("|");

/** What Peers call the clusters they come from, by the hash of the access. */
export function namesInPeers(views: readonly ClusterView<KiloFacts>[]): ReadonlyMap<string, ReadonlySet<string>> {
  const names = new Map<string, Set<string>>();
  for (const { observed } of views) {
    for (const { labels } of lastSeen(observed)?.peers ?? []) {
      const hash = labels[peerLabels.source];
      if (hash === undefined) continue;
      const known = names.get(hash) ?? new Set<string>();
      const said = [labels[peerLabels.meshNamespace], labels[meshLabel], labels[sourceClusterLabel]];
      names.set(hash, known.add(said.join("|")));
    }
  }
  return names;
}

/** What a grace period doubts: that nodes are gone, or that an edit is meant. Every other one waits for a node. */
const doubts: Readonly<Record<string, "nodes" | "edit">> = {
  SourceEmpty: "nodes",
  [massDelete]: "nodes",
  [specChange]: "edit",
  [sourceExchanged]: "edit",
};

/**
 * When the grace period of an object began, if one is running that was given for this reason or one of its sort: what is
 * granted to an agent that restarts says nothing about a Node that vanishes then, and the other way round.
 */
export function graceSinceMs(world: KiloWorld, target: ClusterId, object: string, reason: string): number | undefined {
  const held = world.held.get(graceKey(target, object));
  const isOfSort = held?.reason === undefined || doubts[held.reason] === doubts[reason];
  return isOfSort ? held?.sinceMs : undefined;
}

/**
 * Since when the guard has doubted that the node of a Peer is gone, if it has. Where a world file does not say why Peers
 * are held, the guard held them if there are so many.
 */
export function doubtedSince(
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

/** Whether a grace period is over; with no grace at all it is over as soon as it begins. */
export const hasExpired = (world: KiloWorld, { graceMs }: KiloOptions, sinceMs: number | undefined): boolean =>
  graceMs === 0 || (sinceMs !== undefined && world.nowMs - sinceMs >= graceMs);

/** Why the list of meshes is not complete, if it is not. */
export function intentsGap(world: KiloWorld): string | undefined {
  if (world.intents.state !== "synced") return world.intents.because.detail;
  const [unreadable] = world.unreadableMeshes;
  return unreadable === undefined ? undefined : `a ClusterMesh cannot be read: ${unreadable.detail}`;
}

// A cluster tells its peers apart by name and by id, whichever mesh they come from. Where two of them have one in
// common, the one that is connected stays; among new ones, the one of the older mesh, then the one listed first. Which
// one is connected is what the record beside the entry says: the name of the entry is that of both.

import { appendTo } from "../core/list.ts";
import { type ClusterId, compareText } from "../core/world.ts";
import { type EntryContext, type EntryOwner, entryOwner } from "./entry-owner.ts";
import type { BindingIntent } from "./intent.ts";
import type { Participant } from "./participant.ts";

/** Two clusters that a mesh wants to join. */
export type WantedPair = { readonly binding: BindingIntent; readonly a: Participant; readonly b: Participant };

/** Why a cluster cannot be joined with a target: another one has its name or id there. */
export type Clash = {
  readonly what: "name" | "id";
  readonly value: string;
  readonly other: Participant;
  readonly target: Participant;
  readonly loser: Participant;
};

/** What comes of comparing identities. */
export type Clashes = {
  /** Pairs that cannot be joined, by `pairKey`. */
  readonly lost: ReadonlyMap<string, Clash>;
  /** Peers that keep a name on a target although others have it, by `wayKey`: only what is certainly theirs is written. */
  readonly contested: ReadonlyMap<string, Clash>;
};

/** The key of two clusters, in either order. */
export const pairKey = (a: ClusterId, b: ClusterId): string => JSON.stringify([a, b].sort(compareText));

/** The key of a target and one of its peers. */
export const wayKey = (target: ClusterId, peer: ClusterId): string => JSON.stringify([target, peer]);

/** The pairs, of all meshes together, that cannot be joined because of an identity, and those that others compete with. */
export function findClashes(pairs: readonly WantedPair[], context: EntryContext): Clashes {
  const targets = new Map<ClusterId, { target: Participant; peers: Peer[] }>();
  for (const { binding, a, b } of pairs) {
    for (const [target, peer] of [[a, b] as const, [b, a] as const]) {
      const known = targets.get(target.id) ?? { target, peers: [] };
      known.peers.push({ peer, binding, owner: entryOwner(target, peer, binding.id, context) });
      targets.set(target.id, known);
    }
  }
  const found = { lost: new Map<string, Clash>(), contested: new Map<string, Clash>() };
  const groups = [...targets.values()].flatMap(({ target, peers }) =>
    (["id", "name"] as const).flatMap((what) => groupsOf(target, peers, what)),
  );
  for (const group of groups) if (!group.isOwn) thirdParty(group, found);
  // Of two that clash with one another, the one that a third cluster has already turned down.
  const losers = new Set([...found.lost.values()].map(({ loser }) => loser.id));
  for (const { target, what, value, peers } of groups.filter(({ isOwn }) => isOwn)) {
    for (const { peer } of peers) {
      const isTargets = losers.has(target.id) && !losers.has(peer.id);
      const [other, loser] = isTargets ? [peer, target] : [target, peer];
      const key = pairKey(target.id, peer.id);
      if (!found.lost.has(key)) found.lost.set(key, { what, value, other, target, loser });
    }
  }
  return found;
}

type Peer = { readonly peer: Participant; readonly binding: BindingIntent; readonly owner: EntryOwner | undefined };

/** The peers of a target that have one identity. */
type Group = {
  readonly target: Participant;
  readonly what: "name" | "id";
  readonly value: string;
  readonly peers: readonly Peer[];
  /** It is that of the target, too. */
  readonly isOwn: boolean;
};

function groupsOf(target: Participant, peers: readonly Peer[], what: "name" | "id"): readonly Group[] {
  const groups = new Map<string, Peer[]>();
  for (const each of peers) {
    const value = identityOf(each.peer, what);
    if (value !== undefined) appendTo(groups, value, each);
  }
  const own = identityOf(target, what);
  return [...groups].map(([value, group]) => ({ target, what, value, peers: group, isOwn: value === own }));
}

function thirdParty(
  { target, what, value, peers }: Group,
  { lost, contested }: { readonly lost: Map<string, Clash>; readonly contested: Map<string, Clash> },
): void {
  const winner = [...peers].sort(byRank)[0]?.peer;
  if (winner === undefined) return;
  for (const { peer } of peers) {
    if (peer.id === winner.id) continue;
    const key = pairKey(target.id, peer.id);
    if (!lost.has(key)) lost.set(key, { what, value, other: winner, target, loser: peer });
    const isOne = peer.facts?.uid !== undefined && peer.facts.uid === winner.facts?.uid;
    if (what === "name" && !isOne) {
      contested.set(wayKey(target.id, winner.id), { what, value, other: peer, target, loser: winner });
    }
  }
}

function identityOf({ ciliumName, clusterId }: Participant, what: "name" | "id"): string | undefined {
  if (what === "name") return ciliumName;
  return clusterId === undefined || clusterId === 0 ? undefined : String(clusterId);
}

const ranks: Readonly<Record<EntryOwner, number>> = { cluster: 4, member: 3, alike: 2, unknown: 1, another: 0 };

const rankOf = ({ owner }: Peer): number => (owner === undefined ? 0 : ranks[owner]);

const byRank = (a: Peer, b: Peer): number =>
  rankOf(b) - rankOf(a) ||
  a.binding.createdMs - b.binding.createdMs ||
  compareText(a.binding.id, b.binding.id) ||
  indexIn(a) - indexIn(b);

const indexIn = ({ binding, peer }: Peer): number =>
  binding.object.spec.clusterRefs.findIndex(({ name }) => name === peer.name);

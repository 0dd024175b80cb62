// A cluster tells its peers apart by name and by id, whichever mesh they come from. Where two of them have one in
// common, the one that is connected stays; among new ones, the one of the older mesh, then the one listed first.

import { appendTo } from "../core/list.ts";
import { type ClusterId, compareText } from "../core/world.ts";
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
};

/** The key of two clusters, in either order. */
export const pairKey = (a: ClusterId, b: ClusterId): string => JSON.stringify([a, b].sort(compareText));

/** The pairs, of all meshes together, that cannot be joined because of an identity, by `pairKey`. */
export function findClashes(pairs: readonly WantedPair[]): ReadonlyMap<string, Clash> {
  const targets = new Map<ClusterId, { target: Participant; peers: Peer[] }>();
  for (const { binding, a, b } of pairs) {
    for (const [target, peer] of [[a, b] as const, [b, a] as const]) {
      const known = targets.get(target.id) ?? { target, peers: [] };
      known.peers.push({ peer, binding, isConnected: isConnected(target, peer) });
      targets.set(target.id, known);
    }
  }
  const clashes = new Map<string, Clash>();
  for (const { target, peers } of targets.values()) {
    for (const what of ["id", "name"] as const) clashesOn(target, peers, what, clashes);
  }
  return clashes;
}

type Peer = { readonly peer: Participant; readonly binding: BindingIntent; readonly isConnected: boolean };

function clashesOn(target: Participant, peers: readonly Peer[], what: "name" | "id", found: Map<string, Clash>): void {
  const groups = new Map<string, Peer[]>();
  for (const each of peers) {
    const value = identityOf(each.peer, what);
    if (value !== undefined) appendTo(groups, value, each);
  }
  const own = identityOf(target, what);
  for (const [value, group] of groups) {
    const winner = value === own ? target : [...group].sort(byRank)[0]?.peer;
    if (winner === undefined) continue;
    for (const { peer } of group) {
      const key = pairKey(target.id, peer.id);
      if (peer.id !== winner.id && !found.has(key)) found.set(key, { what, value, other: winner, target });
    }
  }
}

function identityOf({ ciliumName, clusterId }: Participant, what: "name" | "id"): string | undefined {
  if (what === "name") return ciliumName;
  return clusterId === undefined || clusterId === 0 ? undefined : String(clusterId);
}

function isConnected({ facts }: Participant, { ciliumName }: Participant): boolean {
  if (ciliumName === undefined) return false;
  return [facts?.kvstoremesh, facts?.clustermesh].some((shared) => shared?.values[ciliumName] !== undefined);
}

const byRank = (a: Peer, b: Peer): number =>
  Number(b.isConnected) - Number(a.isConnected) ||
  a.binding.createdMs - b.binding.createdMs ||
  compareText(a.binding.id, b.binding.id) ||
  indexIn(a) - indexIn(b);

const indexIn = ({ binding, peer }: Peer): number =>
  binding.object.spec.clusterRefs.findIndex(({ name }) => name === peer.name);

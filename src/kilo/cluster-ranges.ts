// Ranges that belong to a whole cluster: services, other subnets, and flat entries that no node covers. One Peer per
// target, the anchor, carries them, cut around addresses that other Peers carry or that tunnels run over.

import { type Diagnostic, listSome, type Where } from "../core/diagnostic.ts";
import { type Cidr, contains, hostRoute, subtract } from "../core/net/cidr.ts";
import { indexOf } from "../core/net/disjoint.ts";
import type { Carrier } from "./carriers.ts";
import { at, diagnose } from "./diagnostics.ts";
import type { Entry } from "./intent.ts";
import type { Place } from "./node-checks.ts";
import type { Share } from "./shares.ts";

/** The most pieces a range may be cut into around endpoints; a working range must not end because a node joined. */
export const piecesMax = 1_024;

/** The most pieces for the sake of internal addresses: with more, the range is worth more than they are. */
const crowdedFrom = 128;

/** A range without the holes. */
export const cutAround = (range: Cidr, holes: readonly Cidr[]): readonly Cidr[] =>
  holes.length === 0 ? [range] : subtract(range, holes);

/** The cluster-wide ranges of a source. In a crowded one, internal addresses are not carried by themselves. */
export type ClusterRanges = {
  readonly ranges: readonly Cidr[];
  readonly crowded: readonly Cidr[];
  readonly diagnostics: readonly Diagnostic[];
};

/** Finds the ranges of a source that an anchor has to carry. */
export function clusterRanges(
  entry: Entry,
  carriers: readonly Carrier[],
  shares: readonly Share[],
  place: Place,
): ClusterRanges {
  const where = at(place.mesh, place.cluster, "Cluster", place.cluster);
  const diagnostics: Diagnostic[] = [];
  const ranges =
    entry.grant.generation === "typed"
      ? entry.grant.clusterWide
      : residual(entry, carriers, shares, where, diagnostics);
  if (ranges.length > 0 && shares.length === 0) {
    const reason = "no node of the cluster can be its anchor";
    diagnostics.push(diagnose("ClusterRangesUncarried", where, { ranges: listSome(ranges), reason }));
    return { ranges: [], crowded: [], diagnostics };
  }
  // Declared ranges are disjoint, so of what nodes carry only internal addresses can lie in a range of the cluster.
  const internals = indexOf(shares.flatMap((share) => share.internals));
  const crowded = ranges.filter((range) => {
    const holes = internals.overlapping(range).map(({ cidr }) => cidr);
    const pieces = cutAround(range, holes).length;
    if (pieces <= crowdedFrom) return false;
    diagnostics.push(diagnose("InternalIPsCrowded", where, { range, pieces }));
    return true;
  });
  return { ranges, crowded, diagnostics };
}

/** Flat entries that no node covers. Of those that one does cover, says which part nobody carries (B20). */
function residual(
  entry: Entry,
  carriers: readonly Carrier[],
  shares: readonly Share[],
  where: Where,
  diagnostics: Diagnostic[],
): readonly Cidr[] {
  const entries = indexOf(entry.grant.all);
  const carried = indexOf(shares.flatMap(({ overlay, internals }) => [...overlay, ...internals]));
  const covered = new Set<Cidr>();
  const beyondWireguard = new Set<Cidr>();
  const cover = (cidr: Cidr, wireguard: boolean): void => {
    for (const { cidr: range } of entries.overlapping(cidr)) {
      if (!contains(range, cidr)) continue;
      covered.add(range);
      if (!wireguard) beyondWireguard.add(range);
    }
  };
  for (const { wireguard, members } of carriers) {
    cover(wireguard, true);
    for (const { node, pods } of members) {
      for (const pod of pods) cover(pod, false);
      for (const address of node.internalIps) cover(hostRoute(address), false);
    }
  }
  for (const range of entry.grant.all) {
    if (!beyondWireguard.has(range)) continue;
    const rest = subtract(
      range,
      carried.overlapping(range).map(({ cidr }) => cidr),
    );
    if (rest.length > 0) {
      diagnostics.push(diagnose("RangePartlyCarried", where, { range, rest: listSome(rest), count: rest.length }));
    }
  }
  return entry.grant.all.filter((range) => !covered.has(range));
}

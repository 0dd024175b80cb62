// What of the ranges that a source offers is let onto a target: nothing that the target uses itself, that leads to an API
// server in use or to an endpoint of an older mesh, or that it does not accept.

import { type Diagnostic, listSome } from "../core/diagnostic.ts";
import type { CidrIndex } from "../core/net/cidr-index.ts";
import { type Cidr, contains, intersect } from "../core/net/cidr.ts";
import type { Item } from "../core/plan.ts";
import { at, diagnose } from "./diagnostics.ts";
import { byAge } from "./mesh-checks.ts";
import { aboutNode } from "./node-checks.ts";
import type { Bid } from "./slots.ts";
import type { TargetInput } from "./target.ts";
import type { SeniorEndpoint } from "./target-endpoints.ts";

/** A node's own ranges without those that hold an endpoint of an older mesh: they cannot be cut around it. */
export function juniorRanges(
  { source, candidate }: Bid,
  ranges: readonly Cidr[],
  seniors: CidrIndex<SeniorEndpoint>,
  target: string,
  diagnostics: Diagnostic[],
): readonly Cidr[] {
  if (seniors.size === 0) return ranges;
  return ranges.filter((range) => {
    const hit = seniors.overlapping(range).find(({ value }) => byAge(value.mesh, source.mesh) < 0);
    if (hit === undefined) return true;
    const { endpoint, node: owner } = hit.value;
    const values = { node: candidate.node.name, range, endpoint: endpoint.text, owner, target };
    const place = { mesh: source.mesh.id, cluster: source.name };
    diagnostics.push(aboutNode(place, candidate.node.name, "RangeHoldsOlderEndpoint", values));
    return false;
  });
}

/** The ranges without those that a node of the target claims for itself, rightly or not; what is carried already stays. */
export function undisputed(
  { doubtful, source }: Bid,
  ranges: readonly Cidr[],
  item: Item | undefined,
  target: string,
  diagnostics: Diagnostic[],
): readonly Cidr[] {
  if (doubtful === undefined) return ranges;
  return ranges.filter((range) => {
    // A doubtful claim that is wider than the range is nobody's pod range; to believe it would stop everything.
    const hit = doubtful.overlapping(range).find(({ cidr }) => contains(range, cidr));
    if (hit === undefined) return true;
    const values = { range, source: source.entry.name, target, found: hit.value };
    diagnostics.push(
      diagnose("RangeContainsObserved", at(source.mesh.id, source.name, "Cluster", source.name), values),
    );
    return item?.claims.includes(range) ?? false;
  });
}

/**
 * The ranges without those that hold an API server in use here. What Peers of the source carry already stays, whichever of
 * them is to carry it.
 */
export function withoutServers(
  { servers, source }: Bid,
  ranges: readonly Cidr[],
  { items, name: target }: TargetInput,
  diagnostics: Diagnostic[],
): readonly Cidr[] {
  if (servers === undefined) return ranges;
  return ranges.filter((range) => {
    const hit = servers.firstOverlap(range);
    if (hit === undefined) return true;
    const values = { range, source: source.entry.name, target, found: hit.value };
    diagnostics.push(
      diagnose("RangeContainsObserved", at(source.mesh.id, source.name, "Cluster", source.name), values),
    );
    return items.some(
      ({ standing, party, claims }) => standing.owner === "us" && party === source.cluster && isWithin(range, claims),
    );
  });
}

/** What a target does not accept of one source, and whether its entry or the operator's flag says so. */
export type Unaccepted = {
  readonly code: "RangeNotAccepted" | "RangeNotAcceptedLocally";
  readonly bid: Bid;
  readonly ranges: Set<Cidr>;
};

/** The part of the ranges that the receiving entry accepts; what it leaves out is noted for one finding per source. */
export function accept(bid: Bid, ranges: readonly Cidr[], unaccepted: Map<string, Unaccepted>): readonly Cidr[] {
  const { accepted, flagAccepts } = bid.target;
  if (accepted === undefined) return ranges;
  return ranges.flatMap((range) => {
    if (bid.target.accepts(range)) return [range];
    const code = flagAccepts?.(range) === false ? "RangeNotAcceptedLocally" : "RangeNotAccepted";
    const key = `${code}|${bid.source.mesh.id}|${bid.source.entry.name}`;
    const noted = unaccepted.get(key) ?? { code, bid, ranges: new Set<Cidr>() };
    unaccepted.set(key, noted);
    noted.ranges.add(range);
    return accepted.flatMap((network) => intersect(network, range) ?? []);
  });
}

/** Tells each source once what a target leaves out of it. */
export function reportUnaccepted(
  unaccepted: ReadonlyMap<string, Unaccepted>,
  target: string,
  diagnostics: Diagnostic[],
): void {
  for (const { code, bid, ranges } of unaccepted.values()) {
    const where = at(bid.source.mesh.id, target, "Cluster", target);
    diagnostics.push(diagnose(code, where, { source: bid.source.entry.name, ranges: listSome([...ranges]) }));
  }
}

/** Whether one of the ranges holds the network. */
export const isWithin = (cidr: Cidr, claims: readonly Cidr[]): boolean => claims.some((claim) => contains(claim, cidr));

// Where the endpoints and node addresses of one cluster lie inside the ranges of another. Worked out once for the whole
// fleet, since it does not depend on the target; whether two clusters meet on a target is asked there.

import { appendTo } from "../core/list.ts";
import { CidrIndex } from "../core/net/cidr-index.ts";
import { type Cidr, hostRoute } from "../core/net/cidr.ts";
import { indexOf } from "../core/net/disjoint.ts";
import type { ClusterId } from "../core/world.ts";
import type { IpEndpoint } from "./endpoint.ts";
import type { Candidate, SourcePlan } from "./source.ts";

/** A cluster whose grant an endpoint lies in; with `overlay`, the range around it exists only inside the tunnels. */
export type Enclosure = {
  readonly cluster: ClusterId;
  readonly name: string;
  readonly range: Cidr;
  readonly overlay: boolean;
};

/** An address of a cluster, as a host route. */
export type AddressWithin = { readonly cluster: ClusterId; readonly name: string; readonly route: Cidr };

/** The crossings of a fleet. */
export type Crossings = {
  /** The grants around a candidate's endpoint. */
  readonly around: (candidate: Candidate) => readonly Enclosure[];
  /** The same for an endpoint that is not in the chain. */
  readonly aroundEndpoint: (endpoint: IpEndpoint) => readonly Enclosure[];
  /** The endpoints that lie in a cluster-wide range of a cluster. */
  readonly endpointsIn: (cluster: ClusterId, range: Cidr) => readonly AddressWithin[];
  /** An address of each other cluster's nodes that lies in a cluster-wide range of a cluster. */
  readonly neighboursIn: (cluster: ClusterId, range: Cidr) => readonly AddressWithin[];
};

type Owner = { readonly cluster: ClusterId; readonly name: string };

/** Finds all crossings between sources. A cluster in many meshes counts once for each of its ranges. */
export function findCrossings(sources: readonly SourcePlan[]): Crossings {
  const grants = indexRanges(sources, (source) => source.entry.grant.all);
  const wide = indexRanges(sources, (source) => source.clusterWide);
  const enclosures = new Map<Candidate, readonly Enclosure[]>();
  const endpoints = new Map<string, Map<Cidr, AddressWithin>>();
  const neighbours = new Map<string, Map<ClusterId, AddressWithin>>();
  const overlayOf = overlaysByCluster(sources);
  const enclosing = (route: Cidr): Enclosure[] =>
    grants.overlapping(route).map(({ cidr, value: { cluster, name } }) => {
      const hit = overlayOf(cluster).firstOverlap(route);
      return { cluster, name, range: hit?.cidr ?? cidr, overlay: hit !== undefined };
    });
  for (const source of sources) {
    const { cluster, name } = source;
    for (const candidate of source.candidates) {
      const { chain, node } = candidate;
      if (chain.endpoint !== undefined) {
        const route = hostRoute(chain.endpoint.ip);
        const around = enclosing(route);
        if (around.length > 0) enclosures.set(candidate, around);
        for (const { cidr, value } of wide.overlapping(route)) {
          nested(endpoints, `${value.cluster}|${cidr}`).set(route, { cluster, name, route });
        }
      }
      if (wide.size === 0) continue;
      for (const address of [...node.internalIps, ...node.externalIps]) {
        const route = hostRoute(address);
        for (const { cidr, value } of wide.overlapping(route)) {
          if (value.cluster === cluster) continue;
          const known = nested(neighbours, `${value.cluster}|${cidr}`);
          if (!known.has(cluster)) known.set(cluster, { cluster, name, route });
        }
      }
    }
  }
  return {
    around: (candidate) => enclosures.get(candidate) ?? [],
    aroundEndpoint: (endpoint) => enclosing(hostRoute(endpoint.ip)),
    endpointsIn: (cluster, range) => [...(endpoints.get(`${cluster}|${range}`)?.values() ?? [])],
    neighboursIn: (cluster, range) => [...(neighbours.get(`${cluster}|${range}`)?.values() ?? [])],
  };
}

function indexRanges(
  sources: readonly SourcePlan[],
  rangesOf: (source: SourcePlan) => readonly Cidr[],
): CidrIndex<Owner> {
  const owners = new Map<string, [Cidr, Owner]>();
  for (const source of sources) {
    const { cluster, name } = source;
    for (const range of rangesOf(source)) owners.set(`${cluster}|${range}`, [range, { cluster, name }]);
  }
  return new CidrIndex(owners.values());
}

/** The addresses that exist only inside the tunnels of a cluster, in whatever mesh; indexed when first asked for. */
function overlaysByCluster(sources: readonly SourcePlan[]): (cluster: ClusterId) => CidrIndex<Cidr> {
  const plans = new Map<ClusterId, SourcePlan[]>();
  for (const source of sources) appendTo(plans, source.cluster, source);
  const indexes = new Map<ClusterId, CidrIndex<Cidr>>();
  return (cluster) => {
    const known = indexes.get(cluster);
    if (known !== undefined) return known;
    const ranges = new Set<Cidr>();
    for (const { candidates } of plans.get(cluster) ?? []) {
      for (const { overlay } of candidates) for (const range of overlay) ranges.add(range);
    }
    const made = indexOf(ranges);
    indexes.set(cluster, made);
    return made;
  };
}

function nested<K, V>(maps: Map<string, Map<K, V>>, key: string): Map<K, V> {
  const known = maps.get(key);
  if (known !== undefined) return known;
  const made = new Map<K, V>();
  maps.set(key, made);
  return made;
}

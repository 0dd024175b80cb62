// Where the endpoints of one source lie inside the ranges of another. Worked out once for the whole fleet, since it does
// not depend on the target; whether two sources meet on a target is asked there.

import { CidrIndex } from "../core/net/cidr-index.ts";
import { type Cidr, hostRoute } from "../core/net/cidr.ts";
import type { IpEndpoint } from "./endpoint.ts";
import type { Candidate, SourcePlan } from "./source.ts";

/** A range of a source that an endpoint lies in. */
export type Overlay = { readonly source: SourcePlan; readonly range: Cidr };

/** An endpoint of a source that lies in a range. */
export type EndpointWithin = { readonly source: SourcePlan; readonly route: Cidr };

/** The crossings of a fleet. */
export type Crossings = {
  /** The tunnelled ranges that a candidate's endpoint lies in. */
  readonly overlaysAround: (candidate: Candidate) => readonly Overlay[];
  /** The same for an endpoint that is not in the chain. */
  readonly overlaysAt: (endpoint: IpEndpoint) => readonly Overlay[];
  /** The endpoints that lie in a cluster-wide range of a source. */
  readonly endpointsIn: (source: SourcePlan, range: Cidr) => readonly EndpointWithin[];
};

/** Finds all crossings between sources. */
export function findCrossings(sources: readonly SourcePlan[]): Crossings {
  const grants = new CidrIndex(
    sources.flatMap((source) => source.entry.grant.all.map((range) => [range, source] as const)),
  );
  const wide = new CidrIndex(sources.flatMap((source) => source.clusterWide.map((range) => [range, source] as const)));
  const overlays = new Map<Candidate, readonly Overlay[]>();
  const endpoints = new Map<SourcePlan, Map<Cidr, EndpointWithin[]>>();
  const overlaysOn = (route: Cidr): Overlay[] =>
    grants.overlapping(route).flatMap(({ value: source }) => {
      const hit = source.overlay().firstOverlap(route);
      return hit === undefined ? [] : [{ source, range: hit.cidr }];
    });
  for (const source of sources) {
    for (const candidate of source.candidates) {
      if (candidate.chain.endpoint === undefined) continue;
      const route = hostRoute(candidate.chain.endpoint.ip);
      const around = overlaysOn(route);
      if (around.length > 0) overlays.set(candidate, around);
      for (const { cidr, value: owner } of wide.overlapping(route)) {
        const ranges = endpoints.get(owner) ?? new Map<Cidr, EndpointWithin[]>();
        endpoints.set(owner, ranges);
        ranges.set(cidr, [...(ranges.get(cidr) ?? []), { source, route }]);
      }
    }
  }
  return {
    overlaysAround: (candidate) => overlays.get(candidate) ?? [],
    overlaysAt: (endpoint) => overlaysOn(hostRoute(endpoint.ip)),
    endpointsIn: (source, range) => endpoints.get(source)?.get(range) ?? [],
  };
}

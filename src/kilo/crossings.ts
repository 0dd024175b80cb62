// Where the endpoints of one source lie inside the ranges of another. Worked out once for the whole fleet, since it does
// not depend on the target; whether two sources meet on a target is asked there.

import { CidrIndex } from "../core/net/cidr-index.ts";
import { type Cidr, hostRoute } from "../core/net/cidr.ts";
import type { IpEndpoint } from "./endpoint.ts";
import type { Candidate, SourcePlan } from "./source.ts";

/** A source whose grant an endpoint lies in; `overlay` is the tunnelled range around it, if there is one. */
export type Enclosure = { readonly source: SourcePlan; readonly range: Cidr; readonly overlay: boolean };

/** An endpoint of a source that lies in a range. */
export type EndpointWithin = { readonly source: SourcePlan; readonly route: Cidr };

/** The crossings of a fleet. */
export type Crossings = {
  /** The grants around a candidate's endpoint. */
  readonly around: (candidate: Candidate) => readonly Enclosure[];
  /** The same for an endpoint that is not in the chain. */
  readonly aroundEndpoint: (endpoint: IpEndpoint) => readonly Enclosure[];
  /** The endpoints that lie in a cluster-wide range of a source. */
  readonly endpointsIn: (source: SourcePlan, range: Cidr) => readonly EndpointWithin[];
};

/** Finds all crossings between sources. */
export function findCrossings(sources: readonly SourcePlan[]): Crossings {
  const grants = new CidrIndex(
    sources.flatMap((source) => source.entry.grant.all.map((range) => [range, source] as const)),
  );
  const wide = new CidrIndex(sources.flatMap((source) => source.clusterWide.map((range) => [range, source] as const)));
  const enclosures = new Map<Candidate, readonly Enclosure[]>();
  const endpoints = new Map<SourcePlan, Map<Cidr, EndpointWithin[]>>();
  const enclosing = (route: Cidr): Enclosure[] =>
    grants.overlapping(route).map(({ cidr, value: source }) => {
      const hit = source.overlay().firstOverlap(route);
      return { source, range: hit?.cidr ?? cidr, overlay: hit !== undefined };
    });
  for (const source of sources) {
    for (const candidate of source.candidates) {
      if (candidate.chain.endpoint === undefined) continue;
      const route = hostRoute(candidate.chain.endpoint.ip);
      const around = enclosing(route);
      if (around.length > 0) enclosures.set(candidate, around);
      for (const { cidr, value: owner } of wide.overlapping(route)) {
        const ranges = endpoints.get(owner) ?? new Map<Cidr, EndpointWithin[]>();
        endpoints.set(owner, ranges);
        const within = ranges.get(cidr);
        if (within === undefined) ranges.set(cidr, [{ source, route }]);
        else within.push({ source, route });
      }
    }
  }
  return {
    around: (candidate) => enclosures.get(candidate) ?? [],
    aroundEndpoint: (endpoint) => enclosing(hostRoute(endpoint.ip)),
    endpointsIn: (source, range) => endpoints.get(source)?.get(range) ?? [],
  };
}

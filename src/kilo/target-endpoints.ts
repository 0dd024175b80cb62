// Where each Peer on a target points, and which addresses there carry tunnel packets.

import type { Diagnostic } from "../core/diagnostic.ts";
import { type Address, isGlobalUnicast } from "../core/net/address.ts";
import { shortHash } from "../core/naming.ts";
import { CidrIndex } from "../core/net/cidr-index.ts";
import { containsAddress, hostRoute } from "../core/net/cidr.ts";
import { specialAddress } from "../core/net/special.ts";
import type { Item } from "../core/plan.ts";
import type { ClusterId } from "../core/world.ts";
import type { Enclosure } from "./crossings.ts";
import { carriedEndpoint, type Chain, discoveredOn, type EndpointOrigin, type IpEndpoint } from "./endpoint.ts";
import type { MeshIntent } from "./intent.ts";
import { byAge } from "./mesh-checks.ts";
import { aboutNode } from "./node-checks.ts";
import { peerLabels } from "./peer.ts";
import type { Bid, Proposal } from "./slots.ts";
import type { TargetInput } from "./target.ts";

/** An endpoint on a target and where it comes from. */
export type Chosen = { readonly from: EndpointOrigin; readonly endpoint: IpEndpoint | undefined };

/** No endpoint: the node roams, and has to start the tunnel itself. */
export const noEndpoint: Chosen = { from: "none", endpoint: undefined };

/** The endpoints on a target, and those that lie in another cluster's range but were there first. */
export type Endpoints = {
  readonly of: (proposal: Proposal) => Chosen;
  readonly all: ReadonlyMap<Proposal, Chosen>;
  /** Endpoints that ranges of younger meshes have to leave out, also where nodes have them. */
  readonly senior: readonly SeniorEndpoint[];
};

/** A public address that nodes of an older mesh are reached at. */
export type SeniorEndpoint = { readonly endpoint: IpEndpoint; readonly mesh: MeshIntent; readonly node: string };

/** Chooses the endpoint of every Peer; one that lies inside somebody's range here is not used. */
export function chooseEndpoints(
  proposals: readonly Proposal[],
  itemOf: (proposal: Proposal) => Item | undefined,
  staying: readonly Item[],
  input: TargetInput,
  diagnostics: Diagnostic[],
): Endpoints {
  const held = staying.filter((item) => item.standing.owner === "us");
  const heldRanges = new CidrIndex(held.flatMap(({ name, claims }) => claims.map((claim) => [claim, name] as const)));
  const discovered = discoveredOn(input.facts?.nodes ?? []);
  const here = new Set(input.offers.map((offer) => offer.source.cluster));
  const all = new Map<Proposal, Chosen>();
  const senior: SeniorEndpoint[] = [];
  for (const proposal of proposals) {
    const { source, candidate } = proposal.owner;
    const place = { mesh: source.mesh.id, cluster: source.name };
    const node = candidate.node.name;
    const item = itemOf(proposal);
    const choice = chooseEndpoint(proposal.owner, item, discovered.get(candidate.key) ?? []);
    if (candidate.chain.unresolved !== undefined) {
      const kept = choice.endpoint
        ? `its last known address ${choice.endpoint.text} stays`
        : "its Peer has no endpoint";
      diagnostics.push(aboutNode(place, node, "EndpointUnresolved", { node, name: candidate.chain.unresolved, kept }));
    }
    const { endpoint } = choice;
    const enclosure = endpoint && enclosureOf(proposal, endpoint, item);
    if (enclosure !== undefined && endpoint !== undefined) {
      const values = { node, endpoint: endpoint.text, range: enclosure.range, owner: enclosure.name };
      diagnostics.push(aboutNode(place, node, "EndpointInsideRangeOfOther", values));
    }
    all.set(proposal, enclosure === undefined ? choice : noEndpoint);
  }
  return { of: (proposal) => all.get(proposal) ?? noEndpoint, all, senior };

  /**
   * What makes an endpoint unusable here. What a cluster was granted counts more than what a node writes on itself: an
   * endpoint in another's range yields, unless it was in use before that range came, or is public and of an older mesh.
   */
  function enclosureOf(proposal: Proposal, endpoint: IpEndpoint, item: Item | undefined): Enclosure | undefined {
    const { source, candidate } = proposal.owner;
    const { crossings, items } = input;
    const kept = heldRanges.size === 0 ? undefined : heldRanges.firstOverlap(hostRoute(endpoint.ip));
    if (kept !== undefined) {
      return { cluster: source.cluster, name: `Peer ${kept.value}`, range: kept.cidr, overlay: true };
    }
    const around =
      endpoint === candidate.chain.endpoint ? crossings.around(candidate) : crossings.aroundEndpoint(endpoint);
    if (around.length === 0) return undefined;
    const inUse = carriedEndpoint(item?.fields["spec.endpoint"])?.text === endpoint.text;
    let yields = false;
    const found = around.find((enclosure) => {
      if (enclosure.cluster === source.cluster || enclosure.cluster === input.id) return enclosure.overlay;
      if (!here.has(enclosure.cluster)) return false;
      if (isSenior(source.mesh, endpoint, enclosure.cluster)) {
        yields = true;
        return false;
      }
      if (enclosure.overlay || !inUse) return true;
      return items.some(
        ({ standing, party, claims }) =>
          standing.owner === "us" &&
          party === enclosure.cluster &&
          claims.some((claim) => containsAddress(claim, endpoint.ip)),
      );
    });
    if (found === undefined && yields) senior.push({ endpoint, mesh: source.mesh, node: candidate.node.name });
    return found;
  }

  /**
   * Whether every mesh that offers a cluster's range around an endpoint here is younger than the endpoint's. A private
   * address is another machine at every site, and only the grant says which one is meant; a public one is one machine.
   */
  function isSenior(mesh: MeshIntent, { ip }: IpEndpoint, cluster: ClusterId): boolean {
    if (!isGlobalUnicast(ip)) return false;
    return input.offers.every(
      ({ source }) =>
        source.cluster !== cluster ||
        byAge(mesh, source.mesh) < 0 ||
        !source.entry.grant.all.some((range) => containsAddress(range, ip)),
    );
  }
}

/** Explicit wins; then what the target's nodes saw, if the source says it may roam; then the chain. Nothing flaps. */
function chooseEndpoint({ source, candidate }: Bid, item: Item | undefined, seen: readonly IpEndpoint[]): Chosen {
  const { chain } = candidate;
  const roams = source.entry.keepaliveSeconds > 0 && (chain.from === "ExternalIP" || chain.from === "none");
  if (chain.reserved !== undefined) return noEndpoint;
  if (!roams && chain.unresolved === undefined) return chain;
  const last = carriedEndpoint(item?.fields["spec.endpoint"]);
  const carried = last !== undefined && specialAddress(last.ip) === undefined ? last : undefined;
  if (chain.unresolved !== undefined) return { from: carried ? "last-known" : "none", endpoint: carried };
  const discovered = (endpoint: IpEndpoint | undefined): Chosen =>
    endpoint === undefined || endpoint.text === chain.endpoint?.text ? chain : { from: "discovered", endpoint };
  if (seen.length > 0) return discovered(seen.find((endpoint) => endpoint.text === carried?.text) ?? seen[0]);
  // Kilo empties what it saw at each rewrite of the device, and our own write causes one: keep what was found before,
  // as long as the node's own addresses are what they were then.
  return item?.labels[peerLabels.endpointFrom] === discoveredLabel(chain) ? discovered(carried) : chain;
}

/** The label of a Peer whose endpoint was discovered: it remembers what the chain said at that time. */
export const discoveredLabel = (chain: Chain): string => `discovered-${shortHash(chain.endpoint?.text ?? "none")}`;

/** The addresses here that tunnel packets go to or come from: a route to one through a tunnel would swallow the tunnel. */
export type EndpointsInUse = {
  /** Whether an address is an endpoint that a range of this cluster must leave out. */
  readonly has: (cluster: ClusterId, address: Address) => boolean;
  /** Those that are in no chain of that cluster or of the target: chosen here, or on Peers that stay whatever we plan. */
  readonly others: readonly Address[];
  /** Those that nodes of that cluster, as it is offered here, or of the target say they are reached at. */
  readonly chains: (cluster: ClusterId) => ReadonlySet<Address>;
};

/** Collects the endpoints in use on a target. */
export function endpointsInUse({ all }: Endpoints, staying: readonly Item[], input: TargetInput): EndpointsInUse {
  const others = new Set<Address>();
  for (const [{ owner }, { endpoint }] of all) {
    const chained = endpoint === owner.candidate.chain.endpoint && input.crossings.around(owner.candidate).length === 0;
    if (endpoint !== undefined && !chained) others.add(endpoint.ip);
  }
  for (const item of staying) {
    const endpoint = carriedEndpoint(item.fields["spec.endpoint"]);
    if (endpoint !== undefined) others.add(endpoint.ip);
  }
  const byCluster = new Map<ClusterId, ReadonlySet<Address>>();
  const chainsOf = (cluster: ClusterId): ReadonlySet<Address> => {
    const known = byCluster.get(cluster);
    if (known !== undefined) return known;
    const sources = [
      ...input.offers.map((offer) => offer.source).filter((source) => source.cluster === cluster),
      ...input.ownSources,
    ];
    const chains = sources.flatMap((source) => source.candidates.flatMap(({ chain }) => chain.endpoint?.ip ?? []));
    const made = new Set(chains);
    byCluster.set(cluster, made);
    return made;
  };
  return {
    has: (cluster, address) => others.has(address) || chainsOf(cluster).has(address),
    others: [...others],
    chains: chainsOf,
  };
}

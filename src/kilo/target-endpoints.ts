// Where each Peer on a target points, and which addresses there carry tunnel packets.

import type { Diagnostic } from "../core/diagnostic.ts";
import type { Address } from "../core/net/address.ts";
import type { Item } from "../core/plan.ts";
import { carriedEndpoint, discoveredOn, type EndpointOrigin, type IpEndpoint } from "./endpoint.ts";
import { aboutNode } from "./node-checks.ts";
import { peerLabels } from "./peer.ts";
import type { Bid, Proposal } from "./slots.ts";
import type { TargetInput } from "./target.ts";

/** An endpoint on a target and where it comes from. */
export type Chosen = { readonly from: EndpointOrigin; readonly endpoint: IpEndpoint | undefined };

/** No endpoint: the node roams, and has to start the tunnel itself. */
export const noEndpoint: Chosen = { from: "none", endpoint: undefined };

/** Chooses the endpoint of every Peer; one that lies inside somebody's tunnelled range here is not used. */
export function chooseEndpoints(
  proposals: readonly Proposal[],
  itemOf: (proposal: Proposal) => Item | undefined,
  input: TargetInput,
  diagnostics: Diagnostic[],
): Map<Proposal, Chosen> {
  const discovered = discoveredOn(input.facts?.nodes ?? []);
  const here = new Set([...input.offers.map((offer) => offer.source), ...input.ownSources]);
  const chosen = new Map<Proposal, Chosen>();
  for (const proposal of proposals) {
    const { source, candidate } = proposal.owner;
    const place = { mesh: source.mesh.id, cluster: source.name };
    const node = candidate.node.name;
    const choice = chooseEndpoint(proposal.owner, itemOf(proposal), discovered.get(candidate.key) ?? []);
    if (candidate.chain.unresolved !== undefined) {
      const kept = choice.endpoint
        ? `its last known address ${choice.endpoint.text} stays`
        : "its Peer has no endpoint";
      diagnostics.push(aboutNode(place, node, "EndpointUnresolved", { node, name: candidate.chain.unresolved, kept }));
    }
    const { endpoint } = choice;
    const overlays =
      endpoint === undefined
        ? []
        : endpoint === candidate.chain.endpoint
          ? input.crossings.overlaysAround(candidate)
          : input.crossings.overlaysAt(endpoint);
    const around = overlays.find((overlay) => here.has(overlay.source));
    if (around !== undefined && endpoint !== undefined) {
      const values = { node, endpoint: endpoint.text, range: around.range };
      diagnostics.push(aboutNode(place, node, "EndpointInsideOverlay", values));
      chosen.set(proposal, noEndpoint);
    } else chosen.set(proposal, choice);
  }
  return chosen;
}

/** Explicit wins; then what the target's nodes saw, if the source says it may roam; then the chain. Nothing flaps. */
function chooseEndpoint({ source, candidate }: Bid, item: Item | undefined, seen: readonly IpEndpoint[]): Chosen {
  const { chain } = candidate;
  const roams = source.entry.keepaliveSeconds > 0 && (chain.from === "ExternalIP" || chain.from === "none");
  if (!roams && chain.unresolved === undefined) return chain;
  const carried = carriedEndpoint(item?.fields["spec.endpoint"]);
  if (chain.unresolved !== undefined) return { from: carried ? "last-known" : "none", endpoint: carried };
  const current = seen.find((endpoint) => endpoint.text === carried?.text);
  if (seen.length > 0) return { from: "discovered", endpoint: current ?? seen[0] };
  // Kilo empties what it saw at each rewrite of the device, and our own write causes one: keep what was found before.
  const wasDiscovered = item?.labels[peerLabels.endpointFrom] === "discovered";
  return wasDiscovered && carried !== undefined ? { from: "discovered", endpoint: carried } : chain;
}

/** The addresses here that tunnel packets go to or come from: a route to one through a tunnel would swallow the tunnel. */
export type EndpointsHere = {
  readonly has: (address: Address) => boolean;
  /** Those that no chain of a source leads to: seen by nodes, or on Peers that stay whatever we plan. */
  readonly beyondChains: readonly Address[];
};

/** Collects the endpoints in use on a target. */
export function endpointsHere(endpoints: ReadonlyMap<Proposal, Chosen>, input: TargetInput): EndpointsHere {
  const beyondChains: Address[] = [];
  for (const [{ owner }, { endpoint }] of endpoints) {
    if (endpoint !== undefined && endpoint !== owner.candidate.chain.endpoint) beyondChains.push(endpoint.ip);
  }
  for (const item of input.items) {
    if (item.standing.owner === "us" && item.standing.ifUnwanted.do === "delete") continue;
    const endpoint = carriedEndpoint(item.fields["spec.endpoint"]);
    if (endpoint !== undefined) beyondChains.push(endpoint.ip);
  }
  let known: ReadonlySet<Address> | undefined;
  const collect = (): ReadonlySet<Address> => {
    const sources = [...input.offers.map((offer) => offer.source), ...input.ownSources];
    const chains = sources.flatMap((source) => source.candidates.flatMap(({ chain }) => chain.endpoint?.ip ?? []));
    return new Set([...beyondChains, ...chains]);
  };
  return { has: (address) => (known ??= collect()).has(address), beyondChains };
}

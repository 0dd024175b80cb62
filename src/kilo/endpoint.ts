// Where a node is reached, each value with its origin: clustermesh-endpoint → force-endpoint → ExternalIP → none. The
// first that is there decides. Names come out as addresses: one name that does not resolve stops Kilo on every node.

import { type Address, isIPv4, parseAddress } from "../core/net/address.ts";
import { type Endpoint, endpointOfIp, formatEndpoint, parseEndpoint } from "../core/net/endpoint.ts";
import type { PublicKey } from "../core/net/public-key.ts";
import { type SpecialUse, specialAddress } from "../core/net/special.ts";
import type { Field } from "../core/plan.ts";
import { compareText } from "../core/world.ts";
import type { ExplicitOrigin, NodeFacts } from "./facts.ts";

/** Where an endpoint comes from. `last-known` is what the Peer already says, kept while a name does not resolve. */
export type EndpointOrigin = ExplicitOrigin | "ExternalIP" | "discovered" | "last-known" | "none";

/** An address and port that Kilo can use as it is. */
export type IpEndpoint = { readonly ip: Address; readonly port: number; readonly text: string };

/** What the chain gives for a node: an endpoint, a name that does not resolve, or nothing (the node roams). */
export type Chain = {
  readonly from: EndpointOrigin;
  readonly endpoint: IpEndpoint | undefined;
  readonly unresolved: string | undefined;
  /** The endpoint that the chain gave and that nobody can use. */
  readonly reserved?: { readonly endpoint: string; readonly from: string } & SpecialUse;
};

/** Follows the chain for a node whose annotations have been checked. */
export function followChain(node: NodeFacts, wireguardPort: number, dns: ReadonlyMap<string, string>): Chain {
  const { explicitEndpoint } = node;
  if (explicitEndpoint?.result.ok) {
    const { host, port } = explicitEndpoint.result.value;
    const { from } = explicitEndpoint;
    if ("ip" in host) return usable(from, host.ip, port);
    const answer = parseAddress(dns.get(host.dns) ?? "");
    return answer.ok ? usable(from, answer.value, port) : { from, endpoint: undefined, unresolved: host.dns };
  }
  const externals = node.externalIps.filter((address) => specialAddress(address) === undefined);
  const external = externals.find(isIPv4) ?? externals[0];
  if (external === undefined) return { from: "none", endpoint: undefined, unresolved: undefined };
  return { from: "ExternalIP", endpoint: ipEndpoint(external, wireguardPort), unresolved: undefined };
}

/** An explicit endpoint, unless it leads nowhere; a name may come out as any address. */
function usable(from: ExplicitOrigin, ip: Address, port: number): Chain {
  const endpoint = ipEndpoint(ip, port);
  const special = specialAddress(ip);
  if (special === undefined) return { from, endpoint, unresolved: undefined };
  const { range, use } = special;
  return { from, endpoint: undefined, unresolved: undefined, reserved: { endpoint: endpoint.text, from, range, use } };
}

/** The DNS names that endpoints of these nodes mention: what a resolver has to answer before planning. */
export function endpointNames(nodes: readonly NodeFacts[]): string[] {
  const names = new Set<string>();
  for (const { explicitEndpoint } of nodes) {
    if (explicitEndpoint?.result.ok && "dns" in explicitEndpoint.result.value.host) {
      names.add(explicitEndpoint.result.value.host.dns);
    }
  }
  return [...names].sort(compareText);
}

/** The most different endpoints of one key that are looked at. */
const viewsMax = 8;

/** What the nodes of a target saw of each key: all values, by the name of the node that saw them. */
export function discoveredOn(nodes: readonly NodeFacts[]): ReadonlyMap<PublicKey, readonly IpEndpoint[]> {
  const seen = new Map<PublicKey, IpEndpoint[]>();
  for (const { discovered } of nodes) {
    if (!discovered?.result.ok) continue;
    for (const [key, { host, port }] of discovered.result.value) {
      if (!("ip" in host)) continue;
      const endpoint = ipEndpoint(host.ip, port);
      const list = seen.get(key);
      if (list === undefined) seen.set(key, [endpoint]);
      else if (list.length < viewsMax && list.every((other) => other.text !== endpoint.text)) list.push(endpoint);
    }
  }
  return seen;
}

/** Reads back an endpoint that a Peer already carries, if it is an address. */
export function carriedEndpoint(field: Field | undefined): IpEndpoint | undefined {
  const parsed = parseEndpoint(typeof field === "string" ? field : "");
  if (!parsed.ok || !("ip" in parsed.value.host)) return undefined;
  return ipEndpoint(parsed.value.host.ip, parsed.value.port);
}

function ipEndpoint(ip: Address, port: number): IpEndpoint {
  const endpoint: Endpoint = endpointOfIp(ip, port);
  return { ip, port, text: formatEndpoint(endpoint) };
}

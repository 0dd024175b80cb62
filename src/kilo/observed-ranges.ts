import { CidrIndex } from "../core/net/cidr-index.ts";
import { type Cidr, hostRoute } from "../core/net/cidr.ts";
import type { KiloFacts } from "./facts.ts";
import type { Entry } from "./intent.ts";

/** What a cluster is seen to use itself, by range: nobody else may claim any of it there. */
export function observedRanges(facts: KiloFacts): CidrIndex<string> {
  const found: [Cidr, string][] = facts.serviceRanges.map((cidr) => [cidr, `service range ${cidr}`]);
  for (const node of facts.nodes) {
    for (const { result } of node.podCidrs) {
      if (result.ok) found.push([result.value, `pod range ${result.value} of node ${node.name}`]);
    }
    for (const address of [...node.internalIps, ...node.externalIps]) {
      found.push([hostRoute(address), `address ${address} of node ${node.name}`]);
    }
    if (node.wireguardIp?.result.ok) {
      const address = node.wireguardIp.result.value;
      found.push([hostRoute(address), `WireGuard IP ${address} of node ${node.name}`]);
    }
  }
  return new CidrIndex(found);
}

/** The first range that a source declares and the target itself is seen to use. */
export function rangeInUse(
  source: Entry,
  target: CidrIndex<string>,
): { readonly range: Cidr; readonly found: string } | undefined {
  for (const range of source.grant.all) {
    const hit = target.firstOverlap(range);
    if (hit !== undefined) return { range, found: hit.value };
  }
  return undefined;
}

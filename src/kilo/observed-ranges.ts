// What a cluster is seen to use itself. A range declared for somebody else that contains any of it would pull the
// cluster's own traffic into a tunnel. Nodes can lie, though: one node that claims what its cluster was not granted, while
// others claim what it was, is no reason to cut the pair off; only the very ranges it names are kept out.

import { appendAll } from "../core/list.ts";
import { CidrIndex } from "../core/net/cidr-index.ts";
import { type Cidr, hostRoute } from "../core/net/cidr.ts";
import type { KiloFacts } from "./facts.ts";
import type { Entry } from "./intent.ts";

type Use = readonly [Cidr, string];

/** The addresses of a cluster's nodes and its Services: what it uses whatever a mesh grants it. */
export function addressesInUse(facts: KiloFacts): CidrIndex<string> {
  const uses: Use[] = facts.serviceRanges.map((cidr) => [cidr, `service range ${cidr}`]);
  for (const { name, internalIps, externalIps } of facts.nodes) {
    for (const address of [...internalIps, ...externalIps]) {
      uses.push([hostRoute(address), `address ${address} of node ${name}`]);
    }
  }
  return new CidrIndex(uses);
}

/** What nodes claim outside the grant: believed when all of them do, doubtful when only some do. */
export type Ungranted = { readonly believed: CidrIndex<string>; readonly doubtful: CidrIndex<string> };

/** Collects the pod ranges and WireGuard addresses that lie outside what a mesh grants a cluster. */
export function ungrantedUse(facts: KiloFacts, entry: Entry): Ungranted {
  const pods: Use[] = [];
  const tunnels: Use[] = [];
  for (const { name, podCidrs, wireguardIp } of facts.nodes) {
    for (const { result } of podCidrs)
      if (result.ok) pods.push([result.value, `pod range ${result.value} of node ${name}`]);
    if (!wireguardIp?.result.ok) continue;
    const address = wireguardIp.result.value;
    tunnels.push([hostRoute(address), `WireGuard IP ${address} of node ${name}`]);
  }
  const believed: Use[] = [];
  const doubtful: Use[] = [];
  for (const { uses, isGranted } of [
    { uses: pods, isGranted: entry.grant.holdsPods },
    { uses: tunnels, isGranted: entry.grant.holdsWireguard },
  ]) {
    const outside = uses.filter(([cidr]) => !isGranted(cidr));
    appendAll(outside.length === uses.length ? believed : doubtful, outside);
  }
  return { believed: new CidrIndex(believed), doubtful: new CidrIndex(doubtful) };
}

/** The first range that a source declares and the target itself is seen to use. */
export function rangeInUse(
  source: Entry,
  used: readonly CidrIndex<string>[],
): { readonly range: Cidr; readonly found: string } | undefined {
  for (const range of source.grant.all) {
    for (const index of used) {
      const hit = index.firstOverlap(range);
      if (hit !== undefined) return { range, found: hit.value };
    }
  }
  return undefined;
}

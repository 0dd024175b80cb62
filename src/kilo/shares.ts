// Which carrier of a source gets a range that several claim: one range, one Peer.

import { type Cidr, hostRoute, networkAddress, prefixLength } from "../core/net/cidr.ts";
import type { CidrItem } from "../core/net/cidr-index.ts";
import { areDisjoint, keepDisjoint } from "../core/net/disjoint.ts";
import type { Carrier, NodeReview } from "./carriers.ts";
import type { Established } from "./established.ts";
import type { NodeFacts } from "./facts.ts";
import { alive, byFreshness } from "./granularity.ts";
import type { Entry } from "./intent.ts";
import { aboutNode } from "./node-checks.ts";

/** What a carrier may advertise: addresses inside the tunnels, and addresses of the nodes themselves. */
export type Share = { readonly overlay: readonly Cidr[]; readonly internals: readonly Cidr[] };

type Want = { readonly carrier: Carrier; readonly member: NodeFacts; readonly use: "pod" | "wireguard" | "internal" };
type Wanted = CidrItem<Want>;

/** Gives every range to one carrier: pods before WireGuard addresses before internal ones. */
export function shareOut(carriers: readonly Carrier[], review: NodeReview): ReadonlyMap<Carrier, Share> {
  const wants = (use: Want["use"], ranges: (member: Carrier["members"][number], carrier: Carrier) => readonly Cidr[]) =>
    carriers.flatMap((carrier) =>
      carrier.members.flatMap((member) =>
        ranges(member, carrier).map((cidr): Wanted => ({ cidr, value: { carrier, member: member.node, use } })),
      ),
    );
  const pods = wants("pod", (member) => member.pods);
  const hosts = [
    ...wants("wireguard", (member, carrier) => (member.node === carrier.node ? [carrier.wireguard] : [])),
    ...wants("internal", (member) => internalRoutes(member.node, review.entry)),
  ];
  const all = [...pods, ...hosts];
  const { kept, dropped } = areDisjoint(all.map(({ cidr }) => cidr))
    ? { kept: all, dropped: [] }
    : keepDisjoint(
        [
          ...podsByRight(pods, review.established),
          ...hostsByRight(hosts, alive(carriers.map(({ node }) => node)), review.established),
        ],
        ({ carrier }) => carrier,
      );
  const shares = new Map<Carrier, { overlay: Cidr[]; internals: Cidr[] }>();
  for (const carrier of carriers) shares.set(carrier, { overlay: [], internals: [] });
  for (const { cidr, value } of kept) {
    const share = shares.get(value.carrier);
    if (value.use === "internal") share?.internals.push(cidr);
    else share?.overlay.push(cidr);
  }
  for (const { item, by } of dropped) reportLoss(item, by, shares, review);
  return shares;
}

function reportLoss(
  { cidr, value: { carrier, member, use } }: Wanted,
  by: Wanted,
  shares: ReadonlyMap<Carrier, Share>,
  { place, faults, diagnostics }: NodeReview,
): void {
  if (by.value.carrier === carrier || use === "internal") return;
  const winner = by.value.member.name;
  const node = member.name;
  if (use === "wireguard") {
    diagnostics.push(aboutNode(place, node, "WGIPDuplicate", { node, address: networkAddress(cidr), winner }));
    return;
  }
  const diagnostic = aboutNode(place, node, "PodCIDRDuplicate", { node, cidr, winner });
  diagnostics.push(diagnostic);
  if (shares.get(carrier)?.overlay.length === 0) {
    faults.set(carrier.node.name, { code: "PodCIDRDuplicate", consequence: "drop", diagnostic });
  }
}

/** Who has a pod range keeps it; then the narrower claim counts, so that one wide claim cannot take everybody's. */
function podsByRight(pods: readonly Wanted[], established: Established): Wanted[] {
  const rank = new Map(pods.map((want) => [want, established.carries(want.value.carrier.key, want.cidr) ? 0 : 1]));
  return [...pods].sort(
    (a, b) =>
      (rank.get(a) ?? 1) - (rank.get(b) ?? 1) ||
      prefixLength(b.cidr) - prefixLength(a.cidr) ||
      byFreshness(a.value.member, b.value.member),
  );
}

/** WireGuard addresses before internal ones, each to the freshest; Kilo hands the former out by sort order. */
function hostsByRight(
  hosts: readonly Wanted[],
  isAlive: (node: NodeFacts) => boolean,
  established: Established,
): Wanted[] {
  const rank = new Map(
    hosts.map((want) => {
      const { carrier, use } = want.value;
      const keeps = isAlive(carrier.node) && established.carries(carrier.key, want.cidr);
      return [want, (use === "wireguard" ? 0 : 2) + (keeps ? 0 : 1)];
    }),
  );
  return [...hosts].sort(
    (a, b) => (rank.get(a) ?? 0) - (rank.get(b) ?? 0) || byFreshness(a.value.carrier.node, b.value.carrier.node),
  );
}

/** Host routes of a node's internal addresses, only where the cluster was granted them; no node lives among Services. */
export const internalRoutes = (node: NodeFacts, entry: Entry): readonly Cidr[] =>
  node.internalIps.map((address) => hostRoute(address)).filter((route) => entry.grant.holdsHost(route));

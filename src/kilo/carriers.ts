// Which nodes of a source hold tunnels, and for whom: every node for itself, or the leader for its location.

import { type Diagnostic, listSome } from "../core/diagnostic.ts";
import { appendAll, appendTo } from "../core/list.ts";
import type { Address } from "../core/net/address.ts";
import { type Cidr, hostRoute, isHostRoute, networkAddress } from "../core/net/cidr.ts";
import type { PublicKey } from "../core/net/public-key.ts";
import { ok } from "../core/result.ts";
import { at, diagnose } from "./diagnostics.ts";
import type { Leader } from "./election.ts";
import type { Established } from "./established.ts";
import type { KiloFacts, NodeFacts } from "./facts.ts";
import { alive, byFreshness, granularityOf, segmentsOf } from "./granularity.ts";
import type { Entry } from "./intent.ts";
import { aboutNode, checkPods, checkTunnel, type NodeFault, type Place } from "./node-checks.ts";

/** A tunnel holder with the nodes it carries and their pod ranges. */
export type Carrier = {
  readonly node: NodeFacts;
  readonly key: PublicKey;
  readonly wireguard: Cidr;
  readonly members: readonly { readonly node: NodeFacts; readonly pods: readonly Cidr[] }[];
  /** Which ranges its Peer keeps although no node claims them now: those of members that cannot be read at the moment. */
  readonly retains: ((claim: Cidr) => boolean) | undefined;
};

/** What the nodes of a source are checked against, and where what is found goes. */
export type NodeReview = {
  readonly entry: Entry;
  readonly place: Place;
  readonly established: Established;
  readonly faults: Map<string, NodeFault>;
  readonly diagnostics: Diagnostic[];
};

/** The same, with who leads each location, where that can be told before it is published. */
type LocationReview = NodeReview & { readonly leaders: ReadonlyMap<string, Leader> };

/** Checks the selected nodes of a source and finds its carriers, one for each key, by node name. */
export function findCarriers(
  facts: KiloFacts,
  selected: readonly NodeFacts[],
  review: LocationReview,
): readonly Carrier[] {
  const { mode, diagnostics } = granularityOf(facts.nodes, review.place);
  appendAll(review.diagnostics, diagnostics);
  if (mode === "location") {
    return onePerKey(locationCarriers(facts, selected, review), review);
  }
  return onePerKey(nodeCarriers(selected, mode === "unknown" ? behindLeaders(selected) : undefined, review), review);
}

/** Without a granularity, nodes without a WireGuard address may be behind a leader, which then still carries their pods. */
function behindLeaders(nodes: readonly NodeFacts[]): Carrier["retains"] {
  const pods = nodes
    .filter((node) => node.wireguardIp === undefined)
    .flatMap((node) => node.podCidrs.flatMap(({ result }) => (result.ok ? [result.value] : [])));
  if (pods.length === 0) return undefined;
  const ranges = new Set(pods);
  return (claim) => ranges.has(claim);
}

function nodeCarriers(
  nodes: readonly NodeFacts[],
  retains: Carrier["retains"],
  { entry, place, faults, diagnostics }: NodeReview,
): Carrier[] {
  return nodes.flatMap((node) => {
    const pods = checkPods(node, entry, place);
    const tunnel = pods.ok ? checkTunnel(node, entry, place) : pods;
    if (!pods.ok || !tunnel.ok) {
      if (!tunnel.ok) faults.set(node.name, tunnel.error);
      return [];
    }
    appendAll(diagnostics, pods.value.warnings);
    const { key, wireguard } = tunnel.value;
    return [{ node, key, wireguard: hostRoute(wireguard), members: [{ node, pods: pods.value.pods }], retains }];
  });
}

function locationCarriers(facts: KiloFacts, selected: readonly NodeFacts[], review: LocationReview): Carrier[] {
  const { entry, place, established, faults, diagnostics } = review;
  const anyUnreadable = facts.unreadable.some((object) => object.kind === "Node");
  const wasLeader = ({ name, key }: NodeFacts): boolean =>
    key !== undefined && key.result.ok && established.standsFor(key.result.value, name);
  return segmentsOf(selected, wasLeader).flatMap(({ location, leader: published, members }) => {
    const elected = electedAmong(members, facts, review);
    const leader = elected?.leader ?? published;
    const carried = members.flatMap((node) => {
      const pods = checkPods(node, entry, place);
      if (!pods.ok) {
        faults.set(node.name, pods.error);
        return [];
      }
      appendAll(diagnostics, pods.value.warnings);
      return [{ node, pods: pods.value.pods }];
    });
    const tunnel = elected?.tunnel ?? (published && checkTunnel(published, entry, place));
    if (leader !== undefined && tunnel?.ok) {
      const { key, wireguard } = tunnel.value;
      const isPassing = members.some(({ name }) => faults.has(name) && faults.get(name)?.consequence !== "drop");
      const retains =
        anyUnreadable || isPassing ? (claim: Cidr) => entry.grant.holdsPods(claim) && !isHostRoute(claim) : undefined;
      return [{ node: leader, key, wireguard: hostRoute(wireguard), members: carried, retains }];
    }
    if (leader !== undefined && tunnel?.ok === false && !faults.has(leader.name)) faults.set(leader.name, tunnel.error);
    const where = at(place.mesh, place.cluster, "Cluster", place.cluster);
    const values = { location, nodes: listSome(members.map((node) => node.name)) };
    const diagnostic = diagnose("LocationNoLeader", where, values);
    for (const { name } of members) {
      if (!faults.has(name)) faults.set(name, { code: "LocationNoLeader", consequence: "grace", diagnostic });
    }
    return [];
  });
}

/**
 * The elected leader of a location with its tunnel, if it can stand for it. Its address may not be published yet: then it
 * is the one the location has had, and goes through the same checks as one that is.
 */
function electedAmong(members: readonly NodeFacts[], facts: KiloFacts, review: LocationReview) {
  const [first] = members;
  const elected = first?.hasInternalIp === true ? review.leaders.get(first.location) : undefined;
  if (elected === undefined || !members.includes(elected.node)) return undefined;
  const { node: leader } = elected;
  const address = leader.wireguardIp === undefined ? addressFor(elected, facts, review) : undefined;
  const wireguardIp = address === undefined ? leader.wireguardIp : { text: address, result: ok(address) };
  const tunnel = checkTunnel({ ...leader, wireguardIp }, review.entry, review.place);
  return tunnel.ok ? { leader, tunnel } : undefined;
}

/**
 * The address of a location whose leader has changed: WireGuard addresses belong to locations, not to nodes. It is the one
 * that a former leader still shows, else the last one that was published, else the one beside the location's pod ranges on
 * their Peer. Not if there are several, nor if a node elsewhere shows it: then the agents are giving out addresses again.
 */
function addressFor({ node: leader, address: last }: Leader, { nodes }: KiloFacts, review: NodeReview) {
  const isHere = (node: NodeFacts): boolean => node.hasInternalIp && node.location === leader.location;
  const members = nodes.filter(isHere);
  const shown = new Set(members.flatMap(shownBy));
  const carried = (): ReadonlySet<Address> => carriedBeside(members, nodes, review);
  const found = shown.size > 0 ? shown : last === undefined ? carried() : new Set([last]);
  const [address] = found;
  const isTaken = nodes.some((node) => !isHere(node) && shownBy(node).some((each) => each === address));
  return found.size === 1 && !isTaken ? address : undefined;
}

const shownBy = ({ wireguardIp }: NodeFacts): readonly Address[] =>
  wireguardIp?.result.ok === true ? [wireguardIp.result.value] : [];

function carriedBeside(
  members: readonly NodeFacts[],
  nodes: readonly NodeFacts[],
  { entry, established }: NodeReview,
): ReadonlySet<Address> {
  const pods = members.flatMap((node) => node.podCidrs.flatMap(({ result }) => (result.ok ? [result.value] : [])));
  const internal = new Set(nodes.flatMap(({ internalIps }) => internalIps));
  const routes = pods.flatMap((range) => [...established.hostsBeside(range)]);
  const own = routes.filter((route) => entry.grant.holdsWireguard(route) && !pods.includes(route));
  return new Set(own.map(networkAddress).filter((address) => !internal.has(address)));
}

/** Kilo and WireGuard know a peer by its key: of several nodes with one key, the freshest is used. */
function onePerKey(carriers: readonly Carrier[], review: NodeReview): readonly Carrier[] {
  const byKey = new Map<PublicKey, Carrier[]>();
  for (const carrier of carriers) appendTo(byKey, carrier.key, carrier);
  if (byKey.size === carriers.length) return carriers;
  const kept = new Set<Carrier>();
  for (const [key, group] of byKey) {
    const isAlive = alive(group.map(({ node }) => node));
    const rank = (carrier: Carrier): number =>
      isAlive(carrier.node) && review.established.standsFor(key, carrier.node.name) ? 0 : 1;
    const [winner, ...losers] =
      group.length === 1 ? group : [...group].sort((a, b) => rank(a) - rank(b) || byFreshness(a.node, b.node));
    if (winner === undefined) continue;
    kept.add(winner);
    if (losers.length === 0) continue;
    const names = losers.map((loser) => loser.node.name);
    const values = { key, winner: winner.node.name, losers: names };
    const diagnostic = aboutNode(review.place, winner.node.name, "PublicKeyDuplicate", values);
    for (const name of names) review.faults.set(name, { code: "PublicKeyDuplicate", consequence: "drop", diagnostic });
    review.diagnostics.push(diagnostic);
  }
  return carriers.filter((carrier) => kept.has(carrier));
}

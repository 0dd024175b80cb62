// What kg makes of the nodes and Peers it counts in: segments with WireGuard addresses by position, and from them the
// device that it wants. `full` has one segment per node, `location` one per location with a leader.

import type { Wanted, WantedPeer } from "./device.ts";
import { ipv4Network, ipv4Text, isPublicAddress } from "./host-port.ts";
import { discoveredBy, type NodeCore } from "./node.ts";
import type { AgentPeer } from "./peer.ts";

/** What a topology is made from; only what is ready, every name resolved. */
export type TopologyInput = {
  readonly self: NodeCore;
  readonly key: string;
  readonly nodes: readonly NodeCore[];
  readonly peers: readonly AgentPeer[];
  readonly subnet: string;
  readonly granularity: "full" | "location";
  /** Endpoints that the node's own device knows, by key. */
  readonly discovered: ReadonlyMap<string, string>;
  /** The address and port of a node's endpoint. */
  readonly nodeAddress: (core: NodeCore) => string | undefined;
  /** The address and port of a Peer's endpoint. */
  readonly peerAddress: (peer: AgentPeer) => string | undefined;
};

/** A node's view of its cluster. */
export type Topology = {
  /** The node that holds the tunnels of this one: itself, or the leader of its location. */
  readonly leader: string;
  /** With the mask of the subnet; empty for a node that does not lead. */
  readonly wireguardIp: string;
  readonly wanted: Wanted;
};

/** The topology; nothing, if the subnet has no address left. */
export function topologyOf(input: TopologyInput): Topology | undefined {
  const segments = segmentsOf(input);
  const subnet = ipv4Network(input.subnet);
  if (subnet === undefined || segments.length >= 2 ** (32 - subnet.bits)) return undefined;
  const discovered = allDiscovered(input, segments);
  const peers: WantedPeer[] = [];
  let [leader, wireguardIp] = ["", ""];
  for (const [index, segment] of segments.entries()) {
    const address = ipv4Text(subnet.first + index + 1);
    if (segment.location === locationOf(input.self, input)) {
      leader = segment.leader.name;
      wireguardIp = leader === input.self.name ? `${address}/${subnet.bits}` : "";
      continue;
    }
    const networks = [...segment.nodes.flatMap(networksOf), `${address}/32`];
    const { name, key, keepaliveS } = segment.leader;
    const endpoint = (keepaliveS === 0 ? undefined : discovered.get(key)) ?? input.nodeAddress(segment.leader);
    peers.push({ publicKey: key, name, kind: "node", allowedIPs: networks, networks, endpoint, presharedKey: "" });
  }
  addPeers(peers, input, discovered);
  const { key, self } = input;
  const byKey = peers.toSorted((a, b) => (a.publicKey < b.publicKey ? -1 : a.publicKey > b.publicKey ? 1 : 0));
  const wanted = { publicKey: key, listenPort: self.endpoint?.port ?? 0, keepaliveS: self.keepaliveS, peers, byKey };
  return { leader, wireguardIp, wanted };
}

type Segment = { readonly location: string; readonly nodes: readonly NodeCore[]; readonly leader: NodeCore };

function segmentsOf(input: TopologyInput): readonly Segment[] {
  const byLocation = new Map<string, NodeCore[]>();
  for (const node of input.nodes) {
    const location = locationOf(node, input);
    const nodes = byLocation.get(location);
    if (nodes === undefined) byLocation.set(location, [node]);
    else nodes.push(node);
  }
  return Array.from(byLocation, ([location, unsorted]) => {
    const nodes = unsorted.sort((a, b) => (a.name < b.name ? -1 : 1));
    return { location, nodes, leader: leaderOf(nodes, input) ?? input.self };
  }).sort((a, b) => (a.location < b.location ? -1 : 1));
}

const locationOf = ({ name, location, internalIp }: NodeCore, { granularity }: TopologyInput): string =>
  granularity === "full" || internalIp === "" ? `node:${name}` : `location:${location}`;

/** A node that volunteers, with a public endpoint if possible; else one with a public endpoint; else the first. */
function leaderOf(nodes: readonly NodeCore[], input: TopologyInput): NodeCore | undefined {
  if (nodes.length < 2) return nodes[0];
  const isPublic = (node: NodeCore): boolean => {
    const address = input.nodeAddress(node);
    return address !== undefined && isPublicAddress(address.slice(0, address.lastIndexOf(":")));
  };
  const volunteers = nodes.filter(({ isLeader }) => isLeader);
  return volunteers.find(isPublic) ?? volunteers[0] ?? nodes.find(isPublic) ?? nodes[0];
}

function networksOf({ podCidr, internalIp }: NodeCore): readonly string[] {
  return internalIp === "" ? [podCidr] : [podCidr, `${internalIp.slice(0, internalIp.indexOf("/"))}/32`];
}

/** The node's own come first, then those of other nodes in the order of the segments. */
function allDiscovered(input: TopologyInput, segments: readonly Segment[]): ReadonlyMap<string, string> {
  const others = segments.flatMap(({ nodes }) => nodes.filter(({ discovered }) => discovered !== ""));
  if (others.length === 0) return input.discovered;
  const all = new Map(input.discovered);
  for (const node of others) {
    if (node.name === input.self.name) continue;
    for (const [key, endpoint] of discoveredBy(node)) if (!all.has(key)) all.set(key, endpoint);
  }
  return all;
}

/** An equal network of two Peers stays with the first by name; only the text counts. */
function addPeers(list: WantedPeer[], input: TopologyInput, discovered: ReadonlyMap<string, string>): void {
  const taken = new Set<string>();
  for (const peer of input.peers.toSorted((a, b) => (a.name < b.name ? -1 : a.name > b.name ? 1 : 0))) {
    const { publicKey, name, presharedKey } = peer;
    let isWhole = true;
    for (const network of peer.allowedIPs) {
      if (taken.has(network)) isWhole = false;
      else taken.add(network);
    }
    const { allowedIPs, networks } = isWhole ? peer : withoutTaken(peer, list);
    const endpoint = (peer.keepaliveS === 0 ? undefined : discovered.get(publicKey)) ?? input.peerAddress(peer);
    list.push({ publicKey, name, kind: "peer", allowedIPs, networks, endpoint, presharedKey });
  }
}

function withoutTaken(peer: AgentPeer, list: readonly WantedPeer[]): Pick<WantedPeer, "allowedIPs" | "networks"> {
  const taken = new Set(list.flatMap(({ kind, allowedIPs }) => (kind === "peer" ? allowedIPs : [])));
  const kept: number[] = [];
  for (const [index, network] of peer.allowedIPs.entries()) {
    if (taken.has(network)) continue;
    taken.add(network);
    kept.push(index);
  }
  const pick = (texts: readonly string[]): readonly string[] => kept.map((index) => texts[index] ?? "");
  const allowedIPs = pick(peer.allowedIPs);
  return { allowedIPs, networks: peer.networks === peer.allowedIPs ? allowedIPs : pick(peer.networks) };
}

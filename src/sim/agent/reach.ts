// From many agents' devices to which pod reaches which. A path is open when a packet and its answer both pass: keys,
// allowed IPs, endpoints, underlay, routes, and no session lost a moment ago.

import type { Agent } from "./agent.ts";
import { backAtMs, type Device, type DevicePeer } from "./device.ts";
import { ipv4Network, ipv4Number } from "./host-port.ts";
import { PrefixTable } from "./prefix-table.ts";
import { type Router, type Underlay, wireguardBytes } from "./underlay.ts";

/** A node with pods. */
export type Station = { readonly cluster: string; readonly agent: Agent; readonly podCidr: string | undefined };

/** One end of a path. */
export type PathEnd = { readonly cluster: string; readonly node: string };

/** Whether the pods of one node reach the pods of another; `why` not, in a sentence. */
export type Path = {
  readonly from: PathEnd;
  readonly to: PathEnd;
  readonly open: boolean;
  readonly why?: string;
};

/**
 * Every ordered pair of nodes of different clusters. Traffic is taken to flow both ways, so one right endpoint is enough
 * for a tunnel. As long as nothing changes, the same stations get the same list.
 */
export function reachability(stations: readonly Station[], nowMs: number, underlay?: Underlay): readonly Path[] {
  const version = versionOf(stations, underlay);
  const first = stations[0]?.agent;
  if (first === undefined || version === undefined) return computed(stations, nowMs, underlay).paths;
  const known = answers.get(first);
  if (known !== undefined && isGood(known, stations, { version, nowMs, underlay })) return known.paths;
  const answer = computed(stations, nowMs, underlay);
  answers.set(first, { stations: [...stations], version, underlay, fromMs: nowMs, ...answer });
  return answer.paths;
}

/** Tells every agent where the handshakes of its open tunnels come from: devices roam, and agents publish what they saw. */
export function shakeHands(stations: readonly Station[], nowMs: number, underlay?: Underlay): void {
  const sites = sitesOf(stations, underlay);
  for (const { from, to } of reachability(stations, nowMs, underlay).filter(({ open }) => open)) {
    const [near, far] = [sites.byEnd.get(from)?.gate, sites.byEnd.get(to)?.gate];
    if (near === undefined || far === undefined) continue;
    const seen = isRouted(near, far) ? far.router.send(far.endpoint, addressOf(near)) : far.endpoint;
    near.agent.heard(far.device.publicKey, seen);
  }
}

/** Remembers since when each path has been closed. */
export class Reach {
  readonly #ids = new Map<string, number>();
  #closed = new Map<number, number>();
  #last: readonly Path[] | undefined;

  /** Takes in what `reachability` says now. */
  update(paths: readonly Path[], nowMs: number): void {
    if (paths === this.#last) return;
    const closed = new Map<number, number>();
    let [end, fromId]: [PathEnd | undefined, number] = [undefined, 0];
    for (const { from, to, open } of paths) {
      if (open) continue;
      if (from !== end) [end, fromId] = [from, this.#id(from)];
      const key = fromId * endsMax + this.#id(to);
      closed.set(key, this.#closed.get(key) ?? nowMs);
    }
    this.#closed = closed;
    this.#last = paths;
  }

  /** Since when a path has been closed; nothing, if it is open or unknown. */
  closedSinceMs(from: PathEnd, to: PathEnd): number | undefined {
    return this.#closed.get(this.#id(from) * endsMax + this.#id(to));
  }

  #id(end: PathEnd): number {
    const text = `${end.cluster}/${end.node}`;
    let id = this.#ids.get(text);
    if (id === undefined) {
      id = this.#ids.size;
      this.#ids.set(text, id);
    }
    return id;
  }
}

const endsMax = 2 ** 20;

type Answer = { readonly paths: readonly Path[]; readonly untilMs: number };
type Remembered = Answer & {
  readonly stations: readonly Station[];
  readonly version: number;
  readonly underlay: Underlay | undefined;
  readonly fromMs: number;
};
type Moment = { readonly version: number; readonly nowMs: number; readonly underlay: Underlay | undefined };

/** The last answer about a list of stations, by the first of them. */
const answers = new WeakMap<Agent, Remembered>();
const tables = new WeakMap<readonly DevicePeer[], PrefixTable>();

function isGood(known: Remembered, stations: readonly Station[], { version, nowMs, underlay }: Moment): boolean {
  if (known.version !== version || known.underlay !== underlay) return false;
  if (nowMs < known.fromMs || nowMs >= known.untilMs || known.stations.length !== stations.length) return false;
  return stations.every(({ cluster, agent, podCidr }, index) => {
    const then = known.stations[index];
    return then?.agent === agent && then.cluster === cluster && then.podCidr === podCidr;
  });
}

/** Each of the numbers only grows, so that their sum says whether any did. */
function versionOf(stations: readonly Station[], underlay: Underlay | undefined): number | undefined {
  if (underlay !== undefined && underlay.version === undefined) return undefined;
  return stations.reduce((sum, { agent }) => sum + agent.version(), underlay?.version?.() ?? 0);
}

/** A node that holds tunnels. */
type Gate = {
  readonly agent: Agent;
  readonly device: Device;
  readonly table: PrefixTable;
  readonly address: string;
  readonly number: number;
  readonly endpoint: string;
  /** What it is behind. */
  readonly router: Router | undefined;
  /** Why nothing passes it at all. */
  readonly fault: string | undefined;
};

/** A station with what every one of its pairs needs. */
type Site = {
  readonly end: PathEnd;
  readonly pod: number | undefined;
  readonly gate: Gate | undefined;
  readonly device: Device;
  readonly address: string;
};

function sitesOf(stations: readonly Station[], underlay: Underlay | undefined) {
  const gates = new Map<string, Gate>();
  const sites: Site[] = [];
  const byEnd = new Map<PathEnd, Site>();
  for (const { cluster, agent } of stations) gates.set(`${cluster}/${agent.node}`, gateOf(agent, underlay));
  for (const station of stations) {
    const { cluster, agent, podCidr } = station;
    const network = podCidr === undefined ? undefined : ipv4Network(podCidr);
    // The first address is the bridge's in most networks of pods.
    const pod = network === undefined ? undefined : network.first + (network.bits <= 30 ? 2 : 0);
    const end = endOf(station);
    const gate = gates.get(`${cluster}/${agent.leader()}`);
    const site = { end, pod, gate, device: agent.device(), address: agent.address };
    sites.push(site);
    byEnd.set(end, site);
  }
  return { sites, byEnd };
}

const ends = new WeakMap<Agent, PathEnd>();

/** The same value for the same node, so that ends can be told apart by identity. */
function endOf({ cluster, agent }: Station): PathEnd {
  const known = ends.get(agent);
  if (known?.cluster === cluster) return known;
  const end = { cluster, node: agent.node };
  ends.set(agent, end);
  return end;
}

function gateOf(agent: Agent, underlay: Underlay | undefined): Gate {
  const device = agent.device();
  let table = tables.get(device.peers);
  if (table === undefined) {
    table = new PrefixTable(device.peers);
    tables.set(device.peers, table);
  }
  const { address } = agent;
  const fault = device.publicKey === "" || !device.isUp ? sentences.down : undefined;
  const endpoint = `${address}:${device.listenPort}`;
  const router = underlay?.routerOf?.(address);
  return { agent, device, table, address, number: ipv4Number(address) ?? 0, endpoint, router, fault };
}

const sentences = {
  noPods: "one of the nodes has no pod range",
  down: "the WireGuard device of one of the nodes is down or was never written",
  unrouted: "the agent of one of the nodes was stopped gracefully and took the routes with it",
  lostPods: "a Peer with the pod range of one of the nodes took the route to that node's pods",
  noLeader: "the leader of one of the nodes' locations is unknown or out of its reach",
  noPeer: "the sender's device has no peer for the target's pods",
  otherKey: "the sender's device sends to another key than the target's device runs with",
  noSource: "the target's device has no peer for the sender's pods",
  otherSource: "the target's device expects the sender's pods under another key than the sender's device runs with",
  preshared: "the two devices have different preshared keys for each other",
  cut: "the underlay does not carry packets between the two nodes both ways",
  tooLarge: "the underlay loses packets of that size between the two nodes",
  noEndpoint: "neither device has the other's right endpoint",
  lost: "one of the devices was written anew and the session is not back yet",
} as const;

function computed(stations: readonly Station[], nowMs: number, underlay: Underlay | undefined): Answer {
  const { sites } = sitesOf(stations, underlay);
  const paths: Path[] = [];
  const scan = new Scan(nowMs, underlay);
  for (const from of sites) {
    for (const to of sites) {
      if (from.end.cluster === to.end.cluster) continue;
      const why = scan.fault(from, to);
      const [source, target] = [from.end, to.end];
      paths.push(
        why === undefined ? { from: source, to: target, open: true } : { from: source, to: target, open: false, why },
      );
    }
  }
  return { paths, untilMs: scan.untilMs };
}

/** One look at all pairs at one moment. */
class Scan {
  /** When the first lost session comes back. */
  untilMs = Number.POSITIVE_INFINITY;
  readonly #nowMs: number;
  readonly #underlay: Underlay | undefined;

  constructor(nowMs: number, underlay: Underlay | undefined) {
    this.#nowMs = nowMs;
    this.#underlay = underlay;
  }

  /** Why a path is closed. */
  fault(from: Site, to: Site): string | undefined {
    if (from.pod === undefined || to.pod === undefined) return sentences.noPods;
    const local = this.#localFault(from) ?? this.#localFault(to);
    if (local !== undefined) return local;
    const [near, far] = [from.gate, to.gate];
    if (near === undefined || far === undefined) return sentences.noLeader;
    const there = near.table.find(to.pod);
    if (there === undefined) return sentences.noPeer;
    if (there.publicKey !== far.device.publicKey) return sentences.otherKey;
    const back = far.table.find(from.pod);
    if (back === undefined) return sentences.noSource;
    if (back.publicKey !== near.device.publicKey) return sentences.otherSource;
    if (there.presharedKey !== back.presharedKey) return sentences.preshared;
    if (!this.#carries(near.address, far.address)) return sentences.cut;
    if (!this.#fits(near.address, far.address)) return sentences.tooLarge;
    if (!knows(near, there, far) && !knows(far, back, near)) return sentences.noEndpoint;
    return this.#isLost(near, there, far, back) ? sentences.lost : undefined;
  }

  #localFault({ device, gate, address }: Site): string | undefined {
    if (!device.isRouted) return device.writes === 0 ? sentences.down : sentences.unrouted;
    if (device.hasLostPods) return sentences.lostPods;
    if (gate === undefined) return sentences.noLeader;
    if (gate.fault !== undefined) return gate.fault;
    if (gate.address !== address && !this.#carries(gate.address, address)) return sentences.noLeader;
    return undefined;
  }

  #carries(a: string, b: string): boolean {
    return this.#underlay === undefined || (this.#underlay.carries(a, b) && this.#underlay.carries(b, a));
  }

  #fits(a: string, b: string): boolean {
    const { mtu, packetBytes } = this.#underlay ?? {};
    if (mtu === undefined || packetBytes === undefined) return true;
    return packetBytes + wireguardBytes <= Math.min(mtu(a, b), mtu(b, a));
  }

  #isLost(near: Gate, there: DevicePeer, far: Gate, back: DevicePeer): boolean {
    const backMs = backAtMs(near.device, far.device, Math.max(there.sinceMs, back.sinceMs));
    if (backMs <= this.#nowMs) return false;
    this.untilMs = Math.min(this.untilMs, backMs);
    return true;
  }
}

/** Whether a device would send to the other's real endpoint. A Peer whose networks hold that address swallows its own tunnel. */
function knows(near: Gate, peer: DevicePeer, far: Gate): boolean {
  if (!isRouted(near, far)) return peer.endpoint === far.endpoint && near.table.find(far.number)?.kind !== "peer";
  const seen = far.router.seenBy(addressOf(near), far.endpoint);
  const number = ipv4Number(far.router.address) ?? 0;
  return seen !== undefined && peer.endpoint === seen && near.table.find(number)?.kind !== "peer";
}

/** Whether one node sees another only through the router that the other one is behind. */
const isRouted = (near: Gate, far: Gate): far is Gate & { readonly router: Router } =>
  far.router !== undefined && far.router !== near.router;

/** Where the packets of a node come from, as far as others can tell. */
const addressOf = ({ router, address }: Gate): string => router?.address ?? address;

// Who leads each location, by the rule that Kilo's agents themselves follow. They switch within a moment and say so at
// their next check-in, up to 30 s later; who knows the rule need not wait. Where the evidence has a gap nobody is elected,
// and what the agents publish decides.
//
//   by the rule      publishes           then leads
//   P                P, or nobody        P
//   P                O, alive            P, if the rule said O until now, and until both have checked in without a change
//   P                O, dead             P, until P has checked in later than it must have taken over
//   P                O otherwise         O: the agents know something that we do not
//   ?                anybody             whoever publishes (granularity.ts)

import { appendTo } from "../core/list.ts";
import type { Address } from "../core/net/address.ts";
import { type Cidr, containsAddress, parseCidr } from "../core/net/cidr.ts";
import { compareText } from "../core/world.ts";
import type { KiloFacts, NodeFacts } from "./facts.ts";
import { agentReadySeconds } from "./granularity.ts";

/** What a plan knows of a location's leader, for the next one. */
export type Led = {
  /** Whether what the agents publish agrees with the rule, is awaited to, or has failed to. */
  readonly state: "agreed" | "awaited" | "refuted";
  /** Who leads by the rule. */
  readonly node: string;
  /** The WireGuard address that a live leader published last: it belongs to the location, and stays when the leader goes. */
  readonly address: Address | undefined;
  /** The last check-ins of everybody concerned when the wait began, by name. */
  readonly checkIns: ReadonlyMap<string, number>;
  /** Members that were passed over because their agents are silent. */
  readonly silent: ReadonlySet<string>;
};

/** The leader of a location, and the address that the location had last, if it is known. */
export type Leader = { readonly node: NodeFacts; readonly address: Address | undefined };

/** The leaders of a cluster's locations, as far as they can be told. */
export type Election = {
  /** By location. */
  readonly leaders: ReadonlyMap<string, Leader>;
  /** By location, for the next plan. */
  readonly led: ReadonlyMap<string, Led>;
  /** When to look again although nothing is announced: check-ins are not, and neither is their absence. */
  readonly againSeconds: number | undefined;
};

/** The agents drop a silent leader 60 to 90 s after its last check-in, each when it next looks; this is the middle. */
const silentAfterSeconds = 75;
/**
 * An agent that was passed over counts again when it is no later than a healthy one. Between the two limits lies more
 * than the 30 s between check-ins: a clock that is wrong by a constant moves a leader once, not to and fro.
 */
const backWithinSeconds = 35;
/** By then a successor has switched and checked in after it, twice if need be. */
const confirmedBySeconds = 125;
/** While a check-in decides: the last of a silent leader, or the next of those who contradict the rule. */
const watchSeconds = 5;

/** Elects the leader of each location of a cluster in `location` mode. `before` is what the last plan knew, by location. */
export function electLeaders({ nodes, unreadable }: KiloFacts, before: ReadonlyMap<string, Led>): Election {
  const leaders = new Map<string, Leader>();
  const led = new Map<string, Led>();
  let againSeconds: number | undefined;
  const isClear =
    !unreadable.some(({ kind }) => kind === "Node") &&
    nodes.some(({ granularity }) => granularity === "location") &&
    nodes.every(({ granularity }) => granularity === undefined || granularity === "location");
  if (!isClear) return { leaders, led, againSeconds };
  const latest = nodes.reduce((most, node) => Math.max(most, node.lastSeen ?? -1), -1);
  for (const [location, members] of byLocation(nodes)) {
    const outcome = elect(members, latest, before.get(location));
    if (outcome === undefined) continue;
    const { leader: node } = outcome;
    led.set(location, outcome.led);
    if (node !== undefined) leaders.set(location, { node, address: outcome.led.address });
    if (members.length === 1) continue;
    const leftSeconds = silentAfterSeconds - (latest - (node?.lastSeen ?? latest));
    const inSeconds =
      outcome.led.state === "awaited" && outcome.isContradicted ? watchSeconds : Math.max(watchSeconds, leftSeconds);
    againSeconds = Math.min(againSeconds ?? inSeconds, inSeconds);
  }
  return { leaders, led, againSeconds };
}

function byLocation(nodes: readonly NodeFacts[]): ReadonlyMap<string, readonly NodeFacts[]> {
  const found = new Map<string, NodeFacts[]>();
  for (const node of nodes) if (node.hasInternalIp) appendTo(found, node.location, node);
  return found;
}

type Outcome = {
  readonly leader: NodeFacts | undefined;
  readonly led: Led;
  /** Whether another node shows the location's address. */
  readonly isContradicted: boolean;
};

function elect(members: readonly NodeFacts[], latest: number, before: Led | undefined): Outcome | undefined {
  // A clean stop takes everything away that the agent publishes; whoever has lost only a part of it is a riddle.
  if (members.some((node) => node.published !== "nothing" && !isWhole(node))) return undefined;
  const running = members.filter(isWhole);
  const isUp = upAmong(running, latest, before);
  const up = running.filter(isUp);
  const node = leaderByRule(up);
  if (node === undefined) return undefined;
  const publishers = up.filter(({ wireguardIp }) => wireguardIp !== undefined);
  // One location has one address. With two, the agents group their nodes in another way than we do.
  if (new Set(publishers.map(({ wireguardIp }) => wireguardIp?.text)).size > 1) return undefined;
  const silent = new Set(running.filter((each) => !isUp(each)).map(({ name }) => name));
  const checkIns: ReadonlyMap<string, number> = new Map(
    [node, ...publishers].map(({ name, lastSeen }) => [name, lastSeen ?? -1]),
  );
  const address = publishers.flatMap(({ wireguardIp }) =>
    wireguardIp?.result.ok ? [wireguardIp.result.value] : [],
  )[0];
  const led = (state: Led["state"], since = checkIns): Led => ({
    state,
    node: node.name,
    address: address ?? before?.address,
    checkIns: since,
    silent,
  });
  const dead = running.filter((each) => !isUp(each) && each.wireguardIp !== undefined);
  const isContradicted = publishers.length > 0 || dead.length > 0;
  const elected = (state: "agreed" | "awaited", since = checkIns): Outcome => ({
    leader: node,
    led: led(state, since),
    isContradicted,
  });
  const refuted: Outcome = { leader: undefined, led: led("refuted"), isContradicted };
  if (publishers.includes(node)) return elected("agreed");
  if (publishers.length === 0) {
    // Agents that are stuck never take over, and the tunnels of a leader that only lost its agent still work.
    const isLate = dead.some(({ lastSeen = -1 }) => (node.lastSeen ?? -1) - lastSeen > confirmedBySeconds);
    return isLate ? refuted : elected("awaited");
  }
  if (before === undefined || before.state === "refuted") return refuted;
  if (!publishers.every(({ name }) => before.checkIns.has(name))) return refuted;
  // The choice has just changed, or has not been refuted yet.
  if (before.node !== node.name) return elected("awaited");
  const isOver = [...checkIns].every(([name, seconds]) => seconds > (before.checkIns.get(name) ?? seconds));
  return isOver ? refuted : elected("awaited", before.checkIns);
}

/** Whether a node has everything that makes it ready in Kilo's eyes, but for the age of its check-in. */
const isWhole = ({ published, key, podCidrs, lastSeen, ...node }: NodeFacts): boolean =>
  published === "everything" &&
  key?.result.ok === true &&
  podCidrs[0]?.result.ok === true &&
  lastSeen !== undefined &&
  hostOf(node) !== undefined;

/** By the cluster's own clocks: the latest check-in of any node is now. */
function upAmong(nodes: readonly NodeFacts[], latest: number, before: Led | undefined): (node: NodeFacts) => boolean {
  const ageOf = ({ lastSeen }: NodeFacts): number => latest - (lastSeen ?? -1);
  const successors = nodes.filter((node) => node.wireguardIp !== undefined && ageOf(node) <= agentReadySeconds);
  return (node) => {
    if (before?.silent.has(node.name) === true) return ageOf(node) <= backWithinSeconds;
    const isSucceeded = successors.some((each) => each !== node);
    return ageOf(node) <= (isSucceeded ? agentReadySeconds : silentAfterSeconds);
  };
}

/**
 * Kilo's choice among nodes that are ready: volunteers before others, public endpoints before private ones, then by name.
 * Nobody, if it hangs on a DNS name: only the agents know what it resolves to.
 */
function leaderByRule(nodes: readonly NodeFacts[]): NodeFacts | undefined {
  const volunteers = nodes.filter(({ prefersToLead }) => prefersToLead);
  const pool = (volunteers.length > 0 ? volunteers : [...nodes]).sort((a, b) => compareText(a.name, b.name));
  if (pool.length < 2) return pool[0];
  if (pool.some((node) => hostOf(node) === "name")) return undefined;
  return pool.find((node) => isPublic(hostOf(node))) ?? pool[0];
}

/** The address at which Kilo's agents reach a node, or that they have a name for it. */
function hostOf({ forcedEndpoint, kiloEndpoint }: Pick<NodeFacts, "forcedEndpoint" | "kiloEndpoint">) {
  const endpoint = forcedEndpoint?.result.ok === true ? forcedEndpoint : kiloEndpoint;
  if (endpoint?.result.ok !== true) return undefined;
  const { host } = endpoint.result.value;
  return "ip" in host ? host.ip : "name";
}

/** What Kilo takes for private; everything else is public to it. */
const privateRanges: readonly Cidr[] = ["10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "fd00::/16"].flatMap(
  (text) => {
    const range = parseCidr(text);
    return range.ok ? [range.value] : [];
  },
);

const isPublic = (host: Address | "name" | undefined): boolean =>
  host !== undefined && host !== "name" && !privateRanges.some((range) => containsAddress(range, host));

// Kilo's node agent `kg` 0.7.0 and the WireGuard device it writes, in memory. Left out: IPv6 on the data plane,
// allowed-location-ips, iptables and the time they take with many Peers, routes that a bad network keeps from being set,
// and the check for the Peer CRD at the start.

import type { Clock } from "../../kube/runtime.ts";
import type { SimRequest } from "../answer.ts";
import type { SimServer } from "../server.ts";
import type { Device } from "./device.ts";
import type { DeviceDriver } from "./driver.ts";
import type { Cause } from "./event-line.ts";
import { KiloAgent } from "./kilo-agent.ts";
import type { AgentPeer } from "./peer.ts";

/** What an agent needs of an API server. */
export type AgentServer = Pick<SimServer, "listen" | "objects"> & {
  readonly handle: (request: SimRequest) => { readonly status: number };
};

/** What an agent is made of. */
export type AgentOptions = {
  /** The API server of its own cluster, or a mirror of one. */
  readonly server: AgentServer;
  /** A token of that server that may patch nodes. */
  readonly token: string;
  /** The name of its Node. A Node without any annotation makes kg panic: the agent is then not running. */
  readonly node: string;
  readonly publicKey: string;
  /** Where the node is on the underlay, IPv4. */
  readonly address: string;
  /** 51820, if not given. */
  readonly port?: number;
  /** With the interface's mask, as in `172.30.0.11/24`; none by default. */
  readonly internalIp?: string;
  /** Where its cluster's WireGuard addresses are from: `10.4.0.0/16`. */
  readonly subnet: string;
  /** `full`, if not given. */
  readonly granularity?: "full" | "location";
  readonly clock: Pick<Clock, "nowMs" | "after">;
  /** The host's resolver: a name's IPv4 address. By default no name resolves. */
  readonly resolve?: (name: string) => string | undefined;
  /**
   * Whether a check-in says when it was. Without, it says the end of tomorrow, so that a fleet at rest costs nothing and
   * an agent that crashed is never taken for dead.
   */
  readonly heartbeats?: boolean;
  /** A real device and real routes behind the model; without, both are in memory alone. */
  readonly driver?: DeviceDriver;
  /**
   * How long an apply takes, while further events wait; 35, if not given. With 0 what comes together is applied together:
   * no agent does so, but a fleet of a thousand of them under a real clock could not be shown otherwise.
   */
  readonly applyMs?: number;
  /** Hears of every key that enters or leaves its map of Peers; not of the map that is lost when it stops. */
  readonly onPeer?: (what: "added" | "evicted", publicKey: string) => void;
  /** Hears of every write of its device. */
  readonly onWrite?: (write: DeviceWrite) => void;
};

/** A write of a device, and what the agent was at. */
export type DeviceWrite = {
  readonly before: Device;
  readonly after: Device;
  readonly cause: Cause;
};

/** A node's agent and the node's WireGuard device, which outlives it. */
export type Agent = {
  readonly node: string;
  readonly address: string;
  /** The key on disk; the device runs with it from the next apply after a start. */
  readonly publicKey: () => string;
  readonly isRunning: () => boolean;
  /** Lists, checks in and applies for the first time at once, and goes on from there. */
  readonly start: () => void;
  /** Gracefully: takes its annotations back, all or none, and removes the routes. A crash leaves everything. */
  readonly stop: (how: "graceful" | "crash") => void;
  /** Replaces the key on disk; an agent that runs is restarted gracefully. */
  readonly rekey: (publicKey: string) => void;
  /** Its map of Peers by public key: what events left in it, not what the API holds. */
  readonly peers: () => ReadonlyMap<string, AgentPeer>;
  /** The WireGuard device as last written. */
  readonly device: () => Device;
  /** The node that holds this one's tunnels: itself, but for nodes that do not lead a location. */
  readonly leader: () => string;
  /** Grows whenever something that reachability depends on changes. */
  readonly version: () => number;
  /** A handshake with a peer came from there; the device sends there from now on. */
  readonly heard: (publicKey: string, endpoint: string) => void;
  /** Its watches broke and were begun anew with a list: what was deleted meanwhile stays in its memory. */
  readonly relist: () => void;
  /** Ends it without a word: no timers, no listeners left. */
  readonly close: () => void;
};

/** An agent that is not running yet. */
export function createAgent(options: AgentOptions): Agent {
  const agent = new KiloAgent(options);
  return {
    node: options.node,
    address: options.address,
    publicKey: () => agent.key,
    isRunning: () => agent.isRunning,
    start: () => agent.start(),
    stop: (how) => agent.stop(how),
    rekey: (publicKey) => agent.rekey(publicKey),
    peers: () => agent.peers.all,
    device: () => agent.device,
    leader: () => agent.leader,
    version: () => agent.version,
    heard: (publicKey, endpoint) => agent.heard(publicKey, endpoint),
    relist: () => agent.relist(),
    close: () => agent.stop("crash"),
  };
}

// The machine of a model agent: the real WireGuard device of its node, and the node's real routes.

import { spawnSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import type { Device } from "../sim/agent/device.ts";
import type { DeviceDriver } from "../sim/agent/driver.ts";
import type { NodeCore } from "../sim/agent/node.ts";
import type { Topology } from "../sim/agent/topology.ts";
import { readDump } from "./wireguard-dump.ts";

/** What a driver is made of. */
export type RealDevice = {
  readonly device: string;
  readonly node: string;
  /** The private key that the device is to run with. */
  readonly privateKey: string;
  /** Where the configuration is written before WireGuard reads it. */
  readonly scratch: string;
  /** Whether routes between nodes of one location are set. */
  readonly isLocal: boolean;
  readonly onWrite: (peers: number) => void;
};

/** Programs a real device as Kilo does: all peers at once, an address with the mask of the subnet, static routes. */
export function createRealDevice(options: RealDevice): DeviceDriver {
  const { device: name, privateKey, scratch, onWrite } = options;
  return {
    read: (written) => {
      const { publicKey, listenPort, peers } = readDump(run("wg", ["show", name, "dump"]));
      const known = new Map(written.peers.map((peer) => [peer.publicKey, peer]));
      const read = peers.map(({ publicKey: key, allowedIPs, endpoint, presharedKey }) => {
        const { kind = "peer", name: peerName = "", sinceMs = 0 } = known.get(key) ?? {};
        return { publicKey: key, name: peerName, kind, allowedIPs, endpoint, presharedKey, sinceMs } as const;
      });
      const device = {
        ...written,
        publicKey,
        listenPort,
        keepaliveS: peers[0]?.keepaliveS ?? written.keepaliveS,
        peers: read.toSorted((a, b) => (a.publicKey < b.publicKey ? -1 : 1)),
      };
      const met = peers.filter(({ handshakeS, endpoint }) => handshakeS > 0 && endpoint !== undefined);
      return { device, handshakes: new Map(met.map(({ publicKey: key, endpoint = "" }) => [key, endpoint])) };
    },
    write: (device) => {
      onWrite(device.peers.length);
      writeFileSync(scratch, configurationOf(device, privateKey), { mode: 0o600 });
      run("wg", ["setconf", name, scratch]);
    },
    lay: (topology, nodes) => {
      layAddress(name, topology);
      run("ip", ["link", "set", name, "mtu", "1420", topology.leader === options.node ? "up" : "down"]);
      layRoutes(routesOf(options, topology, nodes));
    },
    withdraw: () => layRoutes(new Set()),
  };
}

function configurationOf({ listenPort, keepaliveS, peers }: Device, privateKey: string): string {
  const lines = ["[Interface]", `PrivateKey = ${privateKey}`, `ListenPort = ${listenPort}`];
  for (const { publicKey, presharedKey, endpoint, allowedIPs } of peers) {
    lines.push("[Peer]", `PublicKey = ${publicKey}`, `AllowedIPs = ${allowedIPs.join(", ")}`);
    if (presharedKey !== "") lines.push(`PresharedKey = ${presharedKey}`);
    if (endpoint !== undefined) lines.push(`Endpoint = ${endpoint}`);
    if (keepaliveS > 0) lines.push(`PersistentKeepalive = ${keepaliveS}`);
  }
  return `${lines.join("\n")}\n`;
}

function layAddress(device: string, { wireguardIp }: Topology): void {
  const held = run("ip", ["-o", "-4", "address", "show", "dev", device]).match(/inet (\S+)/)?.[1];
  if (held === wireguardIp || (held === undefined && wireguardIp === "")) return;
  if (held !== undefined) run("ip", ["address", "delete", held, "dev", device]);
  if (wireguardIp !== "") run("ip", ["address", "add", wireguardIp, "dev", device]);
}

/** Routes as `ip route` takes them: through the tunnel on a leader, through the leader elsewhere. */
function routesOf({ device, node, isLocal }: RealDevice, topology: Topology, nodes: readonly NodeCore[]) {
  const routes = new Set<string>();
  const self = nodes.find(({ name }) => name === node);
  const leader = nodes.find(({ name }) => name === topology.leader);
  const hop = topology.leader === node ? `dev ${device}` : `via ${hostOf(leader)} onlink dev eth0`;
  const from = self === undefined || self.internalIp === "" ? "" : ` src ${hostOf(self)}`;
  for (const { networks } of topology.wanted.peers)
    for (const each of networks) routes.add(`${text(each)} ${hop}${from}`);
  if (!isLocal || self === undefined || self.internalIp === "") return routes;
  for (const { name, location, internalIp, podCidr } of nodes) {
    if (name === node || location !== self.location || internalIp === "") continue;
    routes.add(`${podCidr} via ${hostOf({ internalIp })} onlink dev eth0`);
  }
  return routes;
}

function layRoutes(wanted: ReadonlySet<string>): void {
  const held = new Set(
    run("ip", ["-o", "-4", "route", "show", "proto", "static"])
      .split("\n")
      .map((line) => line.replace(/ scope link/, "").trim())
      .filter((line) => line !== ""),
  );
  const normal = (route: string): string =>
    route.replace(/^(\S+) via (\S+) onlink dev (\S+)(.*)$/, "$1 via $2 dev $3$4 onlink");
  const normalWanted = new Set([...wanted].map(normal));
  for (const route of held) if (!normalWanted.has(route)) attempt(["route", "delete", ...route.split(" ")]);
  for (const route of wanted) {
    if (!held.has(normal(route))) attempt(["route", "replace", ...route.split(" "), "proto", "static"]);
  }
}

/** `ip` prints the route to one address without its length. */
const text = (network: string): string => network.replace(/\/32$/, "");

const hostOf = (node: Pick<NodeCore, "internalIp"> | undefined): string =>
  node === undefined ? "" : node.internalIp.slice(0, node.internalIp.indexOf("/"));

/** A route that the kernel refuses ends Kilo's update of routes; here it is logged and the others go on. */
function attempt(args: readonly string[]): void {
  const { status, stderr } = spawnSync("ip", args, { encoding: "utf8" });
  if (status !== 0) console.error(`ip ${args.join(" ")}: ${stderr.trim()}`);
}

function run(command: string, args: readonly string[]): string {
  const { status, stdout, stderr } = spawnSync(command, args, { encoding: "utf8" });
  if (status !== 0) throw new Error(`${command} ${args.join(" ")}: ${stderr.trim()}`);
  return stdout;
}

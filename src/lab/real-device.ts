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
  let machine = noMachine;
  return {
    read: (written) => {
      machine = look(name);
      const { publicKey, listenPort, peers } = readDump(machine.dump);
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
      const state = topology.leader === options.node ? "up" : "down";
      const addresses = addressChanges(name, machine.address, topology);
      // With its last address a device loses its routes. Kilo watches for that and sets them again.
      const isEmptied = addresses.length > 0 && machine.address !== undefined;
      change([
        ...(machine.isUp === (state === "up") ? [] : [`link set ${name} mtu 1420 ${state}`]),
        ...addresses,
        ...routeChanges(isEmptied ? noRoutes : machine.routes, routesOf(options, topology, nodes)),
      ]);
    },
    withdraw: () => change(routeChanges(look(name).routes, noRoutes)),
  };
}

/** What the machine says of the device and of static routes. Starting a program is dear, so one says everything. */
type Machine = {
  readonly dump: string;
  readonly isUp: boolean;
  readonly address: string | undefined;
  readonly routes: ReadonlySet<string>;
};

const noRoutes: ReadonlySet<string> = new Set();
const noMachine: Machine = { dump: "", isUp: false, address: undefined, routes: noRoutes };

function look(device: string): Machine {
  const script = `wg show ${device} dump; echo; ip -o link show dev ${device}; ip -o -4 address show dev ${device}; echo; ip -o -4 route show proto static`;
  const [dump = "", link = "", routes = ""] = run("sh", ["-ec", script]).split("\n\n");
  const lines = routes.split("\n").map((line) => line.replace(/ scope link/, "").trim());
  return {
    dump,
    isUp: /<[^>]*\bUP\b/.test(link),
    address: /inet (\S+)/.exec(link)?.[1],
    routes: new Set(lines.filter((line) => line !== "")),
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

function addressChanges(device: string, held: string | undefined, { wireguardIp }: Topology): readonly string[] {
  if (held === wireguardIp) return [];
  return [
    ...(held === undefined ? [] : [`address delete ${held} dev ${device}`]),
    ...(wireguardIp === "" ? [] : [`address add ${wireguardIp} dev ${device}`]),
  ];
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

function routeChanges(held: ReadonlySet<string>, wanted: ReadonlySet<string>): readonly string[] {
  const printed = new Map([...wanted].map((route) => [asPrinted(route), route]));
  return [
    ...[...held].filter((route) => !printed.has(route)).map((route) => `route delete ${route}`),
    ...[...printed].flatMap(([text, route]) => (held.has(text) ? [] : [`route replace ${route} proto static`])),
  ];
}

/** `ip` prints `onlink` last. */
const asPrinted = (route: string): string =>
  route.replace(/^(\S+) via (\S+) onlink dev (\S+)(.*)$/, "$1 via $2 dev $3$4 onlink");

/** `ip` prints the route to one address without its length. */
const text = (network: string): string => network.replace(/\/32$/, "");

const hostOf = (node: Pick<NodeCore, "internalIp"> | undefined): string =>
  node === undefined ? "" : node.internalIp.slice(0, node.internalIp.indexOf("/"));

/** Runs lines of `ip`. One that the kernel refuses ends Kilo's update of routes; here it is logged and the others go on. */
function change(lines: readonly string[]): void {
  if (lines.length === 0) return;
  const { status, stderr } = spawnSync("ip", ["-force", "-batch", "-"], { encoding: "utf8", input: lines.join("\n") });
  if (status !== 0) console.error(`ip: ${stderr.trim()}`);
}

function run(command: string, args: readonly string[]): string {
  const { status, stdout, stderr } = spawnSync(command, args, { encoding: "utf8" });
  if (status !== 0) throw new Error(`${command} ${args.join(" ")}: ${stderr.trim()}`);
  return stdout;
}

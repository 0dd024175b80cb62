// One node of a lab cluster: a host on the fabric, a pod behind a bridge, a WireGuard device and the agent that writes it.

import { existsSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { agentCommand, rewriteMessage } from "./agent-kind.ts";
import type { LabCluster } from "./cluster.ts";
import { attach } from "./fabric.ts";
import { type HostProcess, Namespace } from "./namespace.ts";
import { readDump, type WireguardDump } from "./wireguard-dump.ts";

/** The WireGuard device of every node. */
export const wireguardDevice = "kilo0";

/** How a node is connected: to the fabric, or to something that a scenario puts in between. */
export type Cable = (host: Namespace) => Promise<void>;

/** What a scenario says of a node; the rest follows from the numbers of its cluster and its own. */
export type NodeOptions = {
  readonly name?: string;
  readonly number?: number;
  readonly annotations?: Readonly<Record<string, string>>;
  readonly labels?: Readonly<Record<string, string>>;
  /** Whether the Node says its ExternalIP; it does, if nothing is said. */
  readonly hasExternalIp?: boolean;
  readonly cable?: Cable;
  /** The address that it has behind that cable, which its Node says then. */
  readonly inside?: string;
  /** A second address of `eth0`, with its mask: the internal IP that Kilo finds. */
  readonly internal?: string;
  readonly address6?: string;
};

/** A node, and whatever runs on it. */
export class LabNode {
  readonly cluster: LabCluster;
  readonly name: string;
  readonly number: number;
  readonly address: string;
  readonly podCidr: string;
  readonly podAddress: string;
  readonly host: Namespace;
  readonly pod: Namespace;
  readonly #wireguard: HostProcess | undefined;
  /** The Node that the agent speaks for; the node's own name, until the machine is renamed. */
  hostname: string;
  #agent: HostProcess | undefined;
  #agents = 0;

  private constructor(parts: NodeParts) {
    this.cluster = parts.cluster;
    this.name = parts.name;
    this.number = parts.number;
    this.address = parts.address;
    this.podCidr = parts.podCidr;
    this.podAddress = parts.podAddress;
    this.host = parts.host;
    this.pod = parts.pod;
    this.#wireguard = parts.wireguard;
    this.hostname = parts.name;
  }

  /** Makes a node; its agent does not run yet. */
  static async create(cluster: LabCluster, number: number, options: NodeOptions): Promise<LabNode> {
    const { folder } = cluster.parts;
    const name = options.name ?? `${cluster.name}${number}`;
    const address = cluster.nodeAddress(number);
    const prefix = `10.${8 + cluster.number}.${number}`;
    const [host, pod] = await Promise.all([
      Namespace.create(folder, name, { hosts: [`${address} ${name}`] }),
      Namespace.create(folder, `${name}p`),
    ]);
    const cable = options.cable ?? ((machine: Namespace) => attach(machine, address, options.address6));
    await cable(host);
    await host.run(`
      ${options.internal === undefined ? "" : `ip address add ${options.internal} dev eth0`}
      ip link add kube-bridge type bridge
      ip address add ${prefix}.1/24 dev kube-bridge
      ip link set kube-bridge up
      ip link add pod type veth peer name eth0 netns ${pod.pid}
      ip link set pod master kube-bridge up`);
    await pod.run(`
      ip address add ${prefix}.2/24 dev eth0
      ip link set eth0 mtu 1420 up
      ip route add default via ${prefix}.1`);
    const wireguard = await addDevice(host);
    const podCidr = `${prefix}.0/24`;
    return new LabNode({ cluster, name, number, address, podCidr, podAddress: `${prefix}.2`, host, pod, wireguard });
  }

  /** Starts the agent, and answers at once. */
  startAgent(): void {
    const { agent, kubeconfig } = this.cluster.parts;
    this.#agents += 1;
    const command = agentCommand(agent, { node: this, kubeconfig });
    this.#agent = this.host.start(`agent-${this.#agents}`, command);
  }

  /** Stops the agent: cleanly, so that it takes back its annotations and routes, or by force. */
  async stopAgent(how: "cleanly" | "by force" = "cleanly"): Promise<void> {
    const agent = this.#agent;
    this.#agent = undefined;
    await agent?.stop(how === "cleanly" ? 10_000 : 0);
  }

  /** Removes the private key on disk; the agent makes another one when it starts. */
  forgetKey(): void {
    rmSync(join(this.host.home, "kilo/key"), { force: true });
  }

  /** The WireGuard device as it is. */
  async device(): Promise<WireguardDump> {
    return readDump(await this.host.exec(["wg", "show", wireguardDevice, "dump"]));
  }

  /** Throws if WireGuard itself has stopped answering: that is no fault of agents or of the operator. */
  async demandDevice(): Promise<void> {
    try {
      await this.host.exec(["wg", "show", wireguardDevice, "listen-port"], 5_000);
    } catch (error) {
      throw new Error(`wireguard-go of ${this.name} hangs`, { cause: error });
    }
  }

  /** How often the agents of this node have written the device, by what they log. */
  rewrites(): number {
    let count = 0;
    for (let each = 1; each <= this.#agents; each += 1) {
      count +=
        readFileSync(join(this.cluster.parts.folder, `${this.name}.agent-${each}.log`), "utf8").split(rewriteMessage)
          .length - 1;
    }
    return count;
  }

  /** The machine is switched off: no good-bye. */
  async end(): Promise<void> {
    await Promise.all([this.stopAgent("by force"), this.#wireguard?.stop(0)]);
    await Promise.all([this.host.end(), this.pod.end()]);
  }
}

/** What a node is made of. */
type NodeParts = Pick<
  LabNode,
  "cluster" | "name" | "number" | "address" | "podCidr" | "podAddress" | "host" | "pod"
> & { readonly wireguard: HostProcess | undefined };

/** Adds the device of a node: the kernel's, where it has WireGuard; else a program's, which is the answer. */
async function addDevice(host: Namespace): Promise<HostProcess | undefined> {
  const added = await host.run(`ip link add ${wireguardDevice} type wireguard 2>&1 && echo added || true`);
  if (added.trim() === "added") return undefined;
  const wireguard = host.start("wireguard", ["wireguard-go", "-f", wireguardDevice], { LOG_LEVEL: "error" });
  await wireguard.until(() => existsSync(join(host.home, `wireguard/${wireguardDevice}.sock`)));
  return wireguard;
}

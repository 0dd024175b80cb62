// One cluster of the lab: a real API server, nodes, and what an administrator does to them.

import { randomBytes } from "node:crypto";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { createClient, type ServerClient } from "../../test/support/server-client.mjs";
import { kubeconfigFor, type ServerDescription } from "../../test/support/server-processes.mjs";
import type { AgentKind } from "./agent-kind.ts";
import { nodeAddress } from "./fabric.ts";
import { LabNode, type NodeOptions } from "./node.ts";
import { demand, waitFor } from "./unmet.ts";

/** Where Peers are. */
export const peersPath = "/apis/kilo.squat.ai/v1alpha1/peers";

/** What the lab looks at in a Peer. */
export type StoredPeer = {
  readonly metadata: {
    readonly name: string;
    readonly uid: string;
    readonly resourceVersion: string;
    readonly labels?: Readonly<Record<string, string>>;
  };
  readonly spec: {
    readonly publicKey: string;
    readonly allowedIPs: readonly string[];
    readonly endpoint?: { readonly dnsOrIP: { readonly ip?: string; readonly dns?: string }; readonly port: number };
    readonly persistentKeepalive?: number;
  };
};

/** What a cluster and its nodes are made with. */
export type ClusterParts = {
  readonly folder: string;
  readonly agent: AgentKind;
  /** The path of the kubeconfig of the agents. */
  readonly kubeconfig: string;
};

/** One cluster. */
export class LabCluster {
  readonly name: string;
  readonly number: number;
  readonly server: ServerDescription;
  readonly admin: ServerClient;
  readonly podCidr: string;
  readonly wireguardCidr: string;
  readonly serviceCidr: string;
  readonly nodes = new Map<string, LabNode>();
  readonly parts: ClusterParts;
  /** How the agents that start from now on divide the cluster. */
  granularity: "full" | "location" = "full";

  constructor(server: ServerDescription, number: number, parts: Omit<ClusterParts, "kubeconfig">) {
    this.name = server.name;
    this.number = number;
    this.server = server;
    this.admin = createClient(server, server.adminToken);
    this.podCidr = `10.${8 + number}.0.0/16`;
    this.wireguardCidr = `10.4.${number}.0/24`;
    this.serviceCidr = serviceCidrOf(number);
    this.parts = { ...parts, kubeconfig: join(parts.folder, `${server.name}-agents.kubeconfig`) };
  }

  nodeAddress(number: number): string {
    return nodeAddress(this.number, number);
  }

  /** Writes the kubeconfig of the agents. */
  admitAgents(token: string): void {
    writeFileSync(this.parts.kubeconfig, kubeconfigFor(this.server, token), { mode: 0o600 });
  }

  /** Asks as the administrator; what is refused is thrown. */
  async ask<Body = unknown>(method: string, path: string, body?: object): Promise<Body> {
    const type = method === "PATCH" ? "application/merge-patch+json" : undefined;
    const answer = await this.admin.request<Body>(method, path, body, type);
    if (answer.status < 300) return answer.body;
    throw new Error(`${method} ${path} on ${this.name}: ${answer.status} ${JSON.stringify(answer.body)}`);
  }

  /** A node joins; its agent starts at once. */
  async addNode(options: NodeOptions = {}): Promise<LabNode> {
    const node = await this.prepareNode(options);
    node.startAgent();
    return node;
  }

  /** A node joins whose agent does not run yet. */
  async prepareNode(options: NodeOptions = {}): Promise<LabNode> {
    const node = await LabNode.create(this, options.number ?? this.#freeNumber(), options);
    this.nodes.set(node.name, node);
    await this.register(node, options);
    return node;
  }

  /** Creates the Node object of a node, as its kubelet would. */
  async register({ name, podCidr, address }: LabNode, options: NodeOptions = {}, as = name): Promise<void> {
    const annotations = {
      "node.alpha.kubernetes.io/ttl": "0",
      "kilo.squat.ai/persistent-keepalive": "25",
      ...options.annotations,
    };
    await this.ask("POST", "/api/v1/nodes", {
      metadata: { name: as, annotations, labels: { "kubernetes.io/hostname": as, ...options.labels } },
      spec: { podCIDR: podCidr, podCIDRs: [podCidr] },
    });
    const external = options.hasExternalIp === false ? [] : [{ type: "ExternalIP", address }];
    const internal = {
      type: "InternalIP",
      address: options.internal?.replace(/\/.*/, "") ?? options.inside ?? address,
    };
    await this.ask("PATCH", `/api/v1/nodes/${as}/status`, { status: { addresses: [internal, ...external] } });
  }

  /** Creates a Node that looks as an agent would leave it, without a machine behind it. */
  async registerGhost(number: number, { podCidr, key }: { readonly podCidr?: string; readonly key?: string } = {}) {
    const said = {
      key: key ?? randomBytes(32).toString("base64"),
      endpoint: `${this.nodeAddress(number)}:51820`,
      "wireguard-ip": `10.4.${this.number}.${number}/24`,
      "last-seen": String(Math.floor(Date.now() / 1_000)),
      "internal-ip": "",
      granularity: "full",
      "persistent-keepalive": "25",
    };
    const annotations = Object.fromEntries(
      Object.entries(said).map(([name, value]) => [`kilo.squat.ai/${name}`, value]),
    );
    const podCIDR = podCidr ?? `10.${8 + this.number}.${number}.0/24`;
    const metadata = { name: `${this.name}${number}`, annotations };
    await this.ask("POST", "/api/v1/nodes", { metadata, spec: { podCIDR, podCIDRs: [podCIDR] } });
  }

  /** Waits until the agents of nodes have said everything that a mesh needs. */
  async announced(nodes: readonly LabNode[] = [...this.nodes.values()]): Promise<void> {
    const names = ["key", "endpoint", ...(this.granularity === "full" ? ["wireguard-ip"] : [])];
    for (const { name } of nodes) {
      await waitFor(`the agent of ${name} to announce itself`, async () => {
        const said = await this.annotations(name);
        return names.every((each) => (said[`kilo.squat.ai/${each}`] ?? "") !== "");
      });
    }
  }

  /** A machine is switched off for good and its Node deleted. */
  async removeNode({ name }: LabNode): Promise<void> {
    const node = this.nodes.get(name);
    this.nodes.delete(name);
    await node?.end();
    await this.admin.request("DELETE", `/api/v1/nodes/${name}`);
  }

  /** Sets, or with null removes, annotations of a node. */
  async annotate(node: string, annotations: Readonly<Record<string, string | null>>): Promise<void> {
    await this.ask("PATCH", `/api/v1/nodes/${node}`, { metadata: { annotations } });
  }

  /** The annotations of a node. */
  async annotations(node: string): Promise<Readonly<Record<string, string>>> {
    type Stored = { readonly metadata: { readonly annotations?: Readonly<Record<string, string>> } };
    return (await this.ask<Stored>("GET", `/api/v1/nodes/${node}`)).metadata.annotations ?? {};
  }

  /** Every Peer, by name. */
  async peers(): Promise<ReadonlyMap<string, StoredPeer>> {
    const { items } = await this.ask<{ readonly items: readonly StoredPeer[] }>("GET", peersPath);
    return new Map(items.map((peer) => [peer.metadata.name, peer]));
  }

  /** Waits until the cluster holds exactly that many Peers. */
  async holdsPeers(count: number, msMax = 30_000): Promise<void> {
    await waitFor(
      `${this.name} to hold ${count} Peers`,
      async () => {
        const { size } = await this.peers();
        demand(size === count, `it holds ${size}`);
        return true;
      },
      msMax,
    );
  }

  #freeNumber(): number {
    const taken = new Set([...this.nodes.values()].map(({ number }) => number));
    let number = 1;
    while (taken.has(number)) number += 1;
    return number;
  }
}

/** The addresses of a cluster's Services. */
export const serviceCidrOf = (cluster: number): string => `10.5.${cluster}.0/24`;

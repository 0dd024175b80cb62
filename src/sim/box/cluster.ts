// One simulated cluster: an API server, its nodes and the agent of each, and whatever an administrator does to them.

import { createHash } from "node:crypto";
import { clusterMeshCrd } from "../../api/crd.ts";
import type { Clock } from "../../kube/runtime.ts";
import { type Agent, createAgent, type DeviceWrite } from "../agent/agent.ts";
import type { SimReply } from "../answer.ts";
import type { Chance } from "../chance.ts";
import { peerDefinition } from "../peer-definition.ts";
import { createSimServer, type SimServer } from "../server.ts";
import type { SimRule } from "../users.ts";

/** What a cluster is made of. */
export type ClusterOptions = {
  readonly name: string;
  /** From 1 to 240, no two alike: its ranges and addresses come from it. */
  readonly number: number;
  readonly clock: Clock;
  readonly chance: Chance;
  /** What the operator may do here. */
  readonly operatorRules: readonly SimRule[];
  /** The version of the operator that installed the definition of ClusterMesh; without it, an administrator did. */
  readonly installedBy?: string;
  /** Whether agents say the time when they check in; `AgentOptions` has what that means. */
  readonly heartbeats?: boolean;
  /** How long an agent's apply takes; `AgentOptions` has what 0 means. */
  readonly applyMs?: number;
  /** Hears of every key that enters or leaves the map of an agent. */
  readonly onPeer?: (cluster: SimCluster, node: SimNode, what: "added" | "evicted", publicKey: string) => void;
  /** Hears of every write of a device. */
  readonly onWrite?: (cluster: SimCluster, node: SimNode, write: DeviceWrite) => void;
};

/** A node, and what runs on it. */
export type SimNode = {
  readonly name: string;
  /** From 1 on; its pod range and its address come from it. */
  readonly number: number;
  readonly podCidr: string;
  readonly address: string;
  readonly agent: Agent;
};

/** What can be said of a new node; the rest is made up. */
export type NodeOptions = {
  readonly name?: string;
  readonly number?: number;
  readonly publicKey?: string;
  readonly keepalive?: boolean;
};

/** Something that an administrator asks; what is refused is thrown. */
export type Ask = (method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE", path: string, body?: object) => unknown;

const definitionsBy = new Map<string | undefined, readonly object[]>();

/** Kilo's Peer and our ClusterMesh; the same values for every cluster, so that they are read once. */
function definitionsOf(version: string | undefined): readonly object[] {
  const mesh = clusterMeshCrd();
  const marked = { ...mesh, metadata: { ...mesh.metadata, annotations: { "causeway.dev/version": version } } };
  const definitions = definitionsBy.get(version) ?? [peerDefinition, version === undefined ? mesh : marked];
  definitionsBy.set(version, definitions);
  return definitions;
}

const operator = "causeway";

/** A cluster in memory. */
export class SimCluster {
  readonly name: string;
  readonly number: number;
  readonly server: SimServer;
  readonly podCidr: string;
  readonly wireguardCidr: string;
  readonly serviceCidr: string;
  readonly adminToken: string;
  /** The token that the operator's kubeconfig holds; `renewToken` changes it. */
  operatorToken: string;
  readonly nodes = new Map<string, SimNode>();
  readonly #options: ClusterOptions;
  readonly #agentToken: string;
  #keys = 0;
  #tokens = 0;

  constructor(options: ClusterOptions) {
    const { name, number, clock, chance, operatorRules } = options;
    this.#options = options;
    this.name = name;
    this.number = number;
    this.podCidr = `10.${8 + number}.0.0/16`;
    this.wireguardCidr = `10.4.${number}.0/24`;
    this.serviceCidr = `10.5.${number}.0/24`;
    this.adminToken = this.#newToken("admin");
    this.operatorToken = this.#newToken("operator");
    this.#agentToken = this.#newToken("agent");
    this.server = createSimServer({
      name,
      clock,
      random: chance.fork(`server/${name}`).random,
      definitions: definitionsOf(options.installedBy),
      serviceCidrs: [this.serviceCidr],
      users: {
        [this.adminToken]: { name: "admin", groups: ["system:masters"] },
        [this.operatorToken]: { name: operator, rules: operatorRules },
        [this.#agentToken]: {
          name: "kilo",
          rules: [
            { verbs: ["list", "watch", "get", "patch"], apiGroups: [""], resources: ["nodes"] },
            { verbs: ["list", "watch"], apiGroups: ["kilo.squat.ai"], resources: ["peers"] },
          ],
        },
      },
    });
  }

  /** Asks as the administrator. */
  readonly ask: Ask = (method, path, body) => {
    const reply = this.tryTo(method, path, body);
    if (reply.status >= 300) throw new Error(`${method} ${path}: ${reply.status} ${JSON.stringify(reply.body)}`);
    return reply.body;
  };

  /** Asks as the administrator, and takes a refusal for an answer. */
  tryTo(method: string, path: string, body?: object): SimReply {
    const headers = {
      authorization: `Bearer ${this.adminToken}`,
      "content-type": method === "PATCH" ? "application/merge-patch+json" : "application/json",
    };
    const request = { method, path, headers, ...(body === undefined ? {} : { body: JSON.stringify(body) }) };
    const answer = this.server.handle(request);
    if (answer.kind === "reply") return answer;
    throw new Error(`${path} is a watch`);
  }

  /** A node joins; its agent starts at once. */
  addNode(options: NodeOptions = {}): SimNode {
    const number = options.number ?? this.#freeNumber();
    const name = options.name ?? `${this.name}-${number}`;
    const address = `198.18.${this.number}.${number}`;
    const podCidr = `10.${8 + this.number}.${number}.0/24`;
    const publicKey = options.publicKey ?? this.newKey();
    const annotations = {
      "node.alpha.kubernetes.io/ttl": "0",
      ...(options.keepalive === false ? {} : { "kilo.squat.ai/persistent-keepalive": "25" }),
    };
    const addresses = [{ type: "ExternalIP", address }];
    this.ask("POST", "/api/v1/nodes", {
      apiVersion: "v1",
      kind: "Node",
      metadata: { name, annotations, labels: { "kubernetes.io/hostname": name } },
      spec: { podCIDR: podCidr, podCIDRs: [podCidr] },
    });
    this.ask("PATCH", `/api/v1/nodes/${name}/status`, { status: { addresses } });
    const node: SimNode = {
      name,
      number,
      podCidr,
      address,
      agent: this.#agentFor(name, address, publicKey, () => node),
    };
    this.nodes.set(name, node);
    node.agent.start();
    return node;
  }

  #agentFor(name: string, address: string, publicKey: string, self: () => SimNode): Agent {
    const { clock, onPeer, onWrite, heartbeats = true, applyMs } = this.#options;
    return createAgent({
      server: this.server,
      token: this.#agentToken,
      node: name,
      publicKey,
      address,
      subnet: this.wireguardCidr,
      clock,
      heartbeats,
      ...(applyMs === undefined ? {} : { applyMs }),
      ...(onPeer === undefined
        ? {}
        : { onPeer: (what: "added" | "evicted", key: string) => onPeer(this, self(), what, key) }),
      ...(onWrite === undefined ? {} : { onWrite: (write: DeviceWrite) => onWrite(this, self(), write) }),
    });
  }

  /** A node is taken away, without a good-bye. */
  removeNode(name: string): void {
    const node = this.nodes.get(name);
    if (node === undefined) return;
    this.nodes.delete(name);
    node.agent.stop("crash");
    node.agent.close();
    this.tryTo("DELETE", `/api/v1/nodes/${name}`);
  }

  /** Sets, or with null removes, annotations of a node. */
  annotate(node: string, annotations: Readonly<Record<string, string | null>>): void {
    this.tryTo("PATCH", `/api/v1/nodes/${node}`, { metadata: { annotations } });
  }

  /** The operator's kubeconfig for this cluster, at an address. */
  kubeconfig(server: string, user: "operator" | "admin" = "operator", authorityPem?: string): object {
    const token = user === "admin" ? this.adminToken : this.operatorToken;
    const authority =
      authorityPem === undefined ? {} : { "certificate-authority-data": Buffer.from(authorityPem).toString("base64") };
    return {
      apiVersion: "v1",
      kind: "Config",
      clusters: [{ name: this.name, cluster: { server, ...authority } }],
      users: [{ name: user, user: { token } }],
      contexts: [{ name: this.name, context: { cluster: this.name, user } }],
      "current-context": this.name,
    };
  }

  /** Whether the operator's token is still taken. */
  get admitsOperator(): boolean {
    return this.server.admits(this.operatorToken);
  }

  /** Gives the operator a new token; the old one goes on working until it is revoked. Answers with the old one. */
  renewToken(): string {
    const old = this.operatorToken;
    this.operatorToken = this.#newToken("operator");
    this.server.admit(this.operatorToken, { name: operator, rules: this.#options.operatorRules });
    return old;
  }

  /** A public key that nobody has. */
  newKey(): string {
    this.#keys += 1;
    return createHash("sha256").update(`${this.name}/${this.#keys}`).digest("base64");
  }

  /** No timer and no listener is left. */
  close(): void {
    for (const { agent } of this.nodes.values()) agent.close();
    this.server.endWatches();
  }

  #freeNumber(): number {
    const taken = new Set([...this.nodes.values()].map(({ number }) => number));
    let number = 1;
    while (taken.has(number)) number += 1;
    return number;
  }

  #newToken(purpose: string): string {
    this.#tokens += 1;
    const random = this.#options.chance.fork(`token/${this.name}/${purpose}/${this.#tokens}`).random;
    const letters = Array.from({ length: 24 }, () => "abcdefghijklmnopqrstuvwxyz".charAt(Math.floor(random() * 26)));
    return `${this.name}-${purpose}-${letters.join("")}`;
  }
}

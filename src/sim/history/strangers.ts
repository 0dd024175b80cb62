// What others do: people who write Peers of their own or edit ours, and tenants who lie about their nodes.

import { nodeAnnotations } from "../../api/node.ts";
import { fieldsOf } from "../../core/json.ts";
import type { SimCluster, SimNode } from "../box/cluster.ts";
import { othersLabels, ownPeers } from "./safety.ts";
import type { StageOptions } from "./stage.ts";
import type { Edit, Forgery } from "./story.ts";

/** What strangers need of the stage. */
export type StrangerOptions = Pick<StageOptions, "box" | "truth" | "clock" | "weatherOf" | "onTampered">;

const peersPath = "/apis/kilo.squat.ai/v1alpha1/peers";
const meshNamespaceLabel = "causeway.dev/mesh-namespace";

/** Everybody who is neither the administrator nor the operator. */
export class Strangers {
  readonly #options: StrangerOptions;
  #strangers = 0;

  constructor(options: StrangerOptions) {
    this.#options = options;
  }

  #later(ms: number, run: () => void): void {
    this.#options.clock.after(ms, run);
  }

  /** Somebody writes a Peer, with a key of their own or one that we want; it may be another Causeway. */
  write(cluster: SimCluster, key: "own" | "ours" | "another Causeway's", forMs: number): void {
    this.#strangers += 1;
    const [wanted] = this.#options.truth.wantedOn(cluster.name).keys();
    const publicKey = key === "ours" && wanted !== undefined ? wanted : cluster.newKey();
    const name = `stranger-${this.#strangers}`;
    this.#peer(cluster, name, publicKey, key === "another Causeway's" ? othersLabels : {});
    this.#later(forMs, () => void cluster.tryTo("DELETE", `${peersPath}/${name}`));
  }

  #peer(cluster: SimCluster, name: string, publicKey: string, labels: Readonly<Record<string, string>> = {}): void {
    cluster.tryTo("POST", peersPath, {
      apiVersion: "kilo.squat.ai/v1alpha1",
      kind: "Peer",
      metadata: { name, labels },
      spec: { publicKey, allowedIPs: [`172.31.0.${this.#strangers % 250}/32`] },
    });
  }

  /** Just when a Peer of ours is about to go, somebody else makes one of that name. */
  takeName(target: SimCluster, index: number): void {
    const { box, weatherOf, truth } = this.#options;
    const peers = ownPeers(target);
    const peer = peers[index % Math.max(1, peers.length)];
    const want = peer === undefined ? undefined : truth.wantedOn(target.name).get(peer.key);
    if (peer === undefined || want === undefined) return;
    const weather = weatherOf(target.name);
    weather.lagMs = Math.max(weather.lagMs, 3_000);
    box.cluster(want.source).removeNode(want.node);
    target.tryTo("DELETE", `${peersPath}/${peer.name}`);
    this.#strangers += 1;
    this.#peer(target, peer.name, target.newKey());
    this.#later(4_000, () => {
      weather.lagMs = 0;
    });
    this.#later(60_000, () => void target.tryTo("DELETE", `${peersPath}/${peer.name}`));
  }

  /** Somebody changes a Peer of ours. */
  edit(cluster: SimCluster, index: number, what: Edit): void {
    const peers = ownPeers(cluster);
    const peer = peers[index % Math.max(1, peers.length)];
    if (peer === undefined) return;
    const path = `${peersPath}/${peer.name}`;
    this.#options.onTampered(cluster.name, peer.name);
    switch (what) {
      case "deleted":
        cluster.tryTo("DELETE", path);
        return;
      case "widened":
        cluster.tryTo("PATCH", path, { spec: { allowedIPs: [...peer.allowedIps, "172.30.0.0/24"] } });
        return;
      case "damaged":
        cluster.tryTo("PATCH", path, { metadata: { labels: { [meshNamespaceLabel]: null } } });
        return this.#later(60_000, () => this.#tidy(cluster, path));
      case "unlabelled":
        cluster.tryTo("PATCH", path, { metadata: { labels: null } });
        return this.#later(60_000, () => void cluster.tryTo("DELETE", path));
      case "copied":
        return this.#copy(cluster, path, `${peer.name}-copy`);
    }
  }

  /** Whose Peer it is cannot be told any more: somebody has to say, unless it was repaired meanwhile. */
  #tidy(cluster: SimCluster, path: string): void {
    const { labels } = fieldsOf(fieldsOf(cluster.tryTo("GET", path).body)["metadata"]);
    if (fieldsOf(labels)[meshNamespaceLabel] === undefined) cluster.tryTo("DELETE", path);
  }

  #copy(cluster: SimCluster, path: string, name: string): void {
    const { body } = cluster.tryTo("GET", path);
    const { spec, metadata } = fieldsOf(body);
    this.#options.onTampered(cluster.name, name);
    cluster.tryTo("POST", peersPath, {
      apiVersion: "kilo.squat.ai/v1alpha1",
      kind: "Peer",
      metadata: { name, labels: fieldsOf(metadata)["labels"] },
      spec,
    });
    this.#later(60_000, () => this.#tidy(cluster, `${peersPath}/${name}`));
  }

  /** A tenant says of its node what is not so, until the agent is back and says what is. */
  forge(cluster: SimCluster, node: SimNode, what: Forgery, forMs: number): void {
    const { box, truth } = this.#options;
    const victim = box.clusters.find((each) => each !== cluster) ?? box.hub;
    const [other] = victim.nodes.values();
    const liar = `${cluster.name}/${node.name}`;
    if (what === "node") return this.#forgeNode(cluster, victim, other, forMs);
    node.agent.stop("crash");
    truth.liars.add(liar);
    const lies = {
      "wireguard-ip": { [nodeAnnotations.wireguardIp]: `10.4.${victim.number}.1/24` },
      key: { [nodeAnnotations.key]: other?.agent.publicKey() ?? "none" },
      endpoint: { [nodeAnnotations.forceEndpoint]: `10.${8 + victim.number}.1.1:51820` },
      garbage: { [nodeAnnotations.wireguardIp]: "not-an-address", [nodeAnnotations.key]: "x".repeat(300) },
    }[what];
    cluster.annotate(node.name, lies);
    truth.refresh();
    this.#later(forMs, () => {
      truth.liars.delete(liar);
      if (cluster.nodes.get(node.name) === node) {
        cluster.annotate(node.name, { [nodeAnnotations.forceEndpoint]: null });
        node.agent.start();
      }
      truth.refresh();
    });
  }

  #forgeNode(cluster: SimCluster, victim: SimCluster, other: SimNode | undefined, forMs: number): void {
    const { truth } = this.#options;
    const name = `${cluster.name}-forged`;
    truth.liars.add(`${cluster.name}/${name}`);
    const podCIDR = `10.${8 + victim.number}.77.0/24`;
    cluster.tryTo("POST", "/api/v1/nodes", {
      apiVersion: "v1",
      kind: "Node",
      metadata: {
        name,
        annotations: {
          [nodeAnnotations.key]: other?.agent.publicKey() ?? cluster.newKey(),
          [nodeAnnotations.wireguardIp]: `10.4.${victim.number}.1/24`,
          [nodeAnnotations.granularity]: "full",
          [nodeAnnotations.endpoint]: "198.18.200.1:51820",
          [nodeAnnotations.lastSeen]: String(Math.floor(this.#options.clock.nowMs() / 1000)),
        },
      },
      spec: { podCIDR, podCIDRs: [podCIDR] },
    });
    this.#later(forMs, () => {
      cluster.tryTo("DELETE", `/api/v1/nodes/${name}`);
      truth.refresh();
    });
  }
}

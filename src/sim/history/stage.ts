// Where a story is played: the fleet, what lies between it and the operators, and how each deed is done and undone.

import type { Clock } from "../../kube/runtime.ts";
import { type Box, meshesPath, meshNamespace } from "../box/box.ts";
import type { SimCluster, SimNode } from "../box/cluster.ts";
import { type Acts, actOut, type Mishaps, type OperatorDeed } from "./mishaps.ts";
import type { Deed, Mistake, StoryMesh } from "./story.ts";
import { Strangers } from "./strangers.ts";
import type { Truth } from "./truth.ts";
import type { Weather } from "./weather.ts";

/** What a stage is made of. */
export type StageOptions = {
  readonly box: Box;
  readonly truth: Truth;
  readonly clock: Clock;
  readonly mishaps: Mishaps;
  readonly weatherOf: (cluster: string) => Weather;
  readonly meshes: readonly StoryMesh[];
  /** Whether the meshes join the ranges of Services, too. */
  readonly services: boolean;
  /** Somebody changed a Peer of ours by hand; what is wrong with it is not the operator's doing. */
  readonly onTampered: (cluster: string, peer: string) => void;
};

type MeshState = {
  readonly mesh: StoryMesh;
  members: Set<number>;
  suspended: boolean;
  exists: boolean;
  /** It is gone without its finalizer, and what it named is written nowhere. */
  vanished: boolean;
  mistyped: { readonly cluster: number; readonly what: Mistake } | undefined;
};

/** What somebody wrote who meant something else. */
const mistakes: Readonly<Record<Mistake, unknown>> = {
  podCIDRs: ["10.250.0.0/16"],
  wireguardCIDR: "10.251.0.0/16",
  nodeSelector: { "kubernetes.io/os": "linx" },
};

const nodesMax = 4;

/** Plays deeds. */
export class Stage {
  readonly #options: StageOptions;
  readonly #meshes: readonly MeshState[];
  /** Clusters without a way in. */
  readonly #locked = new Set<number>();
  readonly #others: Strangers;

  constructor(options: StageOptions) {
    this.#options = options;
    this.#others = new Strangers(options);
    this.#meshes = options.meshes.map((mesh) => ({
      mesh,
      members: new Set(mesh.members),
      suspended: false,
      exists: true,
      vanished: false,
      mistyped: undefined,
    }));
    for (const state of this.#meshes) {
      options.box.putSecrets(options.box.clusters, state.mesh.namespace);
      this.#putMesh(state);
    }
  }

  /** Does one thing. */
  play(deed: Deed): void {
    actOut<Deed>({ ...this.#options.mishaps.ofOperators, ...this.#acts }, deed);
  }

  readonly #acts: Acts<Exclude<Deed, OperatorDeed>> = {
    "node joins": ({ cluster }) => this.#join(this.#cluster(cluster)),
    "node leaves": (deed) => this.#withNode(deed, (cluster, { name }) => cluster.removeNode(name)),
    "node is drained": (deed) =>
      this.#withNode(deed, (cluster, { name, agent }) => {
        agent.stop("graceful");
        this.#later(deed.forMs, () => cluster.removeNode(name));
      }),
    "node is replaced": (deed) =>
      this.#withNode(deed, (cluster, { name, number }) => {
        cluster.removeNode(name);
        this.#later(1_500, () => this.#add(cluster, { name, number }));
      }),
    "node is renamed": (deed) =>
      this.#withNode(deed, (cluster, { name, number, agent }) => {
        cluster.removeNode(name);
        this.#add(cluster, { name: `${name}x`, number, publicKey: agent.publicKey() });
      }),
    "key rotates": (deed) => this.#withNode(deed, (cluster, { agent }) => agent.rekey(cluster.newKey())),
    "keys are swapped": ({ cluster }) => this.#swapKeys(this.#cluster(cluster)),
    "agent restarts": (deed) =>
      this.#withNode(deed, (cluster, node) => this.#stopAgent(cluster, node, "graceful", deed.forMs)),
    "agent crashes": (deed) =>
      this.#withNode(deed, (cluster, node) => this.#stopAgent(cluster, node, "crash", deed.forMs)),
    "cluster is away": ({ cluster, how, forMs }) => this.#options.mishaps.away(this.#cluster(cluster).name, how, forMs),
    "requests fail": ({ cluster, rate, kinds, forMs }) =>
      this.#options.mishaps.fail(this.#cluster(cluster).name, { rate, kinds }, forMs),
    "requests are slow": ({ cluster, ms, forMs }) => this.#options.mishaps.slow(this.#cluster(cluster).name, ms, forMs),
    "watches lag": ({ cluster, ms, forMs }) => this.#options.mishaps.lag(this.#cluster(cluster).name, ms, forMs),
    "history is compacted": ({ cluster }) => this.#compact(this.#cluster(cluster)),
    "watches end": ({ cluster }) => this.#cluster(cluster).server.endWatches(),
    "token expires": ({ cluster, forMs }) => this.#expire(this.#cluster(cluster), forMs),
    "token rotates": ({ cluster, order }) => {
      if (order === "revoked first") this.#expire(this.#cluster(cluster), 5_000);
      else this.#rotate(this.#cluster(cluster));
    },
    "Secret is deleted": ({ cluster, forMs }) => this.#deleteSecrets(cluster, forMs),
    "member leaves": ({ mesh, cluster, forMs }) => this.#leave(mesh, cluster, forMs),
    "cluster is left for good": ({ cluster }) => {
      this.#meshes.forEach((_, mesh) => this.#leave(mesh, cluster, undefined));
    },
    "mesh is deleted": ({ mesh, forMs }) => this.#deleteMesh(mesh, forMs),
    "mesh vanishes": ({ mesh, forMs }) => this.#deleteMesh(mesh, forMs, "without its finalizer"),
    "mesh is suspended": ({ mesh, forMs }) => this.#suspend(mesh, forMs),
    "spec is mistyped": ({ mesh, cluster, what, forMs }) => this.#mistype(mesh, cluster, what, forMs),
    "stranger writes a Peer": ({ cluster, key, forMs }) => this.#others.write(this.#cluster(cluster), key, forMs),
    "stranger takes a name": ({ cluster, node }) => this.#others.takeName(this.#cluster(cluster), node),
    "Peer is edited": ({ cluster, peer, what }) => this.#others.edit(this.#cluster(cluster), peer, what),
    "tenant forges": (deed) =>
      this.#withNode(deed, (cluster, node) => this.#others.forge(cluster, node, deed.what, deed.forMs)),
  };

  /** Ends what makes a mesh wanted; what is left of every story. */
  deleteAll(): void {
    for (const { mesh } of this.#meshes) this.#options.box.deleteMesh(mesh);
  }

  #later(ms: number, run: () => void): void {
    this.#options.clock.after(ms, run);
  }

  #cluster(index: number): SimCluster {
    const { clusters, hub } = this.#options.box;
    return clusters[index] ?? hub;
  }

  #withNode(
    deed: { readonly cluster: number; readonly node: number },
    run: (cluster: SimCluster, node: SimNode) => void,
  ): void {
    const cluster = this.#cluster(deed.cluster);
    const nodes = [...cluster.nodes.values()];
    const node = nodes[deed.node % Math.max(1, nodes.length)];
    if (node !== undefined) run(cluster, node);
  }

  #join(cluster: SimCluster): void {
    if (cluster.nodes.size < nodesMax) cluster.addNode();
  }

  #add(
    cluster: SimCluster,
    options: { readonly name: string; readonly number: number; readonly publicKey?: string },
  ): void {
    const taken = [...cluster.nodes.values()].some(
      ({ name, number }) => name === options.name || number === options.number,
    );
    if (!taken) cluster.addNode(options);
  }

  #swapKeys(cluster: SimCluster): void {
    const [a, b] = [...cluster.nodes.values()];
    if (a === undefined || b === undefined) return;
    const [first, second] = [a.agent.publicKey(), b.agent.publicKey()];
    a.agent.rekey(second);
    b.agent.rekey(first);
  }

  #stopAgent(cluster: SimCluster, node: SimNode, how: "graceful" | "crash", forMs: number): void {
    node.agent.stop(how);
    this.#later(forMs, () => {
      if (cluster.nodes.get(node.name) === node) node.agent.start();
    });
  }

  /** Watches end, and before they are taken up again a node is gone and nobody can tell them when. */
  #compact(cluster: SimCluster): void {
    cluster.server.endWatches();
    const last = [...cluster.nodes.keys()].at(-1);
    if (last !== undefined && cluster.nodes.size > 1) cluster.removeNode(last);
    cluster.server.compact();
  }

  #namespaces(): readonly string[] {
    return [...new Set([meshNamespace, ...this.#meshes.map(({ mesh }) => mesh.namespace)])];
  }

  #putSecrets(cluster: SimCluster): void {
    const { box } = this.#options;
    if (cluster === box.hub) return;
    for (const namespace of this.#namespaces()) box.putSecret(cluster, namespace);
  }

  /** Whoever takes away the way into a cluster that left says that nothing there is to be cleaned up. */
  #deleteSecrets(index: number, forMs: number): void {
    if (this.#meshes.some(({ mesh, members }) => mesh.members.includes(index) && !members.has(index))) return;
    const cluster = this.#cluster(index);
    for (const namespace of this.#namespaces()) this.#options.box.deleteSecret(cluster, namespace);
    this.#locked.add(index);
    this.#later(forMs, () => {
      this.#putSecrets(cluster);
      this.#locked.delete(index);
    });
  }

  #expire(cluster: SimCluster, forMs: number): void {
    cluster.server.revoke(cluster.operatorToken);
    this.#later(forMs, () => {
      cluster.renewToken();
      this.#putSecrets(cluster);
    });
  }

  #rotate(cluster: SimCluster): void {
    const old = cluster.renewToken();
    this.#putSecrets(cluster);
    this.#later(5_000, () => {
      if (cluster.operatorToken !== old) cluster.server.revoke(old);
    });
  }

  #putMesh({ mesh, members, suspended, exists, mistyped }: MeshState): void {
    const { box, services } = this.#options;
    const clusters = box.clusters.filter((_, index) => members.has(index));
    if (!exists || clusters.length === 0) return;
    const wrong = mistyped && { name: this.#cluster(mistyped.cluster).name, [mistyped.what]: mistakes[mistyped.what] };
    box.putMesh(clusters, {
      ...mesh,
      services,
      spec: { suspend: suspended },
      entries: wrong === undefined ? [] : [wrong],
    });
  }

  #mistype(mesh: number, cluster: number, what: Mistake, forMs: number): void {
    const state = this.#meshes[mesh];
    if (state === undefined) return;
    state.mistyped = { cluster, what };
    this.#putMesh(state);
    this.#later(forMs, () => {
      state.mistyped = undefined;
      this.#putMesh(state);
    });
  }

  #leave(mesh: number, cluster: number, forMs: number | undefined): void {
    const state = this.#meshes[mesh];
    if (state === undefined || !state.members.has(cluster) || state.members.size < 3 || this.#locked.has(cluster))
      return;
    // Whoever starts then finds nothing that names the cluster, and cannot clean it.
    if (state.vanished && forMs === undefined) return;
    state.members.delete(cluster);
    this.#putMesh(state);
    if (forMs === undefined) return;
    this.#later(forMs, () => {
      state.members.add(cluster);
      this.#putMesh(state);
    });
  }

  #suspend(mesh: number, forMs: number): void {
    const state = this.#meshes[mesh];
    if (state === undefined) return;
    state.suspended = true;
    this.#putMesh(state);
    this.#later(forMs, () => {
      state.suspended = false;
      this.#putMesh(state);
    });
  }

  #deleteMesh(mesh: number, forMs: number, how?: "without its finalizer"): void {
    const state = this.#meshes[mesh];
    if (state === undefined || !state.exists) return;
    state.suspended = false; // nothing is removed on behalf of a suspended mesh
    this.#putMesh(state);
    state.exists = false;
    state.vanished = how !== undefined;
    if (how !== undefined) this.#options.box.dropFinalizers(state.mesh);
    this.#options.box.deleteMesh(state.mesh);
    this.#later(forMs, () => this.#makeAgain(state));
  }

  /** A mesh that is still going has to be gone first. */
  #makeAgain(state: MeshState): void {
    const { hub } = this.#options.box;
    const path = `${meshesPath(state.mesh.namespace)}/${state.mesh.name}`;
    if (hub.tryTo("GET", path).status !== 404) return this.#later(5_000, () => this.#makeAgain(state));
    state.exists = true;
    state.vanished = false;
    this.#putMesh(state);
  }
}

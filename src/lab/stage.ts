// Where a scenario plays: the lab, the pings, and the words for what people do.

import { setTimeout as sleep } from "node:timers/promises";
import type { LabCluster } from "./cluster.ts";
import { meshNamespace } from "./install.ts";
import { type ClusterName, clusterNames, type Lab } from "./lab.ts";
import type { LabNode, NodeOptions } from "./node.ts";
import type { LabOperator } from "./operator.ts";
import { PeerWatch } from "./peer-watch.ts";
import { both, isInside } from "./pairs.ts";
import { type PairFilter, type PairLoss, Pings, seconds, summary, total, worstOf } from "./pings.ts";
import { together } from "./together.ts";
import { demand, Unmet, waitFor } from "./unmet.ts";

/** Something that happened at a moment, for the timeline. */
export type StageEvent = { readonly atMs: number; readonly text: string };

/** How many nodes each cluster has at first, or what they are. */
export type Cast = Readonly<Partial<Record<ClusterName, number | readonly NodeOptions[]>>>;

/** The parts of a mesh's status that scenarios look at. */
export type MeshStatus = {
  readonly conditions?: readonly {
    readonly type: string;
    readonly status: string;
    readonly reason: string;
    readonly message: string;
  }[];
  readonly findings?: readonly { readonly code: string; readonly message: string }[];
};

const meshesPath = `/apis/kilo.squat.ai/v1alpha1/namespaces/${meshNamespace}/clustermeshes`;

/** The event that every pod reaches every other one for the first time. */
export const connected = "connected";

/** One scenario at play. */
export class Stage {
  readonly lab: Lab;
  readonly pings = new Pings();
  readonly events: StageEvent[] = [];
  readonly beganMs = Date.now();
  /** What every cluster's Peers went through since `connect`. */
  readonly peerWatches = new Map<LabCluster, PeerWatch>();

  constructor(lab: Lab) {
    this.lab = lab;
  }

  /** Which agent the nodes run. */
  get agent(): "kg" | "model" {
    return this.lab.clusters.a.parts.agent.kind;
  }

  cluster(name: ClusterName): LabCluster {
    return this.lab.clusters[name];
  }

  /** The node of that name, in whichever cluster it is. */
  node(name: string): LabNode {
    const found = this.nodes().find((node) => node.name === name);
    if (found === undefined) throw new Error(`no node ${name}`);
    return found;
  }

  nodes(): readonly LabNode[] {
    return Object.values(this.lab.clusters).flatMap((cluster) => [...cluster.nodes.values()]);
  }

  /** Notes what happens now; answers with the time. */
  note(text: string): number {
    const atMs = Date.now();
    this.events.push({ atMs, text });
    return atMs;
  }

  /** Nodes join, and announce themselves. */
  async raise(cast: Cast): Promise<void> {
    await together(
      clusterNames.map(async (name) => {
        const wanted = cast[name] ?? 0;
        const options = typeof wanted === "number" ? Array.from({ length: wanted }, () => ({})) : wanted;
        const cluster = this.cluster(name);
        const nodes = await together(options.map((each, index) => cluster.prepareNode({ number: index + 1, ...each })));
        // One after the other: agents that start together give themselves the same address and announce it.
        for (const node of nodes) {
          node.startAgent();
          await cluster.announced([node]);
        }
      }),
    );
  }

  /** Creates the mesh of some clusters, or changes it to be that. */
  async putMesh(
    members: readonly ClusterName[],
    { name = "m", services = false, spec = {}, entries = {} }: MeshOptions = {},
  ) {
    const clusters = members.map((member) => {
      const { podCidr, wireguardCidr, serviceCidr } = this.cluster(member);
      return {
        name: member,
        ...(member === "a"
          ? { local: true }
          : { kubeconfigSecretRef: { name: `${member}-kubeconfig`, key: "kubeconfig" } }),
        podCIDRs: [podCidr],
        wireguardCIDR: wireguardCidr,
        ...(services ? { serviceCIDR: serviceCidr } : {}),
        ...entries[member],
      };
    });
    const mesh = { metadata: { name, namespace: meshNamespace }, spec: { clusters, ...spec } };
    const hub = this.cluster("a");
    const body = { apiVersion: "kilo.squat.ai/v1alpha1", kind: "ClusterMesh", ...mesh };
    const { status } = await hub.admin.request("POST", meshesPath, body);
    if (status === 409) await hub.ask("PATCH", `${meshesPath}/${name}`, { spec: { topology: null, ...mesh.spec } });
    else demand(status === 201, `the mesh was refused: ${status}`);
  }

  async deleteMesh(name = "m"): Promise<void> {
    await this.cluster("a").ask("DELETE", `${meshesPath}/${name}`);
  }

  /** The status of a mesh; nothing, if there is no such mesh. */
  async meshStatus(name = "m"): Promise<MeshStatus | undefined> {
    const { status, body } = await this.cluster("a").admin.request<{ status?: MeshStatus }>(
      "GET",
      `${meshesPath}/${name}`,
    );
    return status === 200 ? (body.status ?? {}) : undefined;
  }

  /** Waits until a mesh is Ready. */
  async meshReady(name = "m", msMax = 30_000): Promise<void> {
    await waitFor(
      `mesh ${name} to be Ready`,
      async () => {
        const ready = (await this.meshStatus(name))?.conditions?.find(({ type }) => type === "Ready");
        if (ready?.status === "True") return true;
        throw new Unmet(`${ready?.reason}: ${ready?.message}`);
      },
      msMax,
    );
  }

  /** Nodes, kubeconfigs, a mesh of all clusters with nodes, an operator; answers when every pod reaches every other one. */
  async connect(cast: Cast, options: ConnectOptions = {}): Promise<LabOperator> {
    await this.raise(cast);
    return await this.join(
      clusterNames.filter((name) => cast[name] !== undefined),
      options,
    );
  }

  /** The same for nodes that have been raised. */
  async join(members: readonly ClusterName[], options: ConnectOptions = {}): Promise<LabOperator> {
    await together(members.slice(1).map((name) => this.lab.putKubeconfig(this.cluster(name))));
    await this.putMesh(members, options);
    await this.watchPeers();
    this.pings.between(this.nodes());
    this.note("the operator starts");
    const operator = await this.lab.operators.start(options.args);
    await this.open(options.open, options.openMsMax);
    this.note(connected);
    return operator;
  }

  /** Waits until pods reach each other; if they do not, says what the mesh says. Answers with the time it took. */
  async open(which?: PairFilter, msMax?: number): Promise<number> {
    try {
      return await this.pings.allOpen(which, msMax);
    } catch (error) {
      if (!(error instanceof Unmet)) throw error;
      for (const node of this.nodes()) await node.demandDevice();
      const { conditions = [], findings = [] } = (await this.meshStatus()) ?? {};
      const ready = conditions.find(({ type }) => type === "Ready");
      const said = findings.map(({ code, message }) => `${code}: ${message}`).join("; ");
      throw new Unmet(
        `${error.message}; the mesh says Ready=${ready?.status} ${ready?.reason}: ${ready?.message} ${said}`,
      );
    }
  }

  /** Watches the Peers of every cluster from now on. */
  async watchPeers(): Promise<void> {
    for (const cluster of Object.values(this.lab.clusters)) {
      if (!this.peerWatches.has(cluster)) this.peerWatches.set(cluster, await PeerWatch.open(cluster));
    }
  }

  /** Fails if a cluster ever held two Peers with one key. */
  demandOneKeyEach(): void {
    for (const [{ name }, watch] of this.peerWatches) {
      demand(watch.doubles.length === 0, `${name} held two Peers with one key: ${watch.doubles.join(", ")}`);
    }
  }

  /** Lets time pass. */
  async pass(ms: number): Promise<void> {
    await sleep(ms);
  }

  /** What was lost since a moment. */
  lossSince(fromMs: number, which?: PairFilter): Promise<readonly PairLoss[]> {
    return this.pings.since(fromMs, which);
  }

  /** Fails if anything was lost since a moment; answers with the numbers, in words. */
  async demandNoLoss(fromMs: number, which?: PairFilter): Promise<string> {
    const losses = await this.lossSince(fromMs, which);
    demand(losses.length > 0, "no pings were sent");
    demand(total(losses, "lost") === 0, summary(losses));
    return summary(losses);
  }

  /** Fails if any pair had a gap of that length since a moment; answers with the numbers, in words. */
  async demandGapsBelow(pings: number, fromMs: number, which?: PairFilter): Promise<string> {
    return await this.#demandGaps(pings - 1, `below ${seconds(pings)}`, fromMs, which);
  }

  /** The same, if any pair had a longer one. */
  async demandGapsUpTo(pings: number, fromMs: number, which?: PairFilter): Promise<string> {
    return await this.#demandGaps(pings, `at most ${seconds(pings)}`, fromMs, which);
  }

  /** What pairs inside the clusters had since a moment, in words. Kilo decides that, so nothing is demanded. */
  async tellInside(fromMs: number, which: PairFilter = () => true): Promise<string> {
    return summary(await this.lossSince(fromMs, both(isInside, which)));
  }

  async #demandGaps(pingsMax: number, limit: string, fromMs: number, which?: PairFilter): Promise<string> {
    const losses = await this.lossSince(fromMs, which);
    demand(losses.length > 0, "no pings were sent");
    demand((worstOf(losses)?.gap ?? 0) <= pingsMax, `${summary(losses)}; it must be ${limit}`);
    return summary(losses);
  }

  /** Ends everything that the scenario started; what it made in the lab is left to the lab. */
  async end(): Promise<void> {
    for (const watch of this.peerWatches.values()) watch.close();
    await this.pings.stop();
  }
}

/** What can be said of a mesh beside its members. */
export type MeshOptions = {
  readonly name?: string;
  /** Whether the ranges of Services are joined, too. */
  readonly services?: boolean;
  readonly spec?: object;
  /** More of a cluster's entry. */
  readonly entries?: Readonly<Partial<Record<ClusterName, object>>>;
};

/** What can be said of a connected stage. */
export type ConnectOptions = MeshOptions & {
  readonly args?: readonly string[];
  /** Which pairs have to be open at first; all, if nothing is said. */
  readonly open?: PairFilter;
  readonly openMsMax?: number;
};

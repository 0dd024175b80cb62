// The fleet of a demo: simulated clusters on HTTPS, and beside them the operator as in production.

import { createHash, randomBytes } from "node:crypto";
import { createWriteStream } from "node:fs";
import { clusterMeshCrd } from "../../api/crd.ts";
import { fieldsOf, listOf, textOf } from "../../core/json.ts";
import { defaultOptions } from "../../kilo/plan.ts";
import { kiloProvider } from "../../kilo/provider.ts";
import type { Clock, Runtime } from "../../kube/runtime.ts";
import { defaultOperatorFlags } from "../../operator/flag-table.ts";
import { createMetrics } from "../../operator/metrics.ts";
import { type Operator, startOperator } from "../../operator/operator.ts";
import { createLog, createSecrets, systemRuntime } from "../../operator/runtime.ts";
import { machineNames } from "../../operator/surroundings.ts";
import { Box, meshesPath, meshNamespace } from "../../sim/box/box.ts";
import type { SimCluster, SimNode } from "../../sim/box/cluster.ts";
import { makeAuthority } from "../../sim/certificate.ts";
import { chanceOf } from "../../sim/chance.ts";
import { serveSim, type SimListeners } from "../../sim/serve.ts";
import { type Folder, kubeconfigText, logHead } from "./folder.ts";
import { clusterNames, peersOf } from "./settings.ts";
import { type DemoState, meshOf, type Reach, reachOf } from "./state.ts";
import type { Done } from "./telling.ts";

/** What a fleet is made of. */
export type FleetOptions = {
  readonly clusters: number;
  readonly nodes: number;
  readonly seed: string;
  readonly folder: Folder;
  readonly version: string;
  /** Hears of every write of the operator. */
  readonly onDone: (done: Done) => void;
};

/** The one mesh of the demo. */
export const demoMesh = { namespace: meshNamespace, name: "demo" };

/** The longest that the agents of a large fleet wait for more. */
const gatherMsMax = 5_000;
/**
 * Beyond that many Peers the operator is given flags for its surroundings: all API servers are one busy process, and an
 * agent that gets its Peers in one go writes its device a few times instead of many.
 */
const largePeers = 5_000;
const largeFlags = { requestTimeoutMs: 60_000, concurrency: 6, kubeApiQps: 500, kubeApiBurst: 500 };
const logFile = "operator.log";
/** Following every path may take that share of the time: little while there is much to write. */
const lookShare = { ready: 0.3, busy: 0.03 };

/** The files that a fleet writes. */
export const fileNames = (clusters: number): string[] => [
  ...clusterNames(clusters).map((name) => `${name}.kubeconfig`),
  logFile,
];

/** A fleet at work. */
export class DemoFleet {
  readonly box: Box;
  readonly runtime: Runtime;
  /** Settles with the fault that the operator cannot go on with. */
  readonly fault: Promise<Error>;
  readonly #options: FleetOptions;
  readonly #urls = new Map<string, string>();
  readonly #listeners = new Map<string, SimListeners>();
  readonly #certificates: ReturnType<typeof makeAuthority>;
  readonly #secrets = createSecrets();
  readonly #log: ReturnType<typeof createWriteStream>;
  #operator: Operator | undefined;
  #isClosed = false;
  #fail: (error: Error) => void = () => {};
  #reach: Reach = reachOf([]);
  #reachDueMs = 0;
  #keys = 0;

  constructor(options: FleetOptions) {
    this.#options = options;
    this.fault = new Promise((resolve) => {
      this.#fail = resolve;
    });
    this.#log = createWriteStream(options.folder.write(logFile, logHead), { flags: "a" });
    const log = createLog({
      level: "info",
      format: "json",
      destination: { write: (line) => this.#hear(line) },
      redact: this.#secrets,
    });
    this.runtime = systemRuntime(log);
    this.#certificates = makeAuthority(this.runtime.clock.nowMs());
    this.box = new Box({
      clock: gathering(this.runtime.clock, Math.min(gatherMsMax, peersOf(options.clusters, options.nodes) / 10)),
      applyMs: 0,
      chance: chanceOf(options.seed),
      names: clusterNames(options.clusters),
      urlOf: (name) => this.#urls.get(name) ?? "",
      authorityPem: this.#certificates.authority.certPem,
    });
  }

  /** Serves the clusters, with their nodes, and starts the operator; answers when both run, not when they are done. */
  async start(): Promise<void> {
    for (const cluster of this.box.clusters) {
      await this.#serve(cluster);
      for (let made = 0; made < this.#options.nodes; made += 1) this.addNode(cluster);
    }
    this.box.putSecrets(this.box.clusters, demoMesh.namespace);
    this.box.putMesh(this.box.clusters, demoMesh);
    const isLarge = peersOf(this.#options.clusters, this.#options.nodes) > largePeers;
    const flags = { ...defaultOperatorFlags, ...(isLarge ? largeFlags : {}) };
    this.#operator = startOperator({
      definitions: [clusterMeshCrd()],
      // Nobody's packets are in its tunnels, and people wait for it.
      provider: kiloProvider({ ...defaultOptions, writeIntervalMs: 0 }),
      access: this.box.hubAccess(),
      runtime: this.runtime,
      metrics: createMetrics().metrics,
      lookup: machineNames(this.runtime.clock).addressesOf,
      identity: `demo_${randomBytes(4).toString("hex")}`,
      version: this.#options.version,
      lease: undefined,
      finalizerWaitMs: flags.finalizerWaitMs,
      concurrency: flags.concurrency,
      http: () => ({ requestTimeoutMs: flags.requestTimeoutMs, qps: flags.kubeApiQps, burst: flags.kubeApiBurst }),
      keepSecret: this.#secrets.register,
    });
    void this.#operator.ended.then(this.#fail);
  }

  /** A node joins. Kilo numbers nodes by the order of their names: the names of the first ones are as long as the longest. */
  addNode(cluster: SimCluster): SimNode {
    const digits = String(this.#options.nodes).length;
    const number = cluster.nodes.size + 1;
    const name = `${cluster.name}-${String(number).padStart(digits, "0")}`;
    return cluster.addNode({ name, number, publicKey: this.newKey() });
  }

  /** A key that nobody has, the same for the same seed. */
  newKey(): string {
    this.#keys += 1;
    return createHash("sha256").update(`${this.#options.seed}/${this.#keys}`).digest("base64");
  }

  /** The API server of a cluster stops answering; its nodes and their tunnels go on. */
  async cutOff(cluster: SimCluster): Promise<void> {
    const listeners = this.#listeners.get(cluster.name);
    this.#listeners.delete(cluster.name);
    await listeners?.close();
  }

  /** The API server of a cluster answers again, where it did before if the port is still free. */
  async restore(cluster: SimCluster): Promise<void> {
    if (this.#listeners.has(cluster.name)) return;
    const before = this.#urls.get(cluster.name) ?? "";
    const port = Number(new URL(before).port);
    await this.#serve(cluster, port).catch(() => this.#serve(cluster));
    if (this.#urls.get(cluster.name) !== before) this.box.putSecret(cluster, demoMesh.namespace);
  }

  isServed(name: string): boolean {
    return this.#listeners.has(name);
  }

  /** The next look follows every path. */
  lookAgain(): void {
    this.#reachDueMs = 0;
  }

  /** What is there to see. Paths are followed as often as that does not keep the fleet from working, or when asked. */
  look(how: { readonly paths?: "now" } = {}): DemoState {
    const { clock } = this.runtime;
    const { namespace, name } = demoMesh;
    const mesh = meshOf(this.box.hub.tryTo("GET", `${meshesPath(namespace)}/${name}`).body, demoMesh);
    if (how.paths === "now" || clock.monotonicMs() >= this.#reachDueMs) {
      const startMs = clock.monotonicMs();
      this.#reach = reachOf(this.box.paths());
      const endMs = clock.monotonicMs();
      this.#reachDueMs = endMs + (endMs - startMs) / (mesh.ready === "True" ? lookShare.ready : lookShare.busy);
    }
    return {
      clusters: this.box.clusters.map((cluster) => ({
        name: cluster.name,
        nodes: [...cluster.nodes.keys()],
        peers: peersOn(cluster),
        answers: this.isServed(cluster.name),
      })),
      mesh,
      reach: this.#reach,
    };
  }

  /** Ends everything. */
  async close(): Promise<void> {
    await this.#operator?.stop();
    await Promise.all([...this.#listeners.values()].map((listeners) => listeners.close()));
    this.box.close();
    this.#isClosed = true;
    await new Promise<void>((resolve) => this.#log.end(resolve));
  }

  async #serve(cluster: SimCluster, port?: number): Promise<void> {
    const { certPem, keyPem } = this.#certificates.server;
    const listeners = await serveSim([cluster.server], { certPem, keyPem, ...(port === undefined ? {} : { port }) });
    const url = listeners.urls.get(cluster.name) ?? "";
    this.#listeners.set(cluster.name, listeners);
    this.#urls.set(cluster.name, url);
    const kubeconfig = cluster.kubeconfig(url, "admin", this.#certificates.authority.certPem);
    this.#options.folder.write(`${cluster.name}.kubeconfig`, kubeconfigText(kubeconfig));
  }

  #hear(line: string): void {
    if (!this.#isClosed) this.#log.write(line);
    if (!line.includes('"msg":"applied"')) return;
    const fields = fieldsOf(JSON.parse(line));
    const word = (field: string): string => textOf(fields[field]) ?? "";
    const done = { action: word("action"), kind: word("kind"), name: word("name"), reason: word("reason") };
    this.#options.onDone({ ...done, cluster: this.#clusterOf(word("cluster")) });
  }

  /** The operator calls a cluster by the Secret that leads to it. */
  #clusterOf(id: string): string {
    if (id === "local") return this.box.hub.name;
    return /^[^/]+\/(.+)-kubeconfig\//.exec(id)?.[1] ?? id;
  }
}

/** A clock under which agents take in at once what comes within some time: each of them writes its whole device anew. */
function gathering(clock: Clock, gatherMs: number): Clock {
  return { ...clock, after: (ms, run) => clock.after(ms === 0 ? gatherMs : ms, run) };
}

function peersOn(cluster: SimCluster): number {
  const { body } = cluster.tryTo("GET", "/apis/kilo.squat.ai/v1alpha1/peers?limit=1");
  const { items, metadata } = fieldsOf(body);
  const rest = fieldsOf(metadata)["remainingItemCount"];
  return listOf(items).length + (typeof rest === "number" ? rest : 0);
}

// An operator as a process, a mesh of two good clusters, and a tenant whose two clusters mean harm.

import { readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { chanceOf } from "../../src/sim/chance.ts";
import { Box } from "../../src/sim/box/box.ts";
import type { SimCluster } from "../../src/sim/box/cluster.ts";
import { serveSim, type SimListeners } from "../../src/sim/serve.ts";
import { makeCertificate } from "./certificate.ts";
import { eventually } from "./eventually.ts";
import { type HostileMode, type HostileServer, startHostile } from "./hostile-server.mjs";
import { realRuntime } from "./https-server.ts";
import { type OperatorProcess, startOperatorWith } from "./operator-process.ts";

/** What a status says that tests of hostile clusters look at. */
export type FoundStatus = {
  readonly clusters?: readonly { readonly name: string; readonly observed?: string; readonly message?: string }[];
  readonly findings?: readonly { readonly code: string; readonly message: string }[];
};

/** How `/healthz` answered over some time. */
export type Health = { readonly asked: number; readonly failed: number; readonly worstMs: number };

/** A good mesh, `victim/v`, of hub and va; and, once it is attacked, a mesh `evil/e` of two hostile clusters. */
export class HostileFleet {
  readonly box: Box;
  readonly hub: SimCluster;
  readonly va: SimCluster;
  readonly #certificate = makeCertificate({ names: ["127.0.0.1"] });
  readonly #urls = new Map<string, string>();
  #listeners: SimListeners | undefined;
  #operator: OperatorProcess | undefined;
  #hostile: readonly HostileServer[] = [];

  constructor() {
    this.box = new Box({
      clock: realRuntime.clock,
      applyMs: 0,
      chance: chanceOf("hostile"),
      names: ["hub", "va"],
      urlOf: (name) => this.#urls.get(name) ?? "",
      authorityPem: this.#certificate.certPem,
    });
    this.hub = this.box.hub;
    this.va = this.box.cluster("va");
  }

  get operator(): OperatorProcess {
    if (this.#operator === undefined) throw new Error("the operator has not been started");
    return this.#operator;
  }

  /** Starts the operator with a heap of so many MiB, and waits until the good mesh is joined. */
  async start(heapMiB: number, args: readonly string[] = []): Promise<void> {
    this.#listeners = await serveSim([this.hub.server, this.va.server], this.#certificate);
    for (const [name, url] of this.#listeners.urls) this.#urls.set(name, url);
    for (const cluster of [this.hub, this.va]) for (let made = 0; made < 2; made += 1) cluster.addNode();
    this.box.putSecrets([this.hub, this.va], "victim");
    this.box.putMesh([this.hub, this.va], { namespace: "victim", name: "v" });
    const kubeconfig = JSON.stringify(
      this.hub.kubeconfig(this.box.urlOf("hub"), "operator", this.#certificate.certPem),
    );
    this.#operator = await startOperatorWith({ "--kubeconfig": kubeconfig }, args, {
      NODE_OPTIONS: `--max-old-space-size=${heapMiB}`,
    });
    await this.peersOnHub(2);
  }

  /** A tenant names two clusters of theirs, both of which attack. */
  async attack(mode: HostileMode): Promise<void> {
    this.#hostile = await Promise.all([1, 2].map((number) => startHostile({ mode, number, ...this.#certificate })));
    this.box.ensureNamespace("evil");
    const clusters = this.#hostile.map(({ url }, index) => {
      const name = `evil${index + 1}`;
      const text = JSON.stringify(this.va.kubeconfig(url, "operator", this.#certificate.certPem));
      const data = { kubeconfig: Buffer.from(text).toString("base64") };
      this.hub.ask("POST", "/api/v1/namespaces/evil/secrets", { metadata: { name: `${name}-kubeconfig` }, data });
      return {
        name,
        kubeconfigSecretRef: { name: `${name}-kubeconfig`, key: "kubeconfig" },
        podCIDRs: [`10.${101 + index}.0.0/16`],
        wireguardCIDR: `10.${111 + index}.0.0/16`,
      };
    });
    const path = "/apis/kilo.squat.ai/v1alpha1/namespaces/evil/clustermeshes";
    const mesh = { apiVersion: "kilo.squat.ai/v1alpha1", kind: "ClusterMesh", metadata: { name: "e" } };
    this.hub.ask("POST", path, { ...mesh, spec: { clusters } });
    await eventually("both hostile clusters to be asked", () => this.#hostile.every((each) => each.asked() > 0));
  }

  /** How many requests the hostile servers have had. */
  asked(): number {
    return this.#hostile.reduce((sum, each) => sum + each.asked(), 0);
  }

  /** The status of the hostile mesh. */
  hostileStatus(): FoundStatus {
    const found = this.hub.ask("GET", "/apis/kilo.squat.ai/v1alpha1/namespaces/evil/clustermeshes/e");
    return (found as { status?: FoundStatus }).status ?? {};
  }

  /** A node joins va; answers how long it took until the hub had its Peer. */
  async nodeChangeMs(): Promise<number> {
    const before = this.#peers().length;
    const began = performance.now();
    this.va.addNode();
    await this.peersOnHub(before + 1);
    return performance.now() - began;
  }

  /** Waits until the hub has so many Peers. */
  async peersOnHub(count: number): Promise<void> {
    await eventually(`${count} Peers on hub`, () => this.#isAlive() && this.#peers().length === count, 60_000);
  }

  /** Asks `/healthz` again and again. */
  async watchHealth(forMs: number): Promise<Health> {
    let [asked, failed, worstMs] = [0, 0, 0];
    for (const began = performance.now(); performance.now() - began < forMs; await sleep(200)) {
      const from = performance.now();
      const answer = await fetch(`${this.operator.health}/healthz`, { signal: AbortSignal.timeout(5_000) }).catch(
        () => undefined,
      );
      asked += 1;
      if (answer?.status !== 200) failed += 1;
      worstMs = Math.max(worstMs, performance.now() - from);
      await answer?.text();
    }
    return { asked, failed, worstMs };
  }

  /** The most memory that the operator has had, in MB. */
  peakRssMb(): number {
    const [, kib = "0"] = /^VmHWM:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${this.operator.pid}/status`, "utf8")) ?? [];
    return Math.round(Number(kib) / 1_000);
  }

  /** Stops everything; answers with the exit code of the operator. */
  async close(): Promise<number | null> {
    const code = (await this.#operator?.stop()) ?? null;
    await Promise.all(this.#hostile.map((each) => each.close()));
    this.box.close();
    await this.#listeners?.close();
    return code;
  }

  #peers(): readonly unknown[] {
    return (this.hub.ask("GET", "/apis/kilo.squat.ai/v1alpha1/peers") as { items: readonly unknown[] }).items;
  }

  #isAlive(): boolean {
    process.kill(this.operator.pid, 0);
    return true;
  }
}

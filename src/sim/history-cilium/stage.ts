// Where a story of clusters with Cilium is played: the fleet, what lies between it and the operators, and how each deed is
// done and undone.

import { ciliumKinds } from "../../api/cilium-kinds.ts";
import { kubernetesClusterKind } from "../../api/kubernetes-cluster.ts";
import { networkingApiVersion } from "../../api/networking.ts";
import { fieldsOf } from "../../core/json.ts";
import type { Clock } from "../../kube/runtime.ts";
import { type CiliumBox, tenantNamespace } from "../cilium/box.ts";
import type { CiliumCluster } from "../cilium/cluster.ts";
import { type Acts, actOut, type Mishaps, type OperatorDeed } from "../history/mishaps.ts";
import type { SimServer } from "../server.ts";
import { type StrangerOptions, Strangers } from "./strangers.ts";
import type { Beginning, Deed, StoryBinding, StoryExposure, StoryIntent, StoryService } from "./story.ts";

/** What a stage is made of. */
export type CiliumStageOptions = StrangerOptions & {
  /** Operators may delete nothing from now on, or may again. */
  readonly onDeletesForbidden: (isForbidden: boolean) => void;
  readonly box: CiliumBox;
  readonly clock: Clock;
  readonly mishaps: Mishaps;
  readonly beginning: Beginning;
  /** Something between the clusters breaks, or is mended. */
  readonly onDisturbed: () => void;
};

type Kind = (typeof ciliumKinds)[keyof typeof ciliumKinds];

/** An object of a tenant, as it should be. */
type Wished = { readonly workspace: string; readonly kind: Kind; readonly name: string; spec: object; exists: boolean };

const { clusterMeshBinding, globalService, connectivityIntent, exposedService } = ciliumKinds;

/** Plays deeds. */
export class CiliumStage {
  readonly #options: CiliumStageOptions;
  readonly #bindings: readonly Wished[];
  readonly #services: readonly Wished[];
  readonly #intents: readonly Wished[];
  readonly #exposures: readonly Wished[];
  /** Workspaces that are gone, or about to be. */
  readonly #gone = new Set<string>();
  /** Clusters without a way in. */
  readonly #locked = new Set<string>();
  readonly #left = new Map<Wished, Set<number>>();
  /** The member of a binding that is called by a wrong name, and since when. */
  readonly #mistyped = new Map<Wished, { readonly member: number; readonly sinceMs: number }>();
  readonly #strangers: Strangers;

  constructor(options: CiliumStageOptions) {
    this.#options = options;
    this.#strangers = new Strangers(options);
    const { beginning } = options;
    const of = (tenant: number): string => beginning.tenants[tenant]?.workspace ?? "";
    const wish = (tenant: number, kind: Kind, name: string, spec: object): Wished => {
      const wished: Wished = { workspace: of(tenant), kind, name, spec, exists: true };
      this.#put(wished);
      return wished;
    };
    if (beginning.hasForeign) for (const cluster of options.box.clusters) this.#strangers.settle(cluster);
    this.#bindings = beginning.bindings.map((each) => {
      const made = wish(each.tenant, clusterMeshBinding, each.name, this.#bindingSpec(each, new Set()));
      this.#left.set(made, new Set());
      return made;
    });
    this.#services = beginning.services.map((each) => wish(each.tenant, globalService, each.name, serviceSpec(each)));
    this.#intents = beginning.intents.map((each) => wish(each.tenant, connectivityIntent, each.name, intentSpec(each)));
    this.#exposures = beginning.exposures.map((each) =>
      wish(each.tenant, exposedService, each.name, exposureSpec(each)),
    );
  }

  /** Does one thing. */
  play(deed: Deed): void {
    actOut<Deed>({ ...this.#options.mishaps.ofOperators, ...this.#acts }, deed);
  }

  /** Deletes everything that tenants wished for. */
  deleteAll(): void {
    for (const wished of this.#wishes()) {
      wished.exists = false;
      this.#ask(wished, "DELETE");
    }
  }

  readonly #acts: Acts<Exclude<Deed, OperatorDeed>> = {
    "place is away": ({ place, how, forMs }) => this.#options.mishaps.away(place, how, forMs),
    "requests fail": ({ place, rate, kinds, forMs }) => this.#options.mishaps.fail(place, { rate, kinds }, forMs),
    "requests are slow": ({ place, ms, forMs }) => this.#options.mishaps.slow(place, ms, forMs),
    "watches lag": ({ place, ms, forMs }) => this.#options.mishaps.lag(place, ms, forMs),
    "history is compacted": ({ place }) => {
      this.#server(place)?.endWatches();
      this.#server(place)?.compact();
    },
    "watches end": ({ place }) => this.#server(place)?.endWatches(),
    "token expires": ({ cluster, forMs }) => {
      const { server, operatorToken } = this.#cluster(cluster);
      server.revoke(operatorToken);
      this.#later(forMs, () => {
        this.#cluster(cluster).renewToken();
        this.#options.box.putKubeconfig(this.#cluster(cluster));
      });
    },
    "token rotates": ({ cluster }) => {
      const found = this.#cluster(cluster);
      const old = found.renewToken();
      this.#options.box.putKubeconfig(found);
      this.#later(5_000, () => found.server.revoke(old));
    },
    "kubeconfig is deleted": ({ cluster, forMs }) => this.#lock(this.#cluster(cluster), forMs),
    "cluster is not ready": ({ cluster, forMs }) => {
      const { name } = this.#cluster(cluster);
      this.#options.box.setReady(name, false);
      this.#later(forMs, () => this.#options.box.setReady(name, true));
    },
    "etcd is not reached": ({ cluster, forMs }) => {
      this.#reach(cluster, false);
      this.#later(forMs, () => this.#reach(cluster, true));
    },
    "authority rotates": ({ cluster }) => {
      this.#disturb(400_000);
      this.#cluster(cluster).rotateAuthority();
    },
    "certificates are renewed": ({ cluster }) => this.#cluster(cluster).renewCertificates(),
    "stranger adds a peer": ({ cluster }) => this.#strangers.addPeer(this.#cluster(cluster)),
    "stranger adds a user": ({ cluster }) => this.#strangers.addUser(this.#cluster(cluster)),
    "stranger annotates": ({ cluster, forMs }) => this.#strangers.annotate(this.#cluster(cluster), forMs),
    "stranger writes a policy": ({ cluster, label }) => this.#strangers.writePolicy(this.#cluster(cluster), label),
    "ours is tampered with": ({ cluster, what }) => {
      this.#disturb(400_000);
      this.#strangers.tamper(this.#cluster(cluster), what);
    },
    "member leaves": ({ binding, member, forMs }) => this.#leave(binding, member, forMs),
    "clusterRef is mistyped": ({ binding, member, forMs }) => this.#mistype(binding, member, forMs),
    "kubeconfig leads elsewhere": ({ binding, member, forMs }) => this.#mislead(binding, member, forMs),
    "deletes are forbidden": ({ forMs }) => {
      this.#options.onDeletesForbidden(true);
      this.#later(forMs, () => this.#options.onDeletesForbidden(false));
    },
    "binding is deleted": ({ binding, forMs }) => this.#deleteFor(this.#bindings[binding], forMs),
    "binding is suspended": ({ binding, forMs }) => this.#suspend(this.#bindings[binding], forMs),
    "service is unshared": ({ service, forMs }) => this.#deleteFor(this.#services[service], forMs),
    "service is edited": ({ service }) =>
      this.#edit(this.#services[service], (spec) => ({ ...spec, affinity: "remote" })),
    "Service is deleted": ({ cluster, forMs }) => this.#strangers.deleteService(this.#cluster(cluster), forMs),
    "intent is deleted": ({ intent, forMs }) => this.#deleteFor(this.#intents[intent], forMs),
    "intent is edited": ({ intent }) =>
      this.#edit(this.#intents[intent], (spec) => ({ ...spec, ports: [{ protocol: "TCP", port: 443 }] })),
    "exposure is deleted": ({ forMs }) => this.#deleteFor(this.#exposures[0], forMs),
    "address changes": ({ cluster }) => {
      this.#disturb(400_000);
      this.#cluster(cluster).moveBalancer();
    },
    "workspace is deleted": ({ tenant }) => this.#dissolve(this.#options.beginning.tenants[tenant]?.workspace ?? ""),
    "tenant names another's cluster": ({ tenant, cluster, forMs }) => this.#intrude(tenant, cluster, forMs),
    "tenant edits a status": ({ tenant, cluster }) => this.#pretend(tenant, cluster),
    "tenant forges a record": ({ cluster }) => this.#strangers.forge(this.#cluster(cluster)),
  };

  /** Whoever takes away the way into a cluster says that nothing there is to be cleaned up: so nothing must be. */
  #lock(cluster: CiliumCluster, forMs: number, take = () => this.#options.box.deleteKubeconfig(cluster)): void {
    const { box } = this.#options;
    const workspace = box.ownerOf(cluster.name);
    const isCleanedUp = [...this.#wishes()].some(
      (wished) => wished.workspace === workspace && (!wished.exists || (this.#left.get(wished)?.size ?? 0) > 0),
    );
    if (isCleanedUp || this.#gone.has(workspace)) return;
    take();
    this.#locked.add(cluster.name);
    this.#later(forMs, () => {
      box.putKubeconfig(cluster);
      this.#locked.delete(cluster.name);
    });
  }

  *#wishes(): Generator<Wished> {
    for (const all of [this.#bindings, this.#services, this.#intents, this.#exposures])
      for (const wished of all) yield wished;
  }

  /** Whether there is no way into a cluster of a workspace. */
  #isLocked(workspace: string): boolean {
    return [...this.#locked].some((cluster) => this.#options.box.ownerOf(cluster) === workspace);
  }

  #later(ms: number, run: () => void): void {
    this.#options.clock.after(ms, run);
  }

  #cluster(index: number): CiliumCluster {
    const cluster = this.#options.box.clusters[index];
    if (cluster === undefined) throw new Error(`no cluster ${index}`);
    return cluster;
  }

  #server(place: string): SimServer | undefined {
    const { box } = this.#options;
    if (place === "mgmt") return box.mgmt;
    if (place === "kcp") return box.kcp.home;
    return box.kcp.shards.get(place) ?? box.cluster(place)?.server;
  }

  /** Until then nobody can say what is connected. */
  #disturb(forMs: number): void {
    const { onDisturbed } = this.#options;
    for (let atMs = 0; atMs <= forMs; atMs += 20_000) this.#later(atMs, onDisturbed);
  }

  #reach(cluster: number, isReachable: boolean): void {
    this.#disturb(240_000);
    this.#cluster(cluster).reach(isReachable);
  }

  #ask({ workspace, kind, name, spec }: Wished, method: "PUT" | "DELETE" | "GET"): number {
    const { box } = this.#options;
    const path = `/apis/${networkingApiVersion}/namespaces/${tenantNamespace}/${kind.plural}`;
    if (this.#gone.has(workspace)) return 200;
    if (method !== "PUT") return box.kcp.ask(workspace, method, `${path}/${name}`).status;
    const { status } = box.kcp.ask(workspace, "PATCH", `${path}/${name}`, { spec });
    if (status !== 404) return status;
    const object = { apiVersion: networkingApiVersion, kind: kind.kind, metadata: { name }, spec };
    return box.kcp.ask(workspace, "POST", path, object).status;
  }

  #put(wished: Wished): void {
    const status = wished.exists ? this.#ask(wished, "PUT") : 200;
    if (status >= 300 && status !== 409) throw new Error(`${wished.kind.kind} ${wished.name}: ${status}`);
  }

  #edit(wished: Wished | undefined, change: (spec: object) => object): void {
    if (wished === undefined) return;
    wished.spec = change(wished.spec);
    this.#put(wished);
  }

  #deleteFor(wished: Wished | undefined, forMs: number): void {
    if (wished?.exists !== true || this.#isLocked(wished.workspace)) return;
    this.#edit(wished, (spec) => ({ ...spec, suspend: false })); // nothing is removed on behalf of what is suspended
    wished.exists = false;
    this.#ask(wished, "DELETE");
    this.#later(forMs, () => this.#makeAgain(wished));
  }

  /** What is still going has to be gone first. */
  #makeAgain(wished: Wished): void {
    if (this.#ask(wished, "GET") !== 404) return this.#later(5_000, () => this.#makeAgain(wished));
    wished.exists = true;
    this.#put(wished);
  }

  #suspend(wished: Wished | undefined, forMs: number): void {
    this.#edit(wished, (spec) => ({ ...spec, suspend: true }));
    this.#later(forMs, () => this.#edit(wished, (spec) => ({ ...spec, suspend: false })));
  }

  #bindingSpec({ members }: StoryBinding, left: ReadonlySet<number>, mistyped?: number): object {
    const { box } = this.#options;
    const clusterRefs = members
      .filter((member) => !left.has(member))
      .map((member) => ({ name: `${box.clusters[member]?.name}${member === mistyped ? "x" : ""}` }));
    return { clusterRefs };
  }

  /** For how long two clusters are joined by a mesh that names one of its clusters wrongly; not at all, if none does. */
  unclearForMs(one: string, other: string): number | undefined {
    const { box, beginning, clock } = this.#options;
    const ages = [...this.#mistyped].flatMap(([wished, { sinceMs }]) => {
      const members = beginning.bindings[this.#bindings.indexOf(wished)]?.members ?? [];
      const names = members
        .filter((each) => this.#left.get(wished)?.has(each) !== true)
        .map((each) => box.clusters[each]?.name);
      const isJoined =
        wished.exists && !this.#gone.has(wished.workspace) && names.includes(one) && names.includes(other);
      return isJoined ? [clock.monotonicMs() - sinceMs] : [];
    });
    return ages.sort((a, b) => a - b)[0];
  }

  #mistype(index: number, at: number, forMs: number): void {
    const [wished, binding] = [this.#bindings[index], this.#options.beginning.bindings[index]];
    const left = wished === undefined ? undefined : this.#left.get(wished);
    const member = binding?.members[at % binding.members.length];
    if (wished?.exists !== true || binding === undefined || left === undefined || member === undefined) return;
    if (left.size > 0 || this.#mistyped.has(wished) || this.#isLocked(wished.workspace)) return;
    this.#mistyped.set(wished, { member, sinceMs: this.#options.clock.monotonicMs() });
    this.#edit(wished, (spec) => ({ ...spec, ...this.#bindingSpec(binding, left, member) }));
    this.#later(forMs, () => {
      this.#mistyped.delete(wished);
      this.#edit(wished, (spec) => ({ ...spec, ...this.#bindingSpec(binding, left) }));
    });
  }

  /** Like a lock, it keeps what is deleted from being cleaned up. */
  #mislead(index: number, at: number, forMs: number): void {
    const members = this.#options.beginning.bindings[index]?.members ?? [];
    const [wrong, right] = [members[at % members.length], members[(at + 1) % members.length]];
    if (wrong === undefined || right === undefined || wrong === right) return;
    const [cluster, other] = [this.#cluster(wrong), this.#cluster(right)];
    this.#lock(cluster, forMs, () => this.#options.box.putKubeconfig(cluster, other));
  }

  #leave(index: number, at: number, forMs: number): void {
    const [wished, binding] = [this.#bindings[index], this.#options.beginning.bindings[index]];
    const left = wished === undefined ? undefined : this.#left.get(wished);
    const member = binding?.members[at % binding.members.length];
    if (wished === undefined || binding === undefined || left === undefined || member === undefined) return;
    if (this.#mistyped.has(wished)) return;
    if (left.has(member) || binding.members.length - left.size < 3 || this.#isLocked(wished.workspace)) return;
    left.add(member);
    this.#edit(wished, (spec) => ({ ...spec, ...this.#bindingSpec(binding, left) }));
    this.#later(forMs, () => {
      left.delete(member);
      this.#edit(wished, (spec) => ({ ...spec, ...this.#bindingSpec(binding, left) }));
    });
  }

  /** Everything in a workspace is deleted; what says whose the clusters are goes a minute later, the workspace last. */
  #dissolve(workspace: string): void {
    const { box } = this.#options;
    if (this.#gone.has(workspace) || this.#isLocked(workspace)) return;
    const kinds = Object.values(ciliumKinds);
    for (const kind of kinds) {
      for (const name of box.kcp.namesOf(workspace, kind)) {
        const path = `/apis/${networkingApiVersion}/namespaces/${tenantNamespace}/${kind.plural}/${name}`;
        box.kcp.ask(workspace, "PATCH", path, { spec: { suspend: false } });
        box.kcp.ask(workspace, "DELETE", path);
      }
    }
    this.#gone.add(workspace);
    const wait = (): void => {
      if (kinds.some((kind) => box.kcp.namesOf(workspace, kind).length > 0)) return this.#later(20_000, wait);
      for (const name of box.kcp.namesOf(workspace, kubernetesClusterKind)) box.unclaim(workspace, name);
      box.kcp.forget(workspace);
    };
    this.#later(60_000, wait);
  }

  /** A tenant says that a cluster is its own, which it is not, and joins it with one that is. */
  #intrude(tenant: number, index: number, forMs: number): void {
    const { box, beginning } = this.#options;
    const workspace = beginning.tenants[tenant]?.workspace ?? "";
    const victim = this.#cluster(index).name;
    const own = box.clusters.find(({ name }) => box.ownerOf(name) === workspace)?.name;
    if (own === undefined || box.ownerOf(victim) === workspace || this.#gone.has(workspace)) return;
    const spec = { clusterRefs: [{ name: own }, { name: victim }] };
    const wished: Wished = { workspace, kind: clusterMeshBinding, name: "greedy", spec, exists: true };
    box.claim(workspace, victim);
    this.#put(wished);
    this.#later(forMs, () => {
      wished.exists = false;
      this.#ask(wished, "DELETE");
      if (!this.#gone.has(workspace)) box.unclaim(workspace, victim);
    });
  }

  /** A tenant writes another's cluster into what we say of its own objects. */
  #pretend(tenant: number, index: number): void {
    const { box, beginning } = this.#options;
    const workspace = beginning.tenants[tenant]?.workspace ?? "";
    const victim = this.#cluster(index).name;
    if (box.ownerOf(victim) === workspace || this.#gone.has(workspace)) return;
    const lies = [
      [clusterMeshBinding, "mesh", { meshStatus: [{ clusterName: victim }], phase: "Connected" }],
      [globalService, "web", { exportedClusters: [victim], phase: "Exported" }],
      [connectivityIntent, "web-to-api", { appliedClusters: [victim], phase: "Applied" }],
    ] as const;
    for (const [kind, name, status] of lies) {
      const path = `/apis/${networkingApiVersion}/namespaces/${tenantNamespace}/${kind.plural}/${name}/status`;
      box.kcp.ask(workspace, "PATCH", path, { status: fieldsOf(status) });
    }
  }
}

const serviceSpec = ({ mesh, namespace, service, affinity }: StoryService): object => ({
  meshRef: { name: mesh },
  selector: { namespace, name: service },
  ...(affinity === undefined ? {} : { affinity }),
});

const exposureSpec = ({ mesh, namespace, service, isGlobal }: StoryExposure): object => ({
  meshRef: { name: mesh },
  serviceRef: { namespace, name: service },
  exposure: "LoadBalancer",
  global: isGlobal,
});

const intentSpec = ({ mesh, action, mode, port }: StoryIntent): object => ({
  meshRef: { name: mesh },
  action,
  policyMode: mode,
  source: { namespace: "shop", name: "web" },
  destination: { namespace: "back", name: "api" },
  ...(port === undefined ? {} : { ports: [{ protocol: "TCP", port }] }),
});

// One cluster with Cilium: an API server with what its administrator installed, and models of what runs there. The models
// look at what is stored and write what their originals would; they know nothing of who else writes.

import { fieldsOf, listOf, textOf } from "../../core/json.ts";
import type { Clock } from "../../kube/runtime.ts";
import { plain, type SimReply } from "../answer.ts";
import type { Chance } from "../chance.ts";
import { createSimServer, type SimServer } from "../server.ts";
import type { Change } from "../store.ts";
import type { SimRule } from "../users.ts";
import type { Fields } from "../value.ts";
import { controllers, giveAddress } from "./controllers.ts";
import { ciliumDefinitions, kept } from "./definitions.ts";
import { type Etcd, remoteAttempt, usersIn } from "./etcd.ts";
import * as helm from "./helm.ts";
import type { Notary, Pair } from "./notary.ts";
import { Remotes } from "./remotes.ts";

/** What a cluster is made of. */
export type CiliumClusterOptions = helm.Installation & {
  /** What people call it: the name of its KubernetesCluster. */
  readonly name: string;
  readonly clock: Clock;
  readonly chance: Chance;
  readonly notary: Notary;
  readonly operatorRules: readonly SimRule[];
  /** What its administrator created for the operator. */
  readonly operatorObjects: readonly Fields[];
  /** The etcd that answers at an address, of any cluster. */
  readonly at: (address: string, port: number) => Etcd | undefined;
  /** Something changed that other clusters may notice. */
  readonly onChange: () => void;
};

const metricsPorts = { agent: 9_962, kvstoremesh: 9_964 };
const yearMs = 365 * 86_400_000;
const rolloutMs = 20_000;
const kubeletMs = { least: 60_000, most: 90_000 };

const core = `/api/v1/namespaces/${helm.ciliumNamespace}`;
const apps = `/apis/apps/v1/namespaces/${helm.ciliumNamespace}`;

/** A cluster in memory. */
export class CiliumCluster {
  readonly name: string;
  readonly installed: helm.Installation;
  readonly server: SimServer;
  readonly kvstoremesh: Remotes;
  readonly agents: Remotes;
  operatorToken: string;
  /** Whether others reach its etcd. */
  isReachable = true;
  /** The address of its load balancer. */
  balancer: string;
  readonly #options: CiliumClusterOptions;
  readonly #adminToken: string;
  readonly #stop: readonly (() => void)[];
  #authority: Pair;
  #epoch = 1;
  #pods = 0;
  #tokens = 0;
  #pod = "";
  #hosts: ReadonlyMap<string, readonly string[]> = new Map();
  #aliasText = "";
  #loaded = { serverCert: "", trusted: "", users: "" };
  #rolling = false;

  constructor(options: CiliumClusterOptions) {
    const { name, clock, chance, operatorRules, ciliumName } = options;
    this.#options = options;
    this.name = name;
    this.installed = options;
    this.balancer = helm.balancerAddress(options.number);
    this.#adminToken = `${name}-admin`;
    this.operatorToken = this.#newToken();
    this.server = createSimServer({
      name,
      clock,
      random: chance.fork(`server/${name}`).random,
      definitions: ciliumDefinitions,
      users: {
        [this.#adminToken]: { name: "admin", groups: ["system:masters"] },
        [this.operatorToken]: { name: "causeway", rules: operatorRules },
      },
      podProxy: ({ pod, port, path }) => (path === "/metrics" ? this.#metrics(pod, port) : undefined),
    });
    this.#authority = this.#newAuthority();
    const own = chance.fork(`cilium/${name}`);
    this.kvstoremesh = new Remotes({
      clock,
      chance: own.fork("kvstoremesh"),
      ownName: ciliumName,
      read: () => this.#files(helm.names.kvstoremesh),
      attempt: remoteAttempt({
        nowMs: clock.nowMs,
        resolve: (host) => this.#hosts.get(host) ?? [],
        readsAliases: () => this.minor >= 20,
        at: options.at,
      }),
      onChange: () => this.agents.lookAgain(),
    });
    this.agents = new Remotes({
      clock,
      chance: own.fork("agents"),
      ownName: ciliumName,
      read: () => this.#files(helm.names.clustermesh),
      attempt: (remote, config) => {
        const isLocal = config.endpoints.some((each) =>
          each.includes(`//clustermesh-apiserver.${helm.ciliumNamespace}.svc`),
        );
        if (!isLocal) return { why: "not the local endpoint" };
        if (!config.certFile.startsWith("local-etcd-client") && this.minor >= 17) return { why: "permission denied" };
        if (!this.kvstoremesh.hasCache(remote)) return { why: "not in the cache" };
        return { far: () => ({ epoch: 0, isUp: this.kvstoremesh.hasCache(remote) }) };
      },
      onChange: () => undefined,
    });
    this.#install();
    const on = (storage: string, run: (change: Change) => void) => this.server.listen(storage, run);
    this.#stop = [
      on(kept.secrets, ({ key }) => this.#secretChanged(key)),
      on(kept.configMaps, ({ key }) => {
        if (key === `${helm.ciliumNamespace}/${helm.names.users}`) this.#soonMounted("users");
      }),
      on(kept.deployments, () => this.#templateChanged()),
      ...controllers(this, clock),
    ];
  }

  get minor(): number {
    return Number(this.installed.version.split(".")[1]);
  }

  /** Its etcd, as others see it. */
  readonly etcd: Etcd = {
    name: "",
    far: () => ({ epoch: this.#epoch, isUp: this.isReachable && this.#isServing() }),
    serverCert: () => this.#loaded.serverCert,
    trusted: () => this.#loaded.trusted,
    users: () => new Set(["remote", ...usersIn(this.#loaded.users)]),
  };

  /** The public parts of the keys of its authorities, the present one last. */
  readonly authorities: string[] = [];

  /** Asks as the administrator; what is refused is thrown, unless it is said to be no matter. */
  ask(method: string, path: string, body?: object): unknown {
    const reply = this.tryTo(method, path, body);
    if (reply.status >= 300) throw new Error(`${this.name} ${method} ${path}: ${JSON.stringify(reply.body)}`);
    return reply.body;
  }

  tryTo(method: string, path: string, body?: object): SimReply {
    const type = method === "PATCH" ? "application/merge-patch+json" : "application/json";
    const headers = { authorization: `Bearer ${this.#adminToken}`, "content-type": type };
    const text = body === undefined ? {} : { body: JSON.stringify(body) };
    const answer = this.server.handle({ method, path, headers, ...text });
    if (answer.kind === "reply") return answer;
    throw new Error(`${path} is a watch`);
  }

  /** A Secret or ConfigMap of Cilium's own. */
  stored(storage: string, name: string): Fields | undefined {
    return this.server
      .objects(storage)
      .find(
        ({ metadata }) =>
          fieldsOf(metadata)["name"] === name && fieldsOf(metadata)["namespace"] === helm.ciliumNamespace,
      );
  }

  kubeconfig(): object {
    return {
      apiVersion: "v1",
      kind: "Config",
      clusters: [{ name: this.name, cluster: { server: `https://${this.name}.sim:6443` } }],
      users: [{ name: "operator", user: { token: this.operatorToken } }],
      contexts: [{ name: this.name, context: { cluster: this.name, user: "operator" } }],
      "current-context": this.name,
    };
  }

  /** Gives the operator a new token; the old one goes on working until it is revoked. Answers with the old one. */
  renewToken(): string {
    const old = this.operatorToken;
    this.operatorToken = this.#newToken();
    this.server.admit(this.operatorToken, { name: "causeway", rules: this.#options.operatorRules });
    return old;
  }

  /** Everything that its authority vouched for is made anew, by a new one; clustermesh-apiserver is restarted with it. */
  rotateAuthority(): void {
    this.#authority = this.#newAuthority();
    for (const secret of this.#credentials()) {
      this.ask("PATCH", `${core}/secrets/${String(fieldsOf(secret["metadata"])["name"])}`, { data: secret["data"] });
    }
    this.#options.clock.after(kubeletMs.most + 1, () => this.#roll());
  }

  /** What its authority vouched for is made anew by the same one. */
  renewCertificates(): void {
    const [, ...leaves] = this.#credentials();
    for (const secret of leaves) {
      this.ask("PATCH", `${core}/secrets/${String(fieldsOf(secret["metadata"])["name"])}`, { data: secret["data"] });
    }
  }

  /** Its load balancer is given another address; the old one leads nowhere. */
  moveBalancer(): void {
    if (this.installed.serviceType !== "LoadBalancer") return;
    this.balancer = `203.0.113.${100 + this.installed.number}`;
    giveAddress(this, `${core}/services/${helm.names.apiserver}`);
    this.#options.onChange();
  }

  /** Others reach its etcd, or no longer do. */
  reach(isReachable: boolean): void {
    this.isReachable = isReachable;
    this.#options.onChange();
  }

  close(): void {
    for (const stop of this.#stop) stop();
    this.kvstoremesh.close();
    this.agents.close();
    this.server.endWatches();
  }

  #newToken(): string {
    this.#tokens += 1;
    const { random } = this.#options.chance.fork(`token/${this.#options.name}/${this.#tokens}`);
    const letters = Array.from({ length: 24 }, () => "abcdefghijklmnopqrstuvwxyz".charAt(Math.floor(random() * 26)));
    return `${this.#options.name}-operator-${letters.join("")}`;
  }

  #newAuthority(): Pair {
    const { notary, clock } = this.#options;
    const nowMs = clock.nowMs();
    const times = { notBeforeMs: nowMs - 86_400_000, notAfterMs: nowMs + 3 * yearMs };
    const authority = notary.make({ subject: "Cilium CA", isCa: true, ...times });
    this.authorities.push(authority.certPem);
    return authority;
  }

  #credentials(): readonly Fields[] {
    const { notary, clock, authMode, ciliumName } = this.#options;
    const nowMs = clock.nowMs();
    const issuer = this.#authority;
    const times = { notBeforeMs: nowMs - 3_600_000, notAfterMs: nowMs + yearMs, issuer };
    const remote = authMode === "cluster" ? `remote-${ciliumName}` : "remote";
    const server = { subject: helm.serverNames[0] ?? "", names: helm.serverNames, usage: "server" } as const;
    return [
      helm.secret(helm.names.authority, { "ca.crt": issuer.certPem, "ca.key": issuer.keyPem }),
      helm.tlsSecret(helm.names.server, notary.make({ ...server, ...times }), issuer),
      helm.tlsSecret(helm.names.remote, notary.make({ subject: remote, usage: "client", ...times }), issuer),
    ];
  }

  #install(): void {
    const { number, nodes } = this.installed;
    Object.assign(this.etcd, { name: this.installed.ciliumName });
    for (const secret of this.#credentials()) this.ask("POST", `${core}/secrets`, secret);
    this.ask("POST", `${core}/configmaps`, helm.config(this.installed));
    for (const object of this.#options.operatorObjects) {
      this.ask("POST", `${core}/${object["kind"] === "Secret" ? "secrets" : "configmaps"}`, object);
    }
    this.ask("POST", `${apps}/daemonsets`, helm.agents(this.installed));
    const daemons = { desiredNumberScheduled: nodes, numberReady: nodes, currentNumberScheduled: nodes };
    this.ask("PATCH", `${apps}/daemonsets/cilium/status`, { status: daemons });
    this.ask("POST", `${apps}/deployments`, helm.apiserver(this.installed));
    this.ask("POST", `${core}/services`, helm.apiserverService(this.installed));
    if (this.installed.serviceType === "LoadBalancer") giveAddress(this, `${core}/services/${helm.names.apiserver}`);
    for (let each = 1; each <= nodes; each += 1) {
      const name = `${this.name}-${each}`;
      this.ask("POST", "/api/v1/nodes", helm.node(name, number, each));
      const addresses = [{ type: "InternalIP", address: helm.nodeAddress(number, each) }];
      this.ask("PATCH", `/api/v1/nodes/${name}/status`, { status: { addresses, conditions: [ready] } });
      const shows = this.installed.agentMetrics ? { name: "prometheus", number: metricsPorts.agent } : undefined;
      this.#addPod(helm.pod(`cilium-${each}`, "cilium", name, shows));
    }
    for (const namespace of helm.workNamespaces) {
      this.ask("POST", "/api/v1/namespaces", { metadata: { name: namespace } });
      for (const service of helm.workServices) {
        const own =
          namespace === "back" ? { "example.com/owner": "somebody", "service.cilium.io/affinity": "none" } : {};
        this.ask("POST", `/api/v1/namespaces/${namespace}/services`, helm.workService(namespace, service, number, own));
        const slice = helm.workSlice(namespace, service, number);
        this.ask("POST", `/apis/discovery.k8s.io/v1/namespaces/${namespace}/endpointslices`, slice);
      }
    }
    this.#start();
  }

  #addPod(pod: ReturnType<typeof helm.pod>): void {
    this.ask("POST", `${core}/pods`, pod);
    const isReady = pod.metadata.labels["k8s-app"] === "cilium" || this.#isServing();
    const conditions = [{ ...ready, status: isReady ? "True" : "False" }];
    this.ask("PATCH", `${core}/pods/${pod.metadata.name}/status`, { status: { phase: "Running", conditions } });
  }

  /** Since 1.19 it does not start without the ConfigMap that lists its users. */
  #isServing(): boolean {
    return this.installed.authMode === "legacy" || this.stored(kept.configMaps, helm.names.users) !== undefined;
  }

  /** A new pod of clustermesh-apiserver, with everything as it is now. */
  #start(): void {
    if (this.#pod !== "") this.ask("DELETE", `${core}/pods/${this.#pod}`);
    this.#pods += 1;
    this.#pod = `clustermesh-apiserver-${this.#pods}`;
    this.#epoch += 1;
    this.#loaded = { ...this.#loaded, trusted: this.#text(helm.names.server, "ca.crt") };
    this.#mount("server");
    this.#mount("users");
    const shows = { name: "kvmesh-metrics", number: metricsPorts.kvstoremesh };
    this.#addPod(helm.pod(this.#pod, "clustermesh-apiserver", `${this.name}-1`, shows));
    const isReady = this.#isServing();
    const status = { replicas: 1, readyReplicas: isReady ? 1 : 0 };
    this.ask("PATCH", `${apps}/deployments/${helm.names.apiserver}/status`, { status });
    this.#readHosts();
    this.kvstoremesh.restart();
    this.#options.onChange();
  }

  #roll(): void {
    if (this.#rolling) return;
    this.#rolling = true;
    this.#options.clock.after(rolloutMs, () => {
      this.#rolling = false;
      this.#start();
    });
  }

  #readHosts(): void {
    const deployment = this.stored(kept.deployments, helm.names.apiserver);
    const template = fieldsOf(fieldsOf(fieldsOf(deployment?.["spec"])["template"])["spec"]);
    const hosts = new Map<string, string[]>();
    for (const each of listOf(template["hostAliases"])) {
      const { ip, hostnames } = fieldsOf(each);
      for (const host of listOf(hostnames)) hosts.set(String(host), [...(hosts.get(String(host)) ?? []), String(ip)]);
    }
    this.#hosts = hosts;
    this.#aliasText = JSON.stringify(template["hostAliases"] ?? []);
  }

  #templateChanged(): void {
    const deployment = this.stored(kept.deployments, helm.names.apiserver);
    const template = fieldsOf(fieldsOf(fieldsOf(deployment?.["spec"])["template"])["spec"]);
    if (JSON.stringify(template["hostAliases"] ?? []) !== this.#aliasText) this.#roll();
  }

  #text(secret: string, key: string): string {
    const data = fieldsOf(this.stored(kept.secrets, secret)?.["data"]);
    return Buffer.from(textOf(data[key]) ?? "", "base64").toString("utf8");
  }

  /** The files of a volume: a Secret, and the certificates that the chart puts beside it. */
  #files(secret: string): ReadonlyMap<string, string> {
    const data = Object.entries(fieldsOf(this.stored(kept.secrets, secret)?.["data"]));
    const own = data.map(([key, value]) => [key, Buffer.from(String(value), "base64").toString("utf8")] as const);
    return new Map([
      ...own,
      ["common-etcd-client.crt", this.#text(helm.names.remote, "tls.crt")],
      ["common-etcd-client.key", this.#text(helm.names.remote, "tls.key")],
      ["common-etcd-client-ca.crt", this.#text(helm.names.remote, "ca.crt")],
    ]);
  }

  #secretChanged(key: string): void {
    const name = key.slice(helm.ciliumNamespace.length + 1);
    if (name === helm.names.kvstoremesh || name === helm.names.remote) this.kvstoremesh.changed();
    if (name === helm.names.clustermesh) this.agents.changed();
    if (name === helm.names.server) this.#soonMounted("server");
  }

  #soonMounted(what: "server" | "users"): void {
    const { clock, chance } = this.#options;
    const { least, most } = kubeletMs;
    clock.after(chance.fork(`mount/${this.name}/${what}`).int(least, most), () => {
      const wasServing = this.#loaded.users !== "";
      this.#mount(what);
      // A pod that waited for its volumes starts now.
      if (what === "users" && !wasServing && this.#isServing()) this.#start();
      else this.#options.onChange();
    });
  }

  #mount(what: "server" | "users"): void {
    if (what === "server") this.#loaded = { ...this.#loaded, serverCert: this.#text(helm.names.server, "tls.crt") };
    else {
      const { data } = this.stored(kept.configMaps, helm.names.users) ?? {};
      this.#loaded = { ...this.#loaded, users: textOf(fieldsOf(data)["users.yaml"]) ?? "" };
    }
  }

  #metrics(pod: string, port: number): SimReply | undefined {
    if (pod === this.#pod && port === metricsPorts.kvstoremesh && this.#isServing()) {
      return plain(200, this.kvstoremesh.metrics("cilium_kvstoremesh"));
    }
    if (!pod.startsWith("cilium-") || port !== metricsPorts.agent || !this.installed.agentMetrics) return undefined;
    return plain(200, this.agents.metrics("cilium_clustermesh"));
  }
}

const ready = { type: "Ready", status: "True", reason: "x", lastTransitionTime: "2026-01-01T00:00:00Z" };

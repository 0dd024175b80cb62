// Clusters that run Cilium, as objects in memory: planned for, written to and asked the way an operator does it. Whether
// two of them are connected is found out from what is really written, as KVStoreMesh and etcd would.

import { diff } from "../../src/core/diff.ts";
import type { Operation } from "../../src/core/plan.ts";
import type { Provider, ProviderWorld, Remainder, Report } from "../../src/core/provider.ts";
import type { Scope } from "../../src/core/resource.ts";
import { type ClusterId, clusterIdOf, type ClusterView, type Failure, type Observed } from "../../src/core/world.ts";
import { ciliumDefaults, type CiliumOptions } from "../../src/cilium/kind-plan.ts";
import type { CiliumFact } from "../../src/cilium/fact.ts";
import type { CiliumFacts } from "../../src/cilium/facts.ts";
import type { CiliumIntent } from "../../src/cilium/intent.ts";
import type { CiliumPlan } from "../../src/cilium/plan.ts";
import { ciliumProvider } from "../../src/cilium/provider.ts";
import { clusterObjects } from "../../src/sim/cilium/rules.ts";
import { day, toyCa, toyLeaf, type ToyPair, toyPorts } from "./toy-pki.ts";

// oxlint-disable-next-line typescript/no-explicit-any -- objects of Kubernetes, as tests read and change them
export type Obj = Record<string, any>;

export const startMs = Date.parse("2026-03-01T00:00:00Z");
export const ns = "kube-system";

export const b64 = (text: string): string => Buffer.from(text).toString("base64");
export const unb64 = (text: string): string => Buffer.from(text, "base64").toString();

export type ClusterSetup = {
  readonly name: string;
  readonly ciliumName?: string;
  readonly id?: number;
  readonly version?: string;
  readonly kvstoremesh?: boolean;
  readonly service?: "LoadBalancer" | "NodePort" | "ClusterIP";
  readonly nodePort?: number;
  readonly config?: Record<string, string>;
  readonly podCidr?: string;
  readonly agentMetrics?: boolean;
  readonly perCluster?: boolean;
  readonly needsRemoteUsers?: boolean;
  readonly sans?: { readonly dns?: readonly string[]; readonly ips?: readonly string[] };
};

export type LabCluster = {
  readonly name: string;
  readonly id: ClusterId;
  readonly setup: ClusterSetup;
  readonly objects: Map<string, Obj>;
  ca: ToyPair;
  failure: Failure | undefined;
  pollsFail: boolean;
  /** Agents that are behind KVStoreMesh, by the name of their pod: they are not connected yet. */
  readonly behind: Set<string>;
};

let versions = 0;

export function put(cluster: LabCluster, object: Obj): Obj {
  versions += 1;
  const metadata = { uid: `uid-${versions}`, ...object["metadata"], resourceVersion: String(versions) };
  const stored = { ...object, metadata };
  cluster.objects.set(keyOf(stored), stored);
  return stored;
}

const keyOf = (object: Obj): string =>
  `${object["kind"]}/${object["metadata"].namespace ?? ""}/${object["metadata"].name}`;

export const get = (cluster: LabCluster, kind: string, name: string, namespace = ns): Obj | undefined =>
  cluster.objects.get(`${kind}/${namespace}/${name}`);

/** The texts in a Secret, by key. */
export function secretTexts(cluster: LabCluster, name: string): Record<string, string> {
  const data = (get(cluster, "Secret", name)?.["data"] ?? {}) as Record<string, string>;
  return Object.fromEntries(Object.entries(data).map(([key, value]) => [key, unb64(value)]));
}

export function putSecret(cluster: LabCluster, name: string, texts: Record<string, string>, more: Obj = {}): void {
  const data = Object.fromEntries(Object.entries(texts).map(([key, text]) => [key, b64(text)]));
  put(cluster, { apiVersion: "v1", kind: "Secret", metadata: { namespace: ns, name, ...more }, data });
}

const serverDns = ["clustermesh-apiserver.kube-system.svc", "*.mesh.cilium.io"];

/** Puts certificates of an authority into a cluster, as certgen does. */
export function putCertificates(cluster: LabCluster, ca: ToyPair, nowMs: number, lifeMs = 365 * day): void {
  cluster.ca = ca;
  putSecret(cluster, "cilium-ca", { "ca.crt": ca.cert, "ca.key": ca.key });
  putLeaves(cluster, ca, nowMs, lifeMs);
}

export function putLeaves(cluster: LabCluster, ca: ToyPair, nowMs: number, lifeMs = 365 * day): void {
  const { setup } = cluster;
  const cn = setup.perCluster ? `remote-${setup.ciliumName ?? setup.name}` : "remote";
  const remote = toyLeaf(ca, cn, nowMs, nowMs + lifeMs);
  const dns = [...serverDns, ...(setup.sans?.dns ?? [])];
  const server = toyLeaf(ca, "server", nowMs, nowMs + lifeMs, {
    use: "server",
    dns,
    ips: ["127.0.0.1", ...(setup.sans?.ips ?? [])],
  });
  const leaf = ({ cert, key }: ToyPair) => ({ "tls.crt": cert, "tls.key": key, "ca.crt": ca.cert });
  putSecret(cluster, "clustermesh-apiserver-remote-cert", leaf(remote));
  putSecret(cluster, "clustermesh-apiserver-server-cert", leaf(server));
}

/** A cluster as Helm leaves it: Cilium with clustermesh-apiserver, joined with nobody. */
export function makeCluster(setup: ClusterSetup, index: number): LabCluster {
  const { name, version = "1.19.6", kvstoremesh = true, service = "LoadBalancer" } = setup;
  const cluster: LabCluster = {
    name,
    id: clusterIdOf({ namespace: "default", secret: name, key: "-" }),
    setup,
    objects: new Map(),
    ca: { cert: "", key: "" },
    failure: undefined,
    pollsFail: false,
    behind: new Set(),
  };
  const at = (object: string) => ({ namespace: ns, name: object });
  put(cluster, {
    kind: "ConfigMap",
    metadata: at("cilium-config"),
    data: {
      "cluster-name": setup.ciliumName ?? name,
      "cluster-id": String(setup.id ?? index + 1),
      ipam: "cluster-pool",
      "routing-mode": "tunnel",
      "tunnel-protocol": "vxlan",
      "enable-ipv4": "true",
      "enable-ipv6": "false",
      ...setup.config,
    },
  });
  put(cluster, {
    kind: "DaemonSet",
    metadata: at("cilium"),
    spec: {
      template: { spec: { containers: [{ name: "cilium-agent", image: `quay.io/cilium/cilium:v${version}` }] } },
    },
    status: { desiredNumberScheduled: 2, numberReady: 2 },
  });
  const container = (of: string, args: string[] = []) => ({
    name: of,
    image: `quay.io/cilium/clustermesh-apiserver:v${version}`,
    args,
  });
  put(cluster, {
    kind: "Deployment",
    metadata: at("clustermesh-apiserver"),
    spec: {
      template: {
        spec: {
          containers: [
            container("etcd"),
            container("apiserver", setup.perCluster ? ["--cluster-users-enabled"] : []),
            ...(kvstoremesh ? [container("kvstoremesh")] : []),
          ],
          volumes: setup.needsRemoteUsers ? [{ name: "users", configMap: { name: "clustermesh-remote-users" } }] : [],
        },
      },
    },
    status: { readyReplicas: 1 },
  });
  put(cluster, {
    kind: "Service",
    metadata: at("clustermesh-apiserver"),
    spec: { type: service, clusterIP: "10.96.0.7", ports: [{ port: 2379, nodePort: setup.nodePort ?? 32_379 }] },
    status: { loadBalancer: service === "LoadBalancer" ? { ingress: [{ ip: `203.0.113.${index + 1}` }] } : {} },
  });
  for (const node of [1, 2]) {
    const addresses = [{ type: "InternalIP", address: `192.168.${index}.${node}` }];
    put(cluster, {
      kind: "Node",
      metadata: { name: `n${node}` },
      spec: {},
      status: { addresses, conditions: [{ type: "Ready", status: "True" }] },
    });
    const podCIDRs = [setup.podCidr ?? `10.${index}.${node}.0/24`];
    put(cluster, { kind: "CiliumNode", metadata: { name: `n${node}` }, spec: { ipam: { podCIDRs } } });
    putPod(
      cluster,
      "cilium",
      `cilium-${node}`,
      "cilium-agent",
      setup.agentMetrics ? [{ name: "prometheus", containerPort: 9962 }] : [],
    );
  }
  putPod(cluster, "clustermesh-apiserver", "clustermesh-apiserver-x", "kvstoremesh", [
    { name: "kvmesh-metrics", containerPort: 9964 },
  ]);
  for (const each of ["kube-system", "default"]) put(cluster, { kind: "Namespace", metadata: { name: each } });
  putCertificates(cluster, toyCa(`Cilium CA of ${name}`, startMs - 30 * day, startMs + 1000 * day), startMs - 30 * day);
  return cluster;
}

/** Creates what the operator may change and not create, as deploy/rbac/cilium-remote-objects.yaml does. */
export function putObjects(cluster: LabCluster): void {
  for (const raw of clusterObjects()) {
    const { kind, metadata, data } = structuredClone(raw) as Obj;
    put(cluster, { kind, metadata, data: data ?? {} });
  }
}

function putPod(cluster: LabCluster, app: string, name: string, container: string, ports: Obj[]): void {
  put(cluster, {
    kind: "Pod",
    metadata: { namespace: ns, name, labels: { "k8s-app": app } },
    spec: { containers: [{ name: container, ports }] },
    status: { conditions: [{ type: "Ready", status: "True" }] },
  });
}

export type Lab = {
  readonly clusters: LabCluster[];
  readonly intents: Obj[];
  readonly provider: Provider<CiliumIntent, CiliumFact, CiliumFacts, CiliumPlan>;
  nowMs: number;
  intentsObserved: "synced" | "stale" | "absent";
  dns: Map<string, string>;
  /** Who we are, as the world knows it. */
  instance: string | undefined;
};

export function makeLab(setups: readonly ClusterSetup[], options: Partial<CiliumOptions> = {}): Lab {
  const provider = ciliumProvider({ ...ciliumDefaults, ports: toyPorts, ...options });
  const clusters = setups.map(makeCluster);
  return {
    clusters,
    intents: [],
    provider,
    nowMs: startMs,
    intentsObserved: "synced",
    dns: new Map(),
    instance: "lab",
  };
}

/** A ClusterMeshBinding over the clusters of these names. */
export const binding = (names: readonly string[], more: Obj = {}, name = "m"): Obj => ({
  apiVersion: "networking.edge-portal.eu/v1alpha1",
  kind: "ClusterMeshBinding",
  metadata: {
    namespace: "team",
    name,
    generation: 1,
    uid: `uid-${name}`,
    creationTimestamp: "2026-01-01T00:00:00Z",
    ...more["metadata"],
  },
  spec: { clusterRefs: names.map((each) => ({ name: each })), ...more["spec"] },
  ...(more["status"] === undefined ? {} : { status: more["status"] }),
});

function readIntents(lab: Lab): { read: CiliumIntent[]; unreadable: { detail: string }[] } {
  const read: CiliumIntent[] = [];
  const unreadable: { detail: string }[] = [];
  for (const raw of lab.intents) {
    const kind = lab.provider.intents.kinds.find(({ resource }) => resource.kind === raw["kind"])!;
    const { namespace = "default", name, annotations } = raw["metadata"];
    const place = { workspace: annotations?.["kcp.io/cluster"], namespace, name };
    const result = kind.read(raw, place);
    if (result.ok) read.push(result.value);
    else unreadable.push(result.error);
  }
  return { read, unreadable };
}

const matches = (object: Obj, scope: Scope = {}): boolean => {
  const { namespace, name, labels = {} } = object["metadata"];
  if (scope.namespace !== undefined && namespace !== scope.namespace) return false;
  if (scope.fieldSelector !== undefined && scope.fieldSelector !== `metadata.name=${name}`) return false;
  const set = /^(\S+) in \((.*)\)$/.exec(scope.labelSelector ?? "");
  if (set !== null) return set[2]!.split(",").includes(labels[set[1]!]);
  const [key, value] = (scope.labelSelector ?? "").split("=");
  return scope.labelSelector === undefined || labels[key!] === value;
};

export function factsOf(lab: Lab, cluster: LabCluster): CiliumFacts {
  const objects = [...cluster.objects.values()];
  const facts = lab.provider.watches.flatMap(({ resource, scope, read }) =>
    objects.filter((object) => object["kind"] === resource.kind && matches(object, scope)).map(read),
  );
  return lab.provider.facts({ facts: [...facts, ...pollAnswers(lab, cluster)], missing: new Set() });
}

function pollAnswers(lab: Lab, cluster: LabCluster): CiliumFact[] {
  const pods = [...cluster.objects.values()].filter(({ kind }) => kind === "Pod");
  return pods.flatMap((pod): CiliumFact[] => {
    const name = pod["metadata"].name;
    const isApiserver = pod["metadata"].labels["k8s-app"] === "clustermesh-apiserver";
    if (!isApiserver && !cluster.setup.agentMetrics) return [];
    const type = isApiserver ? "kvstoremesh" : "agentRemotes";
    if (cluster.pollsFail) return [{ type, remotes: { ok: false, pod: name, detail: "timeout" } }];
    const remotes = connectionsOf(lab, cluster).map(([peer, ready]) => ({
      cluster: peer,
      ready: ready && !cluster.behind.has(name),
      failures: 0,
    }));
    return [{ type, remotes: { ok: true, pod: name, remotes } }];
  });
}

/** Which peers the entries of a cluster really lead to. */
export function connectionsOf(lab: Lab, cluster: LabCluster): [string, boolean][] {
  const texts = secretTexts(cluster, cluster.setup.kvstoremesh === false ? "cilium-clustermesh" : "cilium-kvstoremesh");
  return Object.entries(texts).flatMap(([peer, text]): [string, boolean][] => {
    if (!text.includes("endpoints:")) return [];
    const other = lab.clusters.find(({ setup, name }) => (setup.ciliumName ?? name) === peer && name !== cluster.name);
    if (other === undefined) return [[peer, false]];
    const server = secretTexts(other, "clustermesh-apiserver-server-cert");
    const [ca = "", cert = "", key = ""] = ["-ca.crt", ".crt", ".key"].map(
      (part) => texts[`${peer}.etcd-client${part}`],
    );
    const trusts = toyPorts.chainProblem(server["tls.crt"] ?? "", ca, lab.nowMs, "server") === undefined;
    const isAccepted = toyPorts.chainProblem(cert, server["ca.crt"] ?? "", lab.nowMs, "client") === undefined;
    const user = toyPorts.inspect(cert)[0]?.commonName ?? "";
    const users = String(get(other, "ConfigMap", "clustermesh-remote-users")?.["data"]?.["users.yaml"] ?? "");
    const isUser = user === "remote" || users.includes(`name: ${user}\n`);
    return [[peer, trusts && isAccepted && isUser && toyPorts.keyMatches(cert, key)]];
  });
}

export function worldOf(lab: Lab): ProviderWorld<CiliumIntent, CiliumFacts> {
  const { read, unreadable } = readIntents(lab);
  const because: Failure = { kind: "unreachable", detail: "the API server is gone" };
  const views = lab.clusters.map((cluster): ClusterView<CiliumFacts> => {
    const seen = cluster.failure;
    const observed: Observed<CiliumFacts> =
      seen === undefined
        ? { state: "synced", value: factsOf(lab, cluster) }
        : seen.kind === "unreachable"
          ? { state: "stale", because: seen, value: factsOf(lab, cluster) }
          : { state: "absent", because: seen };
    return { id: cluster.id, accesses: [cluster.id], name: cluster.name, observed };
  });
  const intents: Observed<readonly CiliumIntent[]> =
    lab.intentsObserved === "synced"
      ? { state: "synced", value: read }
      : lab.intentsObserved === "stale"
        ? { state: "stale", because, value: read }
        : { state: "absent", because };
  return {
    revision: 1,
    nowMs: lab.nowMs,
    instance: lab.instance,
    intents,
    clusters: views,
    dns: lab.dns,
    held: new Map(),
    unreadableIntents: unreadable,
  };
}

export const planOf = (lab: Lab): CiliumPlan => lab.provider.plan(worldOf(lab));

export const operationsOf = (plan: CiliumPlan): readonly Operation[] =>
  plan.targets.flatMap((target) => diff(target).operations);

/** Carries out what a plan asks for, as an API server would; answers how much that was. */
export async function applyPlan(lab: Lab, plan: CiliumPlan): Promise<readonly Operation[]> {
  const operations = operationsOf(plan);
  for (const operation of operations) await apply(lab, operation);
  return operations;
}

async function apply(lab: Lab, operation: Operation): Promise<void> {
  const cluster = lab.clusters.find(({ id }) => id === operation.target)!;
  const kind = lab.provider.kinds[operation.kind]!;
  const [namespace = "", name = ""] = operation.name.split("/");
  const key = `${kind.resource.kind}/${namespace}/${name}`;
  const existing = cluster.objects.get(key);
  if (operation.action === "create" && existing !== undefined) throw new Error(`${key} exists`);
  if (operation.action !== "create" && existing === undefined) throw new Error(`${key} is not there`);
  const version = existing?.["metadata"].resourceVersion;
  if (existing !== undefined && operation.resourceVersion !== version) throw new Error(`${key} was changed`);
  if (operation.action === "delete") {
    cluster.objects.delete(key);
    return;
  }
  const body = (await kind.manifest(operation.name, operation.content!)) as Obj;
  const next = merge(existing ?? {}, body);
  for (const [each, text] of Object.entries((next["stringData"] ?? {}) as Record<string, string>)) {
    next["data"] = { ...next["data"], [each]: b64(text) };
  }
  delete next["stringData"];
  put(cluster, next);
}

/** RFC 7386. */
function merge(target: Obj, patch: Obj): Obj {
  const result: Obj = { ...target };
  for (const [key, value] of Object.entries(patch)) {
    if (value === null) delete result[key];
    else if (typeof value === "object" && !Array.isArray(value)) result[key] = merge(result[key] ?? {}, value);
    else result[key] = value;
  }
  return result;
}

/** Plans and applies until nothing is left to do. */
export async function converge(lab: Lab, rounds = 5): Promise<CiliumPlan> {
  for (let round = 0; round < rounds; round += 1) {
    const plan = planOf(lab);
    const done = await applyPlan(lab, plan);
    report(lab, planOf(lab));
    if (done.length === 0) return plan;
  }
  throw new Error(`still something to do: ${JSON.stringify(operationsOf(planOf(lab)), undefined, 1)}`);
}

/** Clusters that one binding has joined, with nothing left to do. */
export async function joined(
  setups: readonly ClusterSetup[] = [{ name: "a" }, { name: "b" }],
  more: Obj = {},
): Promise<Lab> {
  const lab = makeLab(setups);
  const names = setups.map(({ name }) => name);
  lab.intents.push(binding(names, more));
  await converge(lab);
  return lab;
}

/** What a plan reports of an intent, stored in it as the operator does. */
export function report(lab: Lab, plan: CiliumPlan): Map<string, Report> {
  const reports = new Map<string, Report>();
  const { read } = readIntents(lab);
  for (const intent of read) {
    if (intent.kind === "KubernetesCluster") continue;
    const members = lab.provider.intents.members(intent, read);
    const remainders = members.map((member): Remainder => {
      const target = plan.targets.find(({ target: id }) => id === member.id);
      const cluster = lab.clusters.find(({ id }) => id === member.id);
      const items = target?.items.filter(({ intents }) => intents?.includes(intent.id)) ?? [];
      const observed: Observed<unknown> =
        cluster !== undefined && cluster.failure === undefined
          ? { state: "synced", value: undefined }
          : { state: "absent", because: cluster?.failure ?? { kind: "missing", detail: "no Secret" } };
      return { member, observed, objects: items.length };
    });
    const made = lab.provider.report(plan, intent, {
      diagnostics: plan.diagnostics.filter(({ mesh }) => mesh === intent.id),
      pending: operationsOf(plan).filter(({ intents }) => intents.includes(intent.id)),
      kept: [],
      reports: [],
      remainders,
      forced: false,
    });
    reports.set(intent.id, made);
    const raw = lab.intents.find(
      ({ kind, metadata }) =>
        kind === intent.kind &&
        metadata.name === intent.place.name &&
        (metadata.namespace ?? "default") === intent.place.namespace,
    )!;
    const conditions = made.conditions.map((each) => ({
      ...each,
      lastTransitionTime: "2026-03-01T00:00:00Z",
      observedGeneration: 1,
    }));
    raw["status"] = { ...made.status, conditions };
  }
  return reports;
}

export const clusterOf = (lab: Lab, name: string): LabCluster => lab.clusters.find((each) => each.name === name)!;
export const codesOf = (plan: CiliumPlan): string[] => [...new Set(plan.diagnostics.map(({ code }) => code))].sort();

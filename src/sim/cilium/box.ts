// A fleet in a box: workspaces of tenants in a kcp, a management plane with the kubeconfigs of their clusters, and the
// clusters, each with Cilium.

import { kubernetesClusterKind } from "../../api/kubernetes-cluster.ts";
import { Redacted } from "../../core/redacted.ts";
import type { ClusterAccess } from "../../kube/access.ts";
import type { Clock } from "../../kube/runtime.ts";
import type { SimReply } from "../answer.ts";
import type { Chance } from "../chance.ts";
import { SimKcp } from "../kcp/kcp.ts";
import { createSimServer, type SimServer } from "../server.ts";
import type { SimRule } from "../users.ts";
import { CiliumCluster } from "./cluster.ts";
import { managedClusters, managementDefinitions } from "./definitions.ts";
import type { Etcd } from "./etcd.ts";
import { type Installation, nodeAddress, nodePort } from "./helm.ts";
import { Notary } from "./notary.ts";
import { clusterObjects, clusterRules, type Grant } from "./rules.ts";

/** A cluster of a fleet. */
export type ClusterPlan = Omit<Installation, "number"> & {
  readonly name: string;
  /** The workspace that it belongs to. */
  readonly workspace: string;
  /** Whether the management plane says whose it is. */
  readonly isMarked: boolean;
  /** What its administrator grants beside what every cluster needs; all of it, if nothing is said. */
  readonly grants?: readonly Grant[];
  /** Its administrator did not create what the operator may not create. */
  readonly lacksObjects?: true;
};

/** What a fleet is made of. */
export type CiliumBoxOptions = {
  readonly clock: Clock;
  readonly chance: Chance;
  readonly workspaces: readonly { readonly name: string; readonly shard: string }[];
  readonly clusters: readonly ClusterPlan[];
};

/** The namespace of tenants' objects, in their workspaces. */
export const tenantNamespace = "default";

/** The namespace of Clusters and kubeconfigs, on the management plane. */
export const mgmtNamespace = "fleet";

/** The export that tenants bind. */
export const exportName = "edge-portal-networking";

const adminToken = "mgmt-admin";
const operatorTokens = { kcp: "kcp-operator-token", mgmt: "mgmt-operator-token", home: "home-operator-token" } as const;

const reading = ["get", "list", "watch"];
const clustersPath = `/apis/${managedClusters.group}/${managedClusters.version}/namespaces/${mgmtNamespace}/clusters`;
const secretsPath = `/api/v1/namespaces/${mgmtNamespace}/secrets`;

/** A fleet in memory. */
export class CiliumBox {
  readonly kcp: SimKcp;
  readonly mgmt: SimServer;
  /** The cluster that the operator runs in: nothing is there but its Lease. */
  readonly home: SimServer;
  readonly clusters: readonly CiliumCluster[];
  readonly notary = new Notary();
  readonly #options: CiliumBoxOptions;

  constructor(options: CiliumBoxOptions) {
    const { clock, chance, workspaces } = options;
    this.#options = options;
    const shards = [...new Set(workspaces.map(({ shard }) => shard))];
    this.kcp = new SimKcp({ clock, chance, shards, exportName, operatorToken: operatorTokens.kcp });
    const make = (name: "mgmt" | "home", rules: readonly SimRule[], definitions: readonly object[]): SimServer =>
      createSimServer({
        name,
        clock,
        random: chance.fork(`server/${name}`).random,
        definitions,
        users: {
          [adminToken]: { name: "admin", groups: ["system:masters"] },
          [operatorTokens[name]]: { name: "causeway", rules },
        },
      });
    this.mgmt = make(
      "mgmt",
      [
        { verbs: reading, apiGroups: [managedClusters.group], resources: ["clusters"], namespace: mgmtNamespace },
        { verbs: reading, apiGroups: [""], resources: ["secrets"], namespace: mgmtNamespace },
      ],
      managementDefinitions,
    );
    this.home = make("home", [{ verbs: ["*"], apiGroups: ["coordination.k8s.io"], resources: ["leases"] }], []);
    this.askMgmt("POST", "/api/v1/namespaces", { metadata: { name: mgmtNamespace } });
    this.clusters = options.clusters.map((plan, index) => this.#makeCluster(plan, index + 1));
    for (const { name, shard } of workspaces) this.kcp.bind(name, shard);
    for (const plan of options.clusters) this.#register(plan);
  }

  cluster(name: string): CiliumCluster | undefined {
    return this.clusters.find((cluster) => cluster.name === name);
  }

  /** The workspace that a cluster belongs to. */
  ownerOf(cluster: string): string {
    return this.#options.clusters.find(({ name }) => name === cluster)?.workspace ?? "";
  }

  /** Whether the platform leaves Clusters unmarked: then the operator has to be told to trust them. */
  hasUnmarked(): boolean {
    return this.#options.clusters.some(({ isMarked }) => !isMarked);
  }

  /** Whether that workspace still says so; if not, the next one that does has the cluster if it is not marked (ADR 0030). */
  isClaimed(cluster: string): boolean {
    return this.kcp.namesOf(this.ownerOf(cluster), kubernetesClusterKind).includes(cluster);
  }

  /** The servers by where they are reached, for `simAccess`. */
  serversByHost(): ReadonlyMap<string, SimServer> {
    const all = new Map<string, SimServer>([
      ...this.kcp.servers(),
      ["mgmt", this.mgmt],
      ["home", this.home],
      ...this.clusters.map(({ name, server }) => [name, server] as const),
    ]);
    return new Map([...all].map(([name, server]) => [`${name}.sim:6443`, server]));
  }

  /** Every place that weather can be over. */
  get places(): readonly string[] {
    return ["home", "mgmt", "kcp", ...this.kcp.shards.keys(), ...this.clusters.map(({ name }) => name)];
  }

  /** How the operator reaches one of the three that it knows from its beginning; a path leads below it. */
  access(name: keyof typeof operatorTokens, server = `https://${name}.sim:6443`): ClusterAccess {
    return { server, token: new Redacted(operatorTokens[name]), fingerprint: name, notes: [] };
  }

  /** Every token that must not be told. */
  tokens(): readonly string[] {
    return [...Object.values(operatorTokens), ...this.clusters.map(({ operatorToken }) => operatorToken)];
  }

  /** Writes the kubeconfig of a cluster into its Secret, new or not. */
  putKubeconfig(cluster: CiliumCluster, to = cluster): void {
    const data = { kubeconfig: Buffer.from(JSON.stringify(to.kubeconfig())).toString("base64") };
    const name = `${cluster.name}-access`;
    const { status } = this.askMgmt("PATCH", `${secretsPath}/${name}`, { data });
    if (status === 404) this.askMgmt("POST", secretsPath, { metadata: { name }, data });
  }

  deleteKubeconfig(cluster: CiliumCluster): void {
    this.askMgmt("DELETE", `${secretsPath}/${cluster.name}-access`);
  }

  /** The management plane says that a cluster is ready, or not. */
  setReady(cluster: string, isReady: boolean): void {
    const conditions = [{ type: "Ready", status: isReady ? "True" : "False", reason: "x", message: "x" }];
    const capabilities = [{ name: "cilium-cni", details: { status: "ready" } }];
    const kubeconfigSecretRef = { name: `${cluster}-access`, key: "kubeconfig" };
    const status = { conditions, capabilities, kubeconfigSecretRef };
    this.askMgmt("PATCH", `${clustersPath}/${cluster}/status`, { status });
  }

  askMgmt(method: string, path: string, body?: object): SimReply {
    const type = method === "PATCH" ? "application/merge-patch+json" : "application/json";
    const headers = { authorization: `Bearer ${adminToken}`, "content-type": type };
    const text = body === undefined ? {} : { body: JSON.stringify(body) };
    const answer = this.mgmt.handle({ method, path, headers, ...text });
    if (answer.kind === "reply") return answer;
    throw new Error(`${path} is a watch`);
  }

  /** A workspace says that a cluster is its own. */
  claim(workspace: string, cluster: string): void {
    const { group, version, plural, kind } = kubernetesClusterKind;
    const path = `/apis/${group}/${version}/namespaces/${tenantNamespace}/${plural}`;
    const object = { apiVersion: `${group}/${version}`, kind, metadata: { name: cluster, namespace: tenantNamespace } };
    this.kcp.ask(workspace, "POST", path, { ...object, spec: {} });
  }

  /** It no longer says so. */
  unclaim(workspace: string, cluster: string): void {
    const { group, version, plural } = kubernetesClusterKind;
    this.kcp.ask(workspace, "DELETE", `/apis/${group}/${version}/namespaces/${tenantNamespace}/${plural}/${cluster}`);
  }

  /** No timer and no listener is left. */
  close(): void {
    for (const cluster of this.clusters) cluster.close();
    this.kcp.close();
    this.mgmt.endWatches();
    this.home.endWatches();
  }

  #makeCluster(plan: ClusterPlan, number: number): CiliumCluster {
    const { clock, chance } = this.#options;
    return new CiliumCluster({
      ...plan,
      number,
      clock,
      chance,
      notary: this.notary,
      operatorRules: clusterRules(plan.grants),
      operatorObjects: plan.lacksObjects === true ? [] : clusterObjects(),
      at: (address, port) => this.#etcdAt(address, port),
      onChange: () => {
        for (const each of this.clusters ?? []) each.kvstoremesh.lookAgain();
      },
    });
  }

  #etcdAt(address: string, port: number): Etcd | undefined {
    const found = this.clusters.find(({ balancer, installed: { number, nodes } }) => {
      if (address === balancer) return port === 2_379;
      const own = Array.from({ length: nodes }, (_, index) => nodeAddress(number, index + 1));
      return own.includes(address) && port === nodePort(number);
    });
    return found?.etcd;
  }

  #register({ name, workspace, isMarked }: ClusterPlan): void {
    const { group, version, kind } = managedClusters;
    const annotations = isMarked ? { "kcp.io/cluster": workspace } : {};
    const metadata = { name, namespace: mgmtNamespace, annotations };
    this.askMgmt("POST", clustersPath, { apiVersion: `${group}/${version}`, kind, metadata, spec: {} });
    this.setReady(name, true);
    const cluster = this.cluster(name);
    if (cluster !== undefined) this.putKubeconfig(cluster);
    this.claim(workspace, name);
  }
}

// A fleet in a box: simulated clusters, the first of which holds the meshes and the kubeconfigs of the others.

import { readFileSync } from "node:fs";
import { parseAllDocuments } from "yaml";
import { fieldsOf, listOf, textOf } from "../../core/json.ts";
import { Redacted } from "../../core/redacted.ts";
import type { ClusterAccess } from "../../kube/access.ts";
import type { Clock } from "../../kube/runtime.ts";
import { type Path, reachability } from "../agent/reach.ts";
import type { Underlay } from "../agent/underlay.ts";
import type { Chance } from "../chance.ts";
import type { SimServer } from "../server.ts";
import type { SimRule } from "../users.ts";
import { type ClusterOptions, SimCluster } from "./cluster.ts";

/** What a fleet is made of. */
export type BoxOptions = {
  readonly clock: Clock;
  readonly chance: Chance;
  /** The first one is the hub. */
  readonly names: readonly [string, ...string[]];
  readonly installedBy?: string;
  readonly heartbeats?: boolean;
  readonly applyMs?: number;
  readonly onPeer?: ClusterOptions["onPeer"];
  readonly onWrite?: ClusterOptions["onWrite"];
  /** Where the API server of a cluster is reached, as its kubeconfig says it. */
  readonly urlOf?: (name: string) => string;
  /** Who vouches for the certificates at those addresses. */
  readonly authorityPem?: string;
};

/** What can be said of a mesh beside its members. */
export type MeshOptions = {
  readonly namespace?: string;
  readonly name: string;
  /** Whether the ranges of Services are joined, too. */
  readonly services?: boolean;
  readonly spec?: object;
  /** Fields of entries, by name, that are not as they would be. */
  readonly entries?: readonly { readonly name: string }[];
};

/** The namespace of meshes and kubeconfigs. */
export const meshNamespace = "kilo-system";

const meshApi = "/apis/kilo.squat.ai/v1alpha1";

/** Where the meshes of a namespace are. */
export const meshesPath = (namespace: string): string => `${meshApi}/namespaces/${namespace}/clustermeshes`;

/** A fleet in memory. */
export class Box {
  readonly clusters: readonly SimCluster[];
  readonly hub: SimCluster;
  readonly #options: BoxOptions;

  constructor(options: BoxOptions) {
    const { clock, chance, names, onPeer, onWrite, installedBy, heartbeats = true, applyMs } = options;
    this.#options = options;
    const [hubName, ...others] = names;
    const make = (name: string, index: number): SimCluster =>
      new SimCluster({
        name,
        number: index + 1,
        clock,
        chance,
        heartbeats,
        operatorRules: index === 0 ? operatorRules().local : operatorRules().remote,
        ...(applyMs === undefined ? {} : { applyMs }),
        ...(onPeer === undefined ? {} : { onPeer }),
        ...(onWrite === undefined ? {} : { onWrite }),
        ...(installedBy === undefined ? {} : { installedBy }),
      });
    this.hub = make(hubName, 0);
    this.clusters = [this.hub, ...others.map((name, index) => make(name, index + 1))];
    this.ensureNamespace(meshNamespace);
  }

  cluster(name: string): SimCluster {
    const found = this.clusters.find((cluster) => cluster.name === name);
    if (found === undefined) throw new Error(`no cluster ${name}`);
    return found;
  }

  /** The servers by where they are reached, for `simAccess`. */
  serversByHost(): ReadonlyMap<string, SimServer> {
    return new Map(this.clusters.map(({ name, server }) => [new URL(this.urlOf(name)).host, server]));
  }

  urlOf(name: string): string {
    return this.#options.urlOf?.(name) ?? `https://${name}.sim:6443`;
  }

  /** How the operator reaches the hub. */
  hubAccess(): ClusterAccess {
    const { name, operatorToken } = this.hub;
    const { authorityPem } = this.#options;
    return {
      server: this.urlOf(name),
      token: new Redacted(operatorToken),
      fingerprint: name,
      notes: [],
      ...(authorityPem === undefined ? {} : { caPem: authorityPem }),
    };
  }

  ensureNamespace(namespace: string): void {
    const { status } = this.hub.tryTo("GET", `/api/v1/namespaces/${namespace}`);
    if (status === 404) this.hub.ask("POST", "/api/v1/namespaces", { metadata: { name: namespace } });
  }

  /** Writes the kubeconfig of a cluster into its Secret, new or not. */
  putSecret(cluster: SimCluster, namespace = meshNamespace): void {
    const text = JSON.stringify(cluster.kubeconfig(this.urlOf(cluster.name), "operator", this.#options.authorityPem));
    const data = { kubeconfig: Buffer.from(text).toString("base64") };
    const path = `/api/v1/namespaces/${namespace}/secrets`;
    const { status } = this.hub.tryTo("PATCH", `${path}/${cluster.name}-kubeconfig`, { data });
    if (status !== 404) return;
    this.hub.ask("POST", path, { metadata: { name: `${cluster.name}-kubeconfig` }, data });
  }

  deleteSecret(cluster: SimCluster, namespace = meshNamespace): void {
    this.hub.tryTo("DELETE", `/api/v1/namespaces/${namespace}/secrets/${cluster.name}-kubeconfig`);
  }

  /** The mesh of some clusters, as an administrator would write it. */
  mesh(
    members: readonly SimCluster[],
    { namespace = meshNamespace, name, services, spec = {}, entries = [] }: MeshOptions,
  ): object {
    const clusters = members.map((member) => ({
      name: member.name,
      ...(member === this.hub
        ? { local: true }
        : { kubeconfigSecretRef: { name: `${member.name}-kubeconfig`, key: "kubeconfig" } }),
      podCIDRs: [member.podCidr],
      wireguardCIDR: member.wireguardCidr,
      ...(services === true ? { serviceCIDR: member.serviceCidr } : {}),
      ...entries.find((entry) => entry.name === member.name),
    }));
    return {
      apiVersion: "kilo.squat.ai/v1alpha1",
      kind: "ClusterMesh",
      metadata: { name, namespace },
      spec: { clusters, ...spec },
    };
  }

  /** Creates a namespace and the Secrets in it that a mesh of some clusters refers to. */
  putSecrets(members: readonly SimCluster[], namespace = meshNamespace): void {
    this.ensureNamespace(namespace);
    for (const member of members) if (member !== this.hub) this.putSecret(member, namespace);
  }

  /** Creates the mesh of some clusters, or changes it to be that. */
  putMesh(members: readonly SimCluster[], options: MeshOptions): void {
    const { namespace = meshNamespace, name } = options;
    const mesh = this.mesh(members, options);
    const { status } = this.hub.tryTo("GET", `${meshesPath(namespace)}/${name}`);
    if (status === 404) this.hub.ask("POST", meshesPath(namespace), mesh);
    else this.hub.ask("PATCH", `${meshesPath(namespace)}/${name}`, { spec: fieldsOf(mesh)["spec"] });
  }

  /** Somebody takes every finalizer of a mesh away. */
  dropFinalizers({ namespace = meshNamespace, name }: MeshOptions): void {
    this.hub.tryTo("PATCH", `${meshesPath(namespace)}/${name}`, { metadata: { finalizers: null } });
  }

  deleteMesh({ namespace = meshNamespace, name }: MeshOptions): void {
    this.hub.tryTo("DELETE", `${meshesPath(namespace)}/${name}`);
  }

  /** Which pod reaches which pod of another cluster. */
  paths(underlay?: Underlay): readonly Path[] {
    const stations = this.clusters.flatMap(({ name, nodes }) =>
      [...nodes.values()].map(({ agent, podCidr }) => ({ cluster: name, agent, podCidr })),
    );
    return reachability(stations, this.#options.clock.nowMs(), underlay);
  }

  /** No timer and no listener is left. */
  close(): void {
    for (const cluster of this.clusters) cluster.close();
  }
}

type Rules = { readonly local: readonly SimRule[]; readonly remote: readonly SimRule[] };

let committed: Rules | undefined;

/** What the roles in deploy/rbac grant the operator: on its own cluster, with any Secret and Lease, and on the others. */
export function operatorRules(): Rules {
  if (committed !== undefined) return committed;
  const local = rulesIn("local.yaml").map((rule) => withoutNames(rule, ["leases"]));
  const secrets = rulesIn("secrets.yaml").map((rule) => withoutNames(rule, ["secrets"]));
  committed = { local: [...local, ...secrets], remote: rulesIn("remote.yaml") };
  return committed;
}

/** An example names objects that an administrator would replace by the names of their own. */
function withoutNames({ resourceNames, ...rule }: SimRule, resources: readonly string[]): SimRule {
  const isExample = rule.resources.every((resource) => resources.includes(resource));
  return isExample || resourceNames === undefined ? rule : { ...rule, resourceNames };
}

function rulesIn(file: string): readonly SimRule[] {
  const text = readFileSync(new URL(`../../../deploy/rbac/${file}`, import.meta.url), "utf8");
  return parseAllDocuments(text).flatMap((document) => listOf(fieldsOf(document.toJS())["rules"]).map(ruleOf));
}

function ruleOf(raw: unknown): SimRule {
  const { verbs, apiGroups, resources, resourceNames } = fieldsOf(raw);
  const texts = (value: unknown): readonly string[] => listOf(value).map((each) => textOf(each) ?? "");
  return {
    verbs: texts(verbs),
    apiGroups: texts(apiGroups),
    resources: texts(resources),
    ...(resourceNames === undefined ? {} : { resourceNames: texts(resourceNames) }),
  };
}

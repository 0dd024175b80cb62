// Worlds for the planners of the Cilium kinds: clusters with facts, a mesh, and intents as the schemas read them.

import { connectivityIntentSchema } from "../../src/api/connectivity-intent.ts";
import { clusterMeshBindingSchema } from "../../src/api/cluster-mesh-binding.ts";
import { exposedServiceSchema } from "../../src/api/exposed-service.ts";
import { fabricSchema } from "../../src/api/fabric.ts";
import { globalServiceSchema } from "../../src/api/global-service.ts";
import { kubernetesClusterSchema } from "../../src/api/kubernetes-cluster.ts";
import type { Evidence, Report } from "../../src/core/provider.ts";
import { type ClusterId, clusterIdOf, type ClusterView, type Observed } from "../../src/core/world.ts";
import { editOf } from "../../src/cilium/edit.ts";
import type { CiliumFacts, PolicyFacts, ServiceFacts } from "../../src/cilium/facts.ts";
import type {
  BindingIntent,
  CiliumIntent,
  ConnectivityIntentIntent,
  ExposedServiceIntent,
  FabricIntent,
  GlobalServiceIntent,
  KubernetesClusterIntent,
} from "../../src/cilium/intent.ts";
import { ciliumDefaults, type KindPlan, type PlanContext } from "../../src/cilium/kind-plan.ts";
import type { MeshMember, MeshPhase, MeshState, Version } from "../../src/cilium/mesh-state.ts";

/** Who plans, in these worlds. */
export const instance = "here";

/** The moment of these worlds. */
export const nowMs = Date.UTC(2026, 3, 21, 10, 0, 0);

const apiVersion = "networking.edge-portal.eu/v1alpha1";

/** What an intent is beside its spec. */
export type About = {
  readonly name?: string;
  readonly namespace?: string;
  readonly workspace?: string;
  readonly createdMs?: number;
  readonly terminating?: boolean;
  readonly invalid?: string;
  readonly status?: unknown;
};

function common(kind: string, about: About, fallback: string) {
  const { name = fallback, namespace = "default", workspace, createdMs = 0, terminating = false, invalid } = about;
  const id = workspace === undefined ? `${kind}/${namespace}/${name}` : `${kind}/${workspace}/${namespace}/${name}`;
  const meta = {
    id,
    place: { workspace, namespace, name },
    uid: undefined,
    generation: 1,
    createdMs,
    terminating,
    invalid,
  };
  return { meta, raw: { apiVersion, kind, metadata: { name, namespace }, status: about.status } };
}

/** A GlobalService of mesh `mesh`. */
export function globalService(spec: Record<string, unknown>, about: About = {}): GlobalServiceIntent {
  const { meta, raw } = common("GlobalService", about, "shop");
  const object = globalServiceSchema.parse({ ...raw, spec: { meshRef: { name: "mesh" }, ...spec } });
  return { ...meta, kind: "GlobalService", object };
}

/** A ConnectivityIntent of mesh `mesh`. */
export function connectivityIntent(spec: Record<string, unknown>, about: About = {}): ConnectivityIntentIntent {
  const { meta, raw } = common("ConnectivityIntent", about, "web-to-db");
  const object = connectivityIntentSchema.parse({ ...raw, spec: { meshRef: { name: "mesh" }, ...spec } });
  return { ...meta, kind: "ConnectivityIntent", object };
}

/** An ExposedService of mesh `mesh`. */
export function exposedService(spec: Record<string, unknown>, about: About = {}): ExposedServiceIntent {
  const { meta, raw } = common("ExposedService", about, "web");
  const object = exposedServiceSchema.parse({ ...raw, spec: { meshRef: { name: "mesh" }, ...spec } });
  return { ...meta, kind: "ExposedService", object };
}

/** A Fabric. */
export function fabric(spec: Record<string, unknown>, about: About = {}): FabricIntent {
  const { meta, raw } = common("Fabric", about, "fabric");
  return { ...meta, kind: "Fabric", object: fabricSchema.parse({ ...raw, spec }) };
}

/** A KubernetesCluster. */
export function kubernetesCluster(name: string, spec: Record<string, unknown> = {}): KubernetesClusterIntent {
  const { meta } = common("KubernetesCluster", { name }, name);
  const object = kubernetesClusterSchema.parse({ metadata: { name, namespace: "default" }, spec });
  return { ...meta, kind: "KubernetesCluster", object };
}

/** A ClusterMeshBinding. */
export function binding(clusters: readonly string[], about: About & { topology?: unknown } = {}): BindingIntent {
  const { meta, raw } = common("ClusterMeshBinding", about, "mesh");
  const spec = { clusterRefs: clusters.map((name) => ({ name })), topology: about.topology };
  return { ...meta, kind: "ClusterMeshBinding", object: clusterMeshBindingSchema.parse({ ...raw, spec }) };
}

/** Facts of a cluster where nothing is out of the ordinary. */
export function ciliumFacts(more: Partial<CiliumFacts> = {}): CiliumFacts {
  return {
    uid: undefined,
    config: {},
    agent: { image: "cilium", desired: 3, ready: 3 },
    agentShared: undefined,
    agentHostAliases: [],
    apiserver: undefined,
    endpoint: undefined,
    authority: undefined,
    remoteCredential: undefined,
    serverCredential: undefined,
    clustermesh: undefined,
    kvstoremesh: undefined,
    connectionCertificates: new Map(),
    remoteUsers: undefined,
    nodes: [],
    ciliumNodeCidrs: [],
    services: new Map(),
    endpoints: new Map(),
    namespaces: new Map([
      ["default", undefined],
      ["production", undefined],
    ]),
    policies: [],
    policyKindsServed: { namespaced: true, clusterwide: true },
    pods: [],
    polledKvstoremesh: [],
    polledAgents: [],
    flows: new Map(),
    ...more,
  };
}

/** A Service, by `<namespace>/<name>`; `annotations` are what it carries. */
export function service(
  fullName: string,
  more: Partial<ServiceFacts> & { readonly annotations?: Readonly<Record<string, string>> } = {},
): ServiceFacts {
  const [namespace = "", name = ""] = fullName.split("/");
  const { annotations = {}, ...rest } = more;
  return {
    namespace,
    name,
    labels: {},
    type: "ClusterIP",
    selector: { app: name },
    ports: [{ name: "http", port: 80, targetPort: 8080, protocol: "TCP", nodePort: undefined }],
    clusterIp: "10.96.0.10",
    ingress: [],
    sourceRanges: [],
    shared: {
      name: fullName,
      uid: `uid-${name}`,
      resourceVersion: "1",
      labels: rest.labels ?? {},
      annotations,
      values: annotations,
    },
    uid: `uid-${name}`,
    resourceVersion: "1",
    ...rest,
  };
}

/** Services with the same number of ready endpoints each. */
export function servicesWith(services: readonly ServiceFacts[], endpoints = 2): Partial<CiliumFacts> {
  return {
    services: new Map(services.map((each) => [`${each.namespace}/${each.name}`, each])),
    endpoints: new Map(services.map((each) => [`${each.namespace}/${each.name}`, endpoints])),
  };
}

/** A version of Cilium. */
export function version(text: string): Version {
  const [major = 0, minor = 0, patch = 0] = text.split(".").map(Number);
  return { major, minor, patch, text };
}

/** How a cluster is seen. */
export type MemberRecipe = {
  readonly facts?: Partial<CiliumFacts>;
  readonly version?: string | undefined;
  readonly ciliumName?: string | undefined;
  readonly elbId?: string;
  readonly state?: Observed<unknown>["state"];
};

/** A cluster of a mesh, called `cilium-<name>` by Cilium and running 1.19 unless something else is said. */
export function member(name: string, recipe: MemberRecipe = {}): MeshMember {
  const id = clusterIdOf({ namespace: "default", secret: name, key: "-" });
  const value = ciliumFacts(recipe.facts);
  const because = { kind: "unreachable", detail: "connect ETIMEDOUT" } as const;
  const observed: Observed<CiliumFacts> =
    recipe.state === "absent"
      ? { state: "absent", because }
      : recipe.state === "stale"
        ? { state: "stale", because, value }
        : { state: "synced", value };
  const view: ClusterView<CiliumFacts> = { id, accesses: [id], name, observed };
  return {
    name,
    id,
    view,
    ciliumName: "ciliumName" in recipe ? recipe.ciliumName : `cilium-${name}`,
    version: "version" in recipe ? (recipe.version && version(recipe.version)) || undefined : version("1.19.6"),
    elbId: recipe.elbId,
  };
}

/** A mesh `mesh` of these clusters. */
export function mesh(
  members: readonly MeshMember[],
  more: {
    phase?: MeshPhase;
    unusable?: readonly { readonly name: string; readonly detail: string }[];
    links?: MeshState["links"];
    about?: About & { topology?: unknown };
  } = {},
): MeshState {
  const { phase = "Connected", unusable = [], links = [], about = {} } = more;
  const names = [...members, ...unusable].map(({ name }) => name);
  const unusableIds = unusable.map((each) => ({ ...each, id: idOf(each.name) }));
  const own = binding(names, about);
  return {
    binding: own,
    phase,
    members,
    unusable: unusableIds,
    links,
    strangers: new Map(),
    parting: (peer) => editOf(own, peer, { always: true }),
    wasMember: () => true,
  };
}

/** Everything a planner is given. */
export function context(
  intents: readonly CiliumIntent[],
  meshes: readonly MeshState[],
  more: { intentsState?: Observed<unknown>["state"]; others?: readonly ClusterView<CiliumFacts>[] } = {},
): PlanContext {
  const because = { kind: "unreachable", detail: "kcp is away" } as const;
  const all = [...intents, ...meshes.map((each) => each.binding)];
  const of = <Kind extends CiliumIntent["kind"]>(kind: Kind) =>
    all.filter((each): each is Extract<CiliumIntent, { kind: Kind }> => each.kind === kind);
  const views = [...meshes.flatMap((each) => each.members.map(({ view }) => view)), ...(more.others ?? [])];
  return {
    world: {
      revision: 1,
      nowMs,
      instance,
      intents:
        more.intentsState === "stale" ? { state: "stale", because, value: all } : { state: "synced", value: all },
      clusters: [...new Map(views.map((view) => [view.id, view])).values()],
      dns: new Map(),
      held: new Map(),
      unreadableIntents: [],
    },
    intents: {
      bindings: of("ClusterMeshBinding"),
      globalServices: of("GlobalService"),
      connectivityIntents: of("ConnectivityIntent"),
      exposedServices: of("ExposedService"),
      fabrics: of("Fabric"),
      kubernetesClusters: of("KubernetesCluster"),
    },
    meshes: new Map(meshes.map((each) => [each.binding.id, each])),
    instance,
    options: {
      ...ciliumDefaults,
      ports: {
        decode: () => undefined,
        inspect: () => [],
        chainProblem: () => undefined,
        keyMatches: () => false,
        issueProblem: () => ({ detail: "nothing is issued here" }),
        issue: () => ({ ok: false, error: { detail: "nothing is issued here" } }),
      },
    },
  };
}

/** Evidence of an engine that did everything and found nothing left. */
export const noEvidence: Evidence = {
  diagnostics: [],
  pending: [],
  kept: [],
  reports: [],
  remainders: [],
  forced: false,
};

/** What the status of an intent would say. */
export function reportFor(plan: KindPlan, intent: CiliumIntent, evidence: Partial<Evidence> = {}): Report {
  const report = plan.reports.get(intent.id);
  if (report === undefined) throw new Error(`nothing is reported of ${intent.id}`);
  return report({ ...noEvidence, ...evidence });
}

/** Conditions as `type=status/reason`. */
export const conditionsOf = ({ conditions }: Report): readonly string[] =>
  conditions.map(({ type, status, reason }) => `${type}=${status}/${reason}`);

/** The id of a cluster by its name. */
export const idOf = (name: string): ClusterId => clusterIdOf({ namespace: "default", secret: name, key: "-" });

/** Policies as a cluster holds them once what is desired of it was written. */
export function policiesOf(plan: KindPlan, cluster: string, valid?: PolicyFacts["valid"]): readonly PolicyFacts[] {
  return (plan.perTarget.get(idOf(cluster))?.desired ?? []).map((desired): PolicyFacts => {
    const [namespace, plain] = desired.name.includes("/") ? desired.name.split("/") : [undefined, desired.name];
    return {
      kind: desired.kind === "CiliumNetworkPolicy" ? "CiliumNetworkPolicy" : "CiliumClusterwideNetworkPolicy",
      namespace,
      name: plain ?? "",
      uid: `uid-${desired.name}`,
      resourceVersion: "1",
      labels: desired.labels,
      annotations: { "causeway.dev/intent": String(desired.fields["intent"]) },
      spec: String(desired.fields["spec"]),
      valid,
    };
  });
}

/** Whether what was written for an intent on a cluster is to stay although nothing wishes for it. */
export function keeps(plan: KindPlan, intent: CiliumIntent, cluster: string): boolean {
  const ask = plan.keeps as unknown as ((...of: readonly string[]) => boolean) | undefined;
  return ask?.(intent.id, idOf(cluster), "ServiceAnnotations|production/nginx", "service.cilium.io/global") ?? false;
}

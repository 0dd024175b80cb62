// A world file → the world that the Cilium provider sees: the same clusters that an operator would look at, and the same
// readers. Whatever cannot be read is kept as a finding, never thrown.

import type { World as WorldFile, WorldCluster } from "../api/world.ts";
import { fieldsOf } from "../core/json.ts";
import {
  belongsTo,
  type ManagedCluster,
  noSuchCluster,
  readManagedCluster,
  unusableCluster,
} from "../core/managed-cluster.ts";
import type { Member, Provider } from "../core/provider.ts";
import type { Resource } from "../core/resource.ts";
import { inScope, isOf } from "../core/scope.ts";
import {
  type ClusterView,
  compareText,
  type Failure,
  lastSeen,
  type Observed,
  type SecretAccess,
} from "../core/world.ts";
import { kindOf, metadataText, objectsIn, workspaceOf } from "../core/world-objects.ts";
import type { CiliumFact } from "./fact.ts";
import type { CiliumFacts, PolledRemotes } from "./facts.ts";
import type { CiliumIntent } from "./intent.ts";
import type { CiliumOptions, CiliumWorld } from "./kind-plan.ts";
import type { CiliumPlan } from "./plan.ts";
import { isPolicyName } from "./policy.ts";
import { unknownContent } from "./secret-reader.ts";

type CiliumProvider = Provider<CiliumIntent, CiliumFact, CiliumFacts, CiliumPlan>;

/** Who a Causeway is in a world that does not say so: whatever another one wrote is then another's. */
const nameless = "world-file";

type WorldOptions = Pick<CiliumOptions, "instance" | "mgmtNamespace" | "trustUnmarkedClusters">;

/** Reads the objects of a world file as an operator with these options would see them. */
export function readCiliumWorld(
  file: WorldFile,
  provider: CiliumProvider,
  { instance, mgmtNamespace, trustUnmarkedClusters }: WorldOptions,
): CiliumWorld {
  const local = file.clusters.find((cluster) => cluster.local);
  const own = objectsIn(local?.objects ?? []);
  const read = readIntents(own, provider);
  const uid = own.objects.find((each) => kindOf(each) === "Namespace" && metadataText(each, "name") === "kube-system");
  const intents = local === undefined ? noLocal : seen(local, read.intents);
  return {
    revision: 0,
    nowMs: file.now === undefined ? 0 : Date.parse(file.now),
    instance: instance ?? metadataText(uid, "uid") ?? nameless,
    intents,
    unreadableIntents: read.unreadable,
    clusters: viewsOf(file, provider, {
      members: membersOf(lastSeen(intents) ?? [], provider),
      managed: managedIn(own.objects, mgmtNamespace),
      mgmtNamespace,
      trustUnmarkedClusters,
    }),
    dns: new Map(
      Object.entries(file.dns ?? {}).flatMap(([name, ip]) => (ip === null ? [] : [[name.toLowerCase(), ip]])),
    ),
    held: new Map(),
  };
}

const noLocal: Observed<never> = { state: "absent", because: { kind: "missing", detail: "no cluster is local" } };

function readIntents({ objects, repeated }: ReturnType<typeof objectsIn>, { intents: { kinds } }: CiliumProvider) {
  const intents: CiliumIntent[] = [];
  const isIntent = (kind: string): boolean => kinds.some(({ resource }) => resource.kind === kind);
  const unreadable = repeated.flatMap(({ kind, name }) =>
    isIntent(kind) ? [{ detail: `${kind}/${name}: there are two objects of this name; one of them is used` }] : [],
  );
  for (const object of objects) {
    const kind = kinds.find(({ resource }) => isOf(resource, object));
    if (kind === undefined) continue;
    const place = {
      workspace: workspaceOf(object),
      namespace: metadataText(object, "namespace") ?? "default",
      name: metadataText(object, "name") ?? "",
    };
    const intent = kind.read(placed(kind.resource, object), place);
    if (intent.ok) intents.push(intent.value);
    else unreadable.push({ detail: `${kind.idOf(place)}: ${intent.error.detail}` });
  }
  intents.sort((a, b) => compareText(a.id, b.id));
  return { intents, unreadable: unreadable.sort((a, b) => compareText(a.detail, b.detail)) };
}

/** Every cluster that an operator would look at, each once, with the name that people call it by. */
function membersOf(intents: readonly CiliumIntent[], { intents: { members } }: CiliumProvider): readonly Member[] {
  const byId = new Map<string, Member>();
  for (const intent of intents) for (const member of members(intent, intents)) byId.set(member.id, member);
  return [...byId.values()].sort((a, b) => compareText(a.id, b.id));
}

function managedIn(objects: readonly unknown[], mgmtNamespace: string): ReadonlyMap<string, ManagedCluster> {
  const managed = new Map<string, ManagedCluster>();
  for (const object of objects) {
    const name = metadataText(object, "name");
    const namespace = metadataText(object, "namespace") ?? "default";
    if (kindOf(object) !== "Cluster" || name === undefined || namespace !== mgmtNamespace) continue;
    managed.set(name, readManagedCluster(object));
  }
  return managed;
}

type Looking = {
  readonly members: readonly Member[];
  /** Clusters of the management plane, by name; where there are none, it is taken to have them all. */
  readonly managed: ReadonlyMap<string, ManagedCluster>;
  readonly mgmtNamespace: string;
  readonly trustUnmarkedClusters: boolean;
};

function viewsOf(file: WorldFile, provider: CiliumProvider, looking: Looking): readonly ClusterView<CiliumFacts>[] {
  const views = new Map<string, ClusterView<CiliumFacts>>();
  for (const { id, access, name } of looking.members) {
    if (access === undefined) continue;
    const known = looking.managed.get(access.secret);
    const isOurs = mayUse(access, known, looking);
    const cluster = isOurs ? file.clusters.find((each) => leadsTo(access, each, looking.mgmtNamespace)) : undefined;
    const before = views.get(cluster?.name ?? id);
    if (before !== undefined) {
      views.set(before.name, { ...before, accesses: [...before.accesses, id] });
      continue;
    }
    const observed: Observed<CiliumFacts> =
      cluster === undefined
        ? { state: "absent", because: noSuchCluster(access, isOurs ? undefined : known) }
        : observe(cluster, known, provider);
    const bound = isOurs && known?.loadBalancer !== undefined ? { loadBalancer: known.loadBalancer } : {};
    views.set(cluster?.name ?? id, { id, accesses: [id], name: cluster?.name ?? name, observed, ...bound });
  }
  return [...views.values()].sort((a, b) => compareText(a.name, b.name) || compareText(a.id, b.id));
}

/** Whether the management plane would give a cluster to whoever asks; one that is not shown gives all to the oldest claim. */
function mayUse(
  access: SecretAccess,
  known: ManagedCluster | undefined,
  { managed, trustUnmarkedClusters }: Looking,
): boolean {
  if (known !== undefined) return belongsTo(known, access, trustUnmarkedClusters);
  return managed.size === 0 && access.onlyMarked !== true;
}

function leadsTo(access: SecretAccess, cluster: WorldCluster, mgmtNamespace: string): boolean {
  if (cluster.access.length === 0) {
    return !cluster.local && access.namespace === mgmtNamespace && access.secret === cluster.name;
  }
  return cluster.access.some(
    ({ namespace, secret, key }) => namespace === access.namespace && secret === access.secret && key === access.key,
  );
}

function observe(
  cluster: WorldCluster,
  known: ManagedCluster | undefined,
  provider: CiliumProvider,
): Observed<CiliumFacts> {
  const facts = factsOf(cluster, provider);
  const trouble = known === undefined ? undefined : unusableCluster(known);
  if (trouble === undefined || cluster.observed === "absent") return seen(cluster, facts);
  return cluster.objects.length === 0
    ? { state: "absent", because: trouble }
    : { state: "stale", because: trouble, value: facts };
}

function seen<T>({ observed, because: told }: WorldCluster, value: T): Observed<T> {
  const because: Failure = { kind: "unreachable", detail: told ?? `the cluster is ${observed}` };
  if (observed === "absent") return { state: "absent", because };
  return observed === "stale" ? { state: "stale", because, value } : { state: "synced", value };
}

function factsOf(cluster: WorldCluster, { watches, facts: assemble }: CiliumProvider): CiliumFacts {
  const facts: CiliumFact[] = [];
  for (const object of inOrder(objectsIn(cluster.objects).objects)) {
    for (const { resource, scope = {}, read } of watches) {
      if (!isOf(resource, object)) continue;
      const raw = placed(resource, object);
      const fact = read(raw);
      if (!inScope(raw, scope)) {
        // A file shows all there is: what an operator would ask for by its name needs no asking.
        if (fact.type === "policy" && isPolicyName(fact.policy.name)) {
          facts.push({ type: "namedPolicy", slot: "", policy: fact.policy });
        }
        continue;
      }
      facts.push(resource.kind === "Secret" && !isContentKnown(raw) ? unknownContent(fact) : fact);
    }
  }
  for (const remotes of polledOf(cluster.polled?.kvstoremesh)) facts.push({ type: "kvstoremesh", remotes });
  for (const remotes of polledOf(cluster.polled?.agents)) facts.push({ type: "agentRemotes", remotes });
  const missing = watches.flatMap(({ resource }) =>
    cluster.missingKinds.some((kind) => kind === resource.kind) ? [resource] : [],
  );
  return assemble({ facts, missing: new Set<Resource>(missing) });
}

/** An API server lists by name; the order in a file must not matter. */
function inOrder(objects: readonly unknown[]): readonly unknown[] {
  const keyed = objects.map((object) => ({
    object,
    key: JSON.stringify([kindOf(object), metadataText(object, "namespace") ?? "", metadataText(object, "name") ?? ""]),
  }));
  return keyed.sort((a, b) => compareText(a.key, b.key)).map(({ object }) => object);
}

/** The object with its namespace, which a file need not say if it is `default`. */
function placed({ namespaced }: Resource, object: unknown): unknown {
  if (!namespaced || metadataText(object, "namespace") !== undefined) return object;
  const fields = fieldsOf(object);
  return { ...fields, metadata: { ...fieldsOf(fields["metadata"]), namespace: "default" } };
}

/** A file may say that a Secret is there, and which keys it has, without what is in it. */
function isContentKnown(raw: unknown): boolean {
  const { data } = fieldsOf(raw);
  return data !== undefined && data !== null && Object.values(fieldsOf(data)).every((each) => typeof each === "string");
}

type Answers = NonNullable<WorldCluster["polled"]>["kvstoremesh"];

function polledOf(answers: Answers = {}): readonly PolledRemotes[] {
  return Object.entries(answers)
    .sort(([a], [b]) => compareText(a, b))
    .map(([pod, said]): PolledRemotes => {
      if (typeof said === "string") return { ok: false, pod, detail: said };
      const remotes = Object.entries(said).sort(([a], [b]) => compareText(a, b));
      return {
        ok: true,
        pod,
        remotes: remotes.map(([cluster, state]) => ({ cluster, ready: state === "ready", failures: 0 })),
      };
    });
}

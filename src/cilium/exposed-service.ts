// ExposedService → a Service of ours beside the user's, which is never changed but for what makes it global. Ours selects
// the same pods, and only its type, its ports and who is let in are its own.

import { type Diagnostic, listSome } from "../core/diagnostic.ts";
import { appendTo } from "../core/list.ts";
import { labelValue } from "../core/naming.ts";
import type { Desired, Field, Item } from "../core/plan.ts";
import type { Evidence, Report, Sample } from "../core/provider.ts";
import { sameJson } from "../core/json.ts";
import { type ClusterId, type ClusterView, compareText, lastSeen } from "../core/world.ts";
import { find } from "./diagnostics-kinds.ts";
import { editOf } from "./edit.ts";
import { endpointsOf, type ExposedEndpoint } from "./exposed-endpoints.ts";
import {
  exposedName,
  exposureProblems,
  itemFields,
  loadBalancerKeys,
  lostFields,
  portsToExpose,
  wantedFields,
} from "./exposed-object.ts";
import type { CiliumFacts, ServiceFacts } from "./facts.ts";
import type { ExposedServiceIntent } from "./intent.ts";
import {
  byAge,
  editAt,
  type Gate,
  gateOf,
  intentsGap,
  keptBecause,
  memberGap,
  meshFinder,
  type OutcomeGap,
} from "./kind-gate.ts";
import {
  type KindPlan,
  type Narrowed,
  type PlanContext,
  shareKey,
  shareKinds,
  type TargetPart,
  wholeKinds,
} from "./kind-plan.ts";
import { foundOf, judge, namedClusters, type Outcome, settledReport, type StatusInput } from "./kind-status.ts";
import type { MeshMember } from "./mesh-state.ts";
import { damageFinding, type Maker, makerByName, ownItem, ownKeys, ownLabels, slotOf } from "./own-object.ts";
import { exposureSamples } from "./samples.ts";
import { globalAnnotations, joinWishes } from "./service-annotations.ts";
import { chooseMembers, namesUnknown } from "./service-checks.ts";
import type { ShareWish } from "./share.ts";

const words = { done: "Exposed", doing: "Exposing", allDone: "AllClustersExposed" };

type Considered = {
  readonly intent: ExposedServiceIntent;
  readonly gate: Gate;
  readonly outcomes: Outcome[];
  readonly endpoints: ExposedEndpoint[];
  readonly findings: Diagnostic[];
  /** Clusters where nothing can be decided, and everything stays. */
  readonly blocked: Set<ClusterId>;
};

/** What the exposures of one plan want, as it grows: older intents come first. */
type Wanted = {
  readonly context: PlanContext;
  readonly desired: Map<ClusterId, Desired[]>;
  readonly narrowed: Map<ClusterId, Narrowed[]>;
  readonly wishes: Map<ClusterId, Map<string, ShareWish[]>>;
};

/** Plans all ExposedServices. */
export function planExposedServices(context: PlanContext): KindPlan {
  const meshOf = meshFinder(context.meshes);
  const wanted: Wanted = { context, desired: new Map(), narrowed: new Map(), wishes: new Map() };
  const all = context.intents.exposedServices.toSorted(byAge).map((intent): Considered => {
    const { gate, findings } = gateOf(intent, meshOf, () => exposureProblems(intent.object.spec));
    const each = { intent, gate, outcomes: [], endpoints: [], findings: [...findings], blocked: new Set<ClusterId>() };
    if (gate.mesh !== undefined && intent.invalid === undefined) expose(each, wanted);
    return each;
  });
  const gates = new Map(all.map(({ intent, gate }) => [intent.id, gate]));
  const blocked = new Map(all.map(({ intent, blocked: where }) => [intent.id, where]));
  const isBlocked = (intent: string, { view }: MeshMember): boolean => blocked.get(intent)?.has(view.id) ?? false;
  // Whoever names a cluster that is not there has most likely mistyped it.
  const unsure = new Set(all.flatMap(({ intent, outcomes }) => (namesUnknown(outcomes) ? [intent.id] : [])));
  const isUnsure = (intent: string): boolean => unsure.has(intent);
  const gap = intentsGap(context);
  const perTarget = new Map<ClusterId, TargetPart>();
  const damaged: Diagnostic[] = [];
  const suspects: NonNullable<KindPlan["suspects"]>[number][] = [];
  for (const view of context.world.clusters) {
    const desired = wanted.desired.get(view.id) ?? [];
    const fate = { gap, gates, view, isBlocked, isUnsure };
    const items: Item[] = [];
    for (const service of lastSeen(view.observed)?.services.values() ?? []) {
      const maker = exposedMaker(service, context);
      if (maker.who === "nobody") {
        const object = `Service ${service.namespace}/${service.name} (it has none of our marks)`;
        for (const intent of resembled(service, all, view)) suspects.push({ intent, target: view.id, object });
        continue;
      }
      const item = ownItem(objectOf(service), maker, fate);
      items.push(item);
      if (maker.who === "another" || maker.intent !== undefined) continue;
      // What is wanted is put right.
      if (desired.some(({ slot }) => slot === item.slot)) continue;
      const intent = all.find((each) => each.intent.id === maker.claimed);
      const found = damageFinding({ kind: "Service", name: item.name, intent: intent?.intent, view, context });
      if (found.mesh === undefined) damaged.push(found);
      else intent?.findings.push(found);
    }
    const narrowed = wanted.narrowed.get(view.id) ?? [];
    if (items.length > 0 || desired.length > 0) perTarget.set(view.id, { desired, items, narrowed });
  }
  const reports = new Map<string, (evidence: Evidence) => Report>();
  const samples: Sample[] = [];
  for (const each of all) {
    reports.set(each.intent.id, (evidence) => reportOf(each, evidence, context.world.nowMs));
    for (const sample of exposureSamples(each.intent, each.endpoints)) samples.push(sample);
  }
  const views = new Map(context.world.clusters.map((view) => [view.id, view]));
  return {
    perTarget,
    shareWishes: new Map(
      [...wanted.wishes].map(([target, objects]) => [
        target,
        new Map([...objects].map(([key, wishes]) => [key, joinWishes(wishes)])),
      ]),
    ),
    keeps: (intent, target) => {
      const [gate, view] = [gates.get(intent), views.get(target)];
      if (gate === undefined || view === undefined) return false;
      return keptBecause(gate, view, (member) => isBlocked(intent, member)) !== undefined;
    },
    editOf: (intent, target, object) => {
      const [gate, view] = [gates.get(intent), views.get(target)];
      return gate?.state !== "open" || view === undefined ? undefined : editAt(gate, view, object, isUnsure(intent));
    },
    diagnostics: [...all.flatMap(({ findings }) => findings), ...damaged],
    reports,
    polls: new Map(),
    samples,
    suspects,
  };
}

/** The intents that are being deleted and could have made a Service that carries no marks: it does what theirs would. */
function resembled(
  { namespace, name, type, selector }: ServiceFacts,
  all: readonly Considered[],
  { observed }: ClusterView<CiliumFacts>,
): readonly string[] {
  const services = lastSeen(observed)?.services;
  // Whatever the exposure is now: it may have been edited since.
  if (type !== "LoadBalancer" && type !== "NodePort") return [];
  return all.flatMap(({ intent: { id, place, terminating, object } }) => {
    const { serviceRef } = object.spec;
    const where = serviceRef.namespace ?? place.namespace;
    if (!terminating || where !== namespace || exposedName(place.name) !== name) return [];
    const users = services?.get(`${where}/${serviceRef.name}`);
    return users === undefined || sameJson(users.selector, selector) ? [id] : [];
  });
}

/** Tells who made a Service. Its name alone proves little: of the two marks that name the intent, one must agree with it. */
function exposedMaker({ name, labels, shared }: ServiceFacts, { instance, intents }: PlanContext): Maker {
  const claimed = shared.annotations[ownKeys.intent] ?? "";
  const called = claimed.slice(claimed.lastIndexOf("/") + 1);
  const isClaimed = claimed.startsWith("ExposedService/") && exposedName(called) === name;
  const maker = makerByName(labels, shared.annotations, instance, () => {
    if (isClaimed) return claimed;
    const labelled = intents.exposedServices.find(({ id }) => labels[ownKeys.intent] === labelValue(id));
    return labelled !== undefined && exposedName(labelled.place.name) === name ? labelled.id : undefined;
  });
  const isOthers = labels[ownKeys.instance] !== undefined && labels[ownKeys.instance] !== labelValue(instance);
  // Without labels it does not say which Causeway made it: it may be ours, and is put right while it is wanted.
  return maker.who === "nobody" && isClaimed && !isOthers ? { who: "us", intent: undefined, claimed } : maker;
}

const objectOf = (
  service: ServiceFacts,
): Pick<Item, "kind" | "name" | "uid" | "resourceVersion" | "labels" | "fields"> => ({
  kind: wholeKinds.exposedService,
  name: `${service.namespace}/${service.name}`,
  uid: service.uid,
  resourceVersion: service.resourceVersion,
  labels: service.labels,
  fields: itemFields(service),
});

/** Looks at every cluster that is asked for, and wants there what can be had. */
function expose(each: Considered, wanted: Wanted): void {
  const { intent, gate, outcomes, findings, blocked } = each;
  const { spec } = intent.object;
  if (
    gate.mesh === undefined ||
    (gate.state === "shut" && gate.reason !== "Suspended" && gate.reason !== "MeshNotReady")
  ) {
    return;
  }
  if (spec.exposure === "Gateway") {
    const finding = find("GatewayUnsupported", intent, undefined, {});
    findings.push(finding);
    for (const { name, view } of gate.mesh.members) {
      blocked.add(view.id);
      outcomes.push({
        cluster: name,
        target: view.id,
        state: "failed",
        reason: finding.code,
        message: finding.message,
      });
    }
    return;
  }
  const { members, failed, findings: told } = chooseMembers(intent, gate.mesh, "spec.clusters", spec.clusters ?? []);
  for (const outcome of failed) outcomes.push(outcome);
  const isAsked = (spec.clusters ?? []).length > 0;
  const missing: (() => void)[] = [];
  for (const member of members) {
    const result = exposeOn(each, member, wanted);
    if (result === undefined) continue;
    if (result.finding?.code === "ServiceNotFound" && !isAsked) missing.push(() => fail(each, member, result));
    else fail(each, member, result);
  }
  // Where nothing is said about clusters, those that have the Service are meant; none at all is a fault.
  if (outcomes.length === 0) for (const tell of missing) tell();
  if (gate.state === "open") for (const finding of told) findings.push(finding);
  outcomes.sort((a, b) => compareText(a.cluster, b.cluster));
}

type Failed = OutcomeGap & { readonly finding?: Diagnostic };

function fail({ gate, outcomes, findings, blocked }: Considered, { name, view }: MeshMember, failed: Failed): void {
  const { reason, message, finding } = failed;
  blocked.add(view.id);
  outcomes.push({ cluster: name, target: view.id, state: "failed", reason, message });
  if (finding !== undefined && gate.state === "open") findings.push(finding);
}

/** Wants the Service on one cluster, or says why it cannot be had there. */
function exposeOn(each: Considered, member: MeshMember, wanted: Wanted): Failed | undefined {
  const { intent, gate, outcomes, endpoints } = each;
  const { spec } = intent.object;
  const findings = gate.state === "open" ? each.findings : [];
  const refuse = (finding: Diagnostic): Failed => ({
    reason: finding.code,
    message: `${member.name}: ${finding.message}`,
    finding,
  });
  const gap = memberGap(member);
  if (gap !== undefined || member.view.observed.state === "absent") {
    return gap ?? { reason: "ClusterNotReached", message: member.name };
  }
  const facts = member.view.observed.value;
  const target = member.view.id;
  const namespace = spec.serviceRef.namespace ?? intent.place.namespace;
  const service = `${namespace}/${spec.serviceRef.name}`;
  const users = facts.services.get(service);
  if (users === undefined) return refuse(find("ServiceNotFound", intent, member.name, { service }));
  if (Object.keys(users.selector).length === 0 || users.type === "ExternalName") {
    return refuse(find("ServiceWithoutSelector", intent, member.name, { service }));
  }
  const ports = portsToExpose(users, spec.port);
  if (ports.length === 0) {
    const known = users.ports.map(({ name, port }) => (name === undefined ? String(port) : `${name} (${port})`));
    const values = { service, port: String(spec.port ?? ""), ports: known };
    return refuse(find("ExposedPortUnknown", intent, member.name, values));
  }
  const name = `${namespace}/${exposedName(intent.place.name)}`;
  const present = facts.services.get(name);
  const maker = present && exposedMaker(present, wanted.context);
  const rival = wanted.desired.get(target)?.find((other) => other.name === name)?.intents[0];
  const isOurs = maker?.who === "us" && (maker.intent ?? maker.claimed ?? intent.id) === intent.id;
  if (rival !== undefined || (present !== undefined && !isOurs)) {
    const other = rival ?? (maker?.who === "us" ? (maker.intent ?? maker.claimed) : undefined);
    const who = other ?? (maker?.who === "another" ? "another Causeway" : "somebody else");
    const values = { service: name, who, isIntent: other !== undefined };
    return refuse(find("ExposedNameTaken", intent, member.name, values));
  }
  const elb = present?.shared.values[loadBalancerKeys.id];
  if (spec.exposure === "LoadBalancer" && elb !== undefined && elb !== (member.elbId ?? elb)) {
    const values = { service: name, present: elb, wanted: member.elbId ?? "" };
    findings.push(find("LoadBalancerChanged", intent, member.name, values));
  }
  const fields = wantedFields({ intent: intent.id, spec, service: users, ports, elbId: elb ?? member.elbId, present });
  const lost = present === undefined ? new Map<string, Field>() : lostFields(fields, present);
  // What the last gate keeps of it is no work to be done.
  const isWritten =
    present !== undefined &&
    Object.entries(fields).every(
      ([path, value]) => sameField(present, path, value) || sameField(present, path, lost.get(path)),
    );
  if (gate.state === "open") want(each, member, wanted, { name, fields, lost, service: users });
  const shown = isWritten ? endpointsOf({ member, facts, spec, service: present }) : [];
  if (shown.length === 0) endpoints.push({ clusterName: member.name, ready: false });
  for (const endpoint of shown) endpoints.push(endpoint);
  const [state, reason, message] = progress(isWritten, shown, name);
  if (reason === "AddressPending") findings.push(find("AddressPending", intent, member.name, { service: name }));
  outcomes.push({ cluster: member.name, target, state, reason, message: `${member.name}: ${message}` });
  return undefined;
}

const sameField = (service: ServiceFacts, path: string, value: unknown): boolean =>
  JSON.stringify(itemFields(service)[path] ?? null) === JSON.stringify(value);

/** How far an exposure is on one cluster. */
function progress(
  isWritten: boolean,
  shown: readonly ExposedEndpoint[],
  name: string,
): readonly [Outcome["state"], string, string] {
  if (!isWritten) return ["pending", "Exposing", `Service ${name} is to be written`];
  if (shown.length === 0) return ["pending", "AddressPending", `Service ${name} has no address yet`];
  return ["done", "Exposed", `exposed as ${name}`];
}

/** Entrances that lead nowhere: where the Service is global, a backend anywhere is enough. */
function flawsOf({ intent, outcomes, endpoints }: Considered): readonly OutcomeGap[] {
  const ready = new Set(endpoints.flatMap((each) => (each.ready ? [each.clusterName] : [])));
  const done = outcomes.filter(({ state }) => state === "done").map(({ cluster }) => cluster);
  const empty = done.filter((cluster) => !ready.has(cluster));
  if (empty.length === 0 || (ready.size > 0 && intent.object.spec.global)) return [];
  return [{ reason: "ServiceWithoutEndpoints", message: `no ready endpoint on ${listSome(empty)}` }];
}

function want(
  { intent }: Considered,
  { view }: MeshMember,
  { context, desired, narrowed, wishes }: Wanted,
  object: {
    readonly name: string;
    readonly fields: Desired["fields"];
    readonly lost: ReadonlyMap<string, Field>;
    readonly service: ServiceFacts;
  },
): void {
  const slot = slotOf(wholeKinds.exposedService, object.name);
  if (object.lost.size > 0) appendTo(narrowed, view.id, narrowedService(intent, slot, object));
  appendTo(desired, view.id, {
    kind: wholeKinds.exposedService,
    name: object.name,
    slot,
    origin: slot,
    intents: [intent.id],
    claims: [],
    claimsPath: "",
    labels: ownLabels(context.instance, intent.id),
    fields: object.fields,
    because: "ServiceExposed",
    reasons: {},
  });
  if (!intent.object.spec.global) return;
  const { namespace, name } = object.service;
  const objects = wishes.get(view.id) ?? new Map<string, ShareWish[]>();
  wishes.set(view.id, objects);
  const key = shareKey(shareKinds.serviceAnnotations, namespace, name);
  for (const [path, value] of globalAnnotations) appendTo(objects, key, { path, value, intents: [intent.id] });
}

/** A Service of ours that loses something of its own: each is a part that passes the last gate. */
function narrowedService(
  intent: ExposedServiceIntent,
  slot: string,
  { fields, lost }: { readonly fields: Desired["fields"]; readonly lost: ReadonlyMap<string, Field> },
): Narrowed {
  const edits = [editOf(intent, slot)];
  return {
    slot,
    parts: [...lost.keys()].map((path) => ({ slot, path, intents: [intent.id], edits })),
    keeping: (paths) => ({ ...fields, ...Object.fromEntries([...lost].filter(([path]) => paths.has(path))) }),
  };
}

function reportOf(each: Considered, evidence: Evidence, nowMs: number): Report {
  const { intent, gate, outcomes, endpoints, findings } = each;
  const input: StatusInput = { gate, words, outcomes, flaws: flawsOf(each) };
  const { phase, conditions } = judge(input, evidence);
  const before = (intent.object.status?.endpoints ?? []).map(({ clusterName }) => clusterName);
  const shown = new Set(endpoints.map(({ clusterName }) => clusterName));
  const left = namedClusters(input, before, evidence).filter((name) => !shown.has(name));
  const all = [...endpoints, ...left.map((clusterName): ExposedEndpoint => ({ clusterName, ready: false }))];
  return settledReport({
    intent,
    nowMs,
    fields: { phase, endpoints: all.sort((a, b) => compareText(a.clusterName, b.clusterName)) },
    conditions,
    findings: foundOf(intent, findings, evidence),
  });
}

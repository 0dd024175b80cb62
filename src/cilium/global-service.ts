// GlobalService → annotations of Services. Nothing is created: a cluster without the Service is told so.

import { type Diagnostic, listSome } from "../core/diagnostic.ts";
import type { Evidence, Report, Sample } from "../core/provider.ts";
import { type ClusterId, compareText } from "../core/world.ts";
import { find } from "./diagnostics-kinds.ts";
import type { CiliumFacts, ServiceFacts } from "./facts.ts";
import type { GlobalServiceIntent } from "./intent.ts";
import { byAge, editAt, type Gate, gateOf, keptBecause, memberGap, meshFinder, type OutcomeGap } from "./kind-gate.ts";
import { type KindPlan, type PlanContext, shareKey, shareKinds } from "./kind-plan.ts";
import { foundOf, judge, namedClusters, type Outcome, settledReport, type StatusInput } from "./kind-status.ts";
import type { MeshMember, MeshState } from "./mesh-state.ts";
import { globalServiceSamples } from "./samples.ts";
import { type AnnotationPlan, planAnnotations } from "./service-annotations.ts";
import { chooseMembers, namesUnknown, serviceFlaws } from "./service-checks.ts";
import { type ServiceIndex, serviceIndex } from "./service-index.ts";
import type { ShareWish } from "./share.ts";

/** The most Services that one GlobalService makes global on a cluster. */
export const globalServicesMax = 10_000;

const words = { done: "Exported", doing: "Exporting", allDone: "AllClustersExported" };

/** A GlobalService, and what is known of it before anybody's wishes are weighed. */
type Considered = {
  readonly intent: GlobalServiceIntent;
  readonly gate: Gate;
  readonly annotations: AnnotationPlan;
  readonly places: readonly Place[];
  readonly outcomes: Outcome[];
  readonly flaws: OutcomeGap[];
  readonly findings: Diagnostic[];
};

/** The Services of one cluster that are meant. */
type Place = { readonly member: MeshMember; readonly facts: CiliumFacts; readonly services: readonly ServiceFacts[] };

/** Plans all GlobalServices. */
export function planGlobalServices(context: PlanContext): KindPlan {
  const meshOf = meshFinder(context.meshes);
  const index = serviceIndex();
  const all = context.intents.globalServices.map((intent) =>
    consider(intent, { meshOf, index, allowed: context.options.globalAnnotations }),
  );
  const wishes = new Map<ClusterId, Map<string, Map<string, ShareWish>>>();
  for (const each of all.toSorted((a, b) => byAge(a.intent, b.intent))) {
    if (each.gate.state === "open") for (const place of each.places) wish(each, place, wishes);
  }
  const gates = new Map(all.map(({ intent, gate }) => [intent.id, gate]));
  const views = new Map(context.world.clusters.map((view) => [view.id, view]));
  // Whoever makes Services global and means none of them any more has most likely mistyped the selector; whoever names a
  // cluster that is not there, that one.
  const unsure = new Set(
    all.flatMap(({ intent, places, outcomes }) => (places.length === 0 || namesUnknown(outcomes) ? [intent.id] : [])),
  );
  const reports = new Map<string, (evidence: Evidence) => Report>();
  const samples: Sample[] = [];
  for (const each of all) {
    settle(each, wishes);
    reports.set(each.intent.id, (evidence) => reportOf(each, evidence, context.world.nowMs));
    for (const sample of globalServiceSamples(each.intent, each.outcomes, summaryOf(each))) samples.push(sample);
  }
  return {
    perTarget: new Map(),
    shareWishes: new Map(
      [...wishes].map(([target, objects]) => [
        target,
        new Map([...objects].map(([key, paths]) => [key, [...paths.values()]])),
      ]),
    ),
    keeps: (intent, target) => {
      const [gate, view] = [gates.get(intent), views.get(target)];
      return gate !== undefined && view !== undefined && keptBecause(gate, view, () => false) !== undefined;
    },
    editOf: (intent, target, object) => {
      const [gate, view] = [gates.get(intent), views.get(target)];
      if (gate?.state !== "open" || view === undefined) return undefined;
      return editAt(gate, view, object, unsure.has(intent));
    },
    diagnostics: all.flatMap(({ findings }) => findings),
    reports,
    polls: new Map(),
    samples,
  };
}

/** What every GlobalService is considered with. */
type Common = {
  readonly meshOf: ReturnType<typeof meshFinder>;
  readonly index: ServiceIndex;
  /** Further annotations that may be asked for. */
  readonly allowed: readonly string[];
};

function consider(intent: GlobalServiceIntent, { meshOf, index, allowed }: Common): Considered {
  const mesh = meshOf(intent);
  const isReadable = intent.invalid === undefined;
  const { shared, affinity, globalAnnotations = {} } = isReadable ? intent.object.spec : {};
  const annotations = planAnnotations({ shared, affinity, further: globalAnnotations, allowed });
  const { gate, findings } = gateOf(intent, meshOf, () => problemsOf(intent, annotations));
  const considered: Considered = {
    intent,
    gate,
    annotations,
    places: [],
    outcomes: [],
    flaws: [],
    findings: [...findings],
  };
  if (mesh === undefined || !isReadable || (gate.state === "shut" && gate.reason === "SpecInvalid")) return considered;
  if (gate.state === "shut") {
    // What is there is still said; what is missing is no news while nothing may be written.
    const places = chosen(intent, mesh, { outcomes: considered.outcomes, findings: [] }, index);
    return { ...considered, places };
  }
  for (const { key, detail } of annotations.refused) {
    const finding = find("AnnotationRefused", intent, undefined, { key, detail });
    considered.findings.push(finding);
    considered.flaws.push({ reason: "AnnotationRefused", message: finding.message });
  }
  const places = chosen(intent, mesh, considered, index);
  const inside = new Set([...places.map(({ member }) => member.name), ...namesOf(considered.outcomes)]);
  const outside = mesh.members.map(({ name }) => name).filter((name) => !inside.has(name));
  if (outside.length > 0) considered.findings.push(find("OutsideTargets", intent, undefined, { clusters: outside }));
  const { flaws, findings: told } = serviceFlaws(intent, places);
  for (const flaw of flaws) considered.flaws.push(flaw);
  for (const finding of told) considered.findings.push(finding);
  return { ...considered, places };
}

const namesOf = (outcomes: readonly Outcome[]): readonly string[] => outcomes.map(({ cluster }) => cluster);

/** What is wrong with the spec itself. */
function problemsOf({ object: { spec } }: GlobalServiceIntent, { contradictions }: AnnotationPlan): readonly string[] {
  const { namespace = "", name = "", labelSelector = {} } = spec.selector;
  const bySelector = Object.keys(labelSelector).length > 0;
  return [
    ...(spec.meshRef.name === "" ? ["spec.meshRef.name is missing"] : []),
    ...(namespace === "" ? ["spec.selector.namespace is missing"] : []),
    ...(name === "" && !bySelector ? ["spec.selector needs a name or a labelSelector"] : []),
    ...(name !== "" && bySelector ? ["spec.selector has a name and a labelSelector; leave one"] : []),
    ...contradictions,
  ];
}

/** The clusters that are asked for, each with the Services there; where there are none, the outcome says why. */
function chosen(
  intent: GlobalServiceIntent,
  mesh: MeshState,
  { outcomes, findings }: { readonly outcomes: Outcome[]; readonly findings: Diagnostic[] },
  index: ServiceIndex,
): readonly Place[] {
  const { selector, targetClusters = [] } = intent.object.spec;
  const { namespace = "", name = "", labelSelector = {} } = selector;
  const { members, failed, findings: told } = chooseMembers(intent, mesh, "spec.targetClusters", targetClusters);
  for (const outcome of failed) outcomes.push(outcome);
  for (const finding of told) findings.push(finding);
  const text = name === "" ? `${namespace}/* with ${labelText(labelSelector)}` : `${namespace}/${name}`;
  return members.flatMap((member): readonly Place[] => {
    const fail = (gap: OutcomeGap): readonly Place[] => {
      outcomes.push({ cluster: member.name, target: member.view.id, state: "failed", ...gap });
      return [];
    };
    const gap = memberGap(member);
    if (gap !== undefined || member.view.observed.state === "absent") {
      return fail(gap ?? { reason: "ClusterNotReached", message: `${member.name} is not reached` });
    }
    const facts = member.view.observed.value;
    if (facts.namespaces.size > 0 && !facts.namespaces.has(namespace)) {
      const finding = find("NamespaceNotFound", intent, member.name, { namespace });
      findings.push(finding);
      return fail({ reason: "NamespaceNotFound", message: `${member.name}: ${finding.message}` });
    }
    const matched =
      name === "" ? index.byLabels(facts, namespace, labelSelector) : index.byName(facts, namespace, name);
    if (matched.length === 0) {
      const finding = find("ServiceNotFound", intent, member.name, { service: text });
      findings.push(finding);
      return fail({ reason: "ServiceNotFound", message: `${member.name}: ${finding.message}` });
    }
    if (matched.length > globalServicesMax) {
      const values = { matched: matched.length, max: globalServicesMax };
      findings.push(find("ServicesTooMany", intent, member.name, values));
    }
    return [{ member, facts, services: matched.slice(0, globalServicesMax) }];
  });
}

const labelText = (labels: Readonly<Record<string, string>>): string =>
  listSome(
    Object.entries(labels)
      .map(([key, value]) => `${key}=${value}`)
      .sort(compareText),
  );

/** Adds the wishes of one intent for the Services of one cluster, as far as nobody older wants something else. */
function wish(
  { intent, annotations, flaws, findings }: Considered,
  { member, services }: Place,
  wishes: Map<ClusterId, Map<string, Map<string, ShareWish>>>,
): void {
  const objects = wishes.get(member.view.id) ?? new Map<string, Map<string, ShareWish>>();
  wishes.set(member.view.id, objects);
  for (const { namespace, name } of services) {
    const object = shareKey(shareKinds.serviceAnnotations, namespace, name);
    const paths = objects.get(object) ?? new Map<string, ShareWish>();
    objects.set(object, paths);
    for (const [path, value] of annotations.annotations) {
      const older = paths.get(path);
      if (older === undefined) paths.set(path, { path, value, intents: [intent.id] });
      else if (older.value === value) paths.set(path, { ...older, intents: [...older.intents, intent.id] });
      else {
        const values = { key: path, service: `${namespace}/${name}`, other: older.intents[0] ?? "" };
        const finding = find("AnnotationConflict", intent, member.name, values);
        findings.push(finding);
        flaws.push({ reason: "AnnotationConflict", message: `${member.name}: ${finding.message}` });
      }
    }
  }
}

/** Says of every cluster whether its Services are annotated as they should be. */
function settle(
  { intent, gate, annotations, places, outcomes }: Considered,
  wishes: ReadonlyMap<ClusterId, ReadonlyMap<string, ReadonlyMap<string, ShareWish>>>,
): void {
  for (const { member, services } of places) {
    const objects = wishes.get(member.view.id);
    const isDone = ({ namespace, name, shared }: ServiceFacts): boolean => {
      const paths = objects?.get(shareKey(shareKinds.serviceAnnotations, namespace, name));
      return [...annotations.annotations].every(([path, value]) => {
        const wished = gate.state === "open" ? paths?.get(path) : undefined;
        if (wished !== undefined && !wished.intents.includes(intent.id)) return true;
        return shared.values[path] === value;
      });
    };
    const left = services.filter((service) => !isDone(service)).length;
    const place = { cluster: member.name, target: member.view.id };
    if (left === 0) outcomes.push({ ...place, state: "done", reason: "Exported", message: `${member.name}: exported` });
    else {
      const count = left === 1 ? "1 Service" : `${left} Services`;
      const message = `${member.name}: ${count} to be annotated`;
      outcomes.push({ ...place, state: "pending", reason: "Exporting", message });
    }
  }
  outcomes.sort((a, b) => compareText(a.cluster, b.cluster));
}

/** One item of `status.endpointSummary` per cluster whose Services are known. */
export type EndpointSummary = { readonly clusterName: string; readonly endpoints: number; readonly ready: boolean };

function summaryOf({ places, outcomes }: Considered): readonly EndpointSummary[] {
  const done = new Set(outcomes.flatMap(({ cluster, state }) => (state === "done" ? [cluster] : [])));
  return places
    .map(({ member, facts, services }) => {
      const endpoints = services.reduce(
        (sum, { namespace, name }) => sum + (facts.endpoints.get(`${namespace}/${name}`) ?? 0),
        0,
      );
      return { clusterName: member.name, endpoints, ready: done.has(member.name) && endpoints > 0 };
    })
    .sort((a, b) => compareText(a.clusterName, b.clusterName));
}

function reportOf(each: Considered, evidence: Evidence, nowMs: number): Report {
  const { intent, gate, outcomes, flaws, findings } = each;
  const input: StatusInput = { gate, words, outcomes, flaws };
  const { phase, conditions } = judge(input, evidence);
  const before = intent.object.status?.exportedClusters ?? [];
  return settledReport({
    intent,
    nowMs,
    fields: {
      phase,
      exportedClusters: namedClusters(input, before, evidence),
      endpointSummary: summaryOf(each),
    },
    conditions,
    findings: foundOf(intent, findings, evidence),
  });
}

// A plan of the Cilium provider as others see it: objects by the names people know, secrets only by hashes and marks.

import { type Diagnostic, sortDiagnostics } from "../core/diagnostic.ts";
import { diff } from "../core/diff.ts";
import { type CommonDocument, type HoldDocument, namedTargets, type OperationDocument } from "../core/document.ts";
import { defaultRules, gatePlan, type GateRules } from "../core/gate.ts";
import { appendTo } from "../core/list.ts";
import type { Item, Operation } from "../core/plan.ts";
import { forceAnnotation, type Provider, type Remainder } from "../core/provider.ts";
import type { Condition } from "../core/status.ts";
import { type ClusterId, compareText, lastSeen } from "../core/world.ts";
import { diagnoseKind } from "./diagnostics-kinds.ts";
import type { CiliumFact } from "./fact.ts";
import type { CiliumFacts } from "./facts.ts";
import type { CiliumIntent } from "./intent.ts";
import { exposedPlaceOf } from "./exposed-object.ts";
import { type CiliumWorld, shareKinds, wholeKinds } from "./kind-plan.ts";
import { usersKey } from "./object-reader.ts";
import { intentField, ownKeys } from "./own-object.ts";
import type { CiliumPlan } from "./plan.ts";
import { recordAnnotation, recordPath } from "./share.ts";
import { othersField } from "./share-objects.ts";

/** What the status of an object of a tenant would say now. */
export type IntentDocument = {
  readonly kind: string;
  readonly workspace: string | null;
  readonly namespace: string;
  readonly name: string;
  readonly conditions: readonly Condition[];
  /** The other fields of the status, without the time at which it is written. */
  readonly status: Readonly<Record<string, unknown>>;
};

/** A plan of the Cilium provider, as a part of the document of `causeway plan`. */
export type CiliumDocument = CommonDocument & { readonly intents: readonly IntentDocument[] };

/** Renders a plan for a world. */
export function ciliumDocument(
  world: CiliumWorld,
  planned: CiliumPlan,
  provider: Provider<CiliumIntent, CiliumFact, CiliumFacts, CiliumPlan>,
  rules: GateRules = defaultRules,
): CiliumDocument {
  const plan = gatePlan(planned, world, rules);
  const summary = { create: 0, update: 0, delete: 0, touch: 0, unchanged: 0 };
  const operations: OperationDocument[] = [];
  const holds: HoldDocument[] = [];
  const due: Due = { pending: new Map(), kept: new Map(), holdings: new Map() };
  const realKind = (kind: string): string => provider.kinds[kind]?.resource.kind ?? kind;
  for (const { target, name } of namedTargets(plan.targets, world.clusters)) {
    const result = diff(target);
    summary.unchanged += result.unchanged;
    for (const operation of result.operations) {
      summary[operation.action] += 1;
      operations.push(operationDocument(name, operation, realKind(operation.kind), world.instance ?? ""));
      for (const intent of operation.intents) appendTo(due.pending, intent, operation);
    }
    for (const item of result.kept) for (const intent of intentsOf(item)) appendTo(due.kept, intent, item);
    due.holdings.set(target.target, holdingsOf(target.items));
    const kindOf = new Map(target.items.map((item) => [item.name, realKind(item.kind)]));
    for (const { reason, detail, objects } of result.holds) {
      const shown = objects.map((object) => `${kindOf.get(object) ?? ""} ${object}`.trim());
      holds.push({ target: name, reason, detail, objects: shown });
    }
  }
  const intents = (lastSeen(world.intents) ?? []).filter(({ kind }) => kind !== "KubernetesCluster");
  return {
    revision: world.revision,
    durationSeconds: 0,
    operations,
    holds,
    diagnostics: sortDiagnostics([...plan.diagnostics, ...unreadable(world)]),
    intents: intents
      .toSorted((a, b) => compareText(a.id, b.id))
      .flatMap((intent) => intentDocument(intent, { world, plan, provider, due }) ?? []),
    summary,
  };
}

/** What is due, by intent; and how many objects of ours are on a cluster, by intent. */
type Due = {
  readonly pending: Map<string, Operation[]>;
  readonly kept: Map<string, Item[]>;
  readonly holdings: Map<ClusterId, ReadonlyMap<string, number>>;
};

const intentsOf = ({ intent, intents }: Item): readonly string[] => intents ?? [intent ?? ""];

function holdingsOf(items: readonly Item[]): ReadonlyMap<string, number> {
  const counts = new Map<string, number>();
  for (const item of items) {
    if (item.standing.owner !== "us") continue;
    for (const intent of intentsOf(item)) counts.set(intent, (counts.get(intent) ?? 0) + 1);
  }
  return counts;
}

type IntentContext = {
  readonly world: CiliumWorld;
  readonly plan: CiliumPlan;
  readonly provider: Provider<CiliumIntent, CiliumFact, CiliumFacts, CiliumPlan>;
  readonly due: Due;
};

/** What an object of a tenant would say; nothing, if it is somebody else's to fill in. */
function intentDocument(
  intent: CiliumIntent,
  { world, plan, provider, due }: IntentContext,
): IntentDocument | undefined {
  const { id, kind, place, object } = intent;
  const viewOf = new Map(world.clusters.flatMap((view) => view.accesses.map((access) => [access, view] as const)));
  const members = provider.intents.members(intent, lastSeen(world.intents) ?? []);
  const remainders = members.map((member): Remainder => {
    const view = viewOf.get(member.id);
    const observed = view?.observed ?? { state: "absent", because: { kind: "unreachable", detail: "not observed" } };
    return { member, observed, objects: (view && due.holdings.get(view.id)?.get(id)) ?? 0 };
  });
  const report = provider.report(plan, intent, {
    diagnostics: plan.diagnostics.filter(({ mesh }) => mesh === id),
    pending: due.pending.get(id) ?? [],
    kept: due.kept.get(id) ?? [],
    reports: [],
    remainders,
    forced: object.metadata.annotations?.[forceAnnotation] === "true",
  });
  if (report.isOthers === true) return undefined;
  const { lastSyncTime: _, ...status } = report.status;
  const { workspace = null, namespace, name } = place;
  return { kind, workspace, namespace, name, conditions: report.conditions, status };
}

function operationDocument(
  target: string,
  { action, kind, name, reason, changes }: Operation,
  realKind: string,
  instance: string,
): OperationDocument {
  const slash = name.indexOf("/");
  const shown = changes.filter(({ path }) => path !== othersField);
  return {
    target,
    action,
    kind: realKind,
    namespace: slash === -1 ? null : name.slice(0, slash),
    name: name.slice(slash + 1),
    reason,
    changes: shown.map((change) => ({ ...change, path: placeOf(kind, change.path, instance) })),
  };
}

/** Where in the object a path of ours is. */
function placeOf(kind: string, path: string, instance: string): string {
  if (path.startsWith("metadata.")) return path;
  if (path === recordPath) return `metadata.annotations.${recordAnnotation(instance)}`;
  if (path === intentField) return `metadata.annotations.${ownKeys.intent}`;
  switch (kind) {
    case shareKinds.connection:
      return `data.${path}`;
    case shareKinds.remoteUsers:
      return path === usersKey ? `data.${path}` : `data.${usersKey} ${path}`;
    case shareKinds.serviceAnnotations:
      return `metadata.annotations.${path}`;
    case shareKinds.apiserverAliases:
    case shareKinds.agentAliases:
      return `spec.template.spec.hostAliases ${path}`;
    case wholeKinds.exposedService:
      return exposedPlaceOf(path);
    default:
      return path;
  }
}

function unreadable({ unreadableIntents }: CiliumWorld): readonly Diagnostic[] {
  return unreadableIntents.map(({ detail }) => {
    const subject = { kind: "object", name: detail.slice(0, detail.indexOf(":")) };
    return diagnoseKind("IntentUnreadable", { subject }, { detail });
  });
}

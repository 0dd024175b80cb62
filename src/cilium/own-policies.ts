// The policies on a cluster that are ours, and those that may be: somebody changed their marks. The name of a policy is
// made of the intent, so it proves what is left of the marks; without any mark it proves nothing.
//
//   says that a Causeway made it   names another one   has the name for an intent   it is
//   yes                            no                  yes                          ours, whatever else was changed
//   yes                            no                  no                           kept, and told
//   yes                            yes                                              another's; told, if the name is ours
//   no, but names that intent      no                  yes                          ours: it lost its labels
//   no                                                 yes                          kept, and told
//   no                                                 no                           somebody's

import type { Diagnostic } from "../core/diagnostic.ts";
import { labelValue } from "../core/naming.ts";
import type { Item } from "../core/plan.ts";
import { type ClusterView, lastSeen } from "../core/world.ts";
import type { CiliumFacts, PolicyFacts } from "./facts.ts";
import type { ConnectivityIntentIntent } from "./intent.ts";
import type { PlanContext } from "./kind-plan.ts";
import {
  damageFinding,
  type FateInput,
  intentField,
  type Maker,
  makerByName,
  ownItem,
  ownKeys,
  slotOf,
} from "./own-object.ts";
import { directions, policyName } from "./policy.ts";

/** The field that holds the whole spec of a policy, as canonical text. */
export const policySpecField = "spec";

/** Intents by the names of the policies that are made for them. */
export type PolicyNames = ReadonlyMap<string, ConnectivityIntentIntent>;

/** Works out what the policies of all intents are called. */
export const policyNames = (intents: readonly ConnectivityIntentIntent[], instance: string): PolicyNames =>
  new Map(
    intents.flatMap((intent) =>
      directions.map((direction) => [policyName(instance, intent.id, intent.place.name, direction), intent] as const),
    ),
  );

/** Tells who made a policy; `named` is the intent that its name is made of, if that is known. */
export function policyMaker(
  { name, labels, annotations }: PolicyFacts,
  instance: string,
  named: string | undefined,
): Maker {
  const claimed = annotations[ownKeys.intent] ?? "";
  const called = claimed.slice(claimed.lastIndexOf("/") + 1);
  const isClaimed = directions.some((direction) => policyName(instance, claimed, called, direction) === name);
  const maker = makerByName(labels, annotations, instance, () => named ?? (isClaimed ? claimed : undefined));
  const isOthers = labels[ownKeys.instance] !== undefined && labels[ownKeys.instance] !== labelValue(instance);
  return maker.who === "nobody" && isClaimed && !isOthers ? { who: "us", intent: claimed } : maker;
}

/**
 * The policies of a cluster that are ours or may be, and what their people should know of those that may be; `isTold`
 * says whether an intent tells of one anyway.
 */
export function policyItems(
  view: ClusterView<CiliumFacts>,
  names: PolicyNames,
  fate: FateInput,
  { context, isTold }: { readonly context: PlanContext; readonly isTold: (intent: string, item: string) => boolean },
): { readonly items: readonly Item[]; readonly findings: readonly Diagnostic[] } {
  const items: Item[] = [];
  const findings: Diagnostic[] = [];
  const byId = new Map(context.intents.connectivityIntents.map((intent) => [intent.id, intent]));
  for (const policy of lastSeen(view.observed)?.policies ?? []) {
    const named = names.get(policy.name);
    const told = policyMaker(policy, context.instance, named?.id);
    const maker: Maker = told.who === "nobody" && named !== undefined ? lostMarks(named.id) : told;
    if (maker.who === "nobody" || (maker.who === "us" && isOfAnotherKind(maker.intent))) continue;
    const name = fullName(policy);
    const fields = { [policySpecField]: policy.spec, [intentField]: policy.annotations[ownKeys.intent] ?? null };
    items.push(ownItem({ ...policy, name, fields }, maker, fate));
    const isDoubtful = maker.who === "another" ? named !== undefined : maker.intent === undefined;
    const intent = maker.who === "us" ? byId.get(maker.claimed ?? "") : named;
    const { kind } = policy;
    if (!isDoubtful || isTold(intent?.id ?? "", slotOf(kind, name))) continue;
    findings.push(damageFinding({ kind, name, intent, view, context }));
  }
  return { items, findings };
}

const lostMarks = (claimed: string): Maker => ({ who: "us", intent: undefined, claimed });

/** Whether a policy says that it was made for an intent of another kind: its fate is not decided here. */
const isOfAnotherKind = (intent: string | undefined): boolean => intent?.startsWith("ConnectivityIntent/") === false;

const fullName = ({ namespace, name }: PolicyFacts): string =>
  namespace === undefined ? name : `${namespace}/${name}`;

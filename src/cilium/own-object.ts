// Objects that are wholly ours: how they are marked, and what becomes of one that nothing wants any more.

import { labelValue } from "../core/naming.ts";
import type { IfUnwanted, Item } from "../core/plan.ts";
import type { Diagnostic } from "../core/diagnostic.ts";
import { type ClusterView, lastSeen } from "../core/world.ts";
import { diagnoseKind, find } from "./diagnostics-kinds.ts";
import { removalDoubted } from "./edit.ts";
import type { CiliumFacts } from "./facts.ts";
import { editAt, type Gate, keptBecause, type MeshedIntent, type OutcomeGap } from "./kind-gate.ts";
import type { PlanContext } from "./kind-plan.ts";
import { nameOn, sharedGate } from "./members.ts";
import type { MeshMember } from "./mesh-state.ts";
import { managedBy, managedByLabel } from "./share.ts";

/** Whose an object of ours is: the Causeway, and the intent. */
export const ownKeys = { instance: "causeway.dev/instance", intent: "causeway.dev/intent" } as const;

/** The field that holds the id of the intent, which is written as an annotation. */
export const intentField = "intent";

/** The labels of an object that was made for an intent. */
export const ownLabels = (instance: string, intent: string): Readonly<Record<string, string>> => ({
  [managedByLabel]: managedBy,
  [ownKeys.instance]: labelValue(instance),
  [ownKeys.intent]: labelValue(intent),
});

/** Who made an object; nobody we know of, if it does not say. */
export type Maker =
  /** Without an intent its marks do not agree, and `claimed` is the one that some of them name. */
  | { readonly who: "us"; readonly intent: string | undefined; readonly claimed?: string | undefined }
  | { readonly who: "another" }
  | { readonly who: "nobody" };

/** Tells by its marks who made an object. */
export function makerOf(
  labels: Readonly<Record<string, string>>,
  annotations: Readonly<Record<string, string>>,
  instance: string,
): Maker {
  if (labels[managedByLabel] !== managedBy || labels[ownKeys.intent] === undefined) return { who: "nobody" };
  if (labels[ownKeys.instance] !== labelValue(instance)) return { who: "another" };
  const intent = annotations[ownKeys.intent];
  const isWhole = intent !== undefined && labels[ownKeys.intent] === labelValue(intent);
  return isWhole ? { who: "us", intent } : { who: "us", intent: undefined, claimed: intent };
}

/**
 * Tells who made an object of which somebody may have changed the marks. It is ours, too, if it says that a Causeway
 * made it, does not name another one, and has the name that only we would give it: `named` is the intent in that name.
 */
export function makerByName(
  labels: Readonly<Record<string, string>>,
  annotations: Readonly<Record<string, string>>,
  instance: string,
  named: () => string | undefined,
): Maker {
  const maker = makerOf(labels, annotations, instance);
  if (maker.who === "another" || (maker.who === "us" && maker.intent !== undefined)) return maker;
  const says = labels[ownKeys.instance] ?? labelValue(instance);
  if (labels[managedByLabel] !== managedBy || says !== labelValue(instance)) return maker;
  const intent = named();
  return intent === undefined ? maker : { who: "us", intent };
}

/** What is needed to judge an object of ours that nothing wants. */
export type FateInput = {
  readonly gap: string | undefined;
  readonly gates: ReadonlyMap<string, Gate>;
  readonly view: ClusterView<CiliumFacts>;
  /** Whether nothing could be decided for an intent on a member, for a reason of its own. */
  readonly isBlocked: (intent: string, member: MeshMember) => boolean;
  /** Whether the spec of an intent names something there that does not exist: what goes by it is doubted. */
  readonly isUnsure: (intent: string, view: ClusterView<CiliumFacts>) => boolean;
};

/** Decides what becomes of an object of ours; `about` is the object. */
export function fateOf(
  intent: string | undefined,
  about: string,
  { gap, gates, view, isBlocked, isUnsure }: FateInput,
): IfUnwanted {
  if (intent === undefined) return hold({ reason: "IdentityDamaged", message: "its marks were changed by somebody" });
  const gate = gates.get(intent);
  if (gate === undefined) {
    return gap === undefined ? remove("IntentGone") : hold({ reason: "IntentsStale", message: gap });
  }
  const kept = keptBecause(gate, view, (member) => isBlocked(intent, member));
  if (kept !== undefined) return hold(kept);
  if (gate.state === "shut") return remove("IntentTerminating");
  const isMember = gate.mesh.members.some((member) => member.view.id === view.id);
  const edit = editAt(gate, view, about, isUnsure(intent, view));
  if ("doubt" in edit) return hold({ reason: removalDoubted, message: edit.doubt });
  return { do: "delete", reason: isMember ? "NotAskedFor" : "ClusterLeft", edit };
}

const hold = ({ reason, message }: OutcomeGap): IfUnwanted => ({ do: "hold", reason, detail: message });
const remove = (reason: string): IfUnwanted => ({ do: "delete", reason });

/** An object of ours, or another Causeway's, as an item of a plan. */
export function ownItem(
  object: Pick<Item, "kind" | "name" | "uid" | "resourceVersion" | "labels" | "fields">,
  maker: Maker & { readonly who: "us" | "another" },
  fate: FateInput,
): Item {
  const slot = slotOf(object.kind, object.name);
  const common = { ...object, slot, origin: slot, party: undefined, claims: [] };
  if (maker.who === "another") {
    return { ...common, intent: undefined, standing: { owner: "other", who: "another Causeway" } };
  }
  const ifUnwanted = fateOf(maker.intent, slot, fate);
  const whose = maker.intent ?? maker.claimed;
  const intents = whose === undefined ? [] : [whose];
  return { ...common, intent: maker.intent, intents, standing: { owner: "us", adopted: false, ifUnwanted } };
}

/** Says of an object that it may be ours: to the people of the intent, if the cluster is theirs, and else to nobody's. */
export function damageFinding({ kind, name, intent, view, context }: Damage): Diagnostic {
  const gate = sharedGate(lastSeen(context.world.intents) ?? [], context.options.mgmtNamespace);
  const member = intent && nameOn(intent, view, gate);
  if (intent !== undefined && member !== undefined) return find("MarksDamaged", intent, member, { kind, object: name });
  return diagnoseKind("MarksDamaged", { subject: { cluster: view.name, kind, name } }, { kind, object: name });
}

type Damage = {
  readonly kind: string;
  readonly name: string;
  /** Whose it may be. */
  readonly intent: MeshedIntent | undefined;
  readonly view: ClusterView<CiliumFacts>;
  readonly context: PlanContext;
};

/** What an object of ours is: its name says it all, since it is made of the intent. */
export const slotOf = (kind: string, name: string): string => `${kind}/${name}`;

// The vocabulary between providers, which decide what should exist, and the engine, which makes it so. A provider says
// for every object it finds on a target how it stands; from that and what is desired, `diff` derives the operations.

import type { Diagnostic } from "./diagnostic.ts";
import type { Cidr } from "./net/cidr.ts";
import type { Redacted } from "./redacted.ts";
import type { ClusterId, Held } from "./world.ts";

/** One comparable value of an object. Lists are compared as multisets: their order carries no meaning. */
export type Field = string | number | boolean | null | readonly string[];

/** The comparable content of an object, by path. */
export type Fields = Readonly<Record<string, Field>>;

/** What only the write itself may see: for fields whose value is a secret, which `fields` has as a hash or a mark. */
export type Sealed = Redacted<Readonly<Record<string, unknown>>>;

/** The content of an object that is written. */
export type Content = {
  readonly labels: Readonly<Record<string, string>>;
  readonly fields: Fields;
  readonly sealed?: Sealed;
};

/** Something that should exist on a target. */
export type Desired = {
  readonly kind: string;
  /** The intents it is written for, its owner first. */
  readonly intents: readonly string[];
  /** The name it gets if it has to be created; an object that already fills the slot keeps its own. */
  readonly name: string;
  /** What the thing is, whatever it is called: one object per slot on a target, whatever its kind. */
  readonly slot: string;
  /** What it was made from. The same origin with another slot is updated in place. */
  readonly origin: string;
  /** Ranges that only one object on a target may hold, and the field that lists them. */
  readonly claims: readonly Cidr[];
  readonly claimsPath: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly fields: Fields;
  readonly sealed?: Sealed;
  /** Why it appears, if it is created. */
  readonly because: string;
  /** Why it changes, by path; the first path that changed names the reason. */
  readonly reasons: Readonly<Record<string, string>>;
  /** Paths whose change cannot wait: until it is written, what the object stands for does not work. */
  readonly urgent?: readonly string[];
};

/** A change of the spec of a living intent that asks for a removal: a slip of the pen looks the same. */
export type Edit = {
  /** The intent whose spec it is. */
  readonly intent: string;
  /** What it takes apart on a target: each has a grace period of its own. */
  readonly about: string;
  /** It is doubted whatever its size; otherwise only together with too many others. */
  readonly always?: true;
  /** Somebody approved what this spec removes. */
  readonly isApproved: boolean;
  /** The command that approves it. */
  readonly approve: string;
};

/** What becomes of an object of ours when nothing desires it. */
export type IfUnwanted =
  /** With `leave` it is not deleted: it is others' as well, and that is what they are left with. */
  | {
      readonly do: "delete";
      readonly reason: string;
      readonly leave?: Content;
      readonly edit?: Edit;
      /** The grace period that is over: it must not begin anew while the object is still there. */
      readonly grace?: Held;
      /** It may not be there: it goes before anything else is written. */
      readonly first?: true;
    }
  | { readonly do: "hold"; readonly reason: string; readonly detail: string; readonly graceSinceMs?: number };

/** Whose an object is. Foreign objects are never touched. */
export type Standing =
  | { readonly owner: "other"; readonly who: string }
  | { readonly owner: "us"; readonly ifUnwanted: IfUnwanted; readonly adopted: boolean };

/** An object that exists on a target. `adopted` objects lack our labels; that alone is no reason to write. */
export type Item = {
  readonly kind: string;
  readonly name: string;
  readonly uid: string | undefined;
  readonly resourceVersion: string | undefined;
  readonly slot: string;
  readonly origin: string | undefined;
  /** The intent it was written for, and the cluster it stands for, as far as its labels tell. */
  readonly intent: string | undefined;
  /** All of them, where it was written for several. */
  readonly intents?: readonly string[];
  readonly party: string | undefined;
  readonly claims: readonly Cidr[];
  readonly labels: Readonly<Record<string, string>>;
  readonly fields: Fields;
  readonly standing: Standing;
};

/** The object with another fate, if it is ours; whatever it is, nobody else's changes. */
export function withFate(item: Item, ifUnwanted: IfUnwanted): Item {
  return item.standing.owner === "us" ? { ...item, standing: { ...item.standing, ifUnwanted } } : item;
}

/** The object that goes now with the grace period that it had, if it had one. */
export function withGrace(item: Item, grace: Held | undefined): Item {
  const { standing } = item;
  const isGoing = standing.owner === "us" && standing.ifUnwanted.do === "delete";
  return isGoing && grace !== undefined ? withFate(item, { ...standing.ifUnwanted, grace }) : item;
}

/** What a provider wants of one target, beside what is there. */
export type TargetPlan = {
  readonly target: ClusterId;
  /** Why the target is not synced, if it is not: then nothing is written, since what we know may no longer be there. */
  readonly gap: { readonly reason: string; readonly detail: string } | undefined;
  readonly desired: readonly Desired[];
  readonly items: readonly Item[];
  /** How far apart writes on it have to be, because each of them disturbs what runs there; at once, if nothing is said. */
  readonly intervalMs?: number;
  readonly shared?: SharedParts;
};

/** A part of an object that is others' as well, which the plan takes away: an entry of a Secret, an annotation. */
export type Part = {
  /** The object, by its slot. */
  readonly slot: string;
  readonly path: string;
  /** For whom it was written. */
  readonly intents: readonly string[];
  /** Every edit that asks for it: it goes when each of them may. */
  readonly edits?: readonly Edit[];
};

/** Why something stays that a plan would take away. */
export type Stay = Omit<Extract<IfUnwanted, { readonly do: "hold" }>, "do">;

/** All parts that a plan takes away on a target, and what it is instead when some of them stay. */
export type SharedParts = {
  readonly parts: readonly Part[];
  /** `items` are those of the plan, some with another fate by now. */
  readonly keeping: (stays: ReadonlyMap<Part, Stay>, items: readonly Item[]) => Pick<TargetPlan, "desired" | "items">;
};

/** Objects that must not be deleted, and why; those that are still desired may be updated. */
export type Hold = {
  readonly target: ClusterId;
  readonly reason: string;
  readonly detail: string;
  readonly objects: readonly string[];
};

/** An object that may have been made for an intent that is being deleted, and that nothing can be proved of. */
export type Suspect = {
  readonly intent: string;
  readonly target: ClusterId;
  readonly object: string;
  /** Whether it is there was asked, and the answer is still to come. */
  readonly isAwaited?: true;
};

/** What a provider decided for the whole fleet. */
export type Plan = {
  readonly targets: readonly TargetPlan[];
  readonly diagnostics: readonly Diagnostic[];
  /** When to plan again at the latest although no change was announced; if nothing is said, the engine decides. */
  readonly againMs?: number;
  readonly suspects?: readonly Suspect[];
  /** What people should know of removals that are held; asked once it is known which are. */
  readonly tellHeld?: (held: readonly HeldRemoval[]) => readonly Diagnostic[];
  /** Grace periods that are not those of one object, by the key of `World.held`. */
  readonly graces?: ReadonlyMap<string, Held>;
};

/** A removal that is held; `untilMs` is when it goes by itself, if it does. */
export type HeldRemoval = {
  readonly target: ClusterId;
  readonly kind: string;
  readonly name: string;
  /** For whom it was written. */
  readonly intents: readonly string[];
  /** The edit that asks for it; none where the policy allows no deletes at all. */
  readonly edit: Edit | undefined;
  readonly untilMs: number | undefined;
};

/** One value that an operation changes. */
export type Change = { readonly path: string; readonly from: Field; readonly to: Field };

/** One write, with its reason. `uid` and `resourceVersion` guard what is removed. */
export type Operation = {
  readonly target: ClusterId;
  readonly action: "create" | "update" | "delete" | "touch";
  readonly kind: string;
  readonly name: string;
  readonly intents: readonly string[];
  readonly reason: string;
  readonly changes: readonly Change[];
  readonly uid: string | undefined;
  readonly resourceVersion: string | undefined;
  /** The ranges its object holds before and after: if it fails, nobody may be given what it still has. */
  readonly claims: { readonly before: readonly Cidr[]; readonly after: readonly Cidr[] };
  /** What the object must hold afterwards; absent for delete and touch. */
  readonly content?: Content;
  /** Until it is written, what the object stands for does not work. */
  readonly urgent?: true;
  /** An update that takes away what nothing wants any more. */
  readonly releases?: true;
};

/** Joins the plans of several providers; a slot on a target has one owner. */
export function mergePlans(plans: readonly Plan[]): Plan {
  const targets = new Map<ClusterId, TargetPlan>();
  for (const plan of plans) {
    for (const next of plan.targets) {
      const first = targets.get(next.target);
      targets.set(next.target, first === undefined ? next : joinTargets(first, next));
    }
  }
  const againMs = plans.reduce((first, plan) => Math.min(first, plan.againMs ?? first), Number.POSITIVE_INFINITY);
  return {
    targets: [...targets.values()],
    diagnostics: plans.flatMap((plan) => plan.diagnostics),
    ...(againMs === Number.POSITIVE_INFINITY ? {} : { againMs }),
  };
}

function joinTargets(first: TargetPlan, next: TargetPlan): TargetPlan {
  const taken = new Set(first.desired.map((desired) => desired.slot));
  const intervalMs = Math.max(first.intervalMs ?? 0, next.intervalMs ?? 0);
  return {
    target: first.target,
    ...(intervalMs === 0 ? {} : { intervalMs }),
    gap: first.gap ?? next.gap,
    desired: [...first.desired, ...next.desired.filter(({ slot }) => !taken.has(slot))],
    items: [...first.items, ...next.items],
  };
}

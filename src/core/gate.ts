// The last gate: whatever a provider plans to take away, whole objects and parts of shared ones, passes here before it
// becomes an operation, in the operator and in `causeway plan` alike. It can keep things, never take them.
//
//   a removal                                          goes
//   while the policy allows no deletes                 never
//   by an edit that is approved                        at once
//   by an edit that parts clusters, or takes too much  when its grace period is over
//   any other: its intent was deleted, for instance    at once

import { sortDiagnostics } from "./diagnostic.ts";
import { matchItems } from "./diff.ts";
import {
  type Edit,
  type HeldRemoval,
  type Item,
  type Part,
  type Plan,
  type Stay,
  type TargetPlan,
  withFate,
} from "./plan.ts";
import { defaultPolicy, isDoubtful, type Policy, upsertOnlyStay } from "./policy.ts";
import type { ClusterId, Held, World } from "./world.ts";

/** What decides about removals. */
export type GateRules = { readonly policy: Policy; readonly graceMs: number };

/** The rules of an operator that was not told otherwise. */
export const defaultRules: GateRules = { policy: defaultPolicy, graceMs: 5 * 60 * 1000 };

/** Why something is held that an edit of a spec would take away. */
export const removalHeld = "RemovalHeld";

/** The plan with everything that may not go now; a target that loses nothing is left as it is. */
export function gatePlan<P extends Plan>(
  plan: P,
  world: Pick<World<unknown, unknown>, "nowMs" | "held">,
  rules: GateRules,
): P {
  const removals = plan.targets.flatMap(removalsOf);
  const { upsertOnly } = rules.policy;
  const judge: Judge = upsertOnly
    ? () => [{ stay: upsertOnlyStay, edit: undefined }]
    : judgeOf(removals, plan.targets, world, rules);
  const graces = new Map<string, Held>();
  const stays = new Map<Part | Item, Stay>();
  const held: HeldRemoval[] = [];
  for (const removal of removals) {
    const { target, kind, name, intents } = removal;
    for (const { stay, edit } of judge(removal, graces)) {
      if (!stays.has(removal.of)) stays.set(removal.of, stay);
      const isTimed = stay.graceSinceMs !== undefined && world.nowMs !== 0;
      const untilMs = isTimed ? (stay.graceSinceMs ?? 0) + rules.graceMs : undefined;
      held.push({ target, kind, name, intents, edit, untilMs });
    }
  }
  if (stays.size === 0 && graces.size === 0) return plan;
  const told = plan.tellHeld?.(held) ?? [];
  return {
    ...plan,
    targets: plan.targets.map((target) => withStays(target, stays)),
    diagnostics: told.length === 0 ? plan.diagnostics : sortDiagnostics([...plan.diagnostics, ...told]),
    graces,
  };
}

type Removal = {
  readonly target: ClusterId;
  readonly kind: string;
  readonly name: string;
  readonly intents: readonly string[];
  readonly edits: readonly Edit[];
  readonly of: Part | Item;
};

function removalsOf(plan: TargetPlan): readonly Removal[] {
  const { target, items, shared } = plan;
  const parts = shared?.parts ?? [];
  const isGoing = ({ standing }: Item): boolean => standing.owner === "us" && standing.ifUnwanted.do === "delete";
  if (parts.length === 0 && !items.some(isGoing)) return [];
  const bySlot = new Map(items.map((item) => [item.slot, item]));
  const covered = new Set(parts.map(({ slot }) => slot));
  const { surplus, unwanted } = matchItems(plan);
  const whole = [...surplus, ...unwanted].filter((item) => isGoing(item) && !covered.has(item.slot));
  return [
    ...parts.map((part): Removal => {
      const { kind = "", name = part.slot } = bySlot.get(part.slot) ?? {};
      return { target, kind, name, intents: part.intents, edits: part.edits ?? [], of: part };
    }),
    ...whole.map((item): Removal => {
      const { ifUnwanted } = item.standing.owner === "us" ? item.standing : {};
      const edit = ifUnwanted?.do === "delete" ? ifUnwanted.edit : undefined;
      const edits = edit === undefined ? [] : [edit];
      return { target, kind: item.kind, name: item.name, intents: intentsOf(item), edits, of: item };
    }),
  ];
}

const intentsOf = ({ intent, intents }: Item): readonly string[] => intents ?? (intent === undefined ? [] : [intent]);

/** Why a removal is held; `edit` is the one that may not be carried out now. */
type Verdict = { readonly stay: Stay; readonly edit: Edit | undefined };

/** Why a removal may not happen now, for each edit that asks for it and has to wait; no answer lets it go. */
type Judge = (removal: Removal, graces: Map<string, Held>) => readonly Verdict[];

function judgeOf(
  removals: readonly Removal[],
  targets: readonly TargetPlan[],
  { nowMs, held }: Pick<World<unknown, unknown>, "nowMs" | "held">,
  { policy, graceMs }: GateRules,
): Judge {
  const tooMany = massEdits(removals, targets, policy);
  const judgeEdit = (target: ClusterId, edit: Edit, graces: Map<string, Held>): Stay | undefined => {
    if (edit.isApproved) return undefined;
    const key = JSON.stringify([edit.intent, target, edit.about]);
    const known = held.get(key);
    if (edit.always !== true && !tooMany.has(edit.intent) && known === undefined) return undefined;
    const sinceMs = known?.sinceMs ?? nowMs;
    // Also when it is over: what is about to go must not begin to be doubted anew.
    graces.set(key, { sinceMs, reason: removalHeld });
    if (nowMs - sinceMs >= graceMs) return undefined;
    const detail = `an edit of ${edit.intent} takes it away${untilText(nowMs, sinceMs + graceMs)}; to let it go now: ${edit.approve}`;
    return { reason: removalHeld, detail, graceSinceMs: sinceMs };
  };
  return ({ target, edits }, graces) =>
    edits.flatMap((edit) => {
      const stay = judgeEdit(target, edit, graces);
      return stay === undefined ? [] : [{ stay, edit }];
    });
}

const untilText = (nowMs: number, untilMs: number): string => (nowMs === 0 ? "" : ` at ${minuteText(untilMs)}`);

const minuteMs = 60_000;

/** A moment to the minute, rounded up: clocks that are read twice differ by less, and the text stays the same. */
export const minuteText = (ms: number): string =>
  `${new Date(Math.ceil(ms / minuteMs) * minuteMs).toISOString().slice(0, 16)}Z`;

/**
 * The intents whose edits would take more of what they have, on all targets together, than may go at once. What they have
 * on a target that cannot be seen now counts as going: nobody can say that it stays.
 */
function massEdits(removals: readonly Removal[], targets: readonly TargetPlan[], policy: Policy): ReadonlySet<string> {
  const losing = new Map<string, Set<string>>();
  for (const { edits, target, kind, name } of removals) {
    for (const edit of edits) {
      if (edit.isApproved) continue;
      const objects = losing.get(edit.intent) ?? new Set<string>();
      losing.set(edit.intent, objects.add(JSON.stringify([target, kind, name])));
    }
  }
  if (losing.size === 0) return new Set();
  const sizes = new Map<string, number>();
  for (const { target, gap, items } of targets) {
    for (const item of items) {
      if (item.standing.owner !== "us") continue;
      for (const intent of intentsOf(item)) {
        sizes.set(intent, (sizes.get(intent) ?? 0) + 1);
        if (gap !== undefined) losing.get(intent)?.add(JSON.stringify([target, item.kind, item.name]));
      }
    }
  }
  return new Set(
    [...losing].flatMap(([intent, { size }]) => (isDoubtful(size, sizes.get(intent) ?? 0, policy) ? [intent] : [])),
  );
}

function withStays(plan: TargetPlan, stays: ReadonlyMap<Part | Item, Stay>): TargetPlan {
  const { shared } = plan;
  const parts = (shared?.parts ?? []).flatMap((part) => {
    const stay = stays.get(part);
    return stay === undefined ? [] : [[part, stay] as const];
  });
  const hasItems = plan.items.some((item) => stays.has(item));
  if (parts.length === 0 && !hasItems) return plan;
  const fated = plan.items.map((item): Item => {
    const stay = stays.get(item);
    return stay === undefined ? item : withFate(item, { do: "hold", ...stay });
  });
  if (shared === undefined || parts.length === 0) return { ...plan, items: fated };
  return { ...plan, ...shared.keeping(new Map(parts), fated) };
}

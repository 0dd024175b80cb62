// Policy is a filter over what would be removed: it can turn a delete into a hold, never the other way round. It runs
// before the difference is taken, so that nothing new is placed where a held object still is.

import { matchItems } from "./diff.ts";
import { appendTo } from "./list.ts";
import { type IfUnwanted, type Item, type TargetPlan, withFate, withGrace } from "./plan.ts";
import type { Held } from "./world.ts";

/** What an operator of the fleet allows. */
export type Policy = {
  /** Nothing is ever deleted. */
  readonly upsertOnly: boolean;
  /** Deletes of one group beyond both numbers are held until the grace period ends. */
  readonly massDelete: { readonly countMin: number; readonly share: number };
};

/** The defaults: deletes are allowed; losing half of a source, and at least ten objects, at once is doubted. */
export const defaultPolicy: Policy = { upsertOnly: false, massDelete: { countMin: 10, share: 0.5 } };

/** Why an object is held that would go together with too many others. */
export const massDelete = "MassDelete";

/** Why everything stays while the policy allows no deletes. */
export const upsertOnlyStay = { reason: "UpsertOnly", detail: "the policy allows no deletes" } as const;

/** How a provider groups its objects for the mass-delete guard, and which delete reasons the guard doubts. */
export type Doubt = {
  readonly groupOf: (item: Item) => string;
  readonly doubted: ReadonlySet<string>;
  readonly nowMs: number;
  /** When the doubt about this object began, if there is one already: what was doubted stays held until it ends. */
  readonly sinceMs: (item: Item) => number | undefined;
  /** Whether a doubt that began then has lasted longer than the grace period. */
  readonly expired: (sinceMs: number | undefined) => boolean;
};

/** Whether so many of a group are too many to go at once. */
export const isDoubtful = (count: number, size: number, { massDelete: { countMin, share } }: Policy): boolean =>
  count >= countMin && count >= size * share;

/** Turns the deletes that policy forbids or doubts into holds, with the reason on each. */
export function applyPolicy(plan: TargetPlan, policy: Policy, doubt: Doubt): TargetPlan {
  if (policy.upsertOnly) {
    const { surplus, unwanted } = matchItems(plan);
    const leaving = new Set([...surplus, ...unwanted]);
    return mapDeletes(plan, (item) => (leaving.has(item) ? upsertOnlyStay : undefined));
  }
  const isDoubted = ({ standing }: Item): boolean =>
    standing.owner === "us" && standing.ifUnwanted.do === "delete" && doubt.doubted.has(standing.ifUnwanted.reason);
  if (!plan.items.some(isDoubted)) return plan;
  const { unwanted } = matchItems(plan);
  const losing = new Map<string, Item[]>();
  for (const item of unwanted) {
    if (!isDoubted(item)) continue;
    appendTo(losing, doubt.groupOf(item), item);
  }
  if (losing.size === 0) return plan;
  const sizes = new Map<string, number>();
  for (const item of plan.items) {
    if (item.standing.owner === "us") sizes.set(doubt.groupOf(item), (sizes.get(doubt.groupOf(item)) ?? 0) + 1);
  }
  const held = new Map<Item, string>();
  const over = new Map<Item, Held>();
  for (const [group, items] of losing) {
    const size = sizes.get(group) ?? 0;
    const isMass = isDoubtful(items.length, size, policy);
    const detail = isMass
      ? `${items.length} of ${size} objects of ${group} would go at once`
      : `most objects of ${group} were to go at once`;
    for (const item of items) {
      const sinceMs = doubt.sinceMs(item);
      if (!isMass && sinceMs === undefined) continue;
      if (!doubt.expired(sinceMs)) held.set(item, detail);
      else if (sinceMs !== undefined) over.set(item, { sinceMs, reason: massDelete });
    }
  }
  if (held.size + over.size === 0) return plan;
  const stays = mapDeletes(plan, (item) => {
    const detail = held.get(item);
    return detail === undefined
      ? undefined
      : { reason: massDelete, detail, graceSinceMs: doubt.sinceMs(item) ?? doubt.nowMs };
  });
  return { ...stays, items: stays.items.map((item) => withGrace(item, over.get(item))) };
}

function mapDeletes(
  plan: TargetPlan,
  holdFor: (item: Item) => Omit<IfUnwanted & { readonly do: "hold" }, "do"> | undefined,
): TargetPlan {
  const items = plan.items.map((item): Item => {
    if (item.standing.owner !== "us" || item.standing.ifUnwanted.do !== "delete") return item;
    const hold = holdFor(item);
    return hold === undefined ? item : withFate(item, { do: "hold", ...hold });
  });
  return { ...plan, items };
}

// What follows what on one target. Kilo forgets a key when any object that holds it goes, so whoever stays in a slot that
// another object leaves is written to directly after: writes may be far apart, and until then nobody reaches it.

import { appendAll, appendTo } from "./list.ts";
import type { Step } from "./order.ts";
import type { Item, Operation } from "./plan.ts";
import { compareText } from "./world.ts";

/** A create or an update, the slot it fills, and the one that its object is in so far. */
export type Write = {
  readonly operation: Operation;
  readonly narrow: (() => Operation) | undefined;
  readonly slot: string;
  readonly left: string | undefined;
};

/** A removal, and the slot that it leaves. */
export type Removal = { readonly operation: Operation; readonly slot: string };

/**
 * Objects that lost something to an earlier write, by `owedKey`: their key, so that they are written to in any case, or a
 * range, so that what they are written with anyway comes first.
 */
export type Owed = ReadonlyMap<string, "touch" | "write">;

/** Everything that has to be done on a target, by why. */
export type Work = {
  readonly writes: readonly Write[];
  /** Further holders of a slot that something is written to or stays in. */
  readonly surplus: readonly Removal[];
  /** What may not be there at all. */
  readonly forbidden: readonly Removal[];
  /** What nothing desires. */
  readonly retired: readonly Removal[];
  /** What is there and stays as it is. */
  readonly staying: readonly Item[];
  readonly touch: (item: Item) => Operation;
  readonly owed: Owed;
};

/** The steps of a target: those that come before everything, the others, and which objects are only touched. */
export type Steps = {
  readonly urgent: readonly Step[];
  readonly steps: readonly Step[];
  readonly touched: ReadonlySet<Item>;
};

/** How an object is called to which a write is owed. */
export const owedKey = ({ name, uid }: Pick<Operation, "name" | "uid">): string => `${name} ${uid ?? ""}`;

/** Puts the work on a target into steps, and the steps into an order that knows nothing of ranges yet. */
export function stepsOf({ writes, surplus, forbidden, retired, staying, touch, owed }: Work): Steps {
  const vacated = bySlot(surplus);
  const leaving = bySlot(retired);
  const moves = writes.some(({ slot, left }) => left !== undefined && left !== slot);
  const stayingIn = new Map<string, Item[]>();
  if (moves || surplus.length + forbidden.length + retired.length > 0) {
    for (const item of staying) appendTo(stayingIn, item.slot, item);
  }
  const touched = new Set<Item>();
  const touchIn = (slot: string): Operation[] => {
    const items = stayingIn.get(slot) ?? [];
    for (const item of items) touched.add(item);
    return items.map(touch);
  };
  const survivors = new Map(writes.flatMap((write) => (vacated.has(write.slot) ? [[write.slot, write]] : [])));
  const stepOf = ({ operation, narrow, slot, left }: Write, before: readonly Operation[] = []): Step => {
    const after = left === undefined || left === slot ? [] : touchIn(left);
    return {
      operations: [...before, operation, ...after],
      narrow: narrow === undefined ? undefined : () => (gives(operation) ? [...before, narrow()] : before),
    };
  };

  const urgent = forbidden.map(({ operation }) => single(operation));
  const spoilt = new Set(forbidden.map(({ slot }) => slot));
  for (const slot of spoilt) {
    appendAll(urgent, [...(leaving.get(slot) ?? []), ...touchIn(slot)].map(single));
    leaving.delete(slot);
  }
  const vacating = Array.from(vacated, ([slot, deletes]): Step => {
    const survivor = survivors.get(slot);
    const { operations, narrow } = survivor === undefined ? { operations: deletes } : stepOf(survivor, deletes);
    return { operations: [...operations, ...touchIn(slot)], narrow };
  });
  const written = writes
    .filter(({ slot }) => !vacated.has(slot))
    .map((write) => ({ step: stepOf(write), rank: rankOf(write, owed), name: write.operation.name }))
    .sort((a, b) => a.rank - b.rank || compareText(a.name, b.name));
  const awaited = written.filter(({ rank }) => rank === 0).map(({ step }) => step);
  const others = written.filter(({ rank }) => rank > 0).map(({ step }) => step);
  const retiring = Array.from(
    leaving,
    ([slot, deletes]): Step => ({ operations: [...deletes, ...touchIn(slot)], narrow: undefined }),
  );
  const owing = staying.filter((item) => owed.get(owedKey(item)) === "touch" && !touched.has(item));
  for (const item of owing) touched.add(item);
  const steps = [...owing.map((item) => single(touch(item))), ...awaited, ...vacating, ...others, ...retiring];
  return { urgent, steps, touched };
}

const single = (operation: Operation): Step => ({ operations: [operation], narrow: undefined });

/** What is owed comes first, and what only gives something up does not wait for what is new. */
function rankOf({ operation }: Write, owed: Owed): number {
  if (owed.has(owedKey(operation))) return 0;
  const { before, after } = operation.claims;
  const held = new Set(before);
  return before.length > after.length && after.every((claim) => held.has(claim)) ? 1 : 2;
}

function gives({ claims }: Operation): boolean {
  const kept = new Set(claims.after);
  return claims.before.some((claim) => !kept.has(claim));
}

function bySlot(removals: readonly Removal[]): Map<string, Operation[]> {
  const groups = new Map<string, Operation[]>();
  for (const { slot, operation } of removals) appendTo(groups, slot, operation);
  return groups;
}

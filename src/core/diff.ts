// desired × actual → operations. Kilo indexes peers by public key: a delete event for one object evicts any other object
// with the same key. So things are matched by slot and keep their names, and the order of writes is part of the answer:
//
//   first    what may not be there at all goes before anything else
//   owed     whoever lost its key or its range to a write of before
//   vacate   surplus holders of a slot go, each directly before its survivor is written or touched (an equal apply emits
//            no event)
//   narrow   whoever gives up a range is written directly before whoever takes it; a cycle is broken by one narrowing
//            update
//   write    creates and updates
//   retire   what nothing desires, when nothing depends on it any more

import type { Change, Desired, Field, Fields, Hold, Item, Operation, TargetPlan } from "./plan.ts";
import { appendAll, appendTo } from "./list.ts";
import { alternativeName } from "./naming.ts";
import { orderByClaims } from "./order.ts";
import { type Owed, type Removal, stepsOf, type Write } from "./steps.ts";
import { type ClusterId, compareText } from "./world.ts";

/** What has to be written on one target, what is left alone, and how each desired thing is called there. */
export type TargetDiff = {
  readonly operations: readonly Operation[];
  readonly holds: readonly Hold[];
  readonly unchanged: number;
  /** What nothing desires and is kept all the same. */
  readonly kept: readonly Item[];
  readonly names: ReadonlyMap<Desired, string>;
};

/** Labels under this prefix are ours alone: one that is no longer desired is a difference. */
const ownLabelPrefix = "causeway.dev/";

/** The smallest safe difference between what is desired on a target and what is there; a write may be owed to some of it. */
export function diff(plan: TargetPlan, owed: Owed = new Map()): TargetDiff {
  const { keepers, surplus, unwanted } = matchItems(plan);
  const names = nameDesired(plan, keepers);
  const kept = [...surplus, ...unwanted].filter((item) => !isDeletable(item));
  if (plan.gap !== undefined) {
    return { operations: [], holds: holdEverything(plan, plan.gap), unchanged: 0, kept, names };
  }
  const holds = collectHolds(plan);
  const writes: Write[] = [];
  const untouched: Item[] = [];
  for (const desired of plan.desired) {
    const item = keepers.get(desired);
    const write = writeOf(plan.target, desired, item, names.get(desired) ?? desired.name);
    if (write !== undefined) writes.push({ ...write, slot: desired.slot, left: item?.slot });
    else if (item !== undefined) untouched.push(item);
  }
  const retired = unwanted.filter(isDeletable);
  const removals = (items: readonly Item[], reasonOf: (item: Item) => string): Removal[] =>
    items.map((item) => ({ operation: deleteOf(plan.target, item, reasonOf(item)), slot: item.slot }));
  const { urgent, steps, touched } = stepsOf({
    writes,
    surplus: removals(surplus.filter(isDeletable), () => "SurplusHolder"),
    forbidden: removals(retired.filter(goesFirst), deleteReason),
    retired: removals(
      retired.filter((item) => !goesFirst(item)),
      deleteReason,
    ),
    staying: [...untouched, ...kept],
    touch: (item) => touchOf(plan.target, item),
    owed,
  });
  const operations = orderByClaims(urgent, steps);
  return { operations, holds, unchanged: untouched.filter((item) => !touched.has(item)).length, kept, names };
}

/** The object that fills each desired slot today: the one a diff would keep and update. */
export function matchItems<D extends Pick<Desired, "name" | "slot" | "origin">>(plan: {
  readonly desired: readonly D[];
  readonly items: readonly Item[];
}): {
  readonly keepers: ReadonlyMap<D, Item>;
  readonly surplus: readonly Item[];
  readonly unwanted: readonly Item[];
} {
  const ours = plan.items.filter((item) => item.standing.owner === "us").sort((a, b) => compareText(a.name, b.name));
  const bySlot = itemsBySlot(ours);
  const keepers = new Map<D, Item>();
  const used = new Set<Item>();
  const surplus: Item[] = [];
  for (const desired of plan.desired) {
    const holders = bySlot.get(desired.slot);
    if (holders === undefined) continue;
    const keeper = keeperOf(desired, holders);
    for (const item of holders) {
      used.add(item);
      if (item === keeper) keepers.set(desired, item);
      else surplus.push(item);
    }
  }
  const originals = new Map<string, Item>();
  for (const item of ours) {
    if (item.origin !== undefined && !used.has(item) && !originals.has(item.origin)) originals.set(item.origin, item);
  }
  for (const desired of plan.desired) {
    if (keepers.has(desired)) continue;
    const item = originals.get(desired.origin);
    if (item === undefined || used.has(item)) continue;
    used.add(item);
    keepers.set(desired, item);
  }
  return { keepers, surplus, unwanted: ours.filter((item) => !used.has(item)) };
}

/** Of several holders of a slot, the one made from the same thing stays, by its name if there are more. */
export function keeperOf(desired: Pick<Desired, "name" | "origin">, holders: readonly Item[]): Item | undefined {
  if (holders.length === 1) return holders[0];
  const same = holders.filter((item) => item.origin === desired.origin);
  const eligible = same.length > 0 ? same : holders;
  return eligible.find((item) => item.name === desired.name) ?? eligible[0];
}

/** Names for what has to be created. Only where two want one name, or it is taken, does anything but the wish decide. */
function nameDesired(plan: TargetPlan, keepers: ReadonlyMap<Desired, Item>): Map<Desired, string> {
  const taken = new Set(plan.items.map(nameKey));
  const names = new Map<Desired, string>();
  const wishes = new Map<string, Desired[]>();
  for (const desired of plan.desired) {
    const keeper = keepers.get(desired);
    if (keeper !== undefined) names.set(desired, keeper.name);
    else appendTo(wishes, nameKey(desired), desired);
  }
  const disputed: Desired[] = [];
  for (const [key, same] of wishes) {
    const [first, ...others] = same.length === 1 ? same : same.sort(byOrigin);
    if (first === undefined) continue;
    if (first.name === "" || taken.has(key)) disputed.push(first);
    else {
      taken.add(key);
      names.set(first, first.name);
    }
    appendAll(disputed, others);
  }
  for (const desired of disputed.sort((a, b) => compareText(a.name, b.name) || byOrigin(a, b))) {
    let identity = desired.origin;
    let name = alternativeName(desired.name, identity);
    while (taken.has(nameKey({ kind: desired.kind, name }))) {
      identity += `|${desired.slot}`;
      name = alternativeName(desired.name, identity);
    }
    taken.add(nameKey({ kind: desired.kind, name }));
    names.set(desired, name);
  }
  return names;
}

const nameKey = ({ kind, name }: Pick<Item, "kind" | "name">): string => `${kind} ${name}`;

const byOrigin = (a: Desired, b: Desired): number => compareText(a.origin, b.origin) || compareText(a.slot, b.slot);

function holdEverything(plan: TargetPlan, gap: { readonly reason: string; readonly detail: string }): Hold[] {
  const objects = plan.items.filter((item) => item.standing.owner === "us").map((item) => item.name);
  return objects.length === 0 ? [] : [{ target: plan.target, ...gap, objects: objects.sort(compareText) }];
}

function collectHolds(plan: TargetPlan): Hold[] {
  const groups = new Map<string, { reason: string; detail: string; objects: string[] }>();
  for (const { standing, name } of plan.items) {
    if (standing.owner !== "us" || standing.ifUnwanted.do !== "hold") continue;
    const { reason, detail } = standing.ifUnwanted;
    const key = JSON.stringify([reason, detail]);
    const group = groups.get(key);
    if (group === undefined) groups.set(key, { reason, detail, objects: [name] });
    else group.objects.push(name);
  }
  return [...groups.entries()]
    .sort(([a], [b]) => compareText(a, b))
    .map(([, { reason, detail, objects }]) => ({
      target: plan.target,
      reason,
      detail,
      objects: objects.sort(compareText),
    }));
}

function writeOf(
  target: ClusterId,
  desired: Desired,
  item: Item | undefined,
  name: string,
): Pick<Write, "operation" | "narrow"> | undefined {
  const { kind, labels, fields, sealed } = desired;
  const content = { labels, fields, ...(sealed === undefined ? {} : { sealed }) };
  if (item === undefined) {
    const operation: Operation = {
      target,
      action: "create",
      kind,
      name,
      intents: desired.intents,
      reason: desired.because,
      changes: changesBetween({}, fields),
      uid: undefined,
      resourceVersion: undefined,
      claims: { before: [], after: desired.claims },
      content,
    };
    return { operation, narrow: undefined };
  }
  const fieldChanges = changesBetween(item.fields, fields);
  if (fieldChanges.length === 0 && item.standing.owner === "us" && item.standing.adopted) return undefined;
  const changes = [...fieldChanges, ...labelChanges(item.labels, labels)];
  if (changes.length === 0) return undefined;
  const operation: Operation = {
    target,
    action: "update",
    kind,
    name,
    intents: desired.intents,
    reason: updateReason(desired, changes),
    changes,
    uid: item.uid,
    resourceVersion: item.resourceVersion,
    claims: { before: item.claims, after: desired.claims },
    content,
    ...(changes.some(({ path }) => desired.urgent?.includes(path)) ? { urgent: true } : {}),
  };
  return { operation, narrow: () => narrowing(operation, desired, item) };
}

/** The update that only gives up ranges, used to break a cycle of exchanges. */
function narrowing(operation: Operation, desired: Desired, item: Item): Operation {
  const kept = item.claims.filter((claim) => desired.claims.includes(claim));
  const path = desired.claimsPath;
  return {
    ...operation,
    reason: "RangeReleased",
    changes: [{ path, from: item.fields[path] ?? null, to: kept }],
    claims: { before: item.claims, after: kept },
    content: { labels: item.labels, fields: { ...item.fields, [path]: kept } },
  };
}

const removal = (target: ClusterId, item: Item) => ({
  target,
  kind: item.kind,
  name: item.name,
  intents: item.intents ?? (item.intent === undefined ? [] : [item.intent]),
  changes: [],
  uid: item.uid,
  resourceVersion: item.resourceVersion,
});

function deleteOf(target: ClusterId, item: Item, reason: string): Operation {
  const claims = { before: item.claims, after: [] };
  const { standing } = item;
  const leave = standing.owner === "us" && standing.ifUnwanted.do === "delete" ? standing.ifUnwanted.leave : undefined;
  if (leave !== undefined) {
    const changes = [...changesBetween(item.fields, leave.fields), ...labelChanges(item.labels, leave.labels)];
    const release = { ...removal(target, item), action: "update", reason, claims, changes, content: leave } as const;
    return { ...release, releases: true };
  }
  return { ...removal(target, item), action: "delete", reason, claims };
}

function touchOf(target: ClusterId, item: Item): Operation {
  const claims = { before: item.claims, after: item.claims };
  return { ...removal(target, item), action: "touch", reason: "SurplusHolderRemoved", claims };
}

function updateReason(desired: Desired, changes: readonly Change[]): string {
  const changed = new Set(changes.map((change) => change.path));
  for (const [path, reason] of Object.entries(desired.reasons)) if (changed.has(path)) return reason;
  return changes.every((change) => change.path.startsWith("metadata.labels.")) ? "LabelsChanged" : "ContentChanged";
}

/** The fields in which two contents differ, in the order of the wanted one. */
export function changesBetween(from: Fields, to: Fields): Change[] {
  const changes: Change[] = [];
  for (const path in to) {
    const wanted = to[path] ?? null;
    const found = from[path] ?? null;
    if (!sameField(found, wanted)) changes.push({ path, from: found, to: wanted });
  }
  return changes;
}

function labelChanges(from: Readonly<Record<string, string>>, to: Readonly<Record<string, string>>): Change[] {
  const changes: Change[] = [];
  for (const key in to) {
    const wanted = to[key] ?? null;
    if (from[key] !== wanted) changes.push({ path: `metadata.labels.${key}`, from: from[key] ?? null, to: wanted });
  }
  for (const key in from) {
    if (to[key] === undefined && key.startsWith(ownLabelPrefix)) {
      changes.push({ path: `metadata.labels.${key}`, from: from[key] ?? null, to: null });
    }
  }
  return changes;
}

function sameField(a: Field, b: Field): boolean {
  if (a === b) return true;
  if (!Array.isArray(a) || !Array.isArray(b) || a.length !== b.length) return false;
  if (a.every((value, index) => value === b[index])) return true;
  const sorted = [...b].sort(compareText);
  return [...a].sort(compareText).every((value, index) => value === sorted[index]);
}

const isDeletable = (item: Item): boolean => item.standing.owner === "us" && item.standing.ifUnwanted.do === "delete";
const goesFirst = ({ standing }: Item): boolean =>
  standing.owner === "us" && standing.ifUnwanted.do === "delete" && standing.ifUnwanted.first === true;
const deleteReason = (item: Item): string => (item.standing.owner === "us" ? item.standing.ifUnwanted.reason : "");

/** Items by slot, in the order given. */
export function itemsBySlot(items: readonly Item[]): Map<string, Item[]> {
  const groups = new Map<string, Item[]>();
  for (const item of items) appendTo(groups, item.slot, item);
  return groups;
}

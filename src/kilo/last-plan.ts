// The last plan, for a world that has not changed since: most plans of a quiet fleet are made by the clock alone. Facts
// and intents never change once they are handed out, so the same ones, by identity, say the same.

import { sameJson } from "../core/json.ts";
import { graceKey, type Held, lastSeen, type Observed } from "../core/world.ts";
import type { NodeFacts } from "./facts.ts";
import { silentSeconds } from "./node-advice.ts";
import { type KiloOptions, type KiloPlan, type KiloWorld, planKilo } from "./plan.ts";

/** Plans one world after the other, and answers with the last plan as long as it is what would be planned again. */
export function planInTurn(options: KiloOptions): (world: KiloWorld) => KiloPlan {
  let last: { readonly world: KiloWorld; readonly plan: KiloPlan; readonly untilMs: number } | undefined;
  return (world) => {
    if (last !== undefined && isSound(last, world) && saysTheSame(last.world, world)) return last.plan;
    const plan = planKilo({ ...world, led: last?.plan.led ?? new Map() }, options);
    last = { world, plan, untilMs: soundUntilMs(world, plan, options.graceMs) };
    return plan;
  };
}

const isSound = (last: { readonly world: KiloWorld; readonly untilMs: number }, { nowMs }: KiloWorld): boolean =>
  last.world.nowMs <= nowMs && nowMs < last.untilMs;

/** Until when a plan does not depend on the time; not at all, if a grace period begins with it. */
function soundUntilMs({ nowMs, held, clusters }: KiloWorld, { targets }: KiloPlan, graceMs: number): number {
  const isBeginning = targets.some(({ target, items }) =>
    items.some(
      ({ name, standing }) =>
        standing.owner === "us" &&
        standing.ifUnwanted.do === "hold" &&
        standing.ifUnwanted.graceSinceMs !== undefined &&
        !isRunning(held.get(graceKey(target, name)), standing.ifUnwanted.graceSinceMs),
    ),
  );
  if (isBeginning || nowMs === 0) return 0;
  const nowSeconds = Math.floor(nowMs / 1000);
  const ends = [...held.values()].map(({ sinceMs }) => sinceMs + graceMs).filter((endMs) => endMs > nowMs);
  const turns = clusters.map(({ observed }) => 1000 * sameUntil(lastSeen(observed)?.nodes ?? [], nowSeconds));
  return [...ends, ...turns].reduce((first, each) => Math.min(first, each), Number.POSITIVE_INFINITY);
}

/** Whether a period was known of before the plan: one that begins with it, also in place of another, is not. */
const isRunning = (known: Held | undefined, sinceMs: number): boolean => known?.sinceMs === sinceMs;

/** The second at which the check-ins of a cluster's nodes mean something else: an agent is silent, or not from the future. */
function sameUntil(nodes: readonly NodeFacts[], nowSeconds: number): number {
  let until = Number.POSITIVE_INFINITY;
  let hasPast = false;
  let hasFuture = false;
  for (const { lastSeen: seconds } of nodes) {
    if (seconds === undefined) continue;
    // Whatever is from the future counts as now, and now moves away from what is not.
    if (seconds > nowSeconds) hasFuture = true;
    else hasPast = true;
    const change = seconds > nowSeconds ? seconds + 1 : seconds + silentSeconds + 1;
    if (change > nowSeconds) until = Math.min(until, change);
  }
  return hasPast && hasFuture ? 0 : until;
}

function saysTheSame(a: KiloWorld, b: KiloWorld): boolean {
  return (
    a.instance === b.instance &&
    a.dns === b.dns &&
    sameHeld(a.held, b.held) &&
    isSameObserved(a.intents, b.intents, sameElements) &&
    sameElements(a.unreadableMeshes, b.unreadableMeshes) &&
    a.clusters.length === b.clusters.length &&
    a.clusters.every((view, index) => isSameView(view, b.clusters[index]))
  );
}

type View = KiloWorld["clusters"][number];

const isSameView = (a: View, b: View | undefined): boolean =>
  b !== undefined &&
  a.id === b.id &&
  a.name === b.name &&
  sameElements(a.accesses, b.accesses) &&
  sameElements(a.servers ?? [], b.servers ?? []) &&
  sameJson(a.unused, b.unused) &&
  sameJson(a.unasked, b.unasked) &&
  isSameObserved(a.observed, b.observed, (one, other) => one === other);

function isSameObserved<T>(a: Observed<T>, b: Observed<T>, same: (a: T, b: T) => boolean): boolean {
  if (a.state === "synced") return b.state === "synced" && same(a.value, b.value);
  if (a.state === "absent") return b.state === "absent" && sameJson(a.because, b.because);
  return b.state === "stale" && sameJson(a.because, b.because) && same(a.value, b.value);
}

const sameElements = (a: readonly unknown[], b: readonly unknown[]): boolean =>
  a.length === b.length && a.every((element, index) => element === b[index]);

const sameHeld = (a: ReadonlyMap<string, Held>, b: ReadonlyMap<string, Held>): boolean =>
  a.size === b.size && [...a].every(([key, value]) => sameJson(value, b.get(key)));

// One plan with everything that is asked of it: what differs per target, what is due per intent, what is where.

import type { Diagnostic } from "../core/diagnostic.ts";
import { diff, type TargetDiff } from "../core/diff.ts";
import { appendTo } from "../core/list.ts";
import type { IfUnwanted, Item, Operation, Plan, TargetPlan } from "../core/plan.ts";
import type { Member, ProviderWorld, Remainder } from "../core/provider.ts";
import type { Owed } from "../core/steps.ts";
import { type ClusterId, type ClusterView, graceKey, type Held } from "../core/world.ts";
import type { Runtime } from "../kube/runtime.ts";
import type { OwedWrites } from "./owed-writes.ts";

/** A plan, and what it means for each target and each intent. */
export type PlanState<Intent, Facts, P> = {
  readonly revision: number;
  /** How many writes of ours it could know of. */
  readonly writes: number;
  readonly changedMs: number | undefined;
  readonly world: ProviderWorld<Intent, Facts>;
  readonly plan: P;
  readonly viewOf: ReadonlyMap<ClusterId, ClusterView<Facts>>;
  readonly diffs: Map<ClusterId, TargetDiff>;
  readonly pending: ReadonlyMap<string, readonly Operation[]>;
  readonly kept: ReadonlyMap<string, readonly Item[]>;
  readonly findings: ReadonlyMap<string, readonly Diagnostic[]>;
  /** Objects of ours per target and intent. */
  readonly holdings: ReadonlyMap<ClusterId, ReadonlyMap<string, number>>;
};

/** Takes the differences and sorts everything by whom it concerns. */
export function stateOf<Intent, Facts, P extends Plan>(
  world: ProviderWorld<Intent, Facts>,
  plan: P,
  made: Pick<PlanState<Intent, Facts, P>, "revision" | "writes" | "changedMs">,
  owed: OwedWrites,
): PlanState<Intent, Facts, P> {
  const diffs = new Map<ClusterId, TargetDiff>();
  const pending = new Map<string, Operation[]>();
  const kept = new Map<string, Item[]>();
  const holdings = new Map<ClusterId, Map<string, number>>();
  for (const target of plan.targets) {
    const found = diffOf(target, owed.of(target.target));
    diffs.set(target.target, found);
    for (const operation of found.operations) {
      for (const intent of operation.intents) appendTo(pending, intent, operation);
    }
    for (const item of found.kept) for (const intent of intentsOf(item)) appendTo(kept, intent, item);
    const counts = new Map<string, number>();
    for (const item of target.items) {
      if (item.standing.owner !== "us") continue;
      for (const intent of intentsOf(item)) counts.set(intent, (counts.get(intent) ?? 0) + 1);
    }
    holdings.set(target.target, counts);
  }
  const findings = new Map<string, Diagnostic[]>();
  for (const diagnostic of plan.diagnostics) appendTo(findings, diagnostic.mesh ?? "", diagnostic);
  const viewOf = new Map(world.clusters.flatMap((view) => view.accesses.map((access) => [access, view] as const)));
  return { ...made, world, plan, viewOf, diffs, pending, kept, findings, holdings };
}

/** Which work it is: the same on the same versions of the same objects. */
export const textOfWork = (operations: readonly Operation[]): string =>
  JSON.stringify(
    operations.map(({ action, name, resourceVersion, changes }) => [action, name, resourceVersion, changes]),
  );

/** What is left of an intent on each of its clusters. */
export function remaindersOf<Intent, Facts, P extends Plan>(
  id: string,
  members: readonly Member[],
  { viewOf, holdings, plan: { suspects = [] } }: PlanState<Intent, Facts, P>,
): readonly Remainder[] {
  return members.map((member): Remainder => {
    const view = viewOf.get(member.id);
    const observed = view?.observed ?? { state: "absent", because: { kind: "unreachable", detail: "not observed" } };
    const objects = (view && holdings.get(view.id)?.get(id)) ?? 0;
    const own = suspects.filter(({ intent, target }) => intent === id && target === view?.id);
    if (own.length === 0) return { member, observed, objects };
    const awaited = own.some(({ isAwaited }) => isAwaited === true) ? ({ isAwaited: true } as const) : {};
    return { member, observed, objects, suspects: own.map(({ object }) => object), ...awaited };
  });
}

const intentsOf = ({ intent, intents }: Item): readonly string[] => intents ?? [intent ?? ""];

const known = new WeakMap<TargetPlan, TargetDiff>();

/** The difference of a target, taken once for a plan that is made again and again. */
function diffOf(target: TargetPlan, owed: Owed): TargetDiff {
  if (owed.size > 0) return diff(target, owed);
  const found = known.get(target) ?? diff(target);
  known.set(target, found);
  return found;
}

/** How long every running grace period had lasted at a moment of the clock that never jumps, and what it is for. */
export type Graces = { readonly atMs: number; readonly running: ReadonlyMap<string, Grace> };

type Grace = { readonly lastedMs: number; readonly reason: string };

/** The grace periods that a plan keeps going. */
export function runningGraces(plan: Plan, { clock }: Runtime): Graces {
  const running = new Map<string, Grace>();
  const lasting = ({ sinceMs, reason = "" }: Held): Grace => ({ lastedMs: clock.nowMs() - sinceMs, reason });
  for (const { target, items } of plan.targets) {
    for (const { name, standing } of items) {
      if (standing.owner !== "us") continue;
      const grace = graceOf(standing.ifUnwanted);
      if (grace !== undefined) running.set(graceKey(target, name), lasting(grace));
    }
  }
  for (const [key, grace] of plan.graces ?? []) running.set(key, lasting(grace));
  return { atMs: clock.monotonicMs(), running };
}

/** The grace period of an object: one that runs, or is over and was for what it goes for now. */
function graceOf(fate: IfUnwanted): Held | undefined {
  if (fate.do === "delete") return fate.grace;
  return fate.graceSinceMs === undefined ? undefined : { sinceMs: fate.graceSinceMs, reason: fate.reason };
}

/** When they began, as the wall clock has it now: one that was set must neither end nor prolong them. */
export function graceBegins({ atMs, running }: Graces, { clock }: Runtime): ReadonlyMap<string, Held> {
  const origin = clock.nowMs() - (clock.monotonicMs() - atMs);
  return new Map(Array.from(running, ([key, { lastedMs, reason }]) => [key, { sinceMs: origin - lastedMs, reason }]));
}

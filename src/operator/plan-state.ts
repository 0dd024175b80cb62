// One plan with everything that is asked of it: what differs per target, what is due per intent, what is where.

import type { Diagnostic } from "../core/diagnostic.ts";
import { diff, type TargetDiff } from "../core/diff.ts";
import { appendTo } from "../core/list.ts";
import type { Item, Operation, Plan, TargetPlan } from "../core/plan.ts";
import type { ProviderWorld } from "../core/provider.ts";
import { type ClusterId, type ClusterView, graceKey, type Held } from "../core/world.ts";
import type { Runtime } from "../kube/runtime.ts";
import type { OwedTouches } from "./owed-touches.ts";

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
  owed: OwedTouches,
): PlanState<Intent, Facts, P> {
  const diffs = new Map<ClusterId, TargetDiff>();
  const pending = new Map<string, Operation[]>();
  const kept = new Map<string, Item[]>();
  const holdings = new Map<ClusterId, Map<string, number>>();
  for (const target of plan.targets) {
    const differs = diffOf(target);
    const found = { ...differs, operations: owed.added(target, differs.operations) };
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

const intentsOf = ({ intent, intents }: Item): readonly string[] => intents ?? [intent ?? ""];

const known = new WeakMap<TargetPlan, TargetDiff>();

/** The difference of a target, taken once for a plan that is made again and again. */
function diffOf(target: TargetPlan): TargetDiff {
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
  for (const { target, items } of plan.targets) {
    for (const { name, standing } of items) {
      if (standing.owner !== "us" || standing.ifUnwanted.do !== "hold") continue;
      const { graceSinceMs, reason } = standing.ifUnwanted;
      if (graceSinceMs === undefined) continue;
      running.set(graceKey(target, name), { lastedMs: clock.nowMs() - graceSinceMs, reason });
    }
  }
  return { atMs: clock.monotonicMs(), running };
}

/** When they began, as the wall clock has it now: one that was set must neither end nor prolong them. */
export function graceBegins({ atMs, running }: Graces, { clock }: Runtime): ReadonlyMap<string, Held> {
  const origin = clock.nowMs() - (clock.monotonicMs() - atMs);
  return new Map(Array.from(running, ([key, { lastedMs, reason }]) => [key, { sinceMs: origin - lastedMs, reason }]));
}

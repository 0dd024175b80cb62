// What the documents of all providers have in common: plans as others see them, with names instead of ids.

import type { Diagnostic } from "./diagnostic.ts";
import type { Change, Operation, TargetPlan } from "./plan.ts";
import { type ClusterView, compareText } from "./world.ts";

/** A write that would be done. */
export type OperationDocument = {
  readonly target: string;
  readonly action: Operation["action"];
  readonly kind: string;
  readonly namespace: string | null;
  readonly name: string;
  readonly reason: string;
  readonly changes: readonly Change[];
};

/** Objects that must not be deleted; those that are still wanted may be updated. */
export type HoldDocument = {
  readonly target: string;
  readonly reason: string;
  readonly detail: string;
  readonly objects: readonly string[];
};

/** What is told of any plan. */
export type CommonDocument = {
  readonly revision: number;
  readonly operations: readonly OperationDocument[];
  readonly holds: readonly HoldDocument[];
  readonly diagnostics: readonly Diagnostic[];
  readonly summary: Readonly<Record<Operation["action"] | "unchanged", number>>;
  /** About how long the operations take where writes are kept apart; 0 if none has to wait. */
  readonly durationSeconds: number;
};

/** The targets of a plan with what people call them, in the order of these names. */
export function namedTargets<T extends TargetPlan>(
  targets: readonly T[],
  clusters: readonly Pick<ClusterView<unknown>, "id" | "name">[],
): readonly { readonly target: T; readonly name: string }[] {
  const nameOf = new Map(clusters.map(({ id, name }) => [id, name]));
  return targets
    .map((target) => ({ target, name: nameOf.get(target.target) ?? target.target }))
    .sort((a, b) => compareText(a.name, b.name));
}

// Conditions never lie: they are computed from what was decided, what was written and how sure we are, also when
// something failed; what nobody can know is `Unknown`.

import type { Diagnostic } from "./diagnostic.ts";
import { appendTo } from "./list.ts";
import type { Operation } from "./plan.ts";
import { type ClusterId, compareText, type Failure } from "./world.ts";

/** How much of its findings a status lists: so many, and so many objects of each. */
export const findingLimits = { findingsMax: 20, subjectsMax: 10 } as const;

/** A statement about an intent. */
export type Condition = {
  readonly type: string;
  readonly status: "True" | "False" | "Unknown";
  readonly reason: string;
  readonly message: string;
};

/** A condition as it is stored. */
export type StoredCondition = Condition & {
  readonly observedGeneration: number;
  readonly lastTransitionTime: string;
};

/** What came of the operations on one target. */
export type ApplyReport = {
  readonly target: ClusterId;
  /** What people call the target. */
  readonly cluster: string;
  readonly applied: number;
  readonly failed: readonly {
    readonly object: string;
    readonly failure: Failure;
    /** What was to be done, to which kind of objects. */
    readonly kind: string;
    readonly action: Operation["action"];
  }[];
};

/** The conditions to store: a transition time moves only when the status flips, and others' conditions stay. */
export function settleConditions(
  previous: readonly StoredCondition[],
  next: readonly Condition[],
  generation: number,
  now: string,
): StoredCondition[] {
  const types = new Set(next.map((condition) => condition.type));
  const settled = next.map((condition): StoredCondition => {
    const before = previous.find((other) => other.type === condition.type);
    const lastTransitionTime = before?.status === condition.status ? before.lastTransitionTime : now;
    return { ...condition, observedGeneration: generation, lastTransitionTime };
  });
  return [...settled, ...previous.filter((condition) => !types.has(condition.type))];
}

/** Findings of one code and cluster as one line, in the order they are given, with the first few objects of each. */
export function summariseFindings(findings: readonly Diagnostic[]): readonly Readonly<Record<string, unknown>>[] {
  const groups = new Map<string, Diagnostic[]>();
  for (const finding of findings) appendTo(groups, JSON.stringify([finding.code, finding.subject.cluster]), finding);
  return [...groups.values()].slice(0, findingLimits.findingsMax).flatMap((group) => {
    const [first] = group;
    if (first === undefined) return [];
    const { code, severity, subject, message } = first;
    const subjects = [...new Set(group.map((each) => `${each.subject.kind}/${each.subject.name}`))].sort(compareText);
    return [
      {
        code,
        severity,
        ...(subject.cluster === undefined ? {} : { cluster: subject.cluster }),
        count: group.length,
        subjects: subjects.slice(0, findingLimits.subjectsMax),
        message,
      },
    ];
  });
}

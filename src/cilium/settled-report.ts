import type { Diagnostic } from "../core/diagnostic.ts";
import { canonicalText, fieldsOf, listOf, sameJson } from "../core/json.ts";
import { appendTo } from "../core/list.ts";
import type { Report } from "../core/provider.ts";
import { type Condition, findingLimits } from "../core/status.ts";
import { compareText } from "../core/world.ts";
import { momentText } from "./link.ts";

/** What a report is put together from. */
export type ReportParts = {
  readonly generation: number;
  readonly nowMs: number;
  /** The status that is stored. */
  readonly previous: unknown;
  readonly fields: Readonly<Record<string, unknown>>;
  readonly conditions: readonly Condition[];
  readonly findings: readonly Diagnostic[];
};

/** A report whose `lastSyncTime` moves only when something else does: at rest nothing is written. */
export function settledReport(parts: ReportParts): Report {
  const previous = fieldsOf(parts.previous);
  const findings = parts.findings.filter(({ severity }) => severity !== "info");
  const fields: Readonly<Record<string, unknown>> = {
    observedGeneration: parts.generation,
    ...parts.fields,
    findings: summarise(findings),
  };
  const isSame =
    sameConditions(previous["conditions"], parts.conditions) &&
    Object.entries(fields).every(([key, value]) => sameJson(value, previous[key]));
  const stored = previous["lastSyncTime"];
  const lastSyncTime = isSame && typeof stored === "string" ? stored : momentText(parts.nowMs);
  return { status: { ...fields, lastSyncTime }, conditions: parts.conditions, findings };
}

function sameConditions(previous: unknown, next: readonly Condition[]): boolean {
  const plain = (condition: unknown): string => {
    const { type, status, reason, message } = fieldsOf(condition);
    return canonicalText([type, status, reason, message]);
  };
  const before = new Set(listOf(previous).map(plain));
  return next.every((condition) => before.has(plain(condition)));
}

/** Findings of one code and cluster as one line, with the first few objects they are about. */
function summarise(findings: readonly Diagnostic[]): readonly Readonly<Record<string, unknown>>[] {
  const groups = new Map<string, Diagnostic[]>();
  for (const finding of findings) appendTo(groups, JSON.stringify([finding.code, finding.subject.cluster]), finding);
  return [...groups.values()].slice(0, findingLimits.findingsMax).flatMap((group) => {
    const [first] = group;
    if (first === undefined) return [];
    const { code, severity, subject, message } = first;
    const subjects = [...new Set(group.map((each) => `${each.subject.kind}/${each.subject.name}`))].sort(compareText);
    const cluster = subject.cluster === undefined ? {} : { cluster: subject.cluster };
    const some = subjects.slice(0, findingLimits.subjectsMax);
    return [{ code, severity, ...cluster, count: group.length, subjects: some, message }];
  });
}

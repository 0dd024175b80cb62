// What is written back to an intent: its finalizer, its status when it changed, and an event for what is new in it.

import { fieldsOf, listOf, sameJson, textOf } from "../core/json.ts";
import { forceAnnotation, type Remainder, type Report } from "../core/provider.ts";
import { shownIn } from "../core/shown.ts";
import { findingLimits, settleConditions, type StoredCondition } from "../core/status.ts";
import type { IntentRecord } from "../fleet/intent-feed.ts";
import type { KubeFailure } from "../kube/failure.ts";
import type { Diagnostic } from "../core/diagnostic.ts";
import { type EventNote, sendEvents } from "./events.ts";
import { type FinalizerStep, finalizerStep, mayComeBack } from "./finalizer.ts";

/** What is written for one intent. */
export type ReportInput<Intent> = {
  readonly finalizer: string;
  readonly record: IntentRecord<Intent>;
  readonly report: Report;
  readonly remainders: readonly Remainder[];
  readonly nowMs: number;
  readonly waitMs: number;
  readonly identity: string;
  readonly signal: AbortSignal;
};

/** What came of it: whether to look again, and when. */
export type ReportOutcome = {
  readonly failure: KubeFailure | undefined;
  readonly againMs: number | undefined;
  readonly wrote: boolean;
  readonly events: number;
  readonly finalizer: FinalizerStep;
};

/** The status an intent should have, beside its finalizer; nothing to write when both are as they should be. */
export function needsWriting<Intent>(
  input: Pick<ReportInput<Intent>, "record" | "report" | "remainders" | "finalizer" | "nowMs" | "waitMs">,
): boolean {
  const step = stepFor(input);
  return step.do === "add" || step.do === "remove" || statusPatch(input) !== undefined;
}

/** Writes what differs. A conflict is no fault: the newer object is on its way, and we look again. */
export async function writeReport<Intent>(input: ReportInput<Intent>): Promise<ReportOutcome> {
  const { record, signal } = input;
  const { api, resource, absorb } = record.home;
  const ref = { name: record.name, namespace: record.namespace };
  const step = stepFor(input);
  const done = (more: Partial<ReportOutcome>): ReportOutcome => ({
    failure: undefined,
    againMs:
      step.do === "wait" && step.untilMs !== undefined ? Math.max(0, step.untilMs - input.nowMs) + 100 : undefined,
    wrote: false,
    events: 0,
    finalizer: step,
    ...more,
  });
  if (step.do === "add" || step.do === "remove") {
    const others = record.finalizers.filter((each) => each !== input.finalizer);
    const finalizers = step.do === "add" ? [...others, input.finalizer] : others;
    const metadata = { finalizers, uid: record.uid, resourceVersion: record.resourceVersion };
    const answer = await api.patch(resource, ref, { metadata }, signal);
    if (!answer.ok) return done({ failure: answer.error.kind === "notFound" ? undefined : answer.error });
    if (step.do === "remove") {
      return done({ wrote: true, events: await sendEvents(input, abandonedNotes(step.abandoned, record.annotations)) });
    }
    absorb(answer.value);
    return done({ wrote: true, againMs: 0 });
  }
  const status = statusPatch(input);
  if (status === undefined) return done({});
  const { uid, resourceVersion } = record;
  const answer = await api.patch(
    resource,
    { ...ref, subresource: "status" },
    { metadata: { uid, resourceVersion }, status },
    signal,
  );
  if (!answer.ok) return done({ failure: answer.error.kind === "notFound" ? undefined : answer.error });
  absorb(answer.value);
  const events = await sendEvents(input, [...transitionNotes(input), ...newFindings(record, input.report)]);
  return done({ wrote: true, events });
}

/** What the finalizer of an intent asks for. */
export function stepFor<Intent>({
  record,
  report,
  finalizer,
  remainders,
  nowMs,
  waitMs,
}: Pick<ReportInput<Intent>, "record" | "report" | "remainders" | "finalizer" | "nowMs" | "waitMs">): FinalizerStep {
  return finalizerStep({
    present: record.finalizers.includes(finalizer),
    deletedMs: record.deletedMs,
    forced: record.annotations[forceAnnotation] === "true",
    isOthers: report.isOthers,
    remainders,
    nowMs,
    waitMs,
  });
}

/** The status as a merge patch, if it differs from the one that is stored. */
function statusPatch<Intent>({
  record,
  report,
  nowMs,
}: Pick<ReportInput<Intent>, "record" | "report" | "nowMs">): Readonly<Record<string, unknown>> | undefined {
  if (report.conditions.length === 0) return undefined;
  const now = `${new Date(nowMs).toISOString().slice(0, 19)}Z`;
  const said = shownIn(report.conditions);
  const conditions = settleConditions(storedConditions(record.status), said, record.generation, now);
  const wanted: Readonly<Record<string, unknown>> = { ...shownIn(report.status), conditions };
  const differs = Object.entries(wanted).some(([key, value]) => !sameJson(value, record.status[key]));
  return differs ? wanted : undefined;
}

function storedConditions(status: Readonly<Record<string, unknown>>): StoredCondition[] {
  return listOf(status["conditions"]).flatMap((item): StoredCondition[] => {
    const { type, status: value, reason, message, observedGeneration, lastTransitionTime } = fieldsOf(item);
    if (typeof type !== "string" || typeof lastTransitionTime !== "string") return [];
    if (value !== "True" && value !== "False" && value !== "Unknown") return [];
    return [
      {
        type,
        status: value,
        reason: textOf(reason) ?? "Unknown",
        message: typeof message === "string" ? message : "",
        observedGeneration: typeof observedGeneration === "number" ? observedGeneration : 0,
        lastTransitionTime,
      },
    ];
  });
}

function abandonedNotes(
  abandoned: readonly Remainder[],
  annotations: Readonly<Record<string, unknown>>,
): readonly EventNote[] {
  const forced = annotations[forceAnnotation] === "true";
  return abandoned.flatMap((rest): readonly EventNote[] => {
    const { member, observed, objects, suspects = [] } = rest;
    const told = suspects.map((object): EventNote => {
      const note = `${object} on ${member.name} may be ours and stays as it is: remove it if nobody needs it`;
      return { type: "Warning", reason: "LeftBehind", action: "Finalize", note };
    });
    if (observed.state === "synced" && objects === 0) return told;
    const lost = observed.state === "absent" && !mayComeBack(observed.because);
    const why = forced
      ? `${forceAnnotation} is set`
      : lost
        ? "there is no way in any more"
        : "it was not reached in time";
    const count = observed.state === "absent" ? "objects may be" : `${objects} objects are`;
    const because = observed.state === "synced" ? "" : ` (${observed.because.detail})`;
    const note = `${count} left behind on ${member.name}: ${why}${because}`;
    return [...told, { type: "Warning", reason: "LeftBehind", action: "Finalize", note }];
  });
}

/** An event when `Ready` becomes true or stops being so. */
function transitionNotes<Intent>({
  record,
  report,
}: Pick<ReportInput<Intent>, "record" | "report">): readonly EventNote[] {
  const before = storedConditions(record.status).find(({ type }) => type === "Ready");
  const after = report.conditions.find(({ type }) => type === "Ready");
  if (after === undefined || before?.status === after.status) return [];
  if (after.status !== "True" && before?.status !== "True") return [];
  const type = after.status === "True" ? "Normal" : "Warning";
  return [{ type, reason: after.reason, action: "Reconcile", note: after.message }];
}

const eventsMax = 20;
const { findingsMax, subjectsMax } = findingLimits;

/** What the status did not say before: findings of a new code, or about an object it did not name. */
function newFindings<Intent>(record: IntentRecord<Intent>, report: Report): readonly EventNote[] {
  const known = new Map<string, readonly unknown[]>();
  const told = listOf(record.status["findings"]);
  for (const item of told) {
    const { code, cluster, subjects } = fieldsOf(item);
    known.set(JSON.stringify([code, cluster]), listOf(subjects));
  }
  const fresh = report.findings.filter(({ code, subject }) => {
    const subjects = known.get(JSON.stringify([code, subject.cluster]));
    // A full list says nothing about what is not in it.
    if (subjects === undefined) return told.length < findingsMax;
    return subjects.length < subjectsMax && !subjects.includes(`${subject.kind}/${subject.name}`);
  });
  return fresh.slice(0, eventsMax).map(noteOf);
}

/** The action that users of the old operator look for on a node that is left out. */
const noteOf = ({ code, subject, message, fix }: Diagnostic): EventNote => ({
  type: "Warning",
  reason: code,
  action: subject.kind === "Node" ? "SkipNodePeering" : "Report",
  note: subject.kind === "Node" ? message : `${message}: ${fix}`,
});

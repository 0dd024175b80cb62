// What the statuses of GlobalService, ConnectivityIntent and ExposedService have in common: each is asked for on several
// clusters, and is what became of it there.
//
//   outcomes                          phase      <Done>     Ready      Degraded
//   all done                          done       True       True       False
//   all done, with a flaw             Degraded   True       False      True
//   some done, some failed            Degraded   False      False      True
//   all failed                        Error      False      False      True
//   nothing failed, some to be done   doing      False      False      False
//   nothing failed, some not known    doing      Unknown    Unknown    False     (phase done, if nobody will ever know)

import { type Diagnostic, listSome } from "../core/diagnostic.ts";
import { canonicalText, fieldsOf, sameJson } from "../core/json.ts";
import { type Evidence, isClean, type Remainder, type Report } from "../core/provider.ts";
import { shownIn } from "../core/shown.ts";
import { type Condition, summariseFindings } from "../core/status.ts";
import { type ClusterId, compareText, isShut } from "../core/world.ts";
import type { Gate, OutcomeGap } from "./kind-gate.ts";
import { missingRights } from "./rights.ts";

/** What became of an intent on one cluster. */
export type Outcome = {
  readonly cluster: string;
  readonly target: ClusterId | undefined;
  readonly state: "done" | "pending" | "unknown" | "failed";
  readonly reason: string;
  readonly message: string;
  /** It was done as far as anybody can tell, and nobody will ever tell more. */
  readonly final?: true;
};

/** How a kind calls what it does. */
export type Words = {
  /** The phase, and the reason of `Ready`, when everything is done: `Exported`. */
  readonly done: string;
  readonly doing: string;
  /** The condition's reason when everything is done: `AllClustersExported`. */
  readonly allDone: string;
};

/** Everything that a status is made from. */
export type StatusInput = {
  readonly gate: Gate;
  readonly words: Words;
  readonly outcomes: readonly Outcome[];
  /** What is wrong although everything was done. */
  readonly flaws: readonly OutcomeGap[];
};

/** The phase and the conditions of an intent. */
export function judge(
  input: StatusInput,
  evidence: Evidence,
): { readonly phase: string; readonly conditions: readonly Condition[] } {
  const { gate, words } = input;
  if (gate.state === "shut") return judgeShut(gate, input, evidence);
  const outcomes = withFailures(input.outcomes, evidence);
  const inState = (state: Outcome["state"]): readonly Outcome[] => outcomes.filter((each) => each.state === state);
  const [failed, pending, unknown] = [inState("failed"), inState("pending"), inState("unknown")];
  const accepted = condition("Accepted", "True", "SpecValid", "the spec is valid");
  if (failed.length > 0) {
    const told = gapOf(failed);
    return {
      phase: failed.length === outcomes.length ? "Error" : "Degraded",
      conditions: [
        accepted,
        condition(words.done, "False", told.reason, told.message),
        condition("Ready", "False", told.reason, told.message),
        condition("Degraded", "True", told.reason, told.message),
      ],
    };
  }
  const flaw = input.flaws[0];
  const degraded = flaw === undefined ? sound : condition("Degraded", "True", flaw.reason, flaw.message);
  if (pending.length > 0 || outcomes.length === 0) {
    const message = `to be written: ${listSome(pending.map(({ cluster }) => cluster)) || "nothing yet"}`;
    const doing = condition(words.done, "False", words.doing, message);
    return { phase: words.doing, conditions: [accepted, doing, { ...doing, type: "Ready" }, degraded] };
  }
  if (unknown.length > 0) {
    const told = gapOf(unknown);
    const doing = condition(words.done, "Unknown", told.reason, told.message);
    const phase = unknown.every(({ final }) => final === true) ? words.done : words.doing;
    return { phase, conditions: [accepted, doing, { ...doing, type: "Ready" }, degraded] };
  }
  const count = outcomes.length === 1 ? "1 cluster" : `${outcomes.length} clusters`;
  const done = condition(words.done, "True", words.allDone, `${words.done} on ${count}`);
  if (flaw !== undefined) {
    const ready = condition("Ready", "False", flaw.reason, flaw.message);
    return { phase: "Degraded", conditions: [accepted, done, ready, degraded] };
  }
  const ready = condition("Ready", "True", words.done, `${words.done} on ${count}`);
  return { phase: words.done, conditions: [accepted, done, ready, degraded] };
}

function judgeShut(
  gate: Gate & { readonly state: "shut" },
  { words, outcomes }: StatusInput,
  evidence: Evidence,
): ReturnType<typeof judge> {
  const { reason } = gate;
  const left = evidence.remainders.filter((rest) => !isClean(rest));
  const message =
    reason === "Terminating"
      ? `${gate.message}; ${leftText(left.map(remainderText), evidence)}`
      : `${gate.message}; what was written before stays`;
  const isInvalid = reason === "SpecInvalid";
  const isSuspended = reason === "Suspended";
  const isDone = isSuspended && outcomes.length > 0 && outcomes.every(({ state }) => state === "done");
  const isError = isInvalid || reason === "MeshNotFound";
  return {
    phase: isError ? "Error" : isDone ? words.done : "Pending",
    conditions: [
      isInvalid
        ? condition("Accepted", "False", reason, gate.message)
        : condition("Accepted", "True", "SpecValid", "the spec is valid"),
      condition(words.done, isError ? "False" : "Unknown", reason, message),
      condition("Ready", isSuspended ? "Unknown" : "False", reason, message),
      isError ? condition("Degraded", "True", reason, message) : sound,
    ],
  };
}

const sound: Condition = {
  type: "Degraded",
  status: "False",
  reason: "NotDegraded",
  message: "nothing is known to be wrong",
};

/** Outcomes with what could not be written: that counts more than what the plan expected. */
function withFailures(outcomes: readonly Outcome[], { reports }: Evidence): readonly Outcome[] {
  const failures = new Map<ClusterId | undefined, string[]>();
  for (const { target, failed } of reports) {
    if (failed.length === 0) continue;
    failures.set(
      target,
      failed.map(({ object, failure }) => `${object}: ${failure.detail}`),
    );
  }
  return outcomes.map((outcome): Outcome => {
    const told = failures.get(outcome.target);
    if (told === undefined || outcome.state === "failed") return outcome;
    return { ...outcome, state: "failed", reason: "ApplyFailed", message: `${outcome.cluster}: ${listSome(told, 3)}` };
  });
}

/** Several outcomes in one word and one line: the word they share, if they share one. */
function gapOf(outcomes: readonly Outcome[]): OutcomeGap {
  const [first] = outcomes;
  const same = outcomes.every(({ reason }) => reason === first?.reason);
  return {
    reason: same && first !== undefined ? first.reason : "SeveralReasons",
    message: listSome(
      outcomes.map(({ message }) => message),
      3,
    ),
  };
}

/** A condition in one line. */
export const condition = (type: string, status: Condition["status"], reason: string, message: string): Condition => ({
  type,
  status,
  reason,
  message,
});

/** What is left of an intent that is being deleted, and what may be: all that is found of one then is about that. */
export function leftText(where: readonly string[], { remainders, diagnostics }: Evidence): string {
  const told = diagnostics.filter(({ severity }) => severity !== "info").map(({ message }) => message);
  if (told.length > 0) return `${listSome(where) || "nothing that is known to be ours is left"}; ${listSome(told, 3)}`;
  if (remainders.length === 0) return "no cluster is known that it was written to";
  return listSome(where) || "nothing of it is left";
}

/** What is found of an intent: by its own kind, by whoever joined the shares of all kinds, and by writing. */
export const foundOf = (
  { id }: { readonly id: string },
  findings: readonly Diagnostic[],
  evidence: Evidence,
): readonly Diagnostic[] => [...new Set([...findings, ...evidence.diagnostics]), ...missingRights(id, evidence)];

function remainderText({ member, observed, objects }: Remainder): string {
  if (observed.state === "synced" && objects === 0) return `${member.name}: it has not said yet what is left there`;
  const count = objects === 1 ? "1 object" : `${objects} objects`;
  if (observed.state === "synced") return `${member.name}: ${count} to be cleaned up`;
  if (observed.state === "absent" && isShut(observed.because)) {
    return `${member.name}: what may be left there cannot be cleaned up (${observed.because.detail})`;
  }
  return `${member.name}: to be cleaned up once it is reached (${observed.because.detail})`;
}

/**
 * The clusters that a status names: where it is done, and where something may be left that has to be found again when
 * the intent goes, even if its mesh is gone by then.
 */
export function namedClusters(
  input: StatusInput,
  previous: readonly string[],
  { remainders, forced }: Evidence,
): readonly string[] {
  const isDone = ({ state, final }: Outcome): boolean => state === "done" || final === true;
  const named = new Set(input.outcomes.flatMap((outcome) => (isDone(outcome) ? [outcome.cluster] : [])));
  const failed = new Set(input.outcomes.flatMap(({ state, cluster }) => (state === "failed" ? [cluster] : [])));
  const before = new Set(previous);
  for (const rest of forced ? [] : remainders) {
    const { member, observed } = rest;
    if (observed.state !== "synced" && before.has(member.name) && !isLost(rest)) named.add(member.name);
    const isLeaving = member.left === true || input.gate.state === "shut";
    const isStuck = before.has(member.name) && failed.has(member.name);
    if (observed.state === "synced" && !isClean(rest) && (isLeaving || isStuck)) named.add(member.name);
  }
  return [...named].sort(compareText);
}

const isLost = ({ member, observed }: Remainder): boolean =>
  member.left === true && observed.state === "absent" && isShut(observed.because);

/** What a report is put together from. */
export type ReportInput = {
  /** What it is of, with the status that is stored. */
  readonly intent: { readonly generation: number; readonly object: { readonly status?: unknown } };
  readonly nowMs: number;
  /** The fields of the status, but the time; one that is undefined is to be taken away. */
  readonly fields: Readonly<Record<string, unknown>>;
  readonly conditions: readonly Condition[];
  readonly findings: readonly Diagnostic[];
};

/** A report whose time of change moves only when something else does. */
export function settledReport(input: ReportInput): Report {
  const previous = fieldsOf(input.intent.object.status);
  const findings = input.findings.filter(({ severity }) => severity !== "info");
  // Before it is compared with what is stored: else a text that had to be cut would be news every time.
  const conditions = shownIn(input.conditions);
  const wanted = {
    observedGeneration: input.intent.generation,
    ...shownIn(input.fields),
    findings: summariseFindings(findings),
  };
  const fields: Record<string, unknown> = {};
  let isSame = sameConditions(previous["conditions"], conditions);
  for (const [key, value] of Object.entries(wanted)) {
    const before = previous[key];
    if (value === undefined && (before === undefined || before === null)) continue;
    fields[key] = value ?? null;
    isSame &&= sameJson(value, before);
  }
  const time = previous["lastSyncTime"];
  const lastSyncTime = isSame && typeof time === "string" ? time : moment(input.nowMs);
  return { status: { ...fields, lastSyncTime }, conditions, findings };
}

/** A moment, as Kubernetes writes it. */
export const moment = (ms: number): string => `${new Date(ms).toISOString().slice(0, 19)}Z`;

function sameConditions(previous: unknown, next: readonly Condition[]): boolean {
  const plain = (list: readonly unknown[]): string[] =>
    list.map((each) => {
      const { type, status, reason, message } = fieldsOf(each);
      return canonicalText([type, status, reason, message]);
    });
  const before = new Set(plain(Array.isArray(previous) ? previous : []));
  return plain(next).every((each) => before.has(each));
}

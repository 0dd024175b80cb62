// What flows say about a connection that is meant to be allowed or denied. Pure: time and evidence come in.
//
//   seen                               Allow                   Deny
//   nothing                            Unknown NoTraffic       Unknown NoTraffic
//   delivered and answered             True    FlowObserved    False   FlowObserved
//   delivered, answered by resets      False   Refused         False   FlowObserved
//   delivered, answers dropped         False   ReplyDropped    False   FlowObserved
//   delivered, no answer               Unknown NoReply         False   FlowObserved
//   forwarded, but not seen to arrive  Unknown NotDelivered    Unknown NotDelivered
//   dropped by a policy                False   PolicyDenied    True    PolicyDenied
//   dropped for another reason         False   Dropped         Unknown Dropped
//   no flows to be had                 Unknown ProbeFailed     Unknown ProbeFailed

import type { Result } from "../core/result.ts";
import type { HubbleFailure } from "./failure.ts";
import type { FlowEnd, FlowQuery } from "./query.ts";
import { type FlowSummary, isPolicyReason } from "./summary.ts";

/** What flows prove, as a condition says it. */
export type FlowVerdict = {
  readonly status: "True" | "False" | "Unknown";
  readonly reason: FlowReason;
  /** The same as long as the same is true: without numbers and moments, which would make every look a new status. */
  readonly message: string;
  /** The numbers and moments; empty if there are none. */
  readonly evidence: string;
};

/** Why a verdict is what it is. */
export type FlowReason =
  | "FlowObserved"
  | "PolicyDenied"
  | "Dropped"
  | "Refused"
  | "ReplyDropped"
  | "NoReply"
  | "NotDelivered"
  | "NoTraffic"
  | "ProbeFailed";

/** Pods of one selection may be denied and allowed in turn; a change counts when it has lasted this long. */
const settledMs = 30_000;

/** Judges what was seen by what was meant. `True` is: it is as it was meant. */
export function verdictOf(observed: Result<FlowSummary, HubbleFailure>, action: "Allow" | "Deny"): FlowVerdict {
  if (!observed.ok)
    return { status: "Unknown", reason: "ProbeFailed", message: `${failureText(observed.error)}.`, evidence: "" };
  const { value: seen } = observed;
  const [status, reason, text] = action === "Allow" ? allowed(seen) : denied(seen);
  return { status, reason, message: `${text}.`, evidence: evidenceOf(seen) };
}

type Judgement = readonly [FlowVerdict["status"], FlowReason, string];

function allowed(seen: FlowSummary): Judgement {
  const { droppedMs, passedMs } = lastOf(seen);
  if (droppedMs !== undefined && (passedMs === undefined || passedMs - droppedMs < settledMs))
    return ["False", "PolicyDenied", `${deniedText(seen)}${passedMs === undefined ? "" : "; some of it gets through"}`];
  if (passedMs !== undefined) return arrivalOf(seen);
  if (Object.keys(seen.dropped).length > 0)
    return ["False", "Dropped", `Dropped, and not by a policy: ${reasonsText(seen.dropped)}`];
  return neitherOf(seen);
}

function denied(seen: FlowSummary): Judgement {
  const { droppedMs, passedMs } = lastOf(seen);
  if (passedMs !== undefined && (droppedMs === undefined || droppedMs - passedMs < settledMs)) {
    const audit = seen.audited > 0 ? "; policies are in audit mode, which denies nothing" : "";
    return ["False", "FlowObserved", `Traffic arrives, although it is meant to be denied${audit}`];
  }
  if (droppedMs !== undefined) return ["True", "PolicyDenied", deniedText(seen)];
  if (Object.keys(seen.dropped).length > 0) {
    const text = `Dropped, and not by a policy: ${reasonsText(seen.dropped)}; whether one would deny it is not known`;
    return ["Unknown", "Dropped", text];
  }
  return neitherOf(seen);
}

/** When a policy last dropped something, and when something last got through; an answer proves that something did. */
function lastOf({ lastPolicyDropMs, lastDeliveredMs, lastReplyMs }: FlowSummary): {
  readonly droppedMs: number | undefined;
  readonly passedMs: number | undefined;
} {
  const passed = [lastDeliveredMs, lastReplyMs].filter((atMs) => atMs !== undefined);
  return {
    droppedMs: lastPolicyDropMs,
    passedMs: passed.length === 0 ? undefined : passed.reduce((a, b) => Math.max(a, b)),
  };
}

function arrivalOf(seen: FlowSummary): Judgement {
  if (seen.replies > seen.resets) return ["True", "FlowObserved", "Traffic arrives and is answered"];
  if (seen.resets > 0)
    return ["False", "Refused", `Traffic arrives and is refused: nobody listens on ${portsText(seen.query)}`];
  if (Object.keys(seen.repliesDropped).length > 0)
    return [
      "False",
      "ReplyDropped",
      `Traffic arrives, but the answers are dropped: ${reasonsText(seen.repliesDropped)}${policiesText(seen)}`,
    ];
  return ["Unknown", "NoReply", `Traffic arrives, and no answer was seen${caveat(seen)}`];
}

function neitherOf(seen: FlowSummary): Judgement {
  if (seen.forwarded > 0) {
    const why = "the nodes of the destination may not be seen from here, or what lies between may be down";
    return ["Unknown", "NotDelivered", `Traffic leaves the source and is not seen to arrive: ${why}${caveat(seen)}`];
  }
  const { source, destination } = seen.query;
  const selector = Object.entries(source.labels).map(([key, value]) => `${key}=${value}`);
  const flag = selector.length === 0 ? "" : ` -l ${selector.join(",")}`;
  const what = `No traffic from ${endText(source)} to ${endText(destination)} on ${portsText(seen.query)} was seen`;
  const how = `connect from such a pod (kubectl -n ${source.namespace} get pods${flag}) to such a destination`;
  return ["Unknown", "NoTraffic", `${what}${caveat(seen)}; to make some, ${how}`];
}

function deniedText({ dropped, deniedBy, ...seen }: FlowSummary): string {
  const byPolicy = Object.fromEntries(Object.entries(dropped).filter(([reason]) => isPolicyReason(reason)));
  const text = `Denied by policy: ${reasonsText(byPolicy)}`;
  if (deniedBy.length > 0) return `${text}${policiesText({ deniedBy })}`;
  // Without a name: something selects the pods, and nothing allows this.
  return "POLICY_DENIED" in byPolicy ? `${text}; no policy allows it${caveat(seen)}` : text;
}

/** Whether there may be more than was seen. */
function caveat({ nodesUnavailable, ended }: Pick<FlowSummary, "nodesUnavailable" | "ended">): string {
  if (nodesUnavailable > 0) return " (some nodes could not be asked)";
  return ended === "all" ? "" : " (not everything was read)";
}

function evidenceOf(seen: FlowSummary): string {
  const { window, forwarded, delivered, replies, resets, audited, firstMs, lastMs } = seen;
  const parts: readonly (readonly [number, string])[] = [
    [delivered, "delivered"],
    [forwarded - delivered, "seen on the way"],
    [audited, "audited"],
    [replies, "answers"],
    [resets, "of them resets"],
    ...Object.entries(seen.dropped).map(([reason, count]): readonly [number, string] => [count, `dropped (${reason})`]),
    ...Object.entries(seen.repliesDropped).map(([reason, count]): readonly [number, string] => [
      count,
      `answers dropped (${reason})`,
    ]),
    [seen.ofOtherClusters, "of other clusters"],
    [seen.lostEvents, "events lost"],
    [seen.nodesUnavailable, "nodes not asked"],
  ];
  const counts = parts.filter(([count]) => count > 0).map(([count, what]) => `${count} ${what}`);
  const between =
    firstMs === undefined || lastMs === undefined ? "" : `, between ${moment(firstMs)} and ${moment(lastMs)}`;
  return `${counts.length === 0 ? "nothing" : counts.join(", ")}${between}; looked at ${moment(window.sinceMs)} to ${moment(window.untilMs)}`;
}

function failureText(failure: HubbleFailure): string {
  const { kind, detail } = failure;
  switch (kind) {
    case "unreachable":
      return `Hubble Relay cannot be reached: ${detail}`;
    case "tls":
      return `Hubble Relay and we do not trust each other: ${detail}`;
    case "unauthenticated":
      return `Hubble Relay does not let us in: ${detail}`;
    case "unimplemented":
      return `What answers is not a Hubble Relay: ${detail}`;
    case "deadline":
      return `Hubble Relay did not answer in time: ${detail}`;
    case "invalid":
      return `Hubble Relay cannot be asked this: ${detail}`;
    case "garbled":
      return `Hubble Relay answered nonsense: ${detail}`;
  }
}

const moment = (atMs: number): string => `${new Date(atMs).toISOString().slice(0, 19)}Z`;

/** The names alone, in an order of their own: which was more often changes from look to look. */
const reasonsText = (counts: Readonly<Record<string, number>>): string =>
  Object.keys(counts).sort().slice(0, 5).join(", ");

const policiesText = ({ deniedBy }: Pick<FlowSummary, "deniedBy">): string =>
  deniedBy.length > 0 ? `, by ${deniedBy.join(", ")}` : "";

const endText = ({ cluster, namespace }: FlowEnd): string =>
  cluster === undefined ? namespace : `${cluster}/${namespace}`;

function portsText({ ports, protocols }: FlowQuery): string {
  const names = protocols.length === 0 ? "any protocol" : protocols.join(" or ");
  return ports.length === 0 ? `any port of ${names}` : `port ${ports.join(", ")} of ${names}`;
}

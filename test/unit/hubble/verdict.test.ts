import { describe, expect, test } from "vitest";
import { err, ok } from "../../../src/core/result.ts";
import type { HubbleFailure } from "../../../src/hubble/failure.ts";
import { combineSummaries, type FlowSummary } from "../../../src/hubble/summary.ts";
import { verdictOf } from "../../../src/hubble/verdict.ts";

const nowMs = Date.UTC(2026, 10, 15, 12, 0, 0);
const agoMs = (seconds: number): number => nowMs - seconds * 1000;

const nothing: FlowSummary = {
  query: {
    sinceMs: agoMs(300),
    numberMax: 100,
    source: { cluster: "east", namespace: "shop", labels: { app: "web", tier: "front" } },
    destination: { cluster: "west", namespace: "data", labels: { app: "db" } },
    ports: [5432],
    protocols: ["TCP"],
  },
  window: { sinceMs: agoMs(300), untilMs: nowMs },
  forwarded: 0,
  delivered: 0,
  audited: 0,
  replies: 0,
  resets: 0,
  dropped: {},
  repliesDropped: {},
  deniedBy: [],
  lostEvents: 0,
  nodesUnavailable: 0,
  ofOtherClusters: 0,
  ended: "all",
};
const arrived = { forwarded: 4, delivered: 2, lastDeliveredMs: agoMs(20) };
const answered = { ...arrived, replies: 2, lastReplyMs: agoMs(10) };
const denied = { dropped: { POLICY_DENIED: 3 }, lastPolicyDropMs: agoMs(30) };

const told = (seen: Partial<FlowSummary>, action: "Allow" | "Deny"): string => {
  const { status, reason, message } = verdictOf(ok({ ...nothing, ...seen }), action);
  return `${status} ${reason}: ${message}`;
};

describe("what is meant to be allowed", () => {
  test.each<[string, Partial<FlowSummary>, string]>([
    ["arrived and was answered", answered, "True FlowObserved: Traffic arrives and is answered."],
    [
      "was answered, seen from the source alone",
      { forwarded: 2, replies: 2, lastReplyMs: agoMs(10) },
      "True FlowObserved: Traffic arrives and is answered.",
    ],
    ["was denied by default", denied, "False PolicyDenied: Denied by policy: POLICY_DENIED; no policy allows it."],
    [
      "was denied by name",
      { ...denied, dropped: { POLICY_DENY: 1, FIB_LOOKUP_FAILED: 9 }, deniedBy: ["CiliumNetworkPolicy data/guard"] },
      "False PolicyDenied: Denied by policy: POLICY_DENY, by CiliumNetworkPolicy data/guard.",
    ],
    [
      "was dropped for another reason",
      { dropped: { INVALID_SOURCE_IP: 2, FIB_LOOKUP_FAILED: 1 } },
      "False Dropped: Dropped, and not by a policy: FIB_LOOKUP_FAILED, INVALID_SOURCE_IP.",
    ],
    [
      "arrived and was refused",
      { ...answered, resets: 2 },
      "False Refused: Traffic arrives and is refused: nobody listens on port 5432 of TCP.",
    ],
    [
      "arrived, and the answers were dropped",
      { ...arrived, repliesDropped: { POLICY_DENIED: 2 } },
      "False ReplyDropped: Traffic arrives, but the answers are dropped: POLICY_DENIED.",
    ],
    [
      "arrived and was not answered",
      { ...arrived, ended: "flowsMax" },
      "Unknown NoReply: Traffic arrives, and no answer was seen (not everything was read).",
    ],
    [
      "left and did not arrive",
      { forwarded: 4, nodesUnavailable: 1 },
      "Unknown NotDelivered: Traffic leaves the source and is not seen to arrive: the nodes of the destination may not be seen from here, or what lies between may be down (some nodes could not be asked).",
    ],
    [
      "was not seen at all",
      { nodesUnavailable: 2, ofOtherClusters: 1 },
      "Unknown NoTraffic: No traffic from east/shop to west/data on port 5432 of TCP was seen (some nodes could not be asked); to make some, connect from such a pod (kubectl -n shop get pods -l app=web,tier=front) to such a destination.",
    ],
  ])("%s", (_, seen, text) => {
    expect(told(seen, "Allow")).toBe(text);
  });

  test("is not called reachable while some of it is still denied", () => {
    expect(told({ ...answered, ...denied }, "Allow")).toBe(
      "False PolicyDenied: Denied by policy: POLICY_DENIED; no policy allows it; some of it gets through.",
    );
  });

  test("is called reachable half a minute after the last denial", () => {
    const healed = { ...answered, dropped: { POLICY_DENIED: 3 }, lastPolicyDropMs: agoMs(40) };
    expect(told(healed, "Allow")).toMatch(/^True FlowObserved/);
    expect(told({ ...healed, lastPolicyDropMs: agoMs(39) }, "Allow")).toMatch(/^False PolicyDenied/);
  });
});

describe("what is meant to be denied", () => {
  test.each<[string, Partial<FlowSummary>, string]>([
    ["was denied", denied, "True PolicyDenied: Denied by policy: POLICY_DENIED; no policy allows it."],
    [
      "got through and was answered",
      answered,
      "False FlowObserved: Traffic arrives, although it is meant to be denied.",
    ],
    [
      "got through because policies are only audited",
      { ...arrived, audited: 1 },
      "False FlowObserved: Traffic arrives, although it is meant to be denied; policies are in audit mode, which denies nothing.",
    ],
    [
      "was dropped for another reason",
      { dropped: { FIB_LOOKUP_FAILED: 1 } },
      "Unknown Dropped: Dropped, and not by a policy: FIB_LOOKUP_FAILED; whether one would deny it is not known.",
    ],
  ])("%s", (_, seen, text) => {
    expect(told(seen, "Deny")).toBe(text);
  });

  test("nothing seen proves nothing", () => {
    expect(told({}, "Deny")).toMatch(/^Unknown NoTraffic: /);
    expect(told({ forwarded: 1 }, "Deny")).toMatch(/^Unknown NotDelivered: /);
  });

  test("is not called denied while some of it still gets through", () => {
    const now = { ...answered, dropped: { POLICY_DENY: 3 }, lastPolicyDropMs: agoMs(0) };
    expect(told(now, "Deny")).toMatch(/^False FlowObserved/);
    expect(told({ ...arrived, lastDeliveredMs: agoMs(60), ...denied }, "Deny")).toMatch(/^True PolicyDenied/);
  });
});

describe("what is said", () => {
  const more = { ...answered, ...denied, lostEvents: 7, nodesUnavailable: 1, firstMs: agoMs(30), lastMs: agoMs(10) };

  test("stays the same while only numbers and moments change", () => {
    const later = { ...more, delivered: 9, dropped: { POLICY_DENIED: 5 }, lastPolicyDropMs: agoMs(5), lostEvents: 9 };
    expect(told(later, "Allow")).toBe(told(more, "Allow"));
  });

  test("has its numbers and moments beside it", () => {
    expect(verdictOf(ok({ ...nothing, ...more }), "Allow").evidence).toBe(
      "2 delivered, 2 seen on the way, 2 answers, 3 dropped (POLICY_DENIED), 7 events lost, 1 nodes not asked, between 2026-11-15T11:59:30Z and 2026-11-15T11:59:50Z; looked at 2026-11-15T11:55:00Z to 2026-11-15T12:00:00Z",
    );
    expect(verdictOf(ok(nothing), "Allow").evidence).toBe(
      "nothing; looked at 2026-11-15T11:55:00Z to 2026-11-15T12:00:00Z",
    );
  });
});

test("what two relays saw is one story: the source's drops and the destination's arrivals", () => {
  const atSource = {
    ...nothing,
    forwarded: 1,
    ...denied,
    deniedBy: ["CiliumNetworkPolicy shop/out"],
    firstMs: 5,
    lastMs: 9,
  };
  const atTarget = { ...nothing, ...answered, dropped: { POLICY_DENIED: 1, TTL_EXCEEDED: 1 }, firstMs: 7, lastMs: 8 };
  expect(combineSummaries(atSource, atTarget, { ...nothing, ended: "deadline" })).toEqual({
    ...nothing,
    ...answered,
    forwarded: 5,
    dropped: { POLICY_DENIED: 4, TTL_EXCEEDED: 1 },
    deniedBy: ["CiliumNetworkPolicy shop/out"],
    lastPolicyDropMs: denied.lastPolicyDropMs,
    firstMs: 5,
    lastMs: 9,
    ended: "deadline",
  });
});

test.each<[HubbleFailure["kind"], string]>([
  ["unreachable", "Hubble Relay cannot be reached: why."],
  ["tls", "Hubble Relay and we do not trust each other: why."],
  ["unauthenticated", "Hubble Relay does not let us in: why."],
  ["unimplemented", "What answers is not a Hubble Relay: why."],
  ["deadline", "Hubble Relay did not answer in time: why."],
  ["invalid", "Hubble Relay cannot be asked this: why."],
  ["garbled", "Hubble Relay answered nonsense: why."],
])("a probe that failed (%s) leaves everything open", (kind, message) => {
  const open = { status: "Unknown", reason: "ProbeFailed", message, evidence: "" };
  for (const action of ["Allow", "Deny"] as const)
    expect(verdictOf(err({ kind, detail: "why" }), action)).toEqual(open);
});

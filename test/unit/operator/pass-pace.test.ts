// What a pass does of its list while newer plans are made.

import { expect, test } from "vitest";
import type { Operation, TargetPlan } from "../../../src/core/plan.ts";
import { LOCAL } from "../../../src/core/world.ts";
import { Pace } from "../../../src/operator/pace.ts";
import { passPace } from "../../../src/operator/pass-pace.ts";
import { VirtualClock } from "../../../src/sim/virtual-clock.ts";

const write = (name: string, resourceVersion = "1"): Operation => ({
  target: LOCAL,
  action: "update",
  kind: "Peer",
  name,
  intents: [],
  reason: "Test",
  changes: [],
  uid: name,
  resourceVersion,
  claims: { before: [], after: [] },
});

/** A pass over a list; the latest plan can be exchanged. */
function pass(operations: readonly Operation[]) {
  const target: TargetPlan = { target: LOCAL, gap: undefined, desired: [], items: [], intervalMs: 200 };
  const plan = { latest: operations };
  const pace = passPace(new Pace(new VirtualClock()), {
    target: LOCAL,
    targets: [target],
    latest: () => plan.latest,
    signal: new AbortController().signal,
  });
  if (pace === undefined) throw new Error("a target with an interval has a pace");
  return { plan, isNext: pace.isNext };
}

test("a pass goes on while the latest plan would do the same next, whatever it would do later", () => {
  const [a, b] = [write("a"), write("b")];
  const { plan, isNext } = pass([a, b]);
  plan.latest = [write("a"), write("b"), write("c")];
  expect(isNext(a)).toBe(true);
  plan.latest = [write("b"), write("c"), write("d")];
  expect(isNext(b)).toBe(true);
});

test("it ends when something else has to come first, when the object changed, and when nothing is left to do", () => {
  const [a, b] = [write("a"), write("b")];
  for (const latest of [[write("0"), write("b")], [write("b", "2")], []]) {
    const { plan, isNext } = pass([a, b]);
    plan.latest = latest;
    expect(isNext(b)).toBe(false);
  }
});

test("what it has done or could not do does not stop it, in a plan that was made meanwhile", () => {
  const [a, b, c] = [write("a"), write("b"), write("c")];
  const { plan, isNext } = pass([a, b, c]);
  plan.latest = [write("a"), write("b"), write("c"), write("d")];
  expect(isNext(c)).toBe(true);
});

test("each further one is looked up in the latest plan, not only the first after it was made", () => {
  const [a, b, c] = [write("a"), write("b"), write("c")];
  const { plan, isNext } = pass([a, b, c]);
  plan.latest = [write("a"), write("c"), write("b")];
  expect([isNext(a), isNext(b)]).toEqual([true, false]);
});

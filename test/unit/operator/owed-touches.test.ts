import { expect, test } from "vitest";
import type { Item, Operation, TargetPlan } from "../../../src/core/plan.ts";
import { LOCAL } from "../../../src/core/world.ts";
import { OwedTouches } from "../../../src/operator/owed-touches.ts";

const operation = (action: Operation["action"], name: string): Operation => ({
  target: LOCAL,
  action,
  kind: "Peer",
  name,
  intents: [],
  reason: "Test",
  changes: [],
  uid: `uid-of-${name}`,
  resourceVersion: "1",
  claims: { before: [], after: [] },
});

/** A target with one object on it. */
const holding = (name: string, uid = `uid-of-${name}`, gap?: TargetPlan["gap"]): TargetPlan => ({
  target: LOCAL,
  gap,
  desired: [],
  items: [{ name, uid, resourceVersion: "7" } as Item],
});

const [surplus, touch] = [operation("delete", "copy"), operation("touch", "stays")];
const due = { ...touch, resourceVersion: "7" };

test("a touch that failed after its delete is due until it is made", () => {
  const owed = new OwedTouches();
  owed.note(LOCAL, [surplus, touch], new Set([surplus]));
  expect(owed.added(holding("stays"), [])).toEqual([due]);
  owed.note(LOCAL, [touch], new Set());
  expect(owed.added(holding("stays"), [])).toEqual([due]);
  owed.note(LOCAL, [touch], new Set([touch]));
  expect(owed.added(holding("stays"), [])).toEqual([]);
});

test("nothing is owed when nothing was deleted: the next plan says all of it again", () => {
  const owed = new OwedTouches();
  owed.note(LOCAL, [surplus, touch], new Set());
  expect(owed.added(holding("stays"), [])).toEqual([]);
});

test("nor to an object that is gone, was made anew, is out of sight, or is written anyway", () => {
  const owed = new OwedTouches();
  owed.note(LOCAL, [surplus, touch], new Set([surplus]));
  expect(owed.added(holding("other"), [])).toEqual([]);
  expect(owed.added(holding("stays", "another"), [])).toEqual([]);
  const gap = { reason: "TargetStale", detail: "away" };
  expect(owed.added(holding("stays", "uid-of-stays", gap), [])).toEqual([]);
  const update = operation("update", "stays");
  expect(owed.added(holding("stays"), [update])).toEqual([update]);
});

import { expect, test } from "vitest";
import type { Operation } from "../../../src/core/plan.ts";
import { LOCAL } from "../../../src/core/world.ts";
import { OwedWrites } from "../../../src/operator/owed-writes.ts";
import { cidr } from "../../support/engine.ts";

const operation = (
  action: Operation["action"],
  name: string,
  claims: { before?: string[]; after?: string[] } = {},
  reason = "Test",
): Operation => ({
  target: LOCAL,
  action,
  kind: "Peer",
  name,
  intents: [],
  reason,
  changes: [],
  uid: action === "create" ? undefined : `uid-of-${name}`,
  resourceVersion: "1",
  claims: { before: (claims.before ?? []).map(cidr), after: (claims.after ?? []).map(cidr) },
});

const [surplus, touch] = [operation("delete", "copy", {}, "SurplusHolder"), operation("touch", "stays")];

/** What is owed after a pass in which only some of the operations were made. */
function owedAfter(operations: readonly Operation[], ...done: readonly Operation[]): readonly unknown[] {
  const owed = new OwedWrites();
  pass(owed, operations, ...done);
  return [...owed.of(LOCAL)];
}

/** A pass in which only some of the operations are made, and no others tried. */
function pass(owed: OwedWrites, operations: readonly Operation[], ...done: readonly Operation[]): void {
  owed.begin(LOCAL, operations, { tried: new Set(done), done: new Set(done) });
  owed.end(LOCAL);
}

test("a touch that failed after its delete is due until it is made", () => {
  const owed = new OwedWrites();
  pass(owed, [surplus, touch], surplus);
  expect([...owed.of(LOCAL)]).toEqual([["stays uid-of-stays", "touch"]]);
  pass(owed, [touch]);
  expect([...owed.of(LOCAL)]).toEqual([["stays uid-of-stays", "touch"]]);
  pass(owed, [touch], touch);
  expect([...owed.of(LOCAL)]).toEqual([]);
});

test("nothing is owed when nothing was tried: the next plan says all of it again", () => {
  expect(owedAfter([surplus, touch])).toEqual([]);
});

test("a delete that failed may have been made: its touch is due all the same", () => {
  const owed = new OwedWrites();
  owed.begin(LOCAL, [surplus, touch], { tried: new Set([surplus, touch]), done: new Set() });
  owed.end(LOCAL);
  expect([...owed.of(LOCAL)]).toEqual([["stays uid-of-stays", "touch"]]);
  pass(owed, [touch], touch);
  expect([...owed.of(LOCAL)]).toEqual([]);
});

test("a survivor that is written anyway is owed that write when its surplus holder is gone", () => {
  const [survivor, other] = [operation("update", "stays"), operation("update", "other")];
  expect(owedAfter([surplus, survivor, other], surplus)).toEqual([["stays uid-of-stays", "touch"]]);
});

test("whoever was to take a range that was given up is owed it, and whoever takes another one is not", () => {
  const giver = operation("update", "giver", { before: ["10.0.0.0/24", "10.0.1.0/24"], after: ["10.0.0.0/24"] });
  const taker = operation("create", "taker", { after: ["10.0.1.0/25"] });
  const other = operation("create", "other", { after: ["10.0.2.0/24"] });
  expect(owedAfter([giver, taker, other], giver)).toEqual([["taker ", "write"]]);
  expect(owedAfter([giver, taker, other])).toEqual([]);
});

test("a plan that is made in the course of a pass knows what the pass is just getting to", () => {
  const owed = new OwedWrites();
  const done = new Set<Operation>();
  owed.begin(LOCAL, [surplus, touch], { tried: done, done });
  expect([...owed.of(LOCAL)]).toEqual([]);
  done.add(surplus);
  expect([...owed.of(LOCAL)]).toEqual([["stays uid-of-stays", "touch"]]);
  done.add(touch);
  expect([...owed.of(LOCAL)]).toEqual([]);
});

import { describe, expect, test } from "vitest";
import { diff } from "../../../src/core/diff.ts";
import type { Item } from "../../../src/core/plan.ts";
import { applyPolicy, defaultPolicy, type Doubt } from "../../../src/core/policy.ts";
import { desired, item, target } from "../../support/engine.ts";

const doubt: Doubt = {
  groupOf: () => "edge",
  doubted: new Set(["Gone"]),
  sinceMs: () => 1_000,
  running: () => false,
  expired: () => false,
};
const things = (count: number): Item[] => Array.from({ length: count }, (_, index) => item(String(index)));
const deletes = (count: number, of: number, more: Partial<Doubt> = {}): number => {
  const all = things(of);
  const wanted = all.slice(count).map(({ slot }) => desired(slot));
  return diff(applyPolicy(target(wanted, all), defaultPolicy, { ...doubt, ...more })).operations.length;
};

describe("applyPolicy", () => {
  test("upsert only: nothing is deleted, and the hold says why", () => {
    const plan = applyPolicy(target([], [item("a")]), { ...defaultPolicy, upsertOnly: true }, doubt);
    expect(diff(plan)).toMatchObject({ operations: [], holds: [{ reason: "UpsertOnly" }] });
  });

  test("a few deletes pass, however large their share", () => {
    expect(deletes(9, 9)).toBe(9);
  });

  test("many deletes pass while they are less than half", () => {
    expect(deletes(49, 100)).toBe(49);
  });

  test("ten or more, and half of a group, are held", () => {
    expect(deletes(10, 20)).toBe(0);
    expect(deletes(100, 100)).toBe(0);
  });

  test("held until the grace period ends", () => {
    expect(deletes(10, 20, { expired: () => true })).toBe(10);
  });

  test("what was held before stays held until then, though it is no longer much", () => {
    expect(deletes(3, 20, { running: () => true })).toBe(0);
    expect(deletes(3, 20, { running: () => true, expired: () => true })).toBe(3);
  });

  test("deletes that the user asked for are not doubted", () => {
    expect(deletes(20, 20, { doubted: new Set(["SomethingElse"]) })).toBe(20);
  });
});

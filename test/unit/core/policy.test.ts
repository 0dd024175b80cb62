import { describe, expect, test } from "vitest";
import { diff } from "../../../src/core/diff.ts";
import type { Item } from "../../../src/core/plan.ts";
import { applyPolicy, defaultPolicy, type Doubt } from "../../../src/core/policy.ts";
import { desired, item, target } from "../../support/engine.ts";

const doubt: Doubt = {
  groupOf: () => "edge",
  doubted: new Set(["Gone"]),
  nowMs: 1_000,
  sinceMs: () => undefined,
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
    expect(deletes(3, 20, { sinceMs: () => 500 })).toBe(0);
    expect(deletes(3, 20, { sinceMs: () => 500, expired: (sinceMs) => sinceMs === 500 })).toBe(3);
  });

  test("the hold says when the doubt began", () => {
    const all = things(10);
    const began = (more: Partial<Doubt>) =>
      applyPolicy(target([], all), defaultPolicy, { ...doubt, ...more }).items.map(({ standing }) =>
        standing.owner === "us" && standing.ifUnwanted.do === "hold" ? standing.ifUnwanted.graceSinceMs : undefined,
      );
    expect(new Set(began({}))).toEqual(new Set([1_000]));
    expect(new Set(began({ sinceMs: () => 500 }))).toEqual(new Set([500]));
  });

  test("deletes that the user asked for are not doubted", () => {
    expect(deletes(20, 20, { doubted: new Set(["SomethingElse"]) })).toBe(20);
  });
});

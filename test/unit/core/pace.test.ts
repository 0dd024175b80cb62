import { expect, test } from "vitest";
import { durationMs, joinedWith } from "../../../src/core/pace.ts";
import type { Item, TargetPlan } from "../../../src/core/plan.ts";
import type { ClusterId } from "../../../src/core/world.ts";

const id = (name: string): ClusterId => name as unknown as ClusterId;

/** A target with an object for each party; those that go are not wanted any more. */
function target(name: string, parties: readonly string[], going: readonly string[] = []): TargetPlan {
  const items = parties.map((party): Item => {
    const ifUnwanted = going.includes(party)
      ? ({ do: "delete", reason: "Test" } as const)
      : ({ do: "hold", reason: "Test", detail: "" } as const);
    const unknown = { uid: undefined, resourceVersion: undefined, origin: undefined, intent: undefined };
    const empty = { claims: [], labels: {}, fields: {} };
    const standing = { owner: "us", adopted: false, ifUnwanted } as const;
    return { kind: "Peer", name: party, slot: party, party, standing, ...unknown, ...empty };
  });
  return { target: id(name), gap: undefined, desired: [], items, intervalMs: 200 };
}

const names = (joined: ReadonlySet<ClusterId>): readonly string[] => [...joined];

test("two targets are joined if each holds something that stands for the other", () => {
  const plans = [target("a", ["b", "c"]), target("b", ["a"]), target("c", [])];
  expect(names(joinedWith(id("a"), plans))).toEqual(["b"]);
  expect(names(joinedWith(id("c"), plans))).toEqual([]);
});

test("what is about to go joins nobody: a mesh that is deleted need not be spared", () => {
  const plans = [target("a", ["b"], ["b"]), target("b", ["a"], ["a"])];
  expect(names(joinedWith(id("a"), plans))).toEqual([]);
});

test("a plan takes as long as its busiest target", () => {
  const plans = [target("a", []), target("b", [])];
  const writes = (a: number, b: number) =>
    new Map([
      [id("a"), a],
      [id("b"), b],
    ]);
  expect(durationMs(plans, writes(1, 0))).toBe(0);
  expect(durationMs(plans, writes(141, 20))).toBe(28_000);
  expect(durationMs([{ ...target("a", []), intervalMs: 0 }], writes(141, 0))).toBe(0);
});

test("many targets that are joined wait for each other", () => {
  const all = ["a", "b", "c", "d", "e", "f", "g", "h"];
  const plans = all.map((name) =>
    target(
      name,
      all.filter((other) => other !== name),
    ),
  );
  expect(durationMs(plans, new Map(all.map((name) => [id(name), 11])))).toBe(4_350);
});

test("two targets that are joined are as far apart as the slower one demands", () => {
  const plans = [target("a", ["b"]), { ...target("b", ["a"]), intervalMs: 1_000 }];
  const writes = new Map([
    [id("a"), 11],
    [id("b"), 1],
  ]);
  expect(durationMs(plans, writes)).toBe(250 + 10 * 500);
});

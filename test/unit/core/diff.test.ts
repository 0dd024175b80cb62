import { describe, expect, test } from "vitest";
import { diff } from "../../../src/core/diff.ts";
import type { IfUnwanted, TargetPlan } from "../../../src/core/plan.ts";
import { mergePlans } from "../../../src/core/plan.ts";
import { desired, item, target } from "../../support/engine.ts";

const lines = (plan: TargetPlan): string[] =>
  diff(plan).operations.map(({ action, name, reason }) => `${action} ${name} ${reason}`);
const held: IfUnwanted = { do: "hold", reason: "Stale", detail: "connect ETIMEDOUT" };

describe("diff", () => {
  test("nothing to do where everything is in place", () => {
    const result = diff(target([desired("a", ["10.0.0.0/24"])], [item("a", ["10.0.0.0/24"])]));
    expect(result).toMatchObject({ operations: [], holds: [], unchanged: 1 });
  });

  test("a list in another order is no difference", () => {
    const wanted = desired("a", ["10.0.0.0/24", "10.0.1.0/24"]);
    expect(lines(target([wanted], [item("a", ["10.0.1.0/24", "10.0.0.0/24"])]))).toEqual([]);
  });

  test("the object that fills a slot keeps its name", () => {
    const plan = target([desired("a", ["10.0.0.0/24"])], [item("a", [], { name: "called-otherwise" })]);
    expect(lines(plan)).toEqual(["update called-otherwise RangesChanged"]);
    expect([...diff(plan).names.values()]).toEqual(["called-otherwise"]);
  });

  test("the same origin with another slot is updated in place", () => {
    const before = item("old", [], { origin: "origin-new" });
    expect(lines(target([desired("new")], [before]))).toEqual(["update thing-old SlotChanged"]);
  });

  test("a surplus holder is vacated first, and the survivor touched after", () => {
    const plan = target([desired("a")], [item("a"), item("a", [], { name: "anchor-a" })]);
    expect(lines(plan)).toEqual(["delete anchor-a SurplusHolder", "touch thing-a SurplusHolderRemoved"]);
  });

  test("a survivor that changes anyway needs no touch", () => {
    const plan = target([desired("a", ["10.0.0.0/24"])], [item("a"), item("a", [], { name: "anchor-a" })]);
    expect(lines(plan)).toEqual(["delete anchor-a SurplusHolder", "update thing-a RangesChanged"]);
  });

  test("what is held is not deleted, and the hold names it", () => {
    const plan = target([], [item("a", [], { standing: { owner: "us", ifUnwanted: held, adopted: false } })]);
    expect(diff(plan)).toMatchObject({
      operations: [],
      holds: [{ reason: "Stale", detail: "connect ETIMEDOUT", objects: ["thing-a"] }],
    });
  });

  test("what is others' as well is not deleted: it is left as they shall have it", () => {
    const leave = { labels: { owner: "us" }, fields: { "spec.slot": null } };
    const shared = item("a", [], {
      fields: { "spec.slot": "a" },
      intents: ["ns/one", "ns/two"],
      standing: { owner: "us", adopted: false, ifUnwanted: { do: "delete", reason: "Released", leave } },
    });
    expect(diff(target([], [shared])).operations).toMatchObject([
      {
        action: "update",
        releases: true,
        reason: "Released",
        name: "thing-a",
        intents: ["ns/one", "ns/two"],
        changes: [{ path: "spec.slot", from: "a", to: null }],
        content: leave,
        uid: "uid-a",
        resourceVersion: "1",
      },
    ]);
  });

  test("two kinds may have objects of one name", () => {
    const wanted = [desired("a", [], { kind: "Thing", name: "n" }), desired("b", [], { kind: "Other", name: "n" })];
    expect(
      diff(target(wanted, []))
        .operations.map(({ kind, name }) => `${kind} ${name}`)
        .sort(),
    ).toEqual(["Other n", "Thing n"]);
  });

  test("what is not ours is never an operation's object, whatever is desired", () => {
    const foreign = item("a", ["10.0.0.0/24"], { standing: { owner: "other", who: "somebody" } });
    expect(lines(target([], [foreign]))).toEqual([]);
    expect(lines(target([desired("a", ["10.0.0.0/24"])], [foreign]))).toEqual([
      expect.stringMatching(/^create thing-a-[0-9a-f]{16} Wanted$/),
    ]);
  });

  test("an adopted object with the same content is left without a write, with other content it gets our labels", () => {
    const standing = { owner: "us", ifUnwanted: held, adopted: true } as const;
    expect(lines(target([desired("a")], [item("a", [], { labels: {}, standing })]))).toEqual([]);
    const [operation] = diff(
      target([desired("a", ["10.0.0.0/24"])], [item("a", [], { labels: {}, standing })]),
    ).operations;
    expect(operation?.changes.map(({ path }) => path)).toEqual(["spec.ranges", "metadata.labels.owner"]);
  });

  test("a label of ours that is no longer wanted is a difference; somebody else's is not", () => {
    const labels = { owner: "us", "causeway.dev/old": "x", "example.org/theirs": "y" };
    const [operation] = diff(target([desired("a")], [item("a", [], { labels })])).operations;
    expect(operation?.changes).toEqual([{ path: "metadata.labels.causeway.dev/old", from: "x", to: null }]);
    expect(operation?.reason).toBe("LabelsChanged");
  });

  test("two things that want one name get two names, whichever comes first in the list", () => {
    const one = desired("a", [], { name: "x", origin: "1" });
    const two = desired("b", [], { name: "x", origin: "2" });
    const names = (plan: TargetPlan) => new Map([...diff(plan).names].map(([{ slot }, name]) => [slot, name]));
    expect(names(target([one, two], []))).toEqual(names(target([two, one], [])));
    expect(names(target([one, two], [])).get("a")).toBe("x");
  });

  test("a target that is not synced is not written to, and everything of ours there is held", () => {
    const gap = { reason: "TargetStale", detail: "connect ETIMEDOUT" };
    expect(diff({ ...target([desired("b")], [item("a")]), gap })).toMatchObject({
      operations: [],
      holds: [{ ...gap, objects: ["thing-a"] }],
    });
  });
});

describe("the order of operations", () => {
  test("whoever gives up a range is written before whoever takes it", () => {
    const plan = target(
      [desired("a", ["10.0.1.0/24"]), desired("b", ["10.0.2.0/24"])],
      [item("a", ["10.0.2.0/24"]), item("b", ["10.0.3.0/24"])],
    );
    expect(lines(plan)).toEqual(["update thing-a RangesChanged", "update thing-b RangesChanged"]);
    const mirrored = target(
      [desired("a", ["10.0.3.0/24"]), desired("b", ["10.0.1.0/24"])],
      [item("a", ["10.0.2.0/24"]), item("b", ["10.0.3.0/24"])],
    );
    expect(lines(mirrored)).toEqual(["update thing-b RangesChanged", "update thing-a RangesChanged"]);
  });

  test("a swap is broken by one narrowing update", () => {
    const plan = target(
      [desired("a", ["10.1.0.0/24", "10.0.2.0/32"]), desired("b", ["10.2.0.0/24", "10.0.1.0/32"])],
      [item("a", ["10.1.0.0/24", "10.0.1.0/32"]), item("b", ["10.2.0.0/24", "10.0.2.0/32"])],
    );
    const { operations } = diff(plan);
    expect(operations.map(({ name, reason, content }) => [name, reason, content?.fields["spec.ranges"]])).toEqual([
      ["thing-a", "RangeReleased", ["10.1.0.0/24"]],
      ["thing-b", "RangesChanged", ["10.2.0.0/24", "10.0.1.0/32"]],
      ["thing-a", "RangesChanged", ["10.1.0.0/24", "10.0.2.0/32"]],
    ]);
  });

  test("a delete goes first when something takes its range, and last when nothing does", () => {
    const plan = target(
      [desired("new", ["10.0.0.0/24"])],
      [item("old", ["10.0.0.0/24"]), item("other", ["10.0.9.0/24"])],
    );
    expect(lines(plan)).toEqual(["delete thing-old Gone", "create thing-new Wanted", "delete thing-other Gone"]);
  });

  test("what may not be there goes before anything else is written, and what only gives up ranges before what is new", () => {
    const ifUnwanted = { do: "delete", reason: "Forbidden", first: true } as const;
    const plan = target(
      [desired("new", ["10.0.0.0/24"]), desired("wide", ["10.0.1.0/24"])],
      [
        item("wide", ["10.0.1.0/24", "10.0.2.0/24"]),
        item("bad", ["10.0.9.0/24"], { standing: { owner: "us", adopted: false, ifUnwanted } }),
        item("old"),
      ],
    );
    expect(lines(plan)).toEqual([
      "delete thing-bad Forbidden",
      "update thing-wide RangesChanged",
      "create thing-new Wanted",
      "delete thing-old Gone",
    ]);
  });

  test("a survivor is written or touched directly after its surplus holder goes, whatever else is to be written", () => {
    const many = Array.from({ length: 5 }, (_, index) => desired(`n${index}`, [`10.0.${index}.0/24`]));
    const plan = target(
      [desired("k"), desired("w", ["10.1.0.0/24"]), ...many],
      [item("k"), item("k", [], { name: "copy-k" }), item("w"), item("w", [], { name: "copy-w" })],
    );
    expect(lines(plan).slice(0, 5)).toEqual([
      "delete copy-k SurplusHolder",
      "touch thing-k SurplusHolderRemoved",
      "delete copy-w SurplusHolder",
      "update thing-w RangesChanged",
      "create thing-n0 Wanted",
    ]);
  });

  test("whoever stays in a slot that another one leaves is touched before the next slot is left", () => {
    const keeps = { owner: "us", ifUnwanted: held, adopted: false } as const;
    const plan = target(
      [],
      [
        item("a"),
        item("a", [], { name: "held-a", standing: keeps }),
        item("b"),
        item("b", [], { name: "held-b", standing: keeps }),
      ],
    );
    expect(lines(plan)).toEqual([
      "delete thing-a Gone",
      "touch held-a SurplusHolderRemoved",
      "delete thing-b Gone",
      "touch held-b SurplusHolderRemoved",
    ]);
  });

  test("a range is taken directly after the last that gave it up, not when the name of its taker comes up", () => {
    const many = Array.from({ length: 5 }, (_, index) => desired(`n${index}`, [`10.1.${index}.0/24`]));
    const plan = target(
      [desired("a", ["10.0.0.0/24"]), ...many, desired("z", ["10.0.9.0/24", "10.96.0.0/16"])],
      [
        item("a", ["10.0.0.0/24", "10.96.0.0/17"]),
        item("z", ["10.0.9.0/24"]),
        item("old", ["10.96.128.0/17"]),
        item("x", ["10.0.8.0/24"]),
      ],
    );
    expect(lines(plan).slice(0, 4)).toEqual([
      "update thing-a RangesChanged",
      "delete thing-old Gone",
      "update thing-z RangesChanged",
      "create thing-n0 Wanted",
    ]);
    expect(lines(plan).at(-1)).toBe("delete thing-x Gone");
  });

  test("what may not be there goes before anything else, also before those that take its ranges", () => {
    const standing = {
      owner: "us",
      adopted: false,
      ifUnwanted: { do: "delete", reason: "Forbidden", first: true },
    } as const;
    const plan = target(
      [desired("a"), desired("b", ["10.0.1.0/24"])],
      [
        item("a"),
        item("a", [], { name: "copy-a" }),
        item("x", ["10.0.1.0/24"], { standing }),
        item("y", ["10.0.2.0/24"], { standing }),
      ],
    );
    expect(lines(plan)).toEqual([
      "delete thing-x Forbidden",
      "delete thing-y Forbidden",
      "create thing-b Wanted",
      "delete copy-a SurplusHolder",
      "touch thing-a SurplusHolderRemoved",
    ]);
  });

  test("whoever is owed a write gets it first: a touch, or the write it needs anyway with those that it waits for", () => {
    const plan = target(
      [desired("a", ["10.0.1.0/24"]), desired("k"), desired("y"), desired("z", ["10.0.2.0/24"])],
      [item("k"), item("y"), item("z"), item("old", ["10.0.2.0/24"])],
    );
    const owed = new Map([
      ["thing-k uid-k", "touch"],
      ["thing-y uid-y", "write"],
      ["thing-z uid-z", "write"],
      ["thing-a another", "write"],
    ] as const);
    expect(diff(plan, owed).operations.map(({ action, name }) => `${action} ${name}`)).toEqual([
      "touch thing-k",
      "delete thing-old",
      "update thing-z",
      "create thing-a",
    ]);
    expect(diff(plan, owed).unchanged).toBe(1);
  });

  test("a cycle through a slot with a surplus holder deletes it once", () => {
    const plan = target(
      [desired("a", ["10.0.2.0/32"]), desired("b", ["10.0.1.0/32"])],
      [item("a", ["10.0.1.0/32"]), item("a", [], { name: "copy-a" }), item("b", ["10.0.2.0/32"])],
    );
    expect(lines(plan)).toEqual([
      "delete copy-a SurplusHolder",
      "update thing-a RangeReleased",
      "update thing-b RangesChanged",
      "update thing-a RangesChanged",
    ]);
  });

  test("nested ranges count as the same", () => {
    const plan = target([desired("new", ["10.0.0.128/25"])], [item("old", ["10.0.0.0/24"])]);
    expect(lines(plan)).toEqual(["delete thing-old Gone", "create thing-new Wanted"]);
  });

  test("a renumbering of 10,000 things is one chain, written from its end", () => {
    const count = 10_000;
    const address = (index: number) => `10.${index >> 16}.${(index >> 8) & 255}.${index & 255}/32`;
    const slots = Array.from({ length: count }, (_, index) => String(index).padStart(5, "0"));
    const plan = target(
      slots.map((slot, index) => desired(slot, [address(index + 1)])),
      slots.map((slot, index) => item(slot, [address(index)])),
    );
    const { operations } = diff(plan);
    expect(operations).toHaveLength(count);
    expect(operations[0]?.name).toBe("thing-09999");
    expect(operations.at(-1)?.name).toBe("thing-00000");
  });
});

describe("mergePlans", () => {
  test("a slot on a target has one owner: the first provider that wants it", () => {
    const first = { targets: [target([desired("a")], [item("a")])], diagnostics: [] };
    const second = { targets: [target([desired("a", [], { because: "Second" }), desired("b")], [])], diagnostics: [] };
    const [merged] = mergePlans([first, second]).targets;
    expect(merged?.desired.map(({ slot, because }) => [slot, because])).toEqual([
      ["a", "Wanted"],
      ["b", "Wanted"],
    ]);
  });
});

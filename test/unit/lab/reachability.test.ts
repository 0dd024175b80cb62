import { describe, expect, test } from "vitest";
import { rowsOf, worstRows } from "../../../src/lab/reachability.ts";
import type { Result } from "../../../src/lab/scenario.ts";
import { madeUp } from "./results.ts";

type Changes = Result["timeline"][string];

const open: Changes = [
  [0, true],
  [900, true],
];
const rowOf = (changes: Changes) => rowsOf({ timeline: { "a1>b1": changes } })[0];
const timelineOf = (...pairs: readonly string[]): Result["timeline"] =>
  Object.fromEntries(pairs.map((pair) => [pair, open]));

describe("rowsOf", () => {
  test("a pair, its group, the time it was pinged and its gaps", () => {
    expect(rowsOf(madeUp())[1]).toEqual({
      pair: "a1>b1",
      group: "a → b",
      fromMs: 1_000,
      toMs: 10_000,
      gaps: [
        { fromMs: 1_000, toMs: 3_000 },
        { fromMs: 5_000, toMs: 5_100 },
      ],
      gapMs: 100,
    });
  });

  test("pairs inside a cluster come first, then both ways between two clusters, numbers by their value", () => {
    const pairs = ["c1>a1", "a10>b1", "a2>b1", "b1>a2", "a1>c1", "b2>b1", "a2>a10", "b1>c1", "a1>service", "a2>b1 (2)"];
    expect(rowsOf({ timeline: timelineOf(...pairs) }).map(({ group, pair }) => `${group}: ${pair}`)).toEqual([
      "inside a: a2>a10",
      "inside b: b2>b1",
      "a → b: a2>b1",
      "a → b: a2>b1 (2)",
      "a → b: a10>b1",
      "b → a: b1>a2",
      "a → c: a1>c1",
      "c → a: c1>a1",
      "a → service: a1>service",
      "b → c: b1>c1",
    ]);
  });

  test("a gap at the end lasts until after the last ping", () => {
    const changes: Changes = [
      [0, true],
      [500, false],
      [900, false],
    ];
    expect(rowOf(changes)).toMatchObject({ gaps: [{ fromMs: 500, toMs: 1_000 }], gapMs: 500, toMs: 1_000 });
  });

  test("a single lost ping at the end is a gap", () => {
    const changes: Changes = [
      [0, true],
      [900, false],
      [900, false],
    ];
    expect(rowOf(changes)).toMatchObject({ gaps: [{ fromMs: 900, toMs: 1_000 }], gapMs: 100, toMs: 1_000 });
  });

  test("a pair that was never open has no longest gap: all of it is one", () => {
    const changes: Changes = [
      [0, false],
      [900, false],
    ];
    expect(rowOf(changes)).toMatchObject({ gaps: [{ fromMs: 0, toMs: 1_000 }], gapMs: undefined });
  });

  test("a pair that no ping was sent for is no row", () => {
    expect(rowOf([])).toBeUndefined();
  });
});

describe("worstRows", () => {
  test("keeps the pairs that lost most after they were open, in their order", () => {
    const slowToOpen: Changes = [
      [0, false],
      [800, true],
      [900, true],
    ];
    const lost: Changes = [
      [0, true],
      [400, false],
      [500, true],
      [900, true],
    ];
    const never: Changes = [
      [0, false],
      [900, false],
    ];
    const rows = rowsOf({ timeline: { "a1>b1": slowToOpen, "a1>b2": lost, "a1>b3": open, "a1>b4": never } });
    expect(worstRows(rows, 2).map(({ pair }) => pair)).toEqual(["a1>b2", "a1>b4"]);
    expect(worstRows(rows, 9)).toEqual(rows);
  });
});

import { expect, test } from "vitest";
import { compare } from "../../../src/lab/comparison.ts";
import { madeUp } from "./results.ts";

const numbers = "4 Peer writes, 12 device rewrites, worst gap 0.1 s";

test("each run of one agent is compared with a run of the other", () => {
  const kg = [madeUp({ name: "connect" }), madeUp({ name: "connect" })];
  const model = [madeUp({ name: "connect", outcome: "FAIL" }), madeUp({ name: "connect" })];
  expect(compare(kg, model).map(({ line }) => line)).toEqual([
    `DIFFERS connect kg: ok, ${numbers}; model: FAIL, ${numbers}`,
    `alike connect kg: ok, ${numbers}; model: ok, ${numbers}`,
  ]);
});

test("what one agent cannot play is not compared", () => {
  expect(compare([madeUp({ name: "nat" })], [madeUp({ name: "nat", outcome: "skip" })])).toEqual([]);
  expect(compare([madeUp({ name: "nat" })], [])).toEqual([]);
});

import { expect, test } from "vitest";
import { Patience } from "../../../src/operator/patience.ts";

test("while writes are under way something is said after 2 s, then every 5 s, and at once when they are done", () => {
  let nowMs = 100_000;
  const patience = new Patience({ monotonicMs: () => nowMs }, () => false);
  patience.note("m", true);
  expect(patience.busyMs("m")).toBe(2_000);
  nowMs += 2_000;
  expect(patience.busyMs("m")).toBe(0);
  patience.said("m");
  patience.note("m", true);
  expect(patience.busyMs("m")).toBe(5_000);
  nowMs += 1_000;
  patience.note("m", false);
  expect(patience.busyMs("m")).toBe(0);
});

test("what was said of earlier writes does not delay a word about later ones", () => {
  let nowMs = 100_000;
  const patience = new Patience({ monotonicMs: () => nowMs }, () => false);
  patience.said("m");
  nowMs += 1_000;
  patience.note("m", true);
  expect(patience.busyMs("m")).toBe(2_000);
});

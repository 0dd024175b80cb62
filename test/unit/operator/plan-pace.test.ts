import { expect, test } from "vitest";
import { PlanPace } from "../../../src/operator/plan-pace.ts";

/** Plans without end, as soon as each may begin; answers which part of the time was spent on planning. */
function shareOf(planMs: number, plans = 100): number {
  const pace = new PlanPace();
  let atMs = 1_000_000;
  const beganMs = atMs;
  for (let plan = 0; plan < plans; plan += 1) {
    pace.took(atMs, atMs + planMs);
    atMs += Math.max(planMs, pace.gatherMs);
  }
  return (planMs * plans) / (atMs - beganMs);
}

test.each([50, 400, 1_000, 13_000, 60_000])("plans of %d ms take a fifth of a core at most", (planMs) => {
  expect(shareOf(planMs)).toBeLessThanOrEqual(0.21);
});

test("a plan of 13 s is followed by a pause of five times that, less the credit", () => {
  const pace = new PlanPace();
  pace.took(100_000, 113_000);
  expect(pace.gatherMs).toBe(64_500);
});

test("a lone plan makes nothing wait, and a debt is paid off by time", () => {
  const pace = new PlanPace();
  pace.took(10_000, 10_100);
  expect(pace.gatherMs).toBe(20);
  for (let plan = 0; plan < 10; plan += 1) pace.took(10_100 + 100 * plan, 10_200 + 100 * plan);
  expect(pace.gatherMs).toBe(2_000);
  pace.took(60_000, 60_100);
  expect(pace.gatherMs).toBe(20);
});

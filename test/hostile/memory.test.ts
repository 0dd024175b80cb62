// Whoever answers as an API server chooses what it says. With a heap of 256 MiB the operator outlives each of these, goes
// on answering its probes, and joins what it is asked to join.

import { afterEach, expect, test } from "vitest";
import type { BudgetName } from "../../src/core/budgets.ts";
import { eventually } from "../support/eventually.ts";
import { HostileFleet } from "../support/hostile-fleet.ts";
import { type HostileMode, hostileModes } from "../support/hostile-server.mjs";

/** Which budget stops each mode. */
const stoppedBy: Readonly<Record<HostileMode, BudgetName>> = {
  fat: "answer-bytes-per-minute",
  facts: "facts-bytes",
  inflate: "answer-bytes",
  dense: "answer-elements",
  deep: "answer-depth",
  biglines: "watch-line-bytes",
  many: "objects.nodes",
  longname: "name-characters",
};

let fleet: HostileFleet | undefined;
afterEach(async () => {
  await fleet?.close();
  fleet = undefined;
});

test.each(Object.entries(hostileModes) as [HostileMode, string][])("%s: %s", async (mode) => {
  fleet = new HostileFleet();
  const { va } = fleet;
  await fleet.start(256);
  await fleet.nodeChangeMs();
  const quietMs = await fleet.nodeChangeMs();
  await fleet.attack(mode);
  const [health, changeMs] = await Promise.all([fleet.watchHealth(6_000), fleet.nodeChangeMs()]);
  const askedBefore = fleet.asked();
  const later = await fleet.watchHealth(3_000);
  const askedPerSecond = (fleet.asked() - askedBefore) / 3;
  const figures = { quietMs, changeMs, worstMs: Math.max(health.worstMs, later.worstMs), askedPerSecond };
  const whole = Object.entries(figures).map(([name, value]) => `${name} ${Math.round(value)}`);
  console.log(`${mode}: peak RSS ${fleet.peakRssMb()} MB, ${whole.join(", ")}`);
  const finding = await eventually("the finding", () =>
    fleet?.hostileStatus().findings?.find(({ code }) => code === "ClusterOverBudget"),
  );
  expect(finding.message).toContain(`--budget ${stoppedBy[mode]}=`);
  expect(health.failed + later.failed).toBe(0);
  expect(va.nodes.size).toBe(5);
  expect(await fleet.close()).toBe(0);
  fleet = undefined;
});

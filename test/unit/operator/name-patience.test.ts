import { expect, test } from "vitest";
import { type ClusterId, clusterIdOf } from "../../../src/core/world.ts";
import { NamePatience } from "../../../src/operator/name-patience.ts";

const cluster = (namespace: string): ClusterId => clusterIdOf({ namespace, secret: "s", key: "k" });

/** How long plans wait within a while, looked at every 50 ms, if these clusters always have a name that was never asked for. */
function waited(clusters: readonly ClusterId[], forMs: number): number {
  let nowMs = 0;
  const patience = new NamePatience({ monotonicMs: () => nowMs });
  let sumMs = 0;
  for (; nowMs < forMs; nowMs += 50) if (patience.isWaiting(clusters)) sumMs += 50;
  return sumMs;
}

test("a lone new name is waited for, for 3 s at most", () => {
  expect(waited([cluster("a")], 3_000)).toBe(3_000);
  expect(waited([cluster("a")], 10_000)).toBeLessThanOrEqual(3_100);
});

test("a cluster with a new slow name all the time delays others for 1 % of it", () => {
  expect(waited([cluster("evil")], 3_600_000)).toBeLessThanOrEqual(3_000 + 0.01 * 3_600_000);
});

test("a hundred of them in turn, for 6 %", () => {
  let nowMs = 0;
  let sumMs = 0;
  const patience = new NamePatience({ monotonicMs: () => nowMs });
  for (; nowMs < 3_600_000; nowMs += 50) {
    if (patience.isWaiting([cluster(`evil-${Math.floor(nowMs / 1_000) % 100}`)])) sumMs += 50;
  }
  expect(sumMs).toBeLessThanOrEqual(3_000 + 0.06 * 3_600_000);
});

test("names that are answered within milliseconds are waited for again and again", () => {
  let nowMs = 0;
  const patience = new NamePatience({ monotonicMs: () => nowMs });
  for (let node = 0; node < 30; node += 1, nowMs += 5_000) {
    expect(patience.isWaiting([cluster("a")])).toBe(true);
    nowMs += 50;
    expect(patience.isWaiting([])).toBe(false);
  }
});

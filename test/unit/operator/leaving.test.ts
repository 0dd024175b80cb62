// When a cluster that nobody names any more is let go.

import { expect, test } from "vitest";
import type { Plan } from "../../../src/core/plan.ts";
import type { ClusterId } from "../../../src/core/world.ts";
import type { Fleet } from "../../../src/fleet/fleet.ts";
import type { Runtime } from "../../../src/kube/runtime.ts";
import { type LeavingProgress, releaseLeft } from "../../../src/operator/leaving.ts";
import type { PlanState } from "../../../src/operator/plan-state.ts";
import { VirtualClock } from "../../../src/sim/virtual-clock.ts";

const edge = "edge" as unknown as ClusterId;
const minuteMs = 60_000;

/** A cluster that is leaving, looked at once a minute; answers when it was let go, and with how many objects. */
async function released(objectsAt: (minute: number) => number | "unseen"): Promise<readonly unknown[]> {
  const clock = new VirtualClock();
  const progress: LeavingProgress = new Map();
  const told: unknown[] = [];
  const silent = (): void => undefined;
  const warn = (_: string, fields?: object): void => void told.push((fields as { objects: number }).objects);
  const runtime = { clock, random: () => 0, log: { debug: silent, info: silent, error: silent, warn } } as Runtime;
  const leaving = new Map([[edge, clock.monotonicMs()]]);
  const release = (id: ClusterId): void => {
    leaving.delete(id);
    told.push(clock.monotonicMs() / minuteMs);
  };
  const fleet = { directory: { leaving: () => leaving, release } } as unknown as Fleet<unknown, unknown, unknown>;
  for (let minute = 0; minute <= 120 && leaving.size > 0; minute += 1) {
    const objects = objectsAt(minute);
    const observed = objects === "unseen" ? { state: "absent" } : { state: "synced" };
    const state = {
      viewOf: new Map([[edge, { id: edge, accesses: [edge], observed }]]),
      holdings: new Map(objects === "unseen" ? [] : [[edge, new Map([["ns/m", objects]])]]),
    } as unknown as PlanState<unknown, unknown, Plan>;
    releaseLeft(state, fleet, runtime, progress);
    await clock.advance(minuteMs);
  }
  return told;
}

test("a cluster is let go when it is clean", async () => {
  expect(await released((minute) => (minute < 3 ? 1 : 0))).toEqual([3]);
});

test("one from which nothing goes is let go after ten minutes, with what is left", async () => {
  expect(await released(() => 7)).toEqual([7, 11]);
  expect(await released(() => "unseen")).toEqual([0, 11]);
});

test("one that is still being cleaned is not given up, however long it takes", async () => {
  expect(await released((minute) => Math.max(0, 60 - minute))).toEqual([60]);
  expect(await released((minute) => (minute < 9 ? "unseen" : Math.max(0, 49 - minute)))).toEqual([49]);
});

test("what comes back after it was deleted does not count as progress", async () => {
  expect(await released((minute) => 5 + (minute % 2))).toEqual([6, 11]);
});

import { describe, expect, test } from "vitest";
import type { Remainder } from "../../../src/core/provider.ts";
import { clusterIdOf, type Failure, type Observed } from "../../../src/core/world.ts";
import { type FinalizerInput, finalizerStep } from "../../../src/operator/finalizer.ts";

const rest = (observed: Observed<unknown>, objects: number): Remainder => {
  const access = { namespace: "ns", secret: "edge", key: "kubeconfig" };
  return { member: { id: clusterIdOf(access), access, name: "edge" }, observed, objects };
};
const away = (kind: Exclude<Failure["kind"], "overBudget">): Failure => ({ kind, detail: "why" });
const clean = rest({ state: "synced", value: {} }, 0);
const dirty = rest({ state: "synced", value: {} }, 3);
const awaited: Remainder = { ...clean, suspects: ["a policy"], isAwaited: true };
const stale = rest({ state: "stale", because: away("unreachable"), value: {} }, 3);
const unreachable = rest({ state: "absent", because: away("unreachable") }, 0);
const revoked = rest({ state: "absent", because: away("unauthorized") }, 0);
const noSecret = rest({ state: "absent", because: away("missing") }, 0);
const refused = rest({ state: "absent", because: away("refused") }, 0);
const taken = rest({ state: "absent", because: away("taken") }, 0);
const unusable = rest({ state: "absent", because: away("unusable") }, 0);

const deleted = (remainders: readonly Remainder[], more: Partial<FinalizerInput> = {}) =>
  finalizerStep({ present: true, deletedMs: 1_000, forced: false, remainders, nowMs: 2_000, waitMs: 5_000, ...more });

describe("the finalizer", () => {
  test.each([
    { present: false, deletedMs: undefined, does: "add" },
    { present: true, deletedMs: undefined, does: "nothing" },
    { present: false, deletedMs: 1_000, does: "nothing" },
    { present: true, deletedMs: 1_000, does: "remove" },
  ])("present: $present, deleted: $deletedMs → $does", ({ present, deletedMs, does }) => {
    expect(deleted([clean], { present, deletedMs }).do).toBe(does);
  });

  test.each([
    { present: false, deletedMs: undefined, does: "nothing" },
    { present: true, deletedMs: undefined, does: "remove" },
    { present: false, deletedMs: 1_000, does: "nothing" },
    { present: true, deletedMs: 1_000, does: "remove" },
  ])("of what is somebody else's, present: $present, deleted: $deletedMs → $does", ({ present, deletedMs, does }) => {
    expect(deleted([], { present, deletedMs, isOthers: true }).do).toBe(does);
  });

  test.each([
    { name: "a clean cluster", left: clean, early: "remove", late: "remove" },
    { name: "a reached cluster with Peers", left: dirty, early: "wait", late: "wait" },
    { name: "a cluster that has not said yet what is there", left: awaited, early: "wait", late: "remove" },
    { name: "a cluster that went away", left: stale, early: "wait", late: "remove" },
    { name: "a cluster that was never reached", left: unreachable, early: "wait", late: "remove" },
    { name: "revoked credentials", left: revoked, early: "wait", late: "remove" },
    { name: "a Secret that is gone", left: noSecret, early: "remove", late: "remove" },
    { name: "a kubeconfig that is refused", left: refused, early: "remove", late: "remove" },
    { name: "a cluster that is somebody else's now", left: taken, early: "remove", late: "remove" },
    { name: "a cluster that cannot be used for now", left: unusable, early: "wait", late: "remove" },
  ])("$name: first $early, after the wait $late, and with force it goes", ({ left, early, late }) => {
    expect(deleted([clean, left]).do).toBe(early);
    expect(deleted([clean, left], { nowMs: 6_000 }).do).toBe(late);
    expect(deleted([clean, left], { forced: true }).do).toBe("remove");
  });

  test("what is left behind is named", () => {
    expect(deleted([clean, stale, dirty], { forced: true })).toEqual({ do: "remove", abandoned: [stale, dirty] });
    expect(deleted([stale], { nowMs: 6_000 })).toEqual({ do: "remove", abandoned: [stale] });
    expect(deleted([clean])).toEqual({ do: "remove", abandoned: [] });
  });

  test("the wait has an end while only clusters that are away are waited for", () => {
    expect(deleted([stale])).toMatchObject({ do: "wait", untilMs: 6_000 });
    expect(deleted([stale, dirty])).toMatchObject({ do: "wait", untilMs: undefined });
    expect(deleted([awaited])).toMatchObject({ do: "wait", untilMs: 6_000 });
  });
});

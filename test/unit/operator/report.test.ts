import { expect, test } from "vitest";
import type { Report } from "../../../src/core/provider.ts";
import { ok } from "../../../src/core/result.ts";
import type { KubeApi } from "../../../src/kube/api.ts";
import { needsWriting } from "../../../src/operator/report.ts";

const finalizer = "example.dev/ours";

function needs(report: Report, finalizers: readonly string[], deletedMs?: number): boolean {
  const home = {
    api: {} as KubeApi,
    resource: { group: "g", version: "v1", plural: "things", kind: "Thing", namespaced: true },
    passive: false,
    absorb: () => undefined,
  };
  const record = {
    id: "Thing/ns/n",
    name: "n",
    namespace: "ns",
    uid: "u",
    resourceVersion: "1",
    generation: 1,
    deletedMs,
    finalizers,
    annotations: {},
    status: {},
    intent: ok({}),
    home,
  };
  return needsWriting({ record, report, remainders: [], finalizer, nowMs: 2_000, waitMs: 5_000 });
}

test("nothing is written to an object that is somebody else's, but a finalizer of ours from before goes", () => {
  const others: Report = { status: {}, conditions: [], findings: [], isOthers: true };
  expect(needs(others, [])).toBe(false);
  expect(needs(others, ["example.dev/theirs"])).toBe(false);
  expect(needs(others, ["example.dev/theirs"], 1_000)).toBe(false);
  expect(needs(others, [finalizer])).toBe(true);
  expect(needs(others, [finalizer], 1_000)).toBe(true);
  expect(needs({ status: {}, conditions: [], findings: [] }, [])).toBe(true);
});

import { describe, expect, test } from "vitest";
import { graphOf } from "../../../src/core/graph.ts";
import { Redacted } from "../../../src/core/redacted.ts";
import { settleConditions, type StoredCondition } from "../../../src/core/status.ts";

const stored = (type: string, status: "True" | "False", reason: string): StoredCondition => ({
  type,
  status,
  reason,
  message: "",
  observedGeneration: 1,
  lastTransitionTime: "2026-01-01T00:00:00Z",
});

describe("settleConditions", () => {
  const now = "2026-11-15T12:00:00Z";

  test("the transition time moves only when the status flips", () => {
    const before = [stored("Ready", "False", "Pending")];
    const same = settleConditions(before, [{ type: "Ready", status: "False", reason: "Other", message: "m" }], 2, now);
    expect(same).toEqual([
      {
        type: "Ready",
        status: "False",
        reason: "Other",
        message: "m",
        observedGeneration: 2,
        lastTransitionTime: "2026-01-01T00:00:00Z",
      },
    ]);
    const flipped = settleConditions(before, [{ type: "Ready", status: "True", reason: "R", message: "" }], 2, now);
    expect(flipped[0]?.lastTransitionTime).toBe(now);
  });

  test("conditions of others stay", () => {
    const theirs = stored("Theirs", "True", "X");
    const settled = settleConditions([theirs], [{ type: "Ready", status: "True", reason: "R", message: "" }], 1, now);
    expect(settled[1]).toEqual(theirs);
  });
});

describe("graphOf", () => {
  test("counts what reaches from each cluster to each, in a stable order", () => {
    const reach = (source: string, target: string, mesh: string) => ({ source, target, mesh, ranges: 2 });
    const clusters = [
      { id: "b", observed: "stale" },
      { id: "a", observed: "synced" },
    ] as const;
    expect(graphOf(clusters, [reach("b", "a", "y"), reach("a", "b", "x"), reach("b", "a", "x")])).toEqual({
      nodes: [clusters[1], clusters[0]],
      edges: [
        { source: "a", target: "b", peers: 1, ranges: 2, meshes: ["x"] },
        { source: "b", target: "a", peers: 2, ranges: 4, meshes: ["x", "y"] },
      ],
    });
  });
});

describe("Redacted", () => {
  test("prints as [redacted] wherever it ends up", () => {
    const secret = new Redacted("hunter2");
    expect([String(secret), JSON.stringify({ secret }), secret.toString()]).toEqual([
      "[redacted]",
      '{"secret":"[redacted]"}',
      "[redacted]",
    ]);
    expect(secret.expose()).toBe("hunter2");
  });
});

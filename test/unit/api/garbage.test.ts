import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { clusterMeshSchema } from "../../../src/api/cluster-mesh.ts";
import { clusterMeshBindingSchema } from "../../../src/api/cluster-mesh-binding.ts";
import { connectivityIntentSchema } from "../../../src/api/connectivity-intent.ts";
import { exposedServiceSchema } from "../../../src/api/exposed-service.ts";
import { fabricSchema } from "../../../src/api/fabric.ts";
import { globalServiceSchema } from "../../../src/api/global-service.ts";
import { kubernetesClusterSchema } from "../../../src/api/kubernetes-cluster.ts";
import { managementClusterSchema } from "../../../src/api/management-cluster.ts";
import { nodeSchema } from "../../../src/api/node.ts";
import { peerSchema } from "../../../src/api/peer.ts";
import { problemsMax, problemsOf, problemTextMax } from "../../../src/api/problem.ts";
import { secretSchema } from "../../../src/api/secret.ts";
import { nodeSelectorSchema } from "../../../src/api/selector.ts";
import { worldSchema } from "../../../src/api/world.ts";

const schemas = {
  clusterMeshSchema,
  nodeSchema,
  peerSchema,
  secretSchema,
  nodeSelectorSchema,
  worldSchema,
  clusterMeshBindingSchema,
  globalServiceSchema,
  connectivityIntentSchema,
  exposedServiceSchema,
  fabricSchema,
  kubernetesClusterSchema,
  managementClusterSchema,
};

function nested(depth: number, wrap: (inner: unknown) => unknown): unknown {
  let value: unknown = "core";
  for (let level = 0; level < depth; level += 1) value = wrap(value);
  return value;
}

const huge = "a".repeat(2_000_000);
const deep = nested(100_000, (inner) => ({ spec: inner, metadata: inner, matchLabels: inner }));
const garbage: readonly (readonly [string, unknown])[] = [
  ["undefined", undefined],
  ["null", null],
  ["a number", 7],
  ["NaN", Number.NaN],
  ["a text", "mesh"],
  ["a huge text", huge],
  ["a list", []],
  ["a date", new Date(0)],
  ["deep objects", deep],
  ["deep lists", nested(100_000, (inner) => [inner])],
];

describe.each(Object.entries(schemas))("%s", (_, schema) => {
  test.each(garbage)("%s is an error and throws nothing", (__, value) => {
    const parsed = schema.safeParse(value);
    expect(parsed.success).toBe(false);
    if (!parsed.success) expect(problemsOf(parsed.error).length).toBeGreaterThan(0);
  });

  test("whatever it is given, it answers", () => {
    const field = fc.constantFrom(
      "spec",
      "metadata",
      "clusters",
      "name",
      "__proto__",
      "constructor",
      "data",
      "matchLabels",
    );
    const anything = fc.oneof(fc.anything(), fc.dictionary(field, fc.dictionary(field, fc.anything())));
    fc.assert(
      fc.property(anything, (value) => {
        const parsed = schema.safeParse(value);
        return parsed.success || problemsOf(parsed.error).length > 0;
      }),
      { numRuns: 300 },
    );
  });
});

describe("a ClusterMesh with something hostile inside", () => {
  const entry = { name: "a", allowedNetworks: ["10.1.0.0/16"] };
  const mesh = (changed: object, more: object = {}) => ({
    apiVersion: "kilo.squat.ai/v1alpha1",
    kind: "ClusterMesh",
    metadata: { name: "m", namespace: "n" },
    spec: {
      clusters: [
        { ...entry, ...changed },
        { ...entry, name: "b" },
      ],
    },
    ...more,
  });
  const condition = { status: "True", reason: "R", message: "", lastTransitionTime: "2026-01-01T00:00:00Z" };
  test.each([
    ["name", mesh({ name: huge })],
    ["a network", mesh({ allowedNetworks: [huge] })],
    ["a selector's key", mesh({ nodeSelector: { [huge]: "a" } })],
    ["a selector's value", mesh({ nodeSelector: { a: huge } })],
    ["a selector's unknown key", mesh({ nodeSelector: { matchLabels: {}, [huge]: "a" } })],
    ["a selector, deep", mesh({ nodeSelector: { matchLabels: deep } })],
    ["kind", { ...mesh({}), kind: huge }],
    ["a condition's type", mesh({}, { status: { conditions: [{ ...condition, type: huge }] } })],
    [
      "a condition's dotted type",
      mesh({}, { status: { conditions: [{ ...condition, type: "a.".repeat(1_000_000) }] } }),
    ],
    ["a condition's reason", mesh({}, { status: { conditions: [{ ...condition, type: "T", reason: huge }] } })],
  ])("%s: a short answer, soon", (_, value) => {
    const started = performance.now();
    const parsed = clusterMeshSchema.safeParse(value);
    expect(performance.now() - started).toBeLessThan(1000);
    expect(parsed.success).toBe(false);
    if (parsed.success) return;
    for (const { path, message } of problemsOf(parsed.error)) {
      expect(path.length).toBeLessThanOrEqual(problemTextMax);
      expect(message.length).toBeLessThanOrEqual(problemTextMax);
    }
  });

  test("an unknown field is not even looked at", () => {
    expect(clusterMeshSchema.safeParse(mesh({ unknown: deep }, { unknown: huge })).success).toBe(true);
  });

  test("a key called __proto__ changes no prototype", () => {
    const text = '{"metadata":{"name":"n","labels":{"__proto__":"x","a":"b"}},"__proto__":{"polluted":true}}';
    const parsed = nodeSchema.parse(JSON.parse(text));
    expect(Object.getPrototypeOf(parsed)).toBe(Object.prototype);
    expect("polluted" in parsed).toBe(false);
    expect(parsed.metadata.labels).toEqual({ a: "b" });
  });
});

describe("problemsOf", () => {
  test("reports so many and counts the rest", () => {
    const parsed = worldSchema.safeParse({
      apiVersion: "causeway.dev/v1alpha1",
      kind: "World",
      clusters: Array(1000).fill(7),
    });
    expect(parsed.success).toBe(false);
    if (parsed.success) return;
    const problems = problemsOf(parsed.error);
    expect(problems).toHaveLength(problemsMax + 1);
    expect(problems[0]).toEqual({ path: "clusters[0]", message: "Invalid input: expected object, received number" });
    expect(problems.at(-1)).toEqual({ path: "", message: "and 950 more" });
  });
});

import { describe, expect, test } from "vitest";
import { problemsOf } from "../../../src/api/problem.ts";
import { type NodeSelector, nodeSelectorSchema, normaliseSelector } from "../../../src/api/selector.ts";

const problems = (value: unknown) => {
  const parsed = nodeSelectorSchema.safeParse(value);
  return parsed.success ? [] : problemsOf(parsed.error);
};
const normal = (value: unknown) => normaliseSelector(nodeSelectorSchema.parse(value));

describe("normaliseSelector", () => {
  test("a plain map is its labels", () => {
    expect(normal({ role: "edge", "node-role.kubernetes.io/edge": "" })).toEqual({
      matchLabels: { role: "edge", "node-role.kubernetes.io/edge": "" },
      matchExpressions: [],
    });
  });

  test("a full selector keeps both parts", () => {
    const matchExpressions = [
      { key: "zone", operator: "In", values: ["a", "b"] },
      { key: "spot", operator: "DoesNotExist" },
    ];
    expect(normal({ matchLabels: { role: "edge" }, matchExpressions })).toEqual({
      matchLabels: { role: "edge" },
      matchExpressions: [
        { key: "zone", operator: "In", values: ["a", "b"] },
        { key: "spot", operator: "DoesNotExist", values: [] },
      ],
    });
    expect(normal({ matchExpressions: [] })).toEqual({ matchLabels: {}, matchExpressions: [] });
    expect(normal({ matchLabels: { a: "b" }, matchExpressions: null })).toEqual({
      matchLabels: { a: "b" },
      matchExpressions: [],
    });
  });

  test("labels that are called matchLabels and matchExpressions are labels", () => {
    expect(normal({ matchLabels: "yes", matchExpressions: "no" })).toEqual({
      matchLabels: { matchLabels: "yes", matchExpressions: "no" },
      matchExpressions: [],
    });
  });

  test("nothing and an empty selector select every node", () => {
    const everything = { matchLabels: {}, matchExpressions: [] };
    expect(normaliseSelector(undefined)).toEqual(everything);
    expect(normal({})).toEqual(everything);
    expect(normal({ matchLabels: {} })).toEqual(everything);
  });

  test("the normal form is a selector and normal", () => {
    const selector: NodeSelector = normal({ role: "edge" });
    expect(normaliseSelector(selector)).toEqual(selector);
    expect(problems(selector)).toEqual([]);
  });
});

describe("nodeSelectorSchema", () => {
  test("a mistyped part of a full selector is an error: ignoring it would widen the selection", () => {
    expect(problems({ matchLabels: { a: "b" }, matchExpresions: [] })).toEqual([
      { path: "", message: 'Unrecognized key: "matchExpresions"' },
    ]);
  });

  test("an operator has the values it needs", () => {
    const message = "In and NotIn need at least one value; Exists and DoesNotExist take none";
    const one = (requirement: object) => problems({ matchExpressions: [{ key: "zone", ...requirement }] });
    for (const requirement of [
      { operator: "In" },
      { operator: "NotIn", values: [] },
      { operator: "Exists", values: ["a"] },
    ]) {
      expect(one(requirement)).toEqual([{ path: "matchExpressions[0].values", message }]);
    }
    expect(one({ operator: "DoesNotExist", values: [] })).toEqual([]);
    expect(one({ operator: "Gt", values: ["1"] })).toHaveLength(1);
  });

  test.each([
    ["a number as value", { a: 1 }],
    ["a boolean as value", { a: true }],
    ["a null as value", { matchLabels: null }],
    ["a map as value", { a: { b: "c" } }],
    ["a value that is no label value", { a: "not a label" }],
    ["a key that is no label key", { "a b": "c" }],
    ["a list", ["a"]],
    ["a text", "a=b"],
    ["a broken other half", { matchLabels: {}, matchExpressions: {} }],
    ["labels of a full selector that are no texts", { matchLabels: { a: 1 } }],
  ])("%s is refused", (_, value) => {
    expect(problems(value)).not.toEqual([]);
  });
});

import { describe, expect, test } from "vitest";
import { Redacted } from "../../../src/core/redacted.ts";
import { bytesOf } from "../../../src/core/size.ts";
import { readNode } from "../../../src/kilo/facts.ts";

describe("bytesOf", () => {
  test.each([
    ["a text", "x".repeat(1_000)],
    ["a text in an object", { deep: { down: ["x".repeat(1_000)] } }],
    ["a key", { ["k".repeat(1_000)]: 1 }],
    ["a value of a map", new Map([["a", "x".repeat(1_000)]])],
    ["a key of a map", new Map([["x".repeat(1_000), "a"]])],
    ["a member of a set", new Set(["x".repeat(1_000)])],
    ["a secret", new Redacted("x".repeat(1_000))],
  ])("counts %s", (_, value) => {
    expect(bytesOf(value)).toBeGreaterThanOrEqual(1_000);
    expect(bytesOf(value)).toBeLessThan(1_300);
  });

  test("grows with what a Node makes us keep, and with nothing else", () => {
    const factOf = (annotations: object, labels: object = {}): unknown => {
      const read = readNode({
        kind: "Node",
        metadata: { name: "n", annotations, labels },
        status: { images: [labels] },
      });
      return read.ok ? read.value : undefined;
    };
    const endpoints = (count: number): string =>
      JSON.stringify(
        Object.fromEntries(
          Array.from({ length: count }, (__, index) => [
            Buffer.from(String(index).padEnd(32)).toString("base64"),
            { IP: "198.51.100.1", Port: 51820 },
          ]),
        ),
      );
    const plain = bytesOf(factOf({}));
    expect(bytesOf(factOf({ "kilo.squat.ai/discovered-endpoints": endpoints(100) })) - plain).toBeGreaterThan(20_000);
    expect(bytesOf(factOf({ other: "x".repeat(100_000) }, { fat: "x".repeat(100_000) }))).toBe(plain);
    // What is cut is copied, so that it is no longer than it says.
    expect(bytesOf(factOf({ "kilo.squat.ai/location": "x".repeat(100_000) })) - plain).toBeLessThan(4_200);
  });
});

import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { defaultBudgets } from "../../../src/core/budgets.ts";
import { tooHeavy } from "../../../src/kube/json-text.ts";

const exact = (elements: number, depth: number) => ({
  ...defaultBudgets,
  "answer-elements": elements,
  "answer-depth": depth,
});

/** What `tooHeavy` counts, the slow way: by the value itself. */
function weigh(value: unknown): { elements: number; depth: number } {
  if (typeof value !== "object" || value === null) return { elements: 0, depth: 0 };
  const inside = Object.values(value).map(weigh);
  const commas = Math.max(0, inside.length - 1);
  return {
    elements: 1 + commas + inside.reduce((sum, { elements }) => sum + elements, 0),
    depth: 1 + inside.reduce((most, { depth }) => Math.max(most, depth), 0),
  };
}

describe("tooHeavy", () => {
  test("counts elements and depth of any JSON as they are, and takes no part of a text for one", () => {
    const text = fc.oneof(fc.string(), fc.stringMatching(/^[\\"{}[\],x]{0,80}$/));
    const values = fc.letrec<{ value: unknown }>((tie) => ({
      value: fc.oneof(
        { maxDepth: 5 },
        fc.constant(null),
        fc.double(),
        text,
        fc.array(tie("value"), { maxLength: 5 }),
        fc.dictionary(text, tie("value"), { maxKeys: 5, noNullPrototype: true }),
      ),
    })).value;
    fc.assert(
      fc.property(values, fc.boolean(), (value, isWide) => {
        const bytes = Buffer.from(isWide ? JSON.stringify(value, undefined, 2) : JSON.stringify(value));
        const { elements, depth } = weigh(JSON.parse(bytes.toString()));
        expect(tooHeavy(bytes, exact(elements, depth))).toBeUndefined();
        if (elements > 0) expect(tooHeavy(bytes, exact(elements - 1, depth))?.budget).toBe("answer-elements");
        if (depth > 0) expect(tooHeavy(bytes, exact(elements, depth - 1))?.budget).toBe("answer-depth");
      }),
      { numRuns: 500 },
    );
  });

  test("never throws, whatever the bytes are", () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => {
        tooHeavy(bytes, exact(3, 3));
      }),
    );
  });

  test("stops at the first element too many", () => {
    let read = 0;
    const bytes = new Proxy(Buffer.from("[".repeat(1_000)), {
      get: (target, key) => {
        if (typeof key === "string" && /^\d+$/.test(key)) read += 1;
        return Reflect.get(target, key, target) as unknown;
      },
    });
    expect(tooHeavy(bytes, exact(10, 1_000))?.budget).toBe("answer-elements");
    expect(read).toBe(11);
  });

  test.each([
    ["quotes", '"'],
    ["escaped quotes", '\\"'],
    ["backslashes", "\\"],
    ["a text without an end", '"x'],
  ])("looks at each byte of %s a few times at most", (_, text) => {
    const looks = (repeats: number): number => {
      let count = 0;
      const bytes = Buffer.from(`["${text.repeat(repeats)}`);
      const counted = new Proxy(bytes, {
        get: (target, key) => {
          if (key === "indexOf") {
            return (byte: number, from: number) => {
              const found = target.indexOf(byte, from);
              count += (found === -1 ? target.length : found) - from;
              return found;
            };
          }
          if (typeof key === "string" && /^\d+$/.test(key)) count += 1;
          return Reflect.get(target, key, target) as unknown;
        },
      });
      tooHeavy(counted, exact(1_000_000, 1_000_000));
      return count / bytes.length;
    };
    expect(looks(5_000)).toBeLessThan(4);
  });
});

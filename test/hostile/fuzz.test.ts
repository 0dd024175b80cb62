// A short run of `npm run fuzz`, with inputs that are the same every time: a change is judged, and not the dice.

import { describe, expect, test } from "vitest";
import { fuzz, targets } from "../fuzz/fuzz.mjs";

describe("300 inputs from a seed: no throw, no growth, no control character", () => {
  test.each(targets)("$name", async (target) => {
    expect(await fuzz(target, { seed: "everyday", inputs: 300 })).toBeUndefined();
  });
});

describe("the fuzzer finds", () => {
  const textReader = { name: "a reader", examples: ["10.0.0.0/8"] };
  const find = (read: (text: string) => unknown) =>
    fuzz({ ...targets[0]!, ...textReader, read }, { seed: "1", inputs: 2_000 });

  test("a reader that throws", async () => {
    const read = (text: string) => decodeURIComponent(text).length;
    expect((await find(read))?.problem).toMatch(/^throws URIError/);
  });

  test("a reader whose cost grows with the square of the length", async () => {
    const read = (text: string) => text.split("").filter((_, at) => text.slice(at).split("").at(-1) === "x").length;
    expect((await find(read))?.problem).toMatch(/^grows with the length to the power of/);
  });

  test("a reader that repeats what it was given", async () => {
    expect((await find((text) => ({ error: `not a range: ${text}` })))?.problem).toMatch(/^says/);
  });

  test("the same input again, from its number alone", async () => {
    const read = (text: string) => decodeURIComponent(text).length;
    const found = await find(read);
    const again = await fuzz({ ...targets[0]!, ...textReader, read }, { seed: "1", from: found!.index, inputs: 1 });
    expect(again?.input).toBe(found!.input);
  });
});

import { expect, test } from "vitest";
import { together } from "../../../src/lab/together.ts";

const later = async <T>(turns: number, then: () => T): Promise<T> => {
  for (let turn = 0; turn < turns; turn += 1) await Promise.resolve();
  return then();
};

test("work that fails waits for the rest, which must not go on in the next scenario", async () => {
  const done: string[] = [];
  const work = together([
    later(1, () => {
      throw new Error("a refused its Node");
    }),
    later(50, () => done.push("b")),
    later(90, () => {
      throw new Error("c refused its Node");
    }),
    later(99, () => done.push("d")),
  ]);
  await expect(work).rejects.toThrow("a refused its Node");
  expect(done).toEqual(["b", "d"]);
});

test("what is done is answered in the order it was given", async () => {
  expect(await together([later(9, () => "a"), later(1, () => "b")])).toEqual(["a", "b"]);
});

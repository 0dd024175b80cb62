import { describe, expect, test } from "vitest";
import { mutants } from "../mutants/mutants.ts";
import { mutate, playMutant } from "../support/mutant-run.ts";

const histories = 300;

describe("a campaign of 300 histories", () => {
  for (const mutant of mutants) {
    test(`finds the fault: ${mutant.name}`, async () => {
      const { code, stdout, stderr } = await playMutant(mutant, histories);
      expect(code, `${stdout}\n${stderr}`).toBe(1);
      const { rules, failedSeeds } = JSON.parse(stdout.trim().split("\n").at(-1) ?? "");
      expect(rules, stderr).toHaveLength(1);
      expect(mutant.rules, stderr).toContain(rules[0]);
      expect(stderr).toContain(`\nthe story of seed ${failedSeeds[0]}`);
      expect(stderr).toMatch(
        new RegExp(
          `\\n${rules[0]} is broken at .*\\nreplay it: npm run sim -- --histories 1 --seed ${failedSeeds[0]} `,
        ),
      );
    });
  }
});

describe("mutate", () => {
  test("puts one text in the place of another, as it stands", () => {
    expect(mutate("a.ts", "let x = 1;", { from: "1", to: "$&" })).toBe("let x = $&;");
  });

  test("refuses a text that is not there, or there more than once", () => {
    expect(() => mutate("a.ts", "1 1", { from: "1", to: "2" })).toThrow("a.ts has this 2 times, not once");
    expect(() => mutate("a.ts", "1 1", { from: "3", to: "2" })).toThrow("a.ts has this 0 times, not once");
  });
});

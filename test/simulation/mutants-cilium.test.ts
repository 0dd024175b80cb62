import { describe, expect, test } from "vitest";
import { ciliumMutants } from "../mutants/mutants-cilium.ts";
import { playMutant } from "../support/mutant-run.ts";

/** From the one that each begins with. */
const histories = 20;

describe("a campaign of 20 histories of clusters with Cilium", () => {
  for (const mutant of ciliumMutants) {
    test(`finds the fault: ${mutant.name}`, async () => {
      const { code, stdout, stderr } = await playMutant(mutant, histories, [
        "--cilium",
        "--seed",
        String(mutant.seed ?? 1),
      ]);
      expect(code, `${stdout}\n${stderr}`).toBe(1);
      const { rules } = JSON.parse(stdout.trim().split("\n").at(-1) ?? "");
      expect(rules, stderr).toHaveLength(1);
      expect(mutant.rules, stderr).toContain(rules[0]);
      expect(stderr).toMatch(new RegExp(`\\n${rules[0]} is broken at .*\\nreplay it: npm run sim -- --cilium `));
    });
  }
});

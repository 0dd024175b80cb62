// The deliberate faults are changes of the source as it is; playing them takes minutes, seeing that they fit does not.

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { mutants } from "../../mutants/mutants.ts";
import { ciliumMutants } from "../../mutants/mutants-cilium.ts";
import { mutate } from "../../support/mutant-run.ts";

test.each([...mutants, ...ciliumMutants].map((mutant) => [mutant.name, mutant] as const))(
  "the source has what the fault changes: %s",
  (_, mutant) => {
    for (const { file = mutant.file, ...texts } of mutant.replace) {
      const text = readFileSync(join(import.meta.dirname, "../../..", file), "utf8");
      expect(mutate(file, text, texts)).not.toBe(text);
    }
  },
);

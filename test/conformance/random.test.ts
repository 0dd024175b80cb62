// Random stories, told to both servers. A failing one is shrunk; its seed and path replay it.

import * as fc from "fast-check";
import { expect, test } from "vitest";
import { story } from "../support/conformance-case.ts";
import { useTargets } from "../support/conformance-objects.ts";
import { anyMove, storyOf } from "../support/conformance-random.ts";

const targets = useTargets();
const seed = Number(process.env["CONFORMANCE_SEED"] ?? 20_261_115);
const limitMs = Number(process.env["CONFORMANCE_MS"] ?? 60_000);

test(
  "random stories are answered alike",
  async () => {
    const { real, sim } = targets();
    await fc.assert(
      fc.asyncProperty(fc.array(anyMove, { minLength: 5, maxLength: 30, size: "max" }), async (moves) => {
        const run = storyOf(moves);
        expect(await story(sim, run)).toEqual(await story(real, run));
      }),
      { seed, numRuns: 10_000, interruptAfterTimeLimit: limitMs, markInterruptAsFailure: false },
    );
  },
  10 * limitMs,
);

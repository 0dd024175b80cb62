import * as fc from "fast-check";
import { expect, test } from "vitest";
import type { Diagnostic } from "../../src/core/diagnostic.ts";
import { applyPlan } from "../support/apply.ts";
import { anyWorld } from "../support/arbitrary-world.ts";
import { jumpy, planWorld } from "../support/plan-world.ts";
import { runs, Tally } from "../support/tally.ts";

const isDoubtHeldBack = ({ code, message }: Diagnostic): boolean =>
  code === "RangeHeldBack" && message.endsWith("(MassDelete)");

test("a Peer whose node may be gone keeps nothing from a usable node, and gives it up in one plan", () => {
  const tally = new Tally();
  fc.assert(
    fc.property(anyWorld, (world) => {
      const plan = planWorld(world, jumpy);
      expect(plan.diagnostics.filter(isDoubtHeldBack)).toEqual([]);
      expect(planWorld(applyPlan(world, plan), jumpy).operations).toEqual([]);
      const isHeld = plan.holds.some(({ reason }) => reason === "MassDelete");
      const isGivenUp = plan.operations.some(({ reason }) => /^(Address|Ranges)Reassigned$/.test(reason));
      tally.saw("doubts", isHeld);
      tally.saw("what is given up", isGivenUp);
    }),
    runs,
  );
  tally.atLeast({ doubts: 0.01, "what is given up": 0.0005 });
});

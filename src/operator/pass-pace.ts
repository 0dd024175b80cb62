// The pace of one pass over a target. Plans are made all the time while a pass waits for its moments, and only what the
// latest one would do next is done: then every write is in that plan's own safe order. What it would do later does not
// matter, or changes that come faster than a pass is over would keep it from ever getting anywhere.

import { joinedWith } from "../core/pace.ts";
import type { Operation, TargetPlan } from "../core/plan.ts";
import type { ClusterId } from "../core/world.ts";
import type { ApplyInput } from "./apply.ts";
import type { Pace } from "./pace.ts";
import { textOfWork } from "./plan-state.ts";

/** A pass: its target, the plans it is part of, and what the latest plan has for the target. */
export type Pass = {
  readonly target: ClusterId;
  readonly targets: readonly TargetPlan[];
  readonly latest: () => readonly Operation[] | undefined;
  /** When the change was seen that the plan follows from. */
  readonly changedMs?: number | undefined;
  readonly signal: AbortSignal;
};

/** How a pass keeps its writes apart, if it has to. */
export function passPace(pace: Pace, { target, targets, latest, changedMs, signal }: Pass): ApplyInput["pace"] {
  const intervalMs = targets.find((each) => each.target === target)?.intervalMs ?? 0;
  if (intervalMs === 0) return undefined;
  const paced = { target, intervalMs, joined: joinedWith(target, targets), changedMs };
  const own = latest() ?? [];
  const passed = new Set<string>();
  let reached = 0;
  return {
    turn: ({ urgent, name }) => pace.turn({ ...paced, urgent: urgent === true ? name : undefined }, signal),
    isNext: (operation) => {
      const newest = latest() ?? [];
      if (newest === own) return true;
      for (let each = own[reached]; each !== undefined && each !== operation; each = own[reached]) {
        passed.add(textOfWork([each]));
        reached += 1;
      }
      // A plan that was made while a write was under way still has it, and one that cannot be made is in every plan.
      const next = newest.find((each) => !passed.has(textOfWork([each])));
      return next !== undefined && textOfWork([next]) === textOfWork([operation]);
    },
  };
}

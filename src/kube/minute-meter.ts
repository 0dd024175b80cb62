import { type Budgets, type OverBudget, overBudget } from "../core/budgets.ts";
import type { Clock } from "./runtime.ts";

/** Counts bytes as they arrive; answers why no more are read, if so. */
export type Meter = (bytes: number) => OverBudget | undefined;

const minuteMs = 60_000;

/** A meter for one server. A minute begins with the first byte after the last one ended. */
export function minuteMeter(budgets: Budgets, clock: Pick<Clock, "monotonicMs">): Meter {
  const name = "answer-bytes-per-minute";
  let beganMs = -Infinity;
  let total = 0;
  return (bytes) => {
    const nowMs = clock.monotonicMs();
    if (nowMs - beganMs >= minuteMs) {
      beganMs = nowMs;
      total = 0;
    }
    total += bytes;
    return total > budgets[name] ? overBudget(name, total, budgets) : undefined;
  };
}

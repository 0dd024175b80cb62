import { CidrIndex } from "./net/cidr-index.ts";
import type { Cidr } from "./net/cidr.ts";
import type { Operation } from "./plan.ts";

/** An operation, and the update in its place that only gives ranges up. */
export type Step = {
  readonly operation: Operation;
  readonly narrow: (() => Operation) | undefined;
};

/** Puts whoever gives up a range before whoever takes it, and otherwise keeps the order given. */
export function orderByClaims(steps: readonly Step[]): Operation[] {
  const waitsFor = releasesNeeded(steps);
  if (waitsFor.size === 0) return steps.map((step) => step.operation);
  const ordered: Operation[] = [];
  const state = new Map<Step, "open" | "narrowed" | "done">();
  for (const first of steps) {
    if (state.has(first)) continue;
    // Depth first with a stack of our own: a renumbering of 10,000 nodes is one chain of that length.
    const stack: { readonly step: Step; readonly waits: Step[] }[] = [open(first)];
    for (let top = stack.at(-1); top !== undefined; top = stack.at(-1)) {
      const next = top.waits.pop();
      if (next === undefined) {
        ordered.push(top.step.operation);
        state.set(top.step, "done");
        stack.pop();
      } else if (!state.has(next)) stack.push(open(next));
      else if (state.get(next) === "open" && next.narrow !== undefined) {
        ordered.push(next.narrow());
        state.set(next, "narrowed");
      }
    }
  }
  return ordered;

  function open(step: Step): { readonly step: Step; readonly waits: Step[] } {
    state.set(step, "open");
    return { step, waits: [...(waitsFor.get(step) ?? [])].toReversed() };
  }
}

function releasesNeeded(steps: readonly Step[]): Map<Step, Set<Step>> {
  const waitsFor = new Map<Step, Set<Step>>();
  const released: [Cidr, Step][] = [];
  for (const step of steps) {
    const { before, after } = step.operation.claims;
    const kept = new Set(after);
    for (const claim of before) if (!kept.has(claim)) released.push([claim, step]);
  }
  if (released.length === 0) return waitsFor;
  const index = new CidrIndex(released);
  for (const step of steps) {
    const { before, after } = step.operation.claims;
    const held = new Set(before);
    for (const claim of after) {
      if (held.has(claim)) continue;
      for (const { value: giver } of index.overlapping(claim)) {
        if (giver === step) continue;
        const waits = waitsFor.get(step);
        if (waits === undefined) waitsFor.set(step, new Set([giver]));
        else waits.add(giver);
      }
    }
  }
  return waitsFor;
}

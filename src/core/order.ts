import { CidrIndex } from "./net/cidr-index.ts";
import type { Cidr } from "./net/cidr.ts";
import { appendAll, appendTo } from "./list.ts";
import type { Operation } from "./plan.ts";

/** Operations that follow each other directly, and those in their place that only give ranges up. */
export type Step = {
  readonly operations: readonly Operation[];
  readonly narrow: (() => readonly Operation[]) | undefined;
};

/**
 * Puts whoever gives up a range before whoever takes it, with nothing in between that has no part in it, and otherwise
 * keeps the order given: writes may be far apart, and until it is taken nobody reaches the range. What is urgent comes
 * first, whoever takes its ranges.
 */
export function orderByClaims(urgent: readonly Step[], steps: readonly Step[]): Operation[] {
  const { waitsFor, takersOf } = releasesNeeded([...urgent, ...steps]);
  const ordered: Operation[] = [];
  const state = new Map<Step, "open" | "narrowed" | "done">();
  const early = new Set<Operation>();
  const takers: Step[] = [];
  let taken = 0;
  for (const step of urgent) place(step);
  placeTakers();
  for (const step of steps) {
    place(step);
    placeTakers();
  }
  return ordered;

  function placeTakers(): void {
    for (let taker = takers[taken]; taker !== undefined; taker = takers[taken]) {
      taken += 1;
      place(taker);
    }
  }

  function place(first: Step): void {
    if (state.has(first)) return;
    // Depth first with a stack of our own: a renumbering of 10,000 nodes is one chain of that length.
    const stack: { readonly step: Step; readonly waits: Step[] }[] = [open(first)];
    for (let top = stack.at(-1); top !== undefined; top = stack.at(-1)) {
      const next = top.waits.pop();
      if (next === undefined) {
        appendAll(
          ordered,
          early.size === 0 ? top.step.operations : top.step.operations.filter((each) => !early.has(each)),
        );
        appendAll(takers, takersOf.get(top.step) ?? []);
        state.set(top.step, "done");
        stack.pop();
      } else if (!state.has(next)) stack.push(open(next));
      else if (state.get(next) === "open" && next.narrow !== undefined) {
        const narrowed = next.narrow();
        appendAll(ordered, narrowed);
        for (const operation of narrowed) early.add(operation);
        state.set(next, "narrowed");
      }
    }
  }

  function open(step: Step): { readonly step: Step; readonly waits: Step[] } {
    state.set(step, "open");
    return { step, waits: [...(waitsFor.get(step) ?? [])].toReversed() };
  }
}

type Releases = {
  readonly waitsFor: ReadonlyMap<Step, ReadonlySet<Step>>;
  readonly takersOf: ReadonlyMap<Step, readonly Step[]>;
};

function releasesNeeded(steps: readonly Step[]): Releases {
  const waitsFor = new Map<Step, Set<Step>>();
  const takersOf = new Map<Step, Step[]>();
  const released: [Cidr, Step][] = [];
  for (const step of steps) {
    for (const { claims } of step.operations) {
      const kept = new Set(claims.after);
      for (const claim of claims.before) if (!kept.has(claim)) released.push([claim, step]);
    }
  }
  if (released.length === 0) return { waitsFor, takersOf };
  const index = new CidrIndex(released);
  for (const step of steps) {
    const waits = new Set<Step>();
    for (const { claims } of step.operations) {
      const held = new Set(claims.before);
      for (const claim of claims.after) {
        if (held.has(claim)) continue;
        for (const { value: giver } of index.overlapping(claim)) if (giver !== step) waits.add(giver);
      }
    }
    if (waits.size === 0) continue;
    waitsFor.set(step, waits);
    for (const giver of waits) appendTo(takersOf, giver, step);
  }
  return { waitsFor, takersOf };
}

// Some writes take from another object what the next write gives it back: Kilo forgets a key when any Peer that holds it is
// deleted, until the one that stays is written to once more, and a range that one Peer gave up is nobody's until another
// takes it. A plan that is made in between does not show it: what was taken is gone, and what is there may be right.
// A write that failed may have been made all the same: what it takes counts as taken, what it gives does not count as given.

import { CidrIndex } from "../core/net/cidr-index.ts";
import type { Cidr } from "../core/net/cidr.ts";
import type { Operation } from "../core/plan.ts";
import { type Owed, owedKey } from "../core/steps.ts";
import type { ClusterId } from "../core/world.ts";

/** How far a pass got: which of its operations were tried, and which of those are known to be made. */
export type Progress = { readonly tried: ReadonlySet<Operation>; readonly done: ReadonlySet<Operation> };

type Pass = Progress & { readonly operations: readonly Operation[] };

const none: Owed = new Map();

/** The writes that could not be made when they were due. They end with the process; Kilo looks again every five minutes. */
export class OwedWrites {
  readonly #owed = new Map<ClusterId, Owed>();
  readonly #passes = new Map<ClusterId, Pass>();

  /** A pass begins on a target; its progress is added to as it goes. */
  begin(target: ClusterId, operations: readonly Operation[], progress: Progress): void {
    this.#passes.set(target, { operations, ...progress });
  }

  /** It is over, whatever came of it. */
  end(target: ClusterId): void {
    this.#look(target);
    this.#passes.delete(target);
  }

  /** What is owed to objects of a target, also to those that a pass is just getting to. */
  of(target: ClusterId): Owed {
    this.#look(target);
    return this.#owed.get(target) ?? none;
  }

  #look(target: ClusterId): void {
    const pass = this.#passes.get(target);
    if (pass === undefined) return;
    const { operations, tried, done } = pass;
    const before = this.#owed.get(target) ?? none;
    const hasDeleted = operations.some((operation) => operation.action === "delete" && tried.has(operation));
    const released = new CidrIndex(
      operations
        .filter((operation) => tried.has(operation))
        .flatMap(({ claims }) => without(claims.before, claims.after))
        .map((claim) => [claim, true] as const),
    );
    const owed = new Map<string, "touch" | "write">();
    for (const [index, operation] of operations.entries()) {
      if (operation.action === "delete" || done.has(operation)) continue;
      const key = owedKey(operation);
      const { action, claims } = operation;
      const leaver = operations[index - 1];
      const lostKey = action === "touch" ? hasDeleted : leaver?.reason === "SurplusHolder" && tried.has(leaver);
      const takes = (): boolean =>
        without(claims.after, claims.before).some((claim) => released.firstOverlap(claim) !== undefined);
      const known = before.get(key);
      if (lostKey || known === "touch") owed.set(key, "touch");
      else if (known === "write" || takes()) owed.set(key, "write");
    }
    if (owed.size > 0) this.#owed.set(target, owed);
    else this.#owed.delete(target);
  }
}

function without(claims: readonly Cidr[], others: readonly Cidr[]): Cidr[] {
  const found = new Set(others);
  return claims.filter((claim) => !found.has(claim));
}

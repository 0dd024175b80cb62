// Kilo forgets a key when any Peer that holds it is deleted. So after a surplus holder is deleted, the one that stays is
// written to once more. No plan shows that this is still to be done: the surplus is gone, and what is there is right.

import type { Operation, TargetPlan } from "../core/plan.ts";
import type { ClusterId } from "../core/world.ts";

/** The touches that could not be made when they were due. They end with the process; Kilo looks anew every five minutes. */
export class OwedTouches {
  readonly #owed = new Map<ClusterId, readonly Operation[]>();

  /** Takes note of what became of the operations of a target. */
  note(target: ClusterId, operations: readonly Operation[], done: ReadonlySet<Operation>): void {
    const before = this.#owed.get(target) ?? [];
    const hasDeleted = operations.some((operation) => operation.action === "delete" && done.has(operation));
    const owed = operations.filter(
      (operation) => operation.action === "touch" && !done.has(operation) && (hasDeleted || isAmong(before, operation)),
    );
    if (owed.length > 0) this.#owed.set(target, owed);
    else this.#owed.delete(target);
  }

  /** The operations of a target and the touches that are due: of objects that are still there and not written anyway. */
  added({ target, gap, items }: TargetPlan, operations: readonly Operation[]): readonly Operation[] {
    const owed = gap === undefined ? (this.#owed.get(target) ?? []) : [];
    const due = owed.flatMap((touch): Operation[] => {
      const item = items.find(({ name, uid }) => name === touch.name && uid === touch.uid);
      return item === undefined || isAmong(operations, touch)
        ? []
        : [{ ...touch, resourceVersion: item.resourceVersion }];
    });
    return due.length === 0 ? operations : [...operations, ...due];
  }
}

const isAmong = (operations: readonly Operation[], { name, uid }: Operation): boolean =>
  operations.some((operation) => operation.name === name && operation.uid === uid);

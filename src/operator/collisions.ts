// What could not be created because something of its name is there. A watch by label does not show it; a provider that is
// told looks it up by its name.

import type { Operation } from "../core/plan.ts";
import type { ClusterId } from "../core/world.ts";
import type { KubeFailure } from "../kube/failure.ts";

/** Names that are told of one cluster; what is beyond is told when others are done with. */
const namesMax = 1_000;

/** The names that were found to be taken. They end with the process: the next create finds them again. */
export class Collisions {
  readonly #taken = new Map<ClusterId, ReadonlySet<string>>();

  /** Takes note of what became of an operation. */
  note({ target, action, kind, name }: Operation, failure: KubeFailure | undefined): void {
    const before = this.#taken.get(target) ?? new Set<string>();
    const object = `${kind}/${name}`;
    const isTaken = action === "create" && failure?.kind === "exists" && before.size < namesMax;
    if (isTaken) this.#taken.set(target, new Set([...before, object]));
    else if (failure === undefined && before.has(object)) {
      this.#taken.set(target, new Set([...before].filter((each) => each !== object)));
    }
  }

  /** All of them, by cluster. */
  known(): ReadonlyMap<ClusterId, ReadonlySet<string>> {
    return this.#taken;
  }
}

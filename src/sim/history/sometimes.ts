// What a campaign must have come across: a rule that was never put to the test holds for nothing.

import type { KiloPlan } from "../../kilo/plan.ts";
import type { LogFields } from "../../kube/runtime.ts";

/** Why an operator writes. */
const operations = [
  "create NodeAppeared",
  "update KeyRotated",
  "update RangesChanged",
  "update EndpointChanged",
  "update RangeReleased",
  "update AnchorMoved",
  "update LabelsChanged",
  "touch SurplusHolderRemoved",
  "delete SurplusHolder",
  "delete MeshGone",
  "delete MeshTerminating",
  "delete TargetLeft",
  "delete SourceLeft",
  "delete NodeGone",
  "delete NodeInvalid",
  "delete KeyReplaced",
];

/** Why an operator keeps what nothing desires. */
const holds = [
  "hold IntentsStale",
  "hold IdentityDamaged",
  "hold MeshSuspended",
  "hold TargetStale",
  "hold SourceStale",
  "hold SourceAbsent",
  "hold SourceEmpty",
  "hold TargetUnclear",
  "hold SpecChange",
];

/** How requests fail. */
export const failures = ["unreachable", "gone", "401", "404", "409", "429", "500"].map(
  (outcome) => `answer ${outcome}`,
);

/** Everything that should be seen at least once in a long campaign. */
export const expected: readonly string[] = [...operations, ...holds, ...failures];

/** What one history came across. */
export abstract class Seen {
  readonly all = new Set<string>();

  outcome(outcome: string): void {
    if (!outcome.startsWith("2")) this.all.add(`answer ${outcome}`);
  }

  logged(message: string, fields: LogFields): void {
    if (message === "applied") this.all.add(`${String(fields["action"])} ${String(this.applied(fields))}`);
    if (message === "not applied") this.all.add(`failed ${String(fields["failure"])}`);
  }

  /** What stands for a write in the list of what should be seen. */
  protected abstract applied(fields: LogFields): unknown;
}

/** What a history of clusters with Kilo came across. */
export class KiloSeen extends Seen {
  protected applied({ reason }: LogFields): unknown {
    return reason;
  }

  planned({ targets }: KiloPlan): void {
    for (const { gap, desired, items } of targets) {
      if (gap !== undefined && items.length > 0) this.all.add(`hold ${gap.reason}`);
      const slots = new Set(desired.map(({ slot }) => slot));
      for (const { slot, standing } of items) {
        if (standing.owner === "us" && standing.ifUnwanted.do === "hold" && !slots.has(slot))
          this.all.add(`hold ${standing.ifUnwanted.reason}`);
      }
    }
  }
}

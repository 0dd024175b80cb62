// What a campaign must have come across: a rule that was never put to the test holds for nothing.

import type { CiliumPlan } from "../../cilium/plan.ts";
import type { LogFields } from "../../kube/runtime.ts";

/** How requests fail. */
const failures = ["unreachable", "gone", "401", "404", "409", "429", "500"].map((outcome) => `answer ${outcome}`);

/** How far meshes are. */
const phases = ["Connecting", "Connected", "Degraded", "Error"].map((phase) => `mesh ${phase}`);

/** What is written. */
const writes = ["create", "update", "delete"].flatMap((action) =>
  ["ConnectionSecret", "CiliumNetworkPolicy", "CiliumClusterwideNetworkPolicy"].map((kind) => `${action} ${kind}`),
);

/** Everything that should be seen at least once in a long campaign. */
export const expected: readonly string[] = [
  ...failures,
  ...phases,
  ...writes,
  "update ServiceAnnotations",
  "create RemoteUsers",
  "update RemoteUsers",
  "update ApiserverHostAliases",
];

/** What one history came across. */
export class CiliumSeen {
  readonly all = new Set<string>();

  outcome(outcome: string): void {
    if (!outcome.startsWith("2")) this.all.add(`answer ${outcome}`);
  }

  logged(message: string, { action, kind, failure }: LogFields): void {
    if (message === "applied") this.all.add(`${String(action)} ${String(kind)}`);
    if (message === "not applied") this.all.add(`failed ${String(failure)}`);
  }

  planned({ meshes }: CiliumPlan): void {
    for (const { phase } of meshes.values()) this.all.add(`mesh ${phase}`);
  }
}

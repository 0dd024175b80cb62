// What a campaign must have come across: a rule that was never put to the test holds for nothing.

import type { CiliumPlan } from "../../cilium/plan.ts";
import type { LogFields } from "../../kube/runtime.ts";
import { failures, Seen } from "../history/sometimes.ts";

/** How far meshes are. */
const phases = ["Connecting", "Connected", "Degraded", "Error"].map((phase) => `mesh ${phase}`);

/** What is written. */
const writes = ["create", "update", "delete"].flatMap((action) =>
  ["CiliumNetworkPolicy", "CiliumClusterwideNetworkPolicy"].map((kind) => `${action} ${kind}`),
);

/** Everything that should be seen at least once in a long campaign. */
export const expected: readonly string[] = [
  ...failures,
  ...phases,
  ...writes,
  "update ConnectionSecret",
  "update ServiceAnnotations",
  "update RemoteUsers",
  "update ApiserverHostAliases",
];

/** What a history of clusters with Cilium came across. */
export class CiliumSeen extends Seen {
  protected applied({ kind }: LogFields): unknown {
    return kind;
  }

  planned({ meshes }: CiliumPlan): void {
    for (const { phase } of meshes.values()) this.all.add(`mesh ${phase}`);
  }
}

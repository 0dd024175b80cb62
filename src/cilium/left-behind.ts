// What may be left of an intent that is being deleted, and that nothing can be proved of: objects that lost the record of
// what is ours, and clusters that are not seen any more because a kubeconfig leads elsewhere. None of it is touched; its
// people are told.

import type { Suspect } from "../core/plan.ts";
import type { CiliumIntent } from "./intent.ts";
import { meshFinder } from "./kind-gate.ts";
import type { PlanContext } from "./kind-plan.ts";
import { joined, type LeftParts, unrecordedAnnotations, unrecordedEntries } from "./lost-record.ts";
import type { MeshState } from "./mesh-state.ts";

/** What may be left of the intents that are being deleted. */
export function leftBehind(all: readonly CiliumIntent[], context: PlanContext): LeftParts {
  const meshOf = meshFinder(context.meshes);
  const outOfSight = (intent: string, mesh: MeshState | undefined): LeftParts => ({
    suspects: mesh === undefined ? [] : unseen(intent, mesh),
    diagnostics: [],
  });
  const found = all.flatMap((intent): readonly LeftParts[] => {
    if (!intent.terminating || intent.invalid !== undefined) return [];
    switch (intent.kind) {
      case "ClusterMeshBinding": {
        const mesh = context.meshes.get(intent.id);
        return mesh === undefined
          ? []
          : [outOfSight(intent.id, mesh), unrecordedEntries(intent, mesh, context.instance)];
      }
      case "GlobalService":
      case "ExposedService":
        return [outOfSight(intent.id, meshOf(intent)), unrecordedAnnotations(intent, context)];
      case "ConnectivityIntent":
        return [outOfSight(intent.id, meshOf(intent))];
      case "Fabric":
      case "KubernetesCluster":
        return [];
    }
  });
  return joined(found);
}

/** Members whose kubeconfigs lead to other clusters now: what those had before is out of sight. */
function unseen(intent: string, { members, strangers }: MeshState): readonly Suspect[] {
  return members.flatMap(({ name, view }) => {
    const where = strangers.get(name);
    const object = `what was written before the kubeconfig led to ${where ?? ""}`;
    return where === undefined ? [] : [{ intent, target: view.id, object }];
  });
}

// What is known of meshes and their clusters before any target is planned, said to people.

import type { Diagnostic } from "../core/diagnostic.ts";
import { type ClusterId, type ClusterView, lastSeen } from "../core/world.ts";
import { at, diagnose, whyUnseen } from "./diagnostics.ts";
import type { KiloFacts } from "./facts.ts";
import { intentsGap } from "./inventory.ts";
import type { KiloWorld, MeshPlan } from "./plan.ts";

/** What people should know while the list of meshes is not complete. */
export function intentFindings(world: KiloWorld): Diagnostic[] {
  const detail = intentsGap(world);
  return detail === undefined
    ? []
    : [diagnose("IntentsUnknown", at(undefined, undefined, "ClusterMesh", "*"), { detail })];
}

/** What people should know of the clusters of a mesh. */
export function memberFindings(
  { mesh, members }: MeshPlan,
  viewOf: ReadonlyMap<ClusterId, ClusterView<KiloFacts>>,
): Diagnostic[] {
  return members.flatMap(({ entry, cluster, observed, source }) => {
    const where = at(mesh.id, source?.name ?? entry.name, "Cluster", source?.name ?? entry.name);
    if (cluster === undefined) {
      return entry.secret === undefined
        ? []
        : [diagnose("SecretMissing", where, { entry: entry.name, secret: entry.secret })];
    }
    const found: Diagnostic[] = [...(source?.diagnostics ?? [])];
    const unused = viewOf.get(cluster)?.unused;
    if (unused !== undefined) found.push(diagnose("CredentialsUnused", where, { detail: unused.detail }));
    const unasked = viewOf.get(cluster)?.unasked;
    if (unasked !== undefined) found.push(diagnose("EndpointNamesTooMany", where, unasked));
    if (lastSeen(observed)?.peersServed === false) found.push(diagnose("PeerKindMissing", where, {}));
    if (observed.state !== "synced") found.push(whyUnseen(where, observed));
    return found;
  });
}

// Clusters that nobody names any more: they are let go when nothing of ours is left on them.

import type { Plan } from "../core/plan.ts";
import type { ClusterId } from "../core/world.ts";
import type { Fleet } from "../fleet/fleet.ts";
import type { Runtime } from "../kube/runtime.ts";
import type { PlanState } from "./plan-state.ts";

/** A cluster from which nothing went for so long is let go as it is. */
const leaveMaxMs = 600_000;

/** The fewest objects that were left on each cluster that is leaving, and since when. */
export type LeavingProgress = Map<ClusterId, { readonly objects: number; readonly sinceMs: number }>;

/** Whoever does not act cleans nothing up, and has no business on a cluster that nobody names any more. */
export function releaseUnnamed<Intent, Fact, Facts>({ directory }: Fleet<Intent, Fact, Facts>): void {
  for (const id of directory.leaving().keys()) directory.release(id);
}

/** Lets go of clusters that nobody names and that hold nothing we would delete. */
export function releaseLeft<Intent, Fact, Facts, P extends Plan>(
  state: PlanState<Intent, Facts, P>,
  { directory }: Fleet<Intent, Fact, Facts>,
  runtime: Runtime,
  progress: LeavingProgress,
): void {
  const leaving = directory.leaving();
  for (const id of progress.keys()) if (!leaving.has(id)) progress.delete(id);
  for (const [id, sinceMs] of leaving) {
    const view = state.viewOf.get(id);
    // The cluster itself stays where another access leads to it, and is cleaned through that.
    const stays = view?.accesses.some((access) => !leaving.has(access)) === true;
    const ours = [...(state.holdings.get(id)?.values() ?? [])].reduce((total, count) => total + count, 0);
    const clean = stays || view?.id !== id || (view.observed.state === "synced" && ours === 0);
    const nowMs = runtime.clock.monotonicMs();
    const before = progress.get(id) ?? { objects: Number.POSITIVE_INFINITY, sinceMs };
    // Writes are kept apart: a large cluster takes longer than anybody would wait for one that does not move.
    const isSeen = view?.observed.state === "synced";
    if (isSeen && ours < before.objects)
      progress.set(id, { objects: ours, sinceMs: progress.has(id) ? nowMs : sinceMs });
    const late = nowMs - (progress.get(id) ?? before).sinceMs > leaveMaxMs;
    if (!clean && !late) continue;
    if (!clean) {
      const hint = "nobody names this cluster any more; delete what is left by hand";
      runtime.log.warn("cluster released before it was clean", { cluster: id, objects: ours, hint });
    }
    directory.release(id);
  }
}

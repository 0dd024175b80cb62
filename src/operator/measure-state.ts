import type { Plan } from "../core/plan.ts";
import type { Metrics } from "./metrics.ts";
import type { PlanState } from "./plan-state.ts";

/** Tells the metrics what a plan found, and ends the series of clusters that were there before; answers with those there are. */
export function measureState<Intent, Facts, P extends Plan>(
  metrics: Metrics,
  state: PlanState<Intent, Facts, P>,
  before: ReadonlySet<string>,
): ReadonlySet<string> {
  const count = { synced: 0, stale: 0, absent: 0 };
  const clusters = new Set<string>();
  for (const { id, observed } of state.world.clusters) {
    const cluster: string = id;
    clusters.add(cluster);
    count[observed.state] += 1;
    metrics.clusterSynced({ cluster, synced: observed.state === "synced" });
    const { operations = [], holds = [] } = state.diffs.get(id) ?? {};
    metrics.operationsPending({ cluster, count: operations.length });
    const byReason = new Map<string, number>();
    for (const { reason, objects } of holds) byReason.set(reason, (byReason.get(reason) ?? 0) + objects.length);
    metrics.objectsHeld({ cluster, byReason });
  }
  for (const { target, desired } of state.plan.targets) metrics.peers({ cluster: target, count: desired.length });
  for (const cluster of before) if (!clusters.has(cluster)) metrics.forgetCluster(cluster);
  metrics.clusters(count);
  metrics.diagnostics(state.plan.diagnostics);
  return clusters;
}

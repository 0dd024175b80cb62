// A look at living clusters, the way the operator sees them: everything is listed and asked once, nothing is written.

import { diff } from "../core/diff.ts";
import type { Plan } from "../core/plan.ts";
import type { Provider, ProviderWorld } from "../core/provider.ts";
import { err, ok, type Result } from "../core/result.ts";
import type { ClusterId } from "../core/world.ts";
import { namesOf, startFleet } from "../fleet/fleet.ts";
import type { ClusterAccess } from "../kube/access.ts";
import { httpApi, type HttpOptions, httpServer } from "../kube/http.ts";
import type { Runtime } from "../kube/runtime.ts";
import type { Sources } from "./operator.ts";
import { machineNames } from "./surroundings.ts";

/** What looking needs. */
export type ObserveOptions<Intent, Fact, Facts, P extends Plan> = {
  readonly provider: Provider<Intent, Fact, Facts, P>;
  readonly access: ClusterAccess;
  /** Where intents and credentials come from, if not from the cluster that the access leads to. */
  readonly sources?: Sources<Intent, Fact, Facts, P> | undefined;
  readonly runtime: Runtime;
  readonly http: HttpOptions;
  /** How long to wait for clusters that do not answer. */
  readonly timeoutMs: number;
};

const pollMs = 20;

/**
 * Whatever would be created may be there already, where no watch shows it: whoever only looks does not find out by
 * trying. What was once asked about is asked about to the end.
 */
function noteCreates(plan: Plan, created: Map<ClusterId, Set<string>>): void {
  for (const target of plan.targets) {
    const names = created.get(target.target) ?? new Set<string>();
    created.set(target.target, names);
    for (const { action, kind, name } of diff(target).operations) if (action === "create") names.add(`${kind}/${name}`);
  }
}

/** The world as it is now; the error says why not even the local cluster could be read. */
export async function observeWorld<Intent, Fact, Facts, P extends Plan>(
  options: ObserveOptions<Intent, Fact, Facts, P>,
): Promise<Result<ProviderWorld<Intent, Facts>, string>> {
  const { provider, access, runtime, http, timeoutMs } = options;
  const { clock } = runtime;
  const api = httpApi(access, runtime, http);
  const fleet = startFleet({
    provider,
    ...options.sources?.((_, remote) => httpServer(remote, runtime, http)),
    local: { api, fingerprint: access.fingerprint, server: access.server },
    connect: (_, remote) => httpApi(remote, runtime, http),
    lookup: machineNames(clock).addressesOf,
    // Whoever looks once need not share with anybody, and should see what an operator with higher limits sees.
    namesPerCluster: Number.POSITIVE_INFINITY,
    secretsPerNamespace: Number.POSITIVE_INFINITY,
    runtime,
    budgets: http.budgets,
    onChange: () => undefined,
  });
  const isSettled = (): boolean => {
    // Of several shards that hold intents, each has to be listed once.
    if (fleet.localTrouble() !== undefined) return false;
    const views = fleet.directory.views();
    if (views.some(({ id }) => fleet.directory.isSettling(id))) return false;
    fleet.resolver.want(namesOf(views, provider.dnsNames));
    return fleet.resolver.unsettled().length === 0 && isAnswered();
  };
  let asked = "";
  const created = new Map<ClusterId, Set<string>>();
  // An answer may give rise to a new question: what depends on a mesh is asked once the mesh is known to work.
  const isAnswered = (): boolean => {
    if (provider.polls === undefined) return true;
    if (!fleet.directory.isAnswered()) return false;
    const world = fleet.world(new Map());
    noteCreates(provider.plan(world), created);
    const polls = provider.polls(provider.plan({ ...world, collisions: created }));
    const questions = JSON.stringify([...polls].map(([id, list]) => [id, list.map(({ key }) => key)]));
    if (questions === asked) return true;
    asked = questions;
    fleet.directory.poll(polls);
    return false;
  };
  try {
    const startedMs = clock.monotonicMs();
    while (!isSettled() && clock.monotonicMs() - startedMs < timeoutMs) await clock.sleep(pollMs);
    const reason = fleet.notReady();
    return reason === undefined ? ok(fleet.world(new Map())) : err(reason);
  } finally {
    await fleet.stop();
    await api.close();
  }
}

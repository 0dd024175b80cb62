// A look at living clusters, the way the operator sees them: everything is listed and asked once, nothing is written.

import type { Plan } from "../core/plan.ts";
import type { Provider, ProviderWorld } from "../core/provider.ts";
import { err, ok, type Result } from "../core/result.ts";
import { lastSeen } from "../core/world.ts";
import { startFleet } from "../fleet/fleet.ts";
import type { ClusterAccess } from "../kube/access.ts";
import { httpApi, type HttpOptions, httpServer } from "../kube/http.ts";
import type { Runtime } from "../kube/runtime.ts";
import type { Sources } from "./operator.ts";
import { addressesOf } from "./surroundings.ts";

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
    local: { api, fingerprint: access.fingerprint },
    connect: (_, remote) => httpApi(remote, runtime, http),
    lookup: addressesOf,
    runtime,
    onChange: () => undefined,
  });
  const isSettled = (): boolean => {
    // Of several shards that hold intents, each has to be listed once.
    if (fleet.localTrouble() !== undefined) return false;
    const views = fleet.directory.views();
    if (views.some(({ id }) => fleet.directory.isSettling(id))) return false;
    fleet.resolver.want(
      views.flatMap(({ observed }) => {
        const facts = lastSeen(observed);
        return facts === undefined ? [] : provider.dnsNames(facts);
      }),
    );
    return fleet.resolver.isSettled() && isAnswered();
  };
  let asked = "";
  // An answer may give rise to a new question: what depends on a mesh is asked once the mesh is known to work.
  const isAnswered = (): boolean => {
    if (provider.polls === undefined) return true;
    if (!fleet.directory.isAnswered()) return false;
    const polls = provider.polls(provider.plan(fleet.world(new Map())));
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

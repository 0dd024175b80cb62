// The operator put together: local API server → fleet → engine, led by one of several, until it is stopped.

import { setMaxListeners } from "node:events";
import type { LookupFunction } from "node:net";
import type { CustomResourceDefinition } from "../api/crd.ts";
import type { Budgets } from "../core/budgets.ts";
import type { GateRules } from "../core/gate.ts";
import type { Plan } from "../core/plan.ts";
import type { Provider } from "../core/provider.ts";
import type { ClusterId } from "../core/world.ts";
import { type FleetOptions, startFleet } from "../fleet/fleet.ts";
import type { Lookup } from "../fleet/resolver.ts";
import { type ClusterAccess, hostOf } from "../kube/access.ts";
import { apiOf, defaultRate, type HttpOptions, type HttpServer, httpServer } from "../kube/http.ts";
import { campaign } from "../kube/lease.ts";
import { rateLimits } from "../kube/rate-limit.ts";
import type { Runtime } from "../kube/runtime.ts";
import { installDefinition } from "./bootstrap.ts";
import { createEngine, type Engine, lanesFor } from "./engine.ts";
import type { Metrics } from "./metrics.ts";
import { createScheduler } from "./scheduler.ts";

/** Where intents and credentials come from, if not from our own cluster; who we are, if that is not what it is. */
export type Sources<Intent, Fact, Facts, P extends Plan> = (
  dial: (cluster: string, access: ClusterAccess) => HttpServer,
) => Pick<FleetOptions<Intent, Fact, Facts, P>, "instance" | "intents" | "secrets" | "probe">;

/** What an operator needs. */
export type OperatorOptions<Intent, Fact, Facts, P extends Plan> = {
  readonly provider: Provider<Intent, Fact, Facts, P>;
  readonly access: ClusterAccess;
  readonly runtime: Runtime;
  readonly metrics: Metrics;
  readonly lookup: Lookup;
  /** How the names of remote API servers are looked up; as the machine does, if nothing is said. */
  readonly connectLookup?: LookupFunction;
  /** How many names in endpoints are looked up for one cluster. */
  readonly namesPerCluster?: number;
  /** How many keys of Secrets the meshes of one namespace may refer to. */
  readonly secretsPerNamespace?: number;
  /** Our own definitions, which are installed before we act. */
  readonly definitions: readonly CustomResourceDefinition[];
  readonly sources?: Sources<Intent, Fact, Facts, P>;
  /** Who we are: in the Lease and in events. */
  readonly identity: string;
  readonly version: string;
  /** The Lease to hold while acting; without one this process acts at once. */
  readonly lease: { readonly namespace: string; readonly name: string } | undefined;
  readonly finalizerWaitMs: number;
  /** What decides about removals; the defaults, if nothing is said. */
  readonly rules?: GateRules;
  readonly concurrency: number;
  /** What each cluster may take; the defaults, if nothing is said. */
  readonly budgets?: Budgets | undefined;
  /** How to talk to the API server that an access leads to. */
  readonly http: (access: ClusterAccess) => HttpOptions;
  /** Hears of every secret that is held, so that none is ever logged. */
  readonly keepSecret: (text: string, cluster: string, server: string) => void;
};

/** A running operator. */
export type Operator = {
  /** Why it is not ready, if it is not: only the local cluster counts. */
  readonly notReady: () => string | undefined;
  /** Settles with the fault if it cannot go on: it could not give up its lead in time, for instance. */
  readonly ended: Promise<Error>;
  readonly stop: () => Promise<void>;
};

const drainMs = 5_000;

/** Starts the operator. */
export function startOperator<Intent, Fact, Facts, P extends Plan>(
  options: OperatorOptions<Intent, Fact, Facts, P>,
): Operator {
  const { provider, runtime, metrics } = options;
  const lifetime = new AbortController();
  setMaxListeners(0, lifetime.signal); // one per piece of work under way
  const limitOf = rateLimits(runtime.clock);
  const dial = (cluster: string, access: ClusterAccess, more: HttpOptions = {}): HttpServer => {
    for (const secret of [access.token, access.clientCertificate?.keyPem]) {
      if (secret !== undefined) options.keepSecret(secret.expose(), cluster, hostOf(access));
    }
    return httpServer(access, runtime, {
      ...options.http(access),
      ...(options.budgets === undefined ? {} : { budgets: options.budgets }),
      ...more,
      userAgent: `causeway/${options.version}`,
      onRequest: ({ verb, code, ms }) => metrics.apiRequest({ cluster, verb, code, ms }),
    });
  };
  // A cluster's own, so that new credentials bring no new allowance; not its host's alone, which others may share.
  const remoteOptions = (id: ClusterId, access: ClusterAccess): HttpOptions => {
    const { qps, burst } = { ...defaultRate, ...options.http(access) };
    const limit = limitOf(`${id} ${hostOf(access)}`, { qps, burst });
    return { limit, ...(options.connectLookup === undefined ? {} : { lookup: options.connectLookup }) };
  };
  const api = apiOf(dial("local", options.access));
  let engine: Engine | undefined; // made last: it needs the fleet and the scheduler, which need it
  const fleet = startFleet({
    provider,
    ...options.sources?.(dial),
    local: { api, fingerprint: options.access.fingerprint, server: options.access.server },
    connect: (id: ClusterId, access) => apiOf(dial(id, access, remoteOptions(id, access))),
    lookup: options.lookup,
    namesPerCluster: options.namesPerCluster,
    secretsPerNamespace: options.secretsPerNamespace,
    runtime,
    budgets: options.budgets,
    onChange: (origin) => engine?.changed(origin),
  });
  const scheduler = createScheduler({
    run: (key, signal) => engine?.run(key, signal) ?? Promise.resolve({}),
    runtime,
    signal: lifetime.signal,
    ...lanesFor(options.concurrency),
    onError: (key, error) => {
      metrics.internalError();
      const detail = error instanceof Error ? (error.stack ?? error.message) : String(error);
      runtime.log.error("a fault of ours", { key, detail, hint: "please report this" });
    },
    observe: {
      onStart: () => metrics.queueLength(scheduler.due()),
      onEnd: (key, ms) => {
        metrics.ran({ key, ms });
        metrics.queueLength(scheduler.due());
      },
    },
  });
  engine = createEngine({
    provider,
    fleet,
    scheduler,
    runtime,
    metrics,
    identity: options.identity,
    finalizerWaitMs: options.finalizerWaitMs,
    rules: options.rules,
  });
  const acting = engine;
  const lead = async (term: AbortSignal): Promise<void> => {
    setMaxListeners(0, term);
    metrics.leader(true);
    runtime.log.info("acting", { identity: options.identity });
    try {
      for (const each of options.definitions) await installDefinition(api, each, options.version, runtime, term);
      acting.act(term);
      await untilAborted(term);
    } catch (error) {
      if (!term.aborted) throw error;
    } finally {
      metrics.leader(false);
      await scheduler.idle();
    }
  };
  const led =
    options.lease === undefined
      ? lead(lifetime.signal)
      : campaign({
          api,
          ...options.lease,
          identity: options.identity,
          runtime,
          signal: lifetime.signal,
          onLeading: lead,
        });
  const ended = led.then(
    () => new Promise<never>(() => {}),
    (error: unknown) => (error instanceof Error ? error : new Error(JSON.stringify(error))),
  );
  return {
    notReady: fleet.localTrouble,
    ended,
    stop: async () => {
      lifetime.abort();
      await scheduler.drain(drainMs);
      await led.catch((error: unknown) => runtime.log.warn("leading did not end well", { detail: String(error) }));
      await fleet.stop();
      await api.close();
    },
  };
}

/** Waits for the end of a lifetime. */
export const untilAborted = (signal: AbortSignal): Promise<undefined> =>
  new Promise((resolve) => {
    if (signal.aborted) resolve(undefined);
    else signal.addEventListener("abort", () => resolve(undefined), { once: true });
  });

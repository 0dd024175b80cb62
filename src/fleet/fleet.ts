// Many clusters as one World: the intents, the clusters they name, and what is seen of each.

import type { Budgets } from "../core/budgets.ts";
import { fieldsOf, textOf } from "../core/json.ts";
import type { Plan } from "../core/plan.ts";
import type { Member, Provider, ProviderWorld } from "../core/provider.ts";
import { namespaces } from "../core/resource.ts";
import { err } from "../core/result.ts";
import { type ClusterId, type ClusterView, type Held, lastSeen, type NameQuota } from "../core/world.ts";
import type { KubeApi } from "../kube/api.ts";
import type { ClusterAccess } from "../kube/access.ts";
import type { Runtime } from "../kube/runtime.ts";
import { type Directory, openDirectory } from "./directory.ts";
import type { Probe } from "./polling.ts";
import { type Lookup, type Resolver, startResolver } from "./resolver.ts";
import { type IntentRecord, type IntentSource, type IntentSourceOptions, startIntentFeed } from "./intent-feed.ts";
import { secretsPerNamespace, type SecretWatch, watchSecrets } from "./secrets.ts";
import type { ChangeOrigin } from "./session.ts";

/** The fleet as the engine uses it. */
export type Fleet<Intent, Fact, Facts> = {
  /** Counts changes that came from outside; our own writes do not count. */
  readonly revision: () => number;
  /** Why nothing can be planned yet, if so. */
  readonly notReady: () => string | undefined;
  /** Why the local cluster is not, or no longer, in sync. */
  readonly localTrouble: () => string | undefined;
  readonly intents: () => ReadonlyMap<string, IntentRecord<Intent>>;
  readonly world: (held: ReadonlyMap<string, Held>) => ProviderWorld<Intent, Facts>;
  readonly directory: Directory<Fact, Facts>;
  readonly resolver: Resolver;
  readonly stop: () => Promise<void>;
};

/** Everything a fleet needs. */
export type FleetOptions<Intent, Fact, Facts, P extends Plan> = {
  readonly provider: Provider<Intent, Fact, Facts, P>;
  readonly local: { readonly api: KubeApi; readonly fingerprint: string; readonly server?: string };
  /** Who this control plane is; asked of the local cluster, if nobody says so. */
  readonly instance?: string | undefined;
  /** Where intents come from: the local cluster, if nobody says otherwise. */
  readonly intents?: (options: IntentSourceOptions<Intent>) => IntentSource<Intent>;
  /** Where credentials come from: Secrets of the local cluster, if nobody says otherwise. */
  readonly secrets?: (onChange: (secret?: string) => void) => SecretWatch;
  /** How many keys of Secrets the meshes of one namespace may refer to. */
  readonly secretsPerNamespace?: number | undefined;
  /** Asks what is no question to a pod; without, nobody can. */
  readonly probe?: Probe;
  readonly connect: (id: ClusterId, access: ClusterAccess) => KubeApi;
  readonly lookup: Lookup;
  /** How many names are looked up for one cluster. */
  readonly namesPerCluster?: number | undefined;
  readonly runtime: Runtime;
  /** What each cluster may take; the defaults, if nothing is said. */
  readonly budgets?: Budgets | undefined;
  readonly onChange: (origin: ChangeOrigin) => void;
};

const identityRetryMs = 2_000;

/** Starts observing; it ends with `stop`. */
export function startFleet<Intent, Fact, Facts, P extends Plan>(
  options: FleetOptions<Intent, Fact, Facts, P>,
): Fleet<Intent, Fact, Facts> {
  const { provider, local, runtime } = options;
  const lifetime = new AbortController();
  let revision = 0;
  let { instance } = options;
  let trouble = "the identity of the local cluster has not been read";
  const changed = (origin: ChangeOrigin): void => {
    if (origin === "world") revision += 1;
    options.onChange(origin);
  };
  const refresh = (secret?: string): void => directory.refresh(secret);
  const secrets =
    options.secrets?.(refresh) ??
    watchSecrets(local.api, runtime, refresh, options.secretsPerNamespace ?? secretsPerNamespace);
  const directory = openDirectory<Fact, Facts>({
    local,
    secrets,
    connect: options.connect,
    observation: provider,
    probe: options.probe ?? (() => Promise.resolve(err({ detail: "nobody here knows how to ask that" }))),
    uidOf: provider.uidOf,
    rightsFile: provider.rightsFile?.(),
    runtime,
    budgets: options.budgets,
    onChange: changed,
  });
  const resolver = startResolver(
    options.lookup,
    runtime,
    () => changed("world"),
    lifetime.signal,
    options.namesPerCluster,
  );
  let wanted = "";
  const open = options.intents ?? ((common) => startIntentFeed({ ...common, api: local.api }));
  const intents = open({
    kinds: provider.intents.kinds,
    runtime,
    budgets: options.budgets,
    onChange: (origin) => {
      if (!intents.isComplete()) return changed(origin);
      const members = membersOf(intents.records(), provider.intents.members);
      const names = members.map(({ id, name }) => `${id} ${name}`).join("\n");
      // What we wrote ourselves may be that a cluster has left.
      if (origin === "world" || names !== wanted) directory.want(members);
      wanted = names;
      changed(origin);
    },
    signal: lifetime.signal,
  });
  const identity = readIdentity().catch((error: unknown) => {
    if (!lifetime.signal.aborted) throw error;
  });

  async function readIdentity(): Promise<void> {
    while (instance === undefined) {
      const answer = await local.api.get(namespaces, { name: "kube-system" }, lifetime.signal);
      if (answer.ok) instance = textOf(fieldsOf(fieldsOf(answer.value)["metadata"])["uid"]);
      else {
        trouble = `the identity of the local cluster cannot be read: ${answer.error.detail}`;
        runtime.log.warn("the identity of the local cluster cannot be read", {
          error: answer.error.detail,
          hint: "the operator needs to get the namespace kube-system: see deploy/rbac/local.yaml",
        });
      }
      if (instance === undefined) await runtime.clock.sleep(identityRetryMs, lifetime.signal);
    }
    changed("world");
  }

  const notReady = (): string | undefined => {
    if (instance === undefined) return trouble;
    const observed = intents.observed();
    return observed.state === "absent" ? observed.because.detail : undefined;
  };
  return {
    revision: () => revision,
    notReady,
    localTrouble: () => {
      const observed = intents.observed();
      return notReady() ?? (observed.state === "stale" ? observed.because.detail : undefined);
    },
    intents: intents.records,
    world: (held) => ({
      revision,
      nowMs: runtime.clock.nowMs(),
      instance,
      intents: intents.observed(),
      unreadableIntents: [...intents.records().values()].flatMap(({ intent }) => (intent.ok ? [] : [intent.error])),
      clusters: withExcess(directory.views(), resolver.excess()),
      dns: resolver.answers(),
      held,
    }),
    directory,
    resolver,
    stop: async () => {
      lifetime.abort();
      await Promise.all([directory.stop(), secrets.stop(), intents.done, identity]);
    },
  };
}

/** The names that have to be resolved, by the cluster that mentions them. */
export function namesOf<Facts>(
  views: readonly ClusterView<Facts>[],
  dnsNames: (facts: Facts) => readonly string[],
): ReadonlyMap<ClusterId, readonly string[]> {
  const names = new Map<ClusterId, readonly string[]>();
  for (const { id, observed } of views) {
    const facts = lastSeen(observed);
    const own = facts === undefined ? [] : dnsNames(facts);
    if (own.length > 0) names.set(id, own);
  }
  return names;
}

/** Says of a cluster that not all of its names are looked up. */
function withExcess<Facts>(
  views: readonly ClusterView<Facts>[],
  excess: ReadonlyMap<ClusterId, NameQuota>,
): readonly ClusterView<Facts>[] {
  if (excess.size === 0) return views;
  return views.map((view) => {
    const unasked = excess.get(view.id);
    return unasked === undefined ? view : { ...view, unasked };
  });
}

function membersOf<Intent>(
  records: ReadonlyMap<string, IntentRecord<Intent>>,
  members: (intent: Intent, all: readonly Intent[]) => readonly Member[],
): readonly Member[] {
  const all = [...records.values()].flatMap(({ intent }) => (intent.ok ? [intent.value] : []));
  return all.flatMap((intent) => members(intent, all));
}

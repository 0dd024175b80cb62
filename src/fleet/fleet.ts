// Many clusters as one World: the intents of the local cluster, the clusters they name, and what is seen of each.

import { fieldsOf, listOf, textOf } from "../core/json.ts";
import type { Plan } from "../core/plan.ts";
import type { Member, Provider, ProviderWorld } from "../core/provider.ts";
import { namespaces } from "../core/resource.ts";
import type { Result } from "../core/result.ts";
import type { ClusterId, Observed } from "../core/world.ts";
import type { KubeApi } from "../kube/api.ts";
import { asWorldFailure } from "../kube/failure.ts";
import { startInformer } from "../kube/informer.ts";
import type { ClusterAccess } from "../kube/access.ts";
import type { Runtime } from "../kube/runtime.ts";
import { type Directory, openDirectory } from "./directory.ts";
import { type Lookup, type Resolver, startResolver } from "./resolver.ts";
import { watchSecrets } from "./secrets.ts";
import type { ChangeOrigin } from "./session.ts";

/** An intent with what the engine needs to write back to it. */
export type IntentRecord<Intent> = {
  readonly name: string;
  readonly namespace: string;
  readonly uid: string | undefined;
  readonly resourceVersion: string | undefined;
  readonly generation: number;
  /** When it was deleted, if it was. */
  readonly deletedMs: number | undefined;
  readonly finalizers: readonly string[];
  readonly annotations: Readonly<Record<string, unknown>>;
  readonly status: Readonly<Record<string, unknown>>;
  readonly intent: Result<Intent, { readonly detail: string }>;
};

/** The fleet as the engine uses it. */
export type Fleet<Intent, Facts> = {
  readonly local: KubeApi;
  /** Counts changes that came from outside; our own writes do not count. */
  readonly revision: () => number;
  /** Why nothing can be planned yet, if so. */
  readonly notReady: () => string | undefined;
  /** Why the local cluster is not, or no longer, in sync. */
  readonly localTrouble: () => string | undefined;
  readonly intents: () => ReadonlyMap<string, IntentRecord<Intent>>;
  readonly world: (heldSinceMs: ReadonlyMap<string, number>) => ProviderWorld<Intent, Facts>;
  readonly directory: Directory<Facts>;
  readonly resolver: Resolver;
  readonly absorbIntent: (raw: unknown) => void;
  readonly stop: () => Promise<void>;
};

/** Everything a fleet needs. */
export type FleetOptions<Intent, Fact, Facts, P extends Plan> = {
  readonly provider: Provider<Intent, Fact, Facts, P>;
  readonly local: { readonly api: KubeApi; readonly fingerprint: string };
  readonly connect: (id: ClusterId, access: ClusterAccess) => KubeApi;
  readonly lookup: Lookup;
  readonly runtime: Runtime;
  readonly onChange: (origin: ChangeOrigin) => void;
};

const identityRetryMs = 2_000;

/** Starts observing; it ends with `stop`. */
export function startFleet<Intent, Fact, Facts, P extends Plan>(
  options: FleetOptions<Intent, Fact, Facts, P>,
): Fleet<Intent, Facts> {
  const { provider, local, runtime } = options;
  const lifetime = new AbortController();
  let revision = 0;
  let instance: string | undefined;
  let trouble = "the identity of the local cluster has not been read";
  const changed = (origin: ChangeOrigin): void => {
    if (origin === "world") revision += 1;
    options.onChange(origin);
  };
  const secrets = watchSecrets(local.api, runtime, () => directory.refresh());
  const directory = openDirectory<Fact, Facts>({
    local,
    secrets,
    connect: options.connect,
    observation: provider,
    uidOf: provider.uidOf,
    runtime,
    onChange: changed,
  });
  const resolver = startResolver(options.lookup, runtime, () => changed("world"), lifetime.signal);
  let absorbing = false;
  let wanted = "";
  const intents = startInformer<IntentRecord<Intent>>({
    api: local.api,
    resource: provider.intents.resource,
    scope: {},
    read: (raw) => readRecord(raw, provider.intents.read),
    same: (a, b) => a.uid === b.uid && a.resourceVersion === b.resourceVersion,
    onChange: () => {
      const members = membersOf(records(), provider.intents.members);
      const names = members.map(({ id, name }) => `${id} ${name}`).join("\n");
      // What we wrote ourselves may be that a cluster has left.
      if (!absorbing || names !== wanted) directory.want(members);
      wanted = names;
      changed(absorbing ? "own" : "world");
    },
    runtime,
    signal: lifetime.signal,
  });
  let known: { readonly objects: unknown; readonly records: ReadonlyMap<string, IntentRecord<Intent>> } | undefined;
  const records = (): ReadonlyMap<string, IntentRecord<Intent>> => {
    const view = intents.view();
    if (view.state === "syncing") return new Map();
    if (known?.objects !== view.objects) {
      known = { objects: view.objects, records: new Map([...view.objects].map(([key, { fact }]) => [key, fact])) };
    }
    return known.records;
  };
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
    const view = intents.view();
    if (view.state !== "syncing") return undefined;
    return view.failure?.detail ?? `${provider.intents.resource.plural} have not been listed`;
  };
  return {
    local: local.api,
    revision: () => revision,
    notReady,
    localTrouble: () => {
      const view = intents.view();
      return notReady() ?? (view.state === "stale" ? view.failure.detail : undefined);
    },
    intents: records,
    world: (heldSinceMs) => {
      const clusters = directory.views();
      const found = [...records().values()];
      return {
        revision,
        nowMs: runtime.clock.nowMs(),
        instance,
        intents: observeIntents(intents.view(), found),
        unreadableIntents: found.flatMap(({ intent }) => (intent.ok ? [] : [intent.error])),
        clusters,
        dns: resolver.answers(),
        heldSinceMs,
      };
    },
    directory,
    resolver,
    absorbIntent: (raw) => {
      absorbing = true;
      try {
        intents.absorb(raw);
      } finally {
        absorbing = false;
      }
    },
    stop: async () => {
      lifetime.abort();
      await Promise.all([directory.stop(), secrets.stop(), intents.done, identity]);
    },
  };
}

function membersOf<Intent>(
  records: ReadonlyMap<string, IntentRecord<Intent>>,
  members: (intent: Intent) => readonly Member[],
): readonly Member[] {
  return [...records.values()].flatMap(({ intent }) => (intent.ok ? members(intent.value) : []));
}

function observeIntents<Intent>(
  view: ReturnType<ReturnType<typeof startInformer<IntentRecord<Intent>>>["view"]>,
  records: readonly IntentRecord<Intent>[],
): Observed<readonly Intent[]> {
  const value = records.flatMap(({ intent }) => (intent.ok ? [intent.value] : []));
  switch (view.state) {
    case "syncing": {
      const detail = "the first list has not completed";
      return {
        state: "absent",
        because: view.failure === undefined ? { kind: "unreachable", detail } : asWorldFailure(view.failure),
      };
    }
    case "stale":
      return { state: "stale", because: asWorldFailure(view.failure), value };
    case "synced":
      if (view.unkeyed === 0) return { state: "synced", value };
      return { state: "stale", because: { kind: "incomplete", detail: `${view.unkeyed} have no name` }, value };
  }
}

function readRecord<Intent>(
  raw: unknown,
  read: (raw: unknown) => Result<Intent, { readonly detail: string }>,
): IntentRecord<Intent> {
  const { metadata, status } = fieldsOf(raw);
  const { name, namespace, uid, resourceVersion, generation, deletionTimestamp, finalizers, annotations } =
    fieldsOf(metadata);
  const deletedMs = typeof deletionTimestamp === "string" ? Date.parse(deletionTimestamp) : undefined;
  return {
    name: textOf(name) ?? "",
    namespace: textOf(namespace) ?? "",
    uid: textOf(uid),
    resourceVersion: textOf(resourceVersion),
    generation: typeof generation === "number" ? generation : 0,
    deletedMs,
    finalizers: listOf(finalizers).flatMap((each) => textOf(each) ?? []),
    annotations: fieldsOf(annotations),
    status: fieldsOf(status),
    intent: read(raw),
  };
}

// Intents of every kind, as one API server shows them: its own, or those of all workspaces behind a virtual one.

import type { Budgets } from "../core/budgets.ts";
import { fieldsOf, listOf, textOf } from "../core/json.ts";
import type { IntentKind } from "../core/provider.ts";
import type { Resource } from "../core/resource.ts";
import type { Result } from "../core/result.ts";
import type { Failure, Observed } from "../core/world.ts";
import type { KubeApi } from "../kube/api.ts";
import { asWorldFailure } from "../kube/failure.ts";
import { type Informer, type InformerView, startInformer } from "../kube/informer.ts";
import type { Runtime } from "../kube/runtime.ts";
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
  /** What plans call it. */
  readonly id: string;
  readonly home: IntentHome;
};

/** Where an intent is written to. */
export type IntentHome = {
  readonly api: KubeApi;
  readonly resource: Resource;
  /** Nothing is ever written to it. */
  readonly passive: boolean;
  /** Takes in the answer to a write of our own. */
  readonly absorb: (raw: unknown) => void;
};

/** Where intents come from. */
export type IntentSource<Intent> = {
  /** By id; the same map until something changes. */
  readonly records: () => ReadonlyMap<string, IntentRecord<Intent>>;
  readonly observed: () => Observed<readonly Intent[]>;
  /** Whether every place that may hold intents was listed at least once: before, an older claim may be unseen. */
  readonly isComplete: () => boolean;
  /** Ends with the signal that it was started with. */
  readonly done: Promise<void>;
};

/** What every source of intents needs. */
export type IntentSourceOptions<Intent> = {
  readonly kinds: readonly IntentKind<Intent>[];
  readonly runtime: Runtime;
  readonly budgets?: Budgets | undefined;
  readonly onChange: (origin: ChangeOrigin) => void;
  readonly signal: AbortSignal;
};

/** What watching one API server for intents needs. */
export type IntentFeedOptions<Intent> = IntentSourceOptions<Intent> & {
  readonly api: KubeApi;
  /** Several workspaces in one list: which one an object is in, and how to write to it. */
  readonly workspaces?: {
    readonly of: (raw: unknown) => string | undefined;
    readonly api: (workspace: string) => KubeApi;
  };
};

/** Watches every kind of intents on one API server. */
export function startIntentFeed<Intent>(options: IntentFeedOptions<Intent>): IntentSource<Intent> {
  const { api, kinds, runtime, signal, workspaces } = options;
  let absorbing = false;
  const watching = kinds.map((kind) => {
    const absorb = (raw: unknown): void => {
      absorbing = true;
      try {
        informer.absorb(raw);
      } finally {
        absorbing = false;
      }
    };
    const informer: Informer<IntentRecord<Intent>> = startInformer<IntentRecord<Intent>>({
      api,
      resource: kind.resource,
      scope: {},
      ...(workspaces === undefined ? {} : { workspaceOf: workspaces.of }),
      read: (raw) => {
        const workspace = workspaces?.of(raw);
        const home = {
          api: workspace === undefined ? api : (workspaces?.api(workspace) ?? api),
          resource: kind.resource,
          passive: kind.passive === true,
          absorb,
        };
        return recordOf(raw, kind, workspace, home);
      },
      same: (a, b) => a.uid === b.uid && a.resourceVersion === b.resourceVersion,
      onChange: () => options.onChange(absorbing ? "own" : "world"),
      runtime,
      budgets: options.budgets,
      objects: "objects.intents",
      signal,
    });
    return { kind, informer };
  });
  let known:
    | { readonly of: readonly unknown[]; readonly records: ReadonlyMap<string, IntentRecord<Intent>> }
    | undefined;
  const records = (): ReadonlyMap<string, IntentRecord<Intent>> => {
    const views = watching.map(({ informer }) => informer.view());
    const objects = views.map((view) => (view.state === "syncing" ? undefined : view.objects));
    if (known === undefined || objects.some((each, index) => each !== known?.of[index])) {
      const found = new Map<string, IntentRecord<Intent>>();
      for (const each of objects) for (const { fact } of each?.values() ?? []) found.set(fact.id, fact);
      known = { of: objects, records: found };
    }
    return known.records;
  };
  const observed = (): Observed<readonly Intent[]> => {
    const value = [...records().values()].flatMap(({ intent }) => (intent.ok ? [intent.value] : []));
    return observe(
      watching.map(({ kind, informer }) => ({ passive: kind.passive === true, view: informer.view() })),
      value,
    );
  };
  return {
    records,
    observed,
    isComplete: () => observed().state !== "absent",
    done: Promise.all(watching.map(({ informer }) => informer.done)).then(() => undefined),
  };
}

type KindView = { readonly passive: boolean; readonly view: InformerView<unknown> };

/** Absent until every kind was listed, stale as soon as one is; what is only looked at may not be served at all. */
function observe<Intent>(views: readonly KindView[], value: readonly Intent[]): Observed<readonly Intent[]> {
  let stale: Failure | undefined;
  for (const { passive, view } of views) {
    if (passive && view.state !== "synced" && view.failure !== undefined && isNotServed(view.failure.kind)) continue;
    if (view.state === "syncing") {
      const detail = "the first list has not completed";
      const because: Failure =
        view.failure === undefined ? { kind: "unreachable", detail } : asWorldFailure(view.failure);
      return { state: "absent", because };
    }
    if (view.state === "stale") stale ??= asWorldFailure(view.failure);
    else if (view.unkeyed > 0) stale ??= { kind: "incomplete", detail: `${view.unkeyed} have no name` };
  }
  return stale === undefined ? { state: "synced", value } : { state: "stale", because: stale, value };
}

const isNotServed = (kind: string): boolean => kind === "notFound" || kind === "forbidden";

function recordOf<Intent>(
  raw: unknown,
  { read, idOf }: IntentKind<Intent>,
  workspace: string | undefined,
  home: IntentHome,
): IntentRecord<Intent> {
  const { metadata, status } = fieldsOf(raw);
  const { name, namespace, uid, resourceVersion, generation, deletionTimestamp, finalizers, annotations } =
    fieldsOf(metadata);
  const deletedMs = typeof deletionTimestamp === "string" ? Date.parse(deletionTimestamp) : undefined;
  const place = { workspace, namespace: textOf(namespace) ?? "", name: textOf(name) ?? "" };
  return {
    name: place.name,
    namespace: place.namespace,
    uid: textOf(uid),
    resourceVersion: textOf(resourceVersion),
    generation: typeof generation === "number" ? generation : 0,
    deletedMs,
    finalizers: listOf(finalizers).flatMap((each) => textOf(each) ?? []),
    annotations: fieldsOf(annotations),
    status: fieldsOf(status),
    intent: read(raw, place),
    id: idOf(place),
    home,
  };
}

// One cluster's lifetime: its connection, its informers, and what is known of it as one observed value.

import { setMaxListeners } from "node:events";
import { type Budgets, defaultBudgets, objectsBudget, overBudget } from "../core/budgets.ts";
import { fieldsOf, textOf } from "../core/json.ts";
import type { Poll, ReadOnce, Seen, Watched } from "../core/provider.ts";
import { type Resource, resourceName, type Scope } from "../core/resource.ts";
import { bytesOf } from "../core/size.ts";
import type { Observed } from "../core/world.ts";
import type { KubeApi } from "../kube/api.ts";
import type { Room } from "../kube/fact-store.ts";
import { asWorldFailure, type KubeFailure } from "../kube/failure.ts";
import { type Informer, type InformerView, startInformer } from "../kube/informer.ts";
import type { Runtime } from "../kube/runtime.ts";
import { type Probe, startPolling } from "./polling.ts";

/** What a session watches and reads, and how it becomes facts. */
export type Observation<Fact, Facts> = {
  readonly watches: readonly Watched<Fact>[];
  readonly reads: readonly ReadOnce<Fact>[];
  readonly facts: (seen: Seen<Fact>) => Facts;
};

/** A connection to one cluster. */
export type Session<Fact, Facts> = {
  readonly api: KubeApi;
  /** Asks exactly this from now on, again and again. */
  readonly poll: (polls: readonly Poll<Fact>[]) => void;
  /** Whether everything that is asked was answered once. */
  readonly isAnswered: () => boolean;
  /** What is known of the cluster now; the same value until something changes. */
  readonly observed: () => Observed<Facts>;
  /** Whether the first answer, good or bad, is still awaited. */
  readonly isSettling: () => boolean;
  /** Takes in the answer to a write of our own, before the watch brings it. */
  readonly absorb: (resource: Resource, raw: unknown) => void;
  readonly forget: (resource: Resource, key: string, uid: string | undefined) => void;
  /** Says that we are writing to an object: until the answer is called, what the watch brings of it counts as our own. */
  readonly expect: (resource: Resource, key: string) => () => void;
  /** Ends the watches and the connection. */
  readonly stop: () => Promise<void>;
};

/** Who made a change: the world, or we ourselves. */
export type ChangeOrigin = "world" | "own";

/** Everything a session needs. */
export type SessionOptions<Fact, Facts> = {
  readonly api: KubeApi;
  readonly observation: Observation<Fact, Facts>;
  readonly probe: Probe;
  readonly runtime: Runtime;
  readonly budgets?: Budgets | undefined;
  readonly onChange: (origin: ChangeOrigin) => void;
};

/** Everything that an observed value is made of. */
type Sight<Fact> = {
  readonly views: readonly WatchedView<Fact>[];
  readonly once: OnceView<Fact>;
  readonly polled: readonly Fact[];
};

/** Connects, lists and watches until it is stopped. */
export function startSession<Fact, Facts>(options: SessionOptions<Fact, Facts>): Session<Fact, Facts> {
  const { api, observation, runtime } = options;
  const lifetime = new AbortController();
  setMaxListeners(0, lifetime.signal); // one per kind that is watched, and per question that is asked
  let known: (Sight<Fact> & { readonly value: Observed<Facts> }) | undefined;
  let writing = false;
  const room: Room = { bytes: 0 };
  const expected = new Map<Resource, Set<string>>();
  const watched = observation.watches.map((watch) => ({
    watch,
    informer: startInformer<Fact>({
      api,
      resource: watch.resource,
      scope: watch.scope ?? {},
      read: watch.read,
      same: watch.same,
      onChange: (key) => {
        if (key === undefined && watched.some(({ informer }) => informer.view().state === "synced")) once.wake();
        const isEcho = key !== undefined && expected.get(watch.resource)?.has(key) === true;
        options.onChange(writing || isEcho ? "own" : "world");
      },
      runtime,
      budgets: options.budgets,
      room,
      signal: lifetime.signal,
    }),
  }));
  const once = startReads(options, room, lifetime.signal);
  const polling = startPolling<Fact>({
    api,
    probe: options.probe,
    runtime,
    signal: lifetime.signal,
    onChange: () => options.onChange("world"),
  });
  const informerOf = (resource: Resource, key: string): Informer<Fact> | undefined =>
    watched.find(({ watch }) => watch.resource === resource && covers(watch.scope ?? {}, resource, key))?.informer;
  const asOwn = (write: () => void): void => {
    writing = true;
    try {
      write();
    } finally {
      writing = false;
    }
  };
  return {
    api,
    observed: () => {
      const views = watched.map(({ watch, informer }) => ({ watch, view: informer.view() }));
      const read = once.view();
      const polled = polling.facts();
      // Compared by identity: a heartbeat announces no change, yet the next look must see it.
      if (
        known === undefined ||
        known.once !== read ||
        known.polled !== polled ||
        !views.every((each, index) => isSameView(each, known?.views[index]))
      ) {
        const sight = { views, once: read, polled };
        known = { ...sight, value: observe(sight, observation.facts) };
      }
      return known.value;
    },
    isSettling: () =>
      once.isSettling() ||
      polling.isSettling() ||
      watched.some(({ informer }) => {
        const view = informer.view();
        return view.state === "syncing" && view.failure === undefined;
      }),
    poll: polling.want,
    isAnswered: polling.isAnswered,
    absorb: (resource, raw) =>
      asOwn(() => {
        polling.settle(resource, keyOf(raw), raw);
        informerOf(resource, keyOf(raw))?.absorb(raw);
      }),
    forget: (resource, key, uid) =>
      asOwn(() => {
        polling.settle(resource, key, undefined);
        informerOf(resource, key)?.forget(key, uid);
      }),
    expect: (resource, key) => {
      const keys = expected.get(resource) ?? new Set();
      expected.set(resource, keys.add(key));
      return () => void keys.delete(key);
    },
    stop: async () => {
      lifetime.abort();
      await Promise.all([...watched.map(({ informer }) => informer.done), once.done, polling.done()]);
      await api.close();
    },
  };
}

function keyOf(raw: unknown): string {
  const { namespace, name } = fieldsOf(fieldsOf(raw)["metadata"]);
  return textOf(namespace) === undefined ? String(name) : `${String(namespace)}/${String(name)}`;
}

/** Whether a watch would show an object; what a label selector leaves out is not ours to write. */
function covers({ namespace, fieldSelector }: Scope, { namespaced }: Resource, key: string): boolean {
  const [space, name] = namespaced ? [key.slice(0, key.indexOf("/")), key.slice(key.indexOf("/") + 1)] : ["", key];
  if (namespace !== undefined && namespace !== space) return false;
  return fieldSelector === undefined || fieldSelector === `metadata.name=${name}`;
}

type Reads<Fact> = {
  readonly view: () => OnceView<Fact>;
  readonly isSettling: () => boolean;
  /** The server answers again: there is no need to wait any longer. */
  readonly wake: () => void;
  readonly done: Promise<void>;
};

type OnceView<Fact> =
  | { readonly state: "done"; readonly facts: readonly Fact[] }
  | { readonly state: "open"; readonly failure: KubeFailure | undefined };

const retryMs = { first: 2_000, most: 30_000 };

/** Reads what is read once; only a server that does not answer keeps us from being done. */
function startReads<Fact, Facts>(
  { api, observation, runtime, budgets = defaultBudgets, onChange }: SessionOptions<Fact, Facts>,
  room: Room,
  signal: AbortSignal,
): Reads<Fact> {
  let view: OnceView<Fact> =
    observation.reads.length === 0 ? { state: "done", facts: [] } : { state: "open", failure: undefined };
  let waitMs = retryMs.first;
  let wake = (): void => undefined;
  const pause = async (ms: number): Promise<void> => {
    const nap = new AbortController();
    wake = () => nap.abort();
    signal.addEventListener("abort", wake, { once: true });
    await runtime.clock.sleep(ms, nap.signal).catch(() => undefined);
    signal.removeEventListener("abort", wake);
    signal.throwIfAborted();
  };
  const run = async (): Promise<void> => {
    const facts: Fact[] = [];
    for (const read of observation.reads) {
      for (;;) {
        const found = await readOnce(api, read, { facts, room, budgets }, signal);
        if (found === undefined) break;
        const isNews = view.state === "done" || view.failure?.detail !== found.detail;
        if (isNews) {
          view = { state: "open", failure: found };
          onChange("world");
        }
        await pause(waitMs * (1 - runtime.random() / 4));
        waitMs = Math.min(waitMs * 2, retryMs.most);
      }
    }
    view = { state: "done", facts };
    onChange("world");
  };
  const done =
    view.state === "done"
      ? Promise.resolve()
      : run().catch((error: unknown) => {
          if (!signal.aborted) throw error;
        });
  const isSettling = (): boolean => view.state === "open" && view.failure === undefined;
  return { view: () => view, isSettling, wake: () => wake(), done };
}

/** What was read once so far, and what it may take. */
type Reading<Fact> = { readonly facts: Fact[]; readonly room: Room; readonly budgets: Budgets };

/** Reads one thing; answers with the failure only if trying again may help. */
async function readOnce<Fact>(
  api: KubeApi,
  { resource, name, read }: ReadOnce<Fact>,
  { facts, room, budgets }: Reading<Fact>,
  signal: AbortSignal,
): Promise<KubeFailure | undefined> {
  const found: Fact[] = [];
  const objects = objectsBudget(resource.plural);
  let bytes = 0;
  let excess: KubeFailure | undefined;
  const take = (raw: unknown): void => {
    if (excess !== undefined) return;
    const fact = read(raw);
    bytes += bytesOf(fact);
    found.push(fact);
    if (found.length > budgets[objects]) excess = overBudget(objects, found.length, budgets);
    if (room.bytes + bytes > budgets["facts-bytes"]) excess = overBudget("facts-bytes", room.bytes + bytes, budgets);
  };
  const answer =
    name === undefined
      ? await api.list(resource, {}, (items) => items.forEach(take), signal)
      : await api.get(resource, { name }, signal);
  if (!answer.ok) return mayPass.has(answer.error.kind) ? answer.error : undefined;
  if (name !== undefined) take(answer.value);
  if (excess !== undefined) return excess;
  room.bytes += bytes;
  for (const fact of found) facts.push(fact);
  return undefined;
}

/** Failures after which what is read once is asked for again. */
const mayPass: ReadonlySet<KubeFailure["kind"]> = new Set([
  "unreachable",
  "throttled",
  "garbled",
  "overBudget",
  "unauthorized",
]);

function isSameView<Fact>({ view: a }: WatchedView<Fact>, other: WatchedView<Fact> | undefined): boolean {
  const b = other?.view;
  if (b === undefined || a.state !== b.state) return false;
  const objects = a.state === "syncing" ? undefined : a.objects;
  const unkeyed = a.state === "syncing" ? 0 : a.unkeyed;
  const failure = a.state === "synced" ? undefined : a.failure;
  return (
    objects === (b.state === "syncing" ? undefined : b.objects) &&
    unkeyed === (b.state === "syncing" ? 0 : b.unkeyed) &&
    failure === (b.state === "synced" ? undefined : b.failure)
  );
}

type WatchedView<Fact> = { readonly watch: Watched<Fact>; readonly view: InformerView<Fact> };

const notListed = "the first list has not completed";

/**
 * Several kinds as one: absent until every kind was listed, stale as soon as one of them is. A kind that the API server
 * does not serve and that may be missing has no objects, which is knowledge like any other.
 */
function observe<Fact, Facts>(
  { views, once, polled }: Sight<Fact>,
  assemble: (seen: Seen<Fact>) => Facts,
): Observed<Facts> {
  const missing = new Set<Resource>();
  const facts: Fact[] = [];
  let stale: KubeFailure | undefined;
  for (const { watch, view } of views) {
    if (view.state !== "synced" && watch.mayBeMissing && view.failure?.kind === "notFound") {
      missing.add(watch.resource);
      continue;
    }
    if (view.state === "syncing") return absent(view.failure, watch.resource);
    if (view.state === "stale") stale ??= named(view.failure, watch.resource);
    if (view.unkeyed > 0) {
      stale ??= { kind: "garbled", detail: `${view.unkeyed} ${watch.resource.plural} have no name` };
    }
    for (const { fact } of view.objects.values()) facts.push(fact);
  }
  if (once.state === "open") return absent(once.failure, undefined);
  for (const fact of once.facts) facts.push(fact);
  for (const fact of polled) facts.push(fact);
  const value = assemble({ facts, missing });
  return stale === undefined ? { state: "synced", value } : { state: "stale", because: asWorldFailure(stale), value };
}

function absent(failure: KubeFailure | undefined, resource: Resource | undefined): Observed<never> {
  if (failure === undefined) return { state: "absent", because: { kind: "unreachable", detail: notListed } };
  const told = resource === undefined ? failure : named(failure, resource);
  return { state: "absent", because: asWorldFailure(told) };
}

const named = (failure: KubeFailure, resource: Resource): KubeFailure =>
  failure.detail.includes(resource.plural)
    ? failure
    : { ...failure, detail: `${resourceName(resource)}: ${failure.detail}` };

// An API server in memory, for tests of what talks to one. It behaves, except where it is told not to.

import { canonicalText, fieldsOf, textOf } from "../../src/core/json.ts";
import type { Resource, Scope } from "../../src/core/resource.ts";
import { apiVersionOf, resourceName } from "../../src/core/resource.ts";
import { err, ok, type Result } from "../../src/core/result.ts";
import type { KubeApi, ObjectRef, PodQuestion, Preconditions, WatchEvent } from "../../src/kube/api.ts";
import type { KubeFailure } from "../../src/kube/failure.ts";

/** Something that can be asked of the server. */
export type Verb = "list" | "watch" | "get" | "create" | "apply" | "patch" | "replace" | "remove";

/** An object as the server has it. */
export type Stored = {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: {
    readonly name: string;
    readonly namespace?: string;
    readonly uid: string;
    readonly resourceVersion: string;
    readonly [more: string]: unknown;
  };
  readonly [more: string]: unknown;
};

/** How a call goes wrong: with a failure, before or (as if the answer were lost) after it was carried out; or never. */
export type Fault = { readonly failure: KubeFailure; readonly after?: boolean } | "hang";

type Change = { readonly revision: number; readonly type: "ADDED" | "MODIFIED" | "DELETED"; readonly object: Stored };
type Watcher = {
  readonly kind: string;
  readonly scope: Scope;
  readonly deliver: (event: WatchEvent) => void;
  readonly end: (result: Result<undefined, KubeFailure>) => void;
  readonly queue: WatchEvent[];
};
type Answer<T> = Promise<Result<T, KubeFailure>>;

/** What a server held at some time, to be restored from. */
export type Backup = { readonly revision: number; readonly objects: ReadonlyMap<string, ReadonlyMap<string, Stored>> };

export class MemoryApi implements KubeApi {
  readonly server = "memory:6443";
  /** Every call, in order: `list peers.kilo.squat.ai`, `watch nodes from 7`. */
  readonly calls: string[] = [];
  /** Runs before each page of a list but the first. */
  beforePage: () => void = () => undefined;
  pageSize = 500;
  #revision = 100;
  #compacted = 0;
  #uids = 0;
  #objects = new Map<string, Map<string, Stored>>();
  #history = new Map<string, Change[]>();
  readonly #watchers = new Set<Watcher>();
  readonly #once = new Map<Verb, Fault[]>();
  readonly #always = new Map<Verb, Fault>();
  #lagging = false;

  /** Watches under way. */
  get openWatches(): number {
    return this.#watchers.size;
  }

  /** The version of the latest change. */
  get revision(): string {
    return String(this.#revision);
  }

  // ── What others do to the server ──

  /** Another client's write: creates or replaces. */
  put(resource: Resource, body: object): Stored {
    return this.#store(resource, body, this.#find(resource, body));
  }

  /** Another client's removal. */
  drop(resource: Resource, ref: ObjectRef): void {
    const held = this.#kind(resource).get(keyOf(ref));
    if (held !== undefined) this.#erase(resource, held);
  }

  /** What there is, as it is. */
  peek(resource: Resource, ref: ObjectRef): Stored | undefined {
    return this.#kind(resource).get(keyOf(ref));
  }

  /** Lets the version grow without a change to the kinds at hand. */
  pass(revisions: number): void {
    this.#revision += revisions;
  }

  // ── What goes wrong ──

  /** The next calls of a verb go wrong, one after the other. */
  failNext(verb: Verb, ...faults: readonly (Fault | KubeFailure)[]): void {
    const queue = this.#once.get(verb) ?? [];
    this.#once.set(verb, [...queue, ...faults.map(asFault)]);
  }

  /** Every call of a verb goes wrong, until this is called with nothing. */
  failAlways(verb: Verb, fault: Fault | KubeFailure | undefined): void {
    if (fault === undefined) this.#always.delete(verb);
    else this.#always.set(verb, asFault(fault));
  }

  /** The server closes every watch: in good order, or not. */
  endWatches(failure?: KubeFailure): void {
    for (const watcher of this.#watchers) watcher.end(failure === undefined ? ok(undefined) : err(failure));
  }

  /** Sends every watch a line as it stands. */
  send(event: WatchEvent): void {
    for (const watcher of this.#watchers) watcher.deliver(event);
  }

  /** Sends every watch a bookmark. */
  bookmark(): void {
    const event: WatchEvent = { type: "BOOKMARK", resourceVersion: this.revision };
    for (const watcher of this.#watchers) this.#tell(watcher, event);
  }

  /** From now on, watches are told nothing… */
  lag(): void {
    this.#lagging = true;
  }

  /** …until now. */
  catchUp(): void {
    this.#lagging = false;
    for (const watcher of this.#watchers) for (const event of watcher.queue.splice(0)) watcher.deliver(event);
  }

  /** Forgets the past: watches cannot start before now any more. */
  compact(): void {
    this.#compacted = this.#revision;
  }

  backup(): Backup {
    const objects = new Map([...this.#objects].map(([kind, held]) => [kind, new Map(held)]));
    return { revision: this.#revision, objects };
  }

  /** Goes back in time. Watches break, and what happened since has never been. */
  restore({ revision, objects }: Backup): void {
    this.#revision = revision;
    this.#objects = new Map([...objects].map(([kind, held]) => [kind, new Map(held)]));
    this.#history = new Map();
    this.endWatches({ kind: "unreachable", detail: "ECONNRESET" });
  }

  // ── KubeApi ──

  async list(
    resource: Resource,
    scope: Scope,
    onPage: (items: readonly unknown[]) => void,
    signal: AbortSignal,
  ): Answer<{ readonly resourceVersion: string }> {
    return this.#call("list", resourceName(resource), signal, async () => {
      const items = [...this.#kind(resource).values()].filter((object) => isIn(scope, object));
      const resourceVersion = this.revision;
      for (let start = 0; start === 0 || start < items.length; start += this.pageSize) {
        if (start > 0) this.beforePage();
        await Promise.resolve();
        signal.throwIfAborted();
        onPage(items.slice(start, start + this.pageSize));
      }
      return ok({ resourceVersion });
    });
  }

  async resources(signal: AbortSignal): Answer<readonly Resource[]> {
    signal.throwIfAborted();
    return await Promise.resolve(ok([]));
  }

  async ask(question: PodQuestion, signal: AbortSignal): Answer<string> {
    signal.throwIfAborted();
    const { namespace, pod, port, path } = question;
    return await Promise.resolve(
      err({ kind: "notFound", detail: `nothing answers at ${namespace}/${pod}:${port}${path}` }),
    );
  }

  async newest(_resource: Resource, _scope: Scope, signal: AbortSignal): Answer<string> {
    signal.throwIfAborted();
    return await Promise.resolve(ok(this.revision));
  }

  async watch(
    resource: Resource,
    scope: Scope & { readonly resourceVersion: string },
    onEvent: (event: WatchEvent) => void,
    signal: AbortSignal,
  ): Answer<undefined> {
    const kind = resourceName(resource);
    return this.#call("watch", `${kind} from ${scope.resourceVersion}`, signal, () => {
      if (Number(scope.resourceVersion) < this.#compacted)
        return Promise.resolve(err({ kind: "gone" as const, detail: "too old resource version" }));
      return new Promise<Result<undefined, KubeFailure>>((resolve, reject) => {
        const abort = (): void => {
          this.#watchers.delete(watcher);
          reject(signal.reason);
        };
        const end = (result: Result<undefined, KubeFailure>): void => {
          signal.removeEventListener("abort", abort);
          if (this.#watchers.delete(watcher)) resolve(result);
        };
        const watcher: Watcher = { kind, scope, deliver: onEvent, end, queue: [] };
        this.#watchers.add(watcher);
        signal.addEventListener("abort", abort, { once: true });
        for (const change of this.#history.get(kind) ?? [])
          if (change.revision > Number(scope.resourceVersion)) this.#announce(watcher, change);
      });
    });
  }

  async get(resource: Resource, ref: ObjectRef, signal: AbortSignal): Answer<unknown> {
    return this.#call("get", nameOf(resource, ref), signal, async () => {
      const held = this.peek(resource, ref);
      return held === undefined ? notFound(resource, ref) : ok(held);
    });
  }

  async create(resource: Resource, body: object, signal: AbortSignal): Answer<unknown> {
    return this.#call("create", nameOf(resource, refOf(body)), signal, async () =>
      this.#find(resource, body) === undefined
        ? ok(this.#store(resource, body, undefined))
        : err({ kind: "exists" as const, detail: `${nameOf(resource, refOf(body))} already exists` }),
    );
  }

  async apply(resource: Resource, ref: ObjectRef, body: object, signal: AbortSignal): Answer<unknown> {
    return this.#call("apply", nameOf(resource, ref), signal, async () => {
      const held = this.peek(resource, ref);
      return isGuardedOff(held, fieldsOf(fieldsOf(body)["metadata"]))
        ? conflict(resource, ref)
        : ok(this.#store(resource, merged(held ?? {}, body), held));
    });
  }

  async patch(resource: Resource, ref: ObjectRef, body: object, signal: AbortSignal): Answer<unknown> {
    return this.#call("patch", nameOf(resource, ref), signal, async () => {
      const held = this.peek(resource, ref);
      if (held === undefined) return notFound(resource, ref);
      if (isGuardedOff(held, fieldsOf(fieldsOf(body)["metadata"]))) return conflict(resource, ref);
      return ok(this.#store(resource, merged(held, body), held));
    });
  }

  async replace(resource: Resource, ref: ObjectRef, body: object, signal: AbortSignal): Answer<unknown> {
    return this.#call("replace", nameOf(resource, ref), signal, async () => {
      const held = this.peek(resource, ref);
      if (held === undefined) return notFound(resource, ref);
      if (isGuardedOff(held, fieldsOf(fieldsOf(body)["metadata"]))) return conflict(resource, ref);
      return ok(this.#store(resource, body, held));
    });
  }

  async remove(
    resource: Resource,
    ref: ObjectRef,
    preconditions: Preconditions,
    signal: AbortSignal,
  ): Answer<undefined> {
    return this.#call("remove", nameOf(resource, ref), signal, async () => {
      const held = this.peek(resource, ref);
      if (held === undefined) return notFound(resource, ref);
      if (isGuardedOff(held, preconditions)) return conflict(resource, ref);
      this.#erase(resource, held);
      return ok(undefined);
    });
  }

  async close(): Promise<void> {
    this.endWatches({ kind: "unreachable", detail: "closed" });
  }

  // ── Inside ──

  async #call<T>(verb: Verb, what: string, signal: AbortSignal, run: () => Answer<T>): Answer<T> {
    signal.throwIfAborted();
    this.calls.push(`${verb} ${what}`);
    const fault = this.#once.get(verb)?.shift() ?? this.#always.get(verb);
    await Promise.resolve();
    signal.throwIfAborted();
    if (fault === "hang")
      return new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
    if (fault !== undefined && fault.after !== true) return err(fault.failure);
    const result = await run();
    return fault === undefined ? result : err(fault.failure);
  }

  #kind(resource: Resource): Map<string, Stored> {
    const held = this.#objects.get(resourceName(resource)) ?? new Map<string, Stored>();
    this.#objects.set(resourceName(resource), held);
    return held;
  }

  #find(resource: Resource, body: object): Stored | undefined {
    return this.#kind(resource).get(keyOf(refOf(body)));
  }

  #store(resource: Resource, body: object, held: Stored | undefined): Stored {
    const metadata = { ...fieldsOf(fieldsOf(body)["metadata"]), ...refOf(body) };
    const stamped = (uid: string, resourceVersion: string): Stored => ({
      apiVersion: apiVersionOf(resource),
      kind: resource.kind,
      ...body,
      metadata: { ...metadata, uid, resourceVersion },
    });
    if (held !== undefined) {
      const unchanged = stamped(held.metadata.uid, held.metadata.resourceVersion);
      if (canonicalText(unchanged) === canonicalText(held)) return held; // a write that changes nothing is none
    }
    this.#revision += 1;
    if (held === undefined) this.#uids += 1;
    const object = stamped(held?.metadata.uid ?? `uid-${this.#uids}`, this.revision);
    this.#kind(resource).set(keyOf(object.metadata), object);
    this.#record(resource, { revision: this.#revision, type: held === undefined ? "ADDED" : "MODIFIED", object });
    return object;
  }

  #erase(resource: Resource, held: Stored): void {
    this.#revision += 1;
    this.#kind(resource).delete(keyOf(held.metadata));
    const object = { ...held, metadata: { ...held.metadata, resourceVersion: this.revision } };
    this.#record(resource, { revision: this.#revision, type: "DELETED", object });
  }

  #record(resource: Resource, change: Change): void {
    const kind = resourceName(resource);
    this.#history.set(kind, [...(this.#history.get(kind) ?? []), change]);
    for (const watcher of this.#watchers) if (watcher.kind === kind) this.#announce(watcher, change);
  }

  #announce(watcher: Watcher, { type, object }: Change): void {
    if (isIn(watcher.scope, object)) this.#tell(watcher, { type, object });
  }

  #tell(watcher: Watcher, event: WatchEvent): void {
    if (this.#lagging) watcher.queue.push(event);
    else watcher.deliver(event);
  }
}

const asFault = (fault: Fault | KubeFailure): Fault =>
  fault === "hang" || "failure" in fault ? fault : { failure: fault };

const keyOf = ({ namespace, name }: ObjectRef): string => (namespace === undefined ? name : `${namespace}/${name}`);

function refOf(body: object): ObjectRef {
  const { name, namespace } = fieldsOf(fieldsOf(body)["metadata"]);
  const space = textOf(namespace);
  return { name: textOf(name) ?? "", ...(space === undefined ? {} : { namespace: space }) };
}

const nameOf = (resource: Resource, ref: ObjectRef): string => `${resourceName(resource)} ${keyOf(ref)}`;

const isIn = ({ namespace, fieldSelector }: Scope, { metadata }: Stored): boolean =>
  (namespace === undefined || metadata.namespace === namespace) &&
  (fieldSelector === undefined || fieldSelector === `metadata.name=${metadata.name}`);

const notFound = (resource: Resource, ref: ObjectRef): Result<never, KubeFailure> =>
  err({ kind: "notFound", detail: `${nameOf(resource, ref)} not found` });

const conflict = (resource: Resource, ref: ObjectRef): Result<never, KubeFailure> =>
  err({ kind: "conflict", detail: `${nameOf(resource, ref)} has been modified` });

function isGuardedOff(held: Stored | undefined, guard: Preconditions | Readonly<Record<string, unknown>>): boolean {
  const { uid, resourceVersion } = guard;
  return (
    (uid !== undefined && uid !== held?.metadata.uid) ||
    (resourceVersion !== undefined && resourceVersion !== held?.metadata.resourceVersion)
  );
}

/** JSON merge patch. */
function merged(held: object, change: object): object {
  const result: Record<string, unknown> = { ...held };
  for (const [field, value] of Object.entries(change)) {
    if (value === null) delete result[field];
    else if (typeof value === "object" && !Array.isArray(value)) result[field] = merged(fieldsOf(result[field]), value);
    else result[field] = value;
  }
  return result;
}

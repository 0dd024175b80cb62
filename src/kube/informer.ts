// Drives the watch of one kind on one server and keeps what it shows. Others delete on the strength of "synced", so it
// must never say that of a list that is not complete or of a watch that is down, and must not lose an object silently.

import { invariant } from "../core/assert.ts";
import { type BudgetName, type Budgets, defaultBudgets, objectsBudget } from "../core/budgets.ts";
import { fieldsOf, textOf } from "../core/json.ts";
import { type Resource, resourceName, type Scope } from "../core/resource.ts";
import type { Result } from "../core/result.ts";
import { err } from "../core/result.ts";
import type { KubeApi, WatchEvent } from "./api.ts";
import type { Held, Room, StoreFault } from "./fact-store.ts";
import { FactStore } from "./fact-store.ts";
import type { KubeFailure } from "./failure.ts";
import { Freshness } from "./freshness.ts";
import { canWatchFrom, isOlder } from "./resource-version.ts";
import type { LogFields, Runtime } from "./runtime.ts";
import { messageOf } from "./thrown.ts";
import type { WatchEffect, WatchInput, WatchState } from "./watch.ts";
import { startWatch, step } from "./watch.ts";

/** What an informer watches, how it reads it, and whom it tells. */
export type InformerOptions<F> = {
  readonly api: KubeApi;
  readonly resource: Resource;
  readonly scope: Scope;
  /** Where one list shows several workspaces: the one that an object is in. */
  readonly workspaceOf?: (raw: unknown) => string | undefined;
  /** The compact fact of an object; must not throw. */
  readonly read: (raw: unknown) => F;
  /** Two readings that mean the same: the newer is kept, but nobody is told. */
  readonly same: (a: F, b: F) => boolean;
  /** The view changed: the object with this key, or how sure we are, or many things at once. */
  readonly onChange: (key: string | undefined) => void;
  readonly runtime: Runtime;
  /** The informer's lifetime. */
  readonly signal: AbortSignal;
  readonly budgets?: Budgets | undefined;
  /** The budget for how many objects there may be; that of the kind, if nothing is said. */
  readonly objects?: BudgetName;
  /** What all informers of one place keep together. */
  readonly room?: Room;
};

/**
 * What an informer knows. `unkeyed` counts objects that exist but are not among `objects`, because they have no name or
 * could not be read: unless it is zero, absence proves nothing. A view never changes once it is handed out.
 */
export type InformerView<F> =
  | { readonly state: "syncing"; readonly failure?: KubeFailure | undefined }
  | { readonly state: "synced"; readonly objects: ReadonlyMap<string, Held<F>>; readonly unkeyed: number }
  | {
      readonly state: "stale";
      /** Wall clock, when the watch was last known to work. */
      readonly sinceMs: number;
      readonly failure: KubeFailure;
      readonly objects: ReadonlyMap<string, Held<F>>;
      readonly unkeyed: number;
    };

type Known<F> = Exclude<InformerView<F>, { readonly state: "syncing" }>;

/** One kind on one server, kept up to date. Keys are `namespace/name`, or `name` where there are no namespaces, after `workspace|` where there are workspaces. */
export type Informer<F> = {
  /** What is known now; once a list has been complete, never `syncing` again. */
  readonly view: () => InformerView<F>;
  /** Takes in the answer to a write of our own, so that the next look does not find the object as it was before. */
  readonly absorb: (raw: unknown) => void;
  /** Takes out an object that we deleted; whatever has another uid stays. */
  readonly forget: (key: string, uid: string | undefined) => void;
  /** Resolves when the signal has ended everything. */
  readonly done: Promise<void>;
};

/** Watches until the signal aborts; afterwards the view is never `synced`. */
export function startInformer<F>(options: InformerOptions<F>): Informer<F> {
  const driver = new Driver(options);
  return {
    view: () => driver.view(),
    absorb: (raw) => driver.absorb(raw),
    forget: (key, uid) => driver.forget(key, uid),
    done: driver.run(),
  };
}

/** How the client says that it gave a watch up for its silence. */
const silence = "no bytes for";
const complaintEveryMs = 60_000;

/** A call under way: its signal, and a way to give it up for a reason of our own. */
type Call = { readonly signal: AbortSignal; readonly giveUp: (failure: KubeFailure) => void };

class Driver<F> {
  readonly #options: InformerOptions<F>;
  readonly #store: FactStore<F>;
  readonly #freshness: Freshness;
  readonly #about: LogFields;
  readonly #complaints = new Map<string, { atMs: number; left: number }>();
  #state: WatchState = startWatch().state;
  /** How much went wrong since a watch last worked: from 2 on, the server may have been away, and be another one since. */
  #doubts = 0;
  #announced: InformerView<F>["state"] = "syncing";
  #isFailureSaid = false;
  /** What was handed out last, and stays true as long as nothing changes. */
  #view: { readonly sureness: Freshness["sureness"]; readonly view: Known<F> } | undefined;

  constructor(options: InformerOptions<F>) {
    const { api, resource, scope, runtime, read, same } = options;
    this.#options = options;
    this.#about = { server: api.server, resource: resourceName(resource), namespace: scope.namespace };
    this.#store = new FactStore({
      read,
      same,
      namespaced: resource.namespaced,
      workspaceOf: options.workspaceOf,
      scope,
      budgets: options.budgets ?? defaultBudgets,
      objects: options.objects ?? objectsBudget(resource.plural),
      room: options.room,
      onFault: (fault, detail) => this.#complain(faultMessages[fault], { detail }),
    });
    this.#freshness = new Freshness(runtime.clock, () => this.#announce());
  }

  view(): InformerView<F> {
    if (this.#options.signal.aborted) this.#freshness.stop();
    const { sureness } = this.#freshness;
    if (sureness.state === "syncing") return sureness;
    const objects = this.#store.snapshot();
    const { unkeyed } = this.#store;
    const last = this.#view;
    if (last?.sureness === sureness && last.view.objects === objects && last.view.unkeyed === unkeyed) return last.view;
    this.#view = { sureness, view: { ...sureness, objects, unkeyed } };
    return this.#view.view;
  }

  absorb(raw: unknown): void {
    const { scope } = this.#options;
    const namespace = textOf(fieldsOf(fieldsOf(raw)["metadata"])["namespace"]);
    if (scope.namespace !== undefined && namespace !== scope.namespace) {
      this.#complain("absorbed an object of another namespace", { detail: namespace });
      return;
    }
    if (this.#store.absorb(raw) === "changed") this.#announce();
  }

  forget(key: string, uid: string | undefined): void {
    if (this.#store.forget(key, uid) === "changed") this.#announce();
  }

  async run(): Promise<void> {
    const { signal } = this.#options;
    let { effect } = startWatch();
    try {
      while (!signal.aborted) effect = this.#advance(await this.#perform(effect));
    } catch (error) {
      if (!signal.aborted) throw error;
    } finally {
      this.#freshness.stop();
    }
  }

  #advance(input: WatchInput): WatchEffect {
    const next = step(this.#state, input, this.#options.runtime.random());
    this.#state = next.state;
    return next.effect;
  }

  async #perform(effect: WatchEffect): Promise<WatchInput> {
    const { runtime, signal } = this.#options;
    switch (effect.do) {
      case "list":
        return this.#list();
      case "watch":
        return this.#watch(effect.resourceVersion);
      case "wait":
        await runtime.clock.sleep(effect.ms, signal);
        return { type: "waited" };
      case "nothing":
        invariant(false, "the end of a call or of a wait has a next step");
    }
  }

  async #list(): Promise<WatchInput> {
    const { api, resource, scope, signal } = this.#options;
    const listing = this.#store.beginList();
    const answer = await this.#call((call) =>
      api.list(
        resource,
        scope,
        (items) => {
          if (!call.signal.aborted && !this.#store.gather(listing, items)) call.giveUp(this.#excess());
        },
        call.signal,
      ),
    );
    signal.throwIfAborted();
    if (!answer.ok) return this.#listFailed(answer.error);
    const { resourceVersion } = answer.value;
    if (!canWatchFrom(resourceVersion))
      return this.#listFailed({ kind: "garbled", detail: "a list without a resourceVersion" });
    const { changed, wentBackwards } = this.#store.completeList(listing, resourceVersion);
    if (wentBackwards) {
      this.#options.runtime.log.warn("resourceVersion went backwards", {
        ...this.#about,
        resourceVersion,
        hint: "was etcd restored from a backup? what the server lists now counts, and nothing seen before",
      });
    }
    this.#doubts = 0;
    if (this.#freshness.listed() || changed) this.#announce();
    return { type: "listed", resourceVersion };
  }

  #listFailed(failure: KubeFailure): WatchInput {
    if (this.#freshness.failed(failure)) this.#announce();
    return { type: "listFailed", failure };
  }

  async #watch(resourceVersion: string): Promise<WatchInput> {
    const { api, resource, scope, signal } = this.#options;
    if (this.#doubts >= 2) {
      const newest = await this.#call((call) => api.newest(resource, scope, call.signal));
      signal.throwIfAborted();
      if (!newest.ok) return this.#watchFailed(newest.error);
      // An API server takes a watch from a version that is yet to come, and says nothing until it is reached.
      if (isOlder(newest.value, resourceVersion))
        return this.#watchFailed({ kind: "gone", detail: "the server is behind what it has told us" });
    }
    this.#freshness.opened();
    let isOver = false;
    const answer = await this.#call((call) =>
      api.watch(
        resource,
        { ...scope, resourceVersion },
        (event) => {
          if (isOver || call.signal.aborted) return;
          if (!this.#hear(event)) call.giveUp(this.#excess());
        },
        call.signal,
      ),
    );
    isOver = true;
    signal.throwIfAborted();
    if (answer.ok) {
      this.#doubts = 0;
      const { changed, livedMs } = this.#freshness.closed();
      if (changed) this.#announce();
      return { type: "closed", livedMs };
    }
    // Silence alone may be a bookmark that is late; a connection that was cut is more.
    this.#doubts += answer.error.detail.includes(silence) ? 1 : 2;
    const { changed, livedMs } = this.#freshness.broke(answer.error);
    if (changed) this.#announce();
    return { type: "watchFailed", failure: answer.error, livedMs };
  }

  /** The watch could not even be asked for. */
  #watchFailed(failure: KubeFailure): WatchInput {
    if (this.#freshness.failed(failure)) this.#announce();
    return { type: "watchFailed", failure, livedMs: 0 };
  }

  /** Takes in a line of the watch; answers whether there was room for it. */
  #hear(event: WatchEvent): boolean {
    this.#doubts = 0;
    const outcome = this.#store.take(event);
    if (outcome === "full") return false;
    const resourceVersion = event.type === "BOOKMARK" ? event.resourceVersion : versionOf(event.object);
    this.#state = step(this.#state, { type: "delivered", resourceVersion }, 0).state;
    if (this.#freshness.heard()) this.#announce();
    else if (outcome === "changed")
      this.#announce(event.type === "BOOKMARK" ? undefined : this.#store.keyOf(event.object));
    return true;
  }

  /** Makes a call that ends with the informer, or when it is given up. Whatever is thrown instead becomes a failure. */
  async #call<T>(ask: (call: Call) => Promise<Result<T, KubeFailure>>): Promise<Result<T, KubeFailure>> {
    const { signal } = this.#options;
    const controller = new AbortController();
    const end = (): void => controller.abort(signal.reason);
    let own: KubeFailure | undefined;
    const giveUp = (failure: KubeFailure): void => {
      own = failure;
      controller.abort(new DOMException(failure.detail, "AbortError"));
    };
    signal.addEventListener("abort", end, { once: true });
    try {
      const answer = await ask({ signal: controller.signal, giveUp });
      return own === undefined ? answer : err(own);
    } catch (error) {
      if (signal.aborted) throw error;
      if (own !== undefined) return err(own);
      this.#complain("a call to the API server threw", { detail: messageOf(error) });
      return err({ kind: "unreachable", detail: messageOf(error) });
    } finally {
      signal.removeEventListener("abort", end);
    }
  }

  #excess(): KubeFailure {
    return this.#store.excess ?? { kind: "garbled", detail: "more than there is room for" };
  }

  #announce(key?: string): void {
    const { onChange, signal } = this.#options;
    if (signal.aborted) return;
    this.#report();
    try {
      onChange(key);
    } catch (error) {
      this.#complain("a listener threw", { detail: messageOf(error) });
    }
  }

  /** Says so when we become sure, or unsure, of what we know. */
  #report(): void {
    const { log } = this.#options.runtime;
    const { sureness } = this.#freshness;
    if (sureness.state === "syncing" && sureness.failure !== undefined && !this.#isFailureSaid) {
      const { kind, detail } = sureness.failure;
      this.#isFailureSaid = true;
      log.warn("watch cannot begin", { ...this.#about, kind, detail, hint: hints[kind] });
    } else if (sureness.state === "stale" && this.#announced !== "stale") {
      const { kind, detail } = sureness.failure;
      log.warn("watch is down", { ...this.#about, kind, detail, hint: hints[kind] });
    } else if (sureness.state === "synced" && this.#announced !== "synced") log.info("watch is up", this.#about);
    this.#announced = sureness.state;
  }

  /** Logs what should not happen, but each thing once a minute at most. */
  #complain(message: string, fields: LogFields): void {
    const { clock, log } = this.#options.runtime;
    const last = this.#complaints.get(message);
    if (last !== undefined && clock.monotonicMs() - last.atMs < complaintEveryMs) {
      last.left += 1;
      return;
    }
    this.#complaints.set(message, { atMs: clock.monotonicMs(), left: 0 });
    log.error(message, { ...this.#about, ...fields, leftOut: last?.left ?? 0 });
  }
}

const faultMessages: Readonly<Record<StoreFault, string>> = {
  unkeyed: "an object has no key",
  unasked: "the server sent an object that it was not asked for",
  read: "an object could not be read",
  same: "two readings could not be compared",
};

const hints: Readonly<Partial<Record<KubeFailure["kind"], string>>> = {
  unauthorized: "renew the credentials",
  forbidden: "grant list and watch on this resource",
  notFound: "install the CRD of this resource",
};

const versionOf = (raw: unknown): string => textOf(fieldsOf(fieldsOf(raw)["metadata"])["resourceVersion"]) ?? "";

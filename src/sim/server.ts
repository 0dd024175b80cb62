// A Kubernetes API server in memory: requests in, answers out, nothing in between but a store. It knows no sockets and
// no time of its own, so the same requests at the same times are answered with the same bytes.

import { fieldsOf } from "../core/json.ts";
import type { Clock, Random } from "../kube/runtime.ts";
import {
  methodNotAllowed,
  noSuchPath,
  noSuchResource,
  Refusal,
  type SimAnswer,
  type SimReply,
  type SimRequest,
} from "./answer.ts";
import { definitionKind, established, installed, Kinds } from "./definitions.ts";
import { describe } from "./discovery.ts";
import { isProxied, type PodProxy, proxied } from "./pod-proxy.ts";
import { createRandomNames, type RandomNames } from "./random-names.ts";
import { type ResourceRoute, routeOf, type SimVerb } from "./route.ts";
import { type Change, type SimSnapshot, Store } from "./store.ts";
import { seedServer } from "./seed.ts";
import { type SimUser, Users } from "./users.ts";
import { answerResource } from "./resource.ts";
import type { Kind } from "./kind.ts";
import { Watches } from "./watching.ts";
import { changeObject, type Write } from "./write.ts";
import type { Fields } from "./value.ts";

/** How much a server remembers. */
export type SimLimits = {
  /** Changes of one kind that can still be watched from or paged through. */
  readonly changesMax?: number;
};

/** What a server is made of. */
export type SimServerOptions = {
  readonly name: string;
  readonly clock: Pick<Clock, "nowMs" | "after">;
  /** Makes uids and generated names. */
  readonly random: Random;
  readonly limits?: SimLimits;
  /** Who may ask, by token. */
  readonly users?: Readonly<Record<string, SimUser>>;
  /** The ranges in the ServiceCIDR `kubernetes`; none of that kind's objects, if there are no ranges. */
  readonly serviceCidrs?: readonly string[];
  /** CustomResourceDefinitions that are there from the beginning. One value given to many servers is read once. */
  readonly definitions?: readonly object[];
  /** What a pod that is there answers through the server; without, nobody answers. */
  readonly podProxy?: PodProxy;
};

/** How often somebody asked for something. */
export type SimCount = {
  readonly user: string;
  readonly verb: SimVerb;
  /** `peers.kilo.squat.ai`, or `nodes/status` for a part of an object. */
  readonly resource: string;
  readonly count: number;
};

/** What a server has been asked and holds. */
export type SimStats = {
  readonly requests: readonly SimCount[];
  /** Changes of the store so far: the last resourceVersion. */
  readonly revision: number;
  readonly objects: number;
  readonly watches: number;
};

/** One simulated cluster's API server. */
export type SimServer = {
  readonly name: string;
  readonly handle: (request: SimRequest) => SimAnswer;
  /** Everything it holds now. */
  readonly snapshot: () => SimSnapshot;
  /** Holds what it held then, resourceVersions included, and ends every watch: an etcd restored from a backup. */
  readonly restore: (snapshot: SimSnapshot) => void;
  /** Forgets every change so far: watches and pages that begin earlier are answered with 410. */
  readonly compact: () => void;
  readonly stats: () => SimStats;
  /** Takes a token from now on. */
  readonly admit: (token: string, user: SimUser) => void;
  /** Whether it takes a token. */
  readonly admits: (token: string) => boolean;
  /** Takes a token no more; watches that it opened go on, as on a real server. */
  readonly revoke: (token: string) => void;
  /** Ends every watch, as a restart does. */
  readonly endWatches: () => void;
  /** Hears of every change of what is kept there, in this process and at once: `/nodes`, `kilo.squat.ai/peers`. */
  readonly listen: (storage: string, listener: (change: Change) => void) => () => void;
  /** What is kept there, by key. */
  readonly objects: (storage: string) => readonly Fields[];
};

const changesMaxDefault = 1_000;

/** An API server with the namespaces that every cluster has, and nothing else. */
export function createSimServer(options: SimServerOptions): SimServer {
  const server = new Server(options);
  return {
    name: options.name,
    handle: (request) => server.handle(request),
    snapshot: () => server.store.snapshot(),
    restore: (snapshot) => server.restore(snapshot),
    compact: () => server.store.compact(),
    stats: () => server.stats(),
    admit: (token, user) => server.users.admit(token, user),
    admits: (token) => server.users.admits(token),
    revoke: (token) => server.users.revoke(token),
    endWatches: () => server.watches.endAll(),
    listen: (storage, listener) => server.store.listen(storage, listener),
    objects: (storage) => server.store.all(storage).map(([, object]) => object),
  };
}

/** What answering a request needs of its server. */
export type ServerParts = {
  readonly store: Store;
  readonly watches: Watches;
  readonly users: Users;
  readonly names: RandomNames;
  readonly nowMs: () => number;
  /** The kinds changed, or what is served of them. */
  readonly definitionsChanged: (key: string, verb: SimVerb) => void;
};

class Server {
  readonly store: Store;
  readonly users: Users;
  readonly watches: Watches;
  readonly #options: SimServerOptions;
  readonly #kinds: Kinds;
  readonly #names: RandomNames;
  readonly #requests = new Map<string, { user: string; verb: SimVerb; resource: string; count: number }>();

  constructor(options: SimServerOptions) {
    const { clock, random, limits = {}, users = {} } = options;
    this.#options = options;
    this.store = new Store(limits.changesMax ?? changesMaxDefault);
    this.users = new Users(this.store, users);
    this.watches = new Watches(this.store, clock);
    this.#names = createRandomNames(random);
    seedServer(this.store, this.#names, clock.nowMs(), options.serviceCidrs ?? []);
    for (const definition of options.definitions ?? []) {
      const object = installed(definition, { uid: this.#names.uid(), nowMs: clock.nowMs() });
      const { name } = fieldsOf(object["metadata"]);
      if (typeof name === "string") this.store.put(definitionKind.storage, name, object);
    }
    this.store.compact(); // nobody can have seen what was before
    this.#kinds = new Kinds(this.store);
  }

  handle(request: SimRequest): SimAnswer {
    try {
      return this.#answer(request);
    } catch (error) {
      if (error instanceof Refusal) return error.reply;
      throw error;
    }
  }

  restore(snapshot: SimSnapshot): void {
    this.watches.endAll();
    this.store.restore(snapshot);
    this.users.forgetRules();
    this.#kinds.refresh();
  }

  stats(): SimStats {
    return {
      requests: [...this.#requests.values()].map((each) => ({ ...each })),
      revision: this.store.revision,
      objects: this.store.size,
      watches: this.watches.size,
    };
  }

  #answer(request: SimRequest): SimAnswer {
    const user = this.users.identify(request.headers["authorization"]);
    const route = routeOf(request);
    const refusal = this.users.refusal(user, route, request.method);
    if (route.resource !== undefined) this.#count(user.name, route.resource);
    if (refusal !== undefined) throw refusal;
    if (route.resource === undefined) return describe(route.path, this.#kinds.all);
    if (isProxied(route.resource)) return proxied(this.store, route, this.#options.podProxy);
    const kind = this.#kindOf(route.resource);
    if (kind === undefined) return this.#nowhere(route.resource);
    return answerResource(this.#parts(), { kind, route, resource: route.resource, request, user });
  }

  #kindOf({ group, version, plural, namespace, name, verb }: ResourceRoute): Kind | undefined {
    const kind = this.#kinds.find(group, version, plural);
    if (kind === undefined) return undefined;
    if (kind.plural === "namespaces") return kind;
    if (!kind.namespaced && namespace !== "") return undefined;
    const needsNamespace = name !== "" || verb === "create" || verb === "update" || verb === "patch";
    return kind.namespaced && namespace === "" && needsNamespace ? undefined : kind;
  }

  #nowhere({ group, version, plural, verb, name }: ResourceRoute): SimReply {
    if (!this.#kinds.isBuiltin(group, version)) return noSuchPath();
    const kind = this.#kinds.find(group, version, plural);
    if (kind !== undefined && kind.namespaced && name === "" && verb === "create") throw methodNotAllowed();
    throw noSuchResource();
  }

  #count(user: string, { verb, group, plural, subresource }: ResourceRoute): void {
    const resource = `${group === "" ? plural : `${plural}.${group}`}${subresource === "" ? "" : `/${subresource}`}`;
    const key = `${user}\u0000${verb}\u0000${resource}`;
    const known = this.#requests.get(key);
    if (known === undefined) this.#requests.set(key, { user, verb, resource, count: 1 });
    else known.count += 1;
  }

  #parts(): ServerParts {
    return {
      store: this.store,
      watches: this.watches,
      users: this.users,
      names: this.#names,
      nowMs: this.#options.clock.nowMs,
      definitionsChanged: (key, verb) => this.#define(key, verb),
    };
  }

  /** What the server's own controllers do when a definition comes, changes or goes. */
  #define(key: string, verb: SimVerb): void {
    const definition = this.store.get(definitionKind.storage, key);
    if (definition !== undefined && verb !== "delete") this.#establish(definition, key);
    else if (definition === undefined) this.#forget(key);
    this.#kinds.refresh();
  }

  #establish(definition: Fields, key: string): void {
    const { conditions } = fieldsOf(definition["status"]);
    if (conditions !== null && conditions !== undefined) return;
    const nowMs = this.#options.clock.nowMs();
    const write: Write = {
      kind: definitionKind,
      namespace: "",
      name: key,
      subresource: "status",
      manager: "kube-apiserver",
      dryRun: false,
      strict: false,
      nowMs,
    };
    const tools = { store: this.store, newUid: this.#names.uid, newSuffix: this.#names.suffix };
    changeObject(tools, write, definition, established(definition, nowMs));
  }

  /** The objects of a definition that is gone go with it. */
  #forget(key: string): void {
    const gone = this.#kinds.all.filter((kind) => kind.custom && `${kind.plural}.${kind.group}` === key);
    for (const storage of new Set(gone.map((kind) => kind.storage))) {
      for (const [object] of this.store.all(storage)) this.store.remove(storage, object);
    }
  }
}

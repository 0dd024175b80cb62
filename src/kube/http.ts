// KubeApi over HTTP. A call becomes a request, passes a chain of interceptors and comes back as an answer, which becomes
// a result. From the outermost station inwards:
//
//   repeated       again, if the connection broke           retry.ts
//   limited        not too many a second                    rate-limit.ts
//   measured       what metrics need to know                measure.ts
//   …              whatever the options add: faults, tests
//   authenticated  the token                                credential.ts
//   transport      connections, deadlines, limits           transport.ts, exchange.ts

import type { LookupFunction } from "node:net";
import { type Budgets, defaultBudgets, largestObjectsBudget } from "../core/budgets.ts";
import { fieldsOf, textOf } from "../core/json.ts";
import { servedResources, servedVersions } from "./discovery.ts";
import { type Resource, resourceName, type Scope } from "../core/resource.ts";
import { err, ok, type Result } from "../core/result.ts";
import { type ClusterAccess, hostOf } from "./access.ts";
import type { KubeApi } from "./api.ts";
import { credentialOf } from "./credential.ts";
import type { KubeFailure } from "./failure.ts";
import { inFlight } from "./in-flight.ts";
import { type HttpAnswer, type HttpRequest, type Interceptor, throughAll } from "./interceptor.ts";
import { jsonOf, tooHeavy } from "./json-text.ts";
import { measured, type RequestMeasure, type WatchMeasure } from "./measure.ts";
import { type Meter, minuteMeter } from "./minute-meter.ts";
import { type AskPage, pageSizeMax, type Paging, readPages } from "./pages.ts";
import { collectionPath, creationPath, joined, objectPath, podPath, withQuery } from "./paths.ts";
import { limited, type Rate, type RateLimit, rateLimit } from "./rate-limit.ts";
import { repeated, retryBudget } from "./retry.ts";
import type { Random, Runtime } from "./runtime.ts";
import { failureOf, quoted, type Tidy, tidyWith } from "./status-failure.ts";
import { transport } from "./transport.ts";
import { watchStream } from "./watch-stream.ts";

/** What can be set about talking to an API server; everything has a default. */
export type HttpOptions = {
  /** Under which name the fields that we apply are ours. */
  readonly fieldManager?: string;
  readonly userAgent?: string;
  /** From first to last byte of an ordinary request, connecting included; of a watch, up to its headers. */
  readonly requestTimeoutMs?: number;
  /** The same for one page of a list, which may be large. */
  readonly listTimeoutMs?: number;
  /** The longest silence of a list. */
  readonly listIdleMs?: number;
  /** The longest silence of a watch; a server sends a bookmark about once a minute. */
  readonly watchIdleMs?: number;
  /** What the server may have us read. */
  readonly budgets?: Budgets;
  /** Requests a second in the long run. */
  readonly qps?: number;
  /** Requests at once after a pause. */
  readonly burst?: number;
  /** A rate that others share; without it, one of our own by `qps` and `burst`. */
  readonly limit?: RateLimit;
  /** How the server's name is looked up; as the machine does, if nothing is said. */
  readonly lookup?: LookupFunction;
  /** Further stations, between our own and the token. */
  readonly interceptors?: readonly Interceptor[];
  readonly onRequest?: (measure: RequestMeasure) => void;
  readonly onWatch?: (measure: WatchMeasure) => void;
};

/** How often an API server is asked, if nothing else is said. */
export const defaultRate: Rate = { qps: 100, burst: 200 };

const defaults = {
  fieldManager: "causeway",
  userAgent: "causeway",
  requestTimeoutMs: 15_000,
  listTimeoutMs: 60_000,
  listIdleMs: 15_000,
  watchIdleMs: 75_000,
  budgets: defaultBudgets,
  ...defaultRate,
  interceptors: [],
  onRequest: () => undefined,
  onWatch: () => undefined,
} satisfies Settings;

type Settings = Required<Omit<HttpOptions, "limit" | "lookup">> & Pick<HttpOptions, "limit" | "lookup">;

/** A call before it is a request. */
type Asked = Pick<HttpRequest, "verb" | "resource" | "method"> & {
  readonly path: Result<string, KubeFailure>;
  readonly query?: Readonly<Record<string, string>>;
  readonly body?: object;
  readonly contentType?: string;
  readonly idempotent?: boolean;
  readonly onChunk?: HttpRequest["onChunk"];
};

type Answer<T> = Promise<Result<T, KubeFailure>>;

/** Makes a result of an answer. */
type Read<T> = (answer: HttpAnswer) => Result<T, KubeFailure>;

/** Calls to one server: asked, sent through every station, and read. */
type Line = {
  readonly call: <T>(asked: Asked, read: Read<T>, signal: AbortSignal) => Answer<T>;
  /** The body of a good answer. */
  readonly good: Read<string>;
  /** The value in a good answer. */
  readonly json: Read<unknown>;
  readonly tidy: Tidy;
  readonly close: () => Promise<void>;
};

/** The API server that an access leads to. Nothing is connected before the first call. */
export function httpApi(access: ClusterAccess, runtime: Runtime, options: HttpOptions = {}): KubeApi {
  return apiOf(httpServer(access, runtime, options));
}

/** The API at the root of a server; closing it closes the server. */
export const apiOf = ({ at, close }: HttpServer): KubeApi => ({ ...at([]), close });

/** A server that serves several APIs, each under a path of its own, over the same connections. */
export type HttpServer = {
  /** The API below these segments; closing it ends nothing. */
  readonly at: (segments: readonly string[]) => KubeApi;
  readonly close: () => Promise<void>;
};

/** The server that an access leads to. Nothing is connected before the first call. */
export function httpServer(access: ClusterAccess, runtime: Runtime, options: HttpOptions = {}): HttpServer {
  const settings: Settings = { ...defaults, ...options };
  const line = openLine(access, runtime, settings);
  return {
    at: (segments) => {
      const below = segments.length === 0 ? line : lineBelow(line, joined(segments));
      return {
        server: hostOf(access),
        ...reads(below, settings, runtime.random),
        ...writes(below, settings),
        close: () => Promise.resolve(),
      };
    },
    close: line.close,
  };
}

function lineBelow(line: Line, prefix: Result<string, KubeFailure>): Line {
  const below = (path: Result<string, KubeFailure>): Result<string, KubeFailure> =>
    prefix.ok && path.ok ? ok(prefix.value + path.value) : prefix.ok ? path : prefix;
  return { ...line, call: (asked, read, signal) => line.call({ ...asked, path: below(asked.path) }, read, signal) };
}

function openLine(access: ClusterAccess, runtime: Runtime, settings: Settings): Line {
  const { clock } = runtime;
  const { authenticated, conceal } = credentialOf(access);
  const tidy = tidyWith(conceal);
  const wire = transport(access, clock, settings.lookup);
  const calls = inFlight();
  const meter: Meter = minuteMeter(settings.budgets, clock);
  const stations = [
    repeated(retryBudget(), runtime),
    limited(settings.limit ?? rateLimit(settings, clock)),
    measured(settings.onRequest, clock),
    ...settings.interceptors,
    authenticated,
  ];
  const send = throughAll(stations, wire.send);

  const good: Read<string> = (answer) => {
    if (answer.kind === "lost") return err(answer.failure);
    if (answer.status >= 300) return err(failureOf(answer, tidy, clock.nowMs()));
    return ok(answer.body.toString("utf8"));
  };

  return {
    call: (asked, read, signal) =>
      calls.during(signal, async (ending) => {
        if (!asked.path.ok) return asked.path;
        const request = requestOf(asked, asked.path.value, settings, ending);
        const isBulk = asked.verb === "list" || asked.verb === "watch";
        const result = read(await send(isBulk ? { ...request, meter } : request));
        return result.ok ? result : err({ ...result.error, detail: tidy(result.error.detail) });
      }),
    good,
    json: (answer) => {
      const isGood = answer.kind === "response" && answer.status < 300;
      const heavy = isGood ? tooHeavy(answer.body, settings.budgets) : undefined;
      if (heavy !== undefined) return err(heavy);
      const text = good(answer);
      if (!text.ok) return text;
      const html = answer.kind === "response" && answer.headers["content-type"]?.includes("html") === true;
      const value = html ? undefined : jsonOf(text.value);
      return value === undefined
        ? err({ kind: "garbled", detail: `not JSON: ${quoted(text.value, tidy)}` })
        : ok(value);
    },
    tidy,
    close: async () => {
      calls.close();
      await wire.close();
    },
  };
}

function reads(
  line: Line,
  settings: Settings,
  random: Random,
): Pick<KubeApi, "ask" | "get" | "list" | "newest" | "resources" | "watch"> {
  const { budgets } = settings;
  const objects = largestObjectsBudget(budgets); // whoever lists knows better what it is for
  const pagings = new Map<string, Paging>();
  const pagingOf = (resource: Resource): Paging => {
    const name = resourceName(resource);
    const known = pagings.get(name) ?? { budgets, objects, pageSize: pageSizeMax };
    pagings.set(name, known);
    return known;
  };
  return {
    get: (resource, ref, signal) =>
      line.call({ ...reading("get", resource), path: objectPath(resource, ref) }, line.json, signal),

    list: (resource, scope, onPage, signal) => {
      const path = collectionPath(resource, scope.namespace);
      const askPage: AskPage = (page) =>
        line.call({ ...reading("list", resource), path, query: { ...selectors(scope), ...page } }, line.json, signal);
      return readPages(askPage, onPage, pagingOf(resource));
    },

    newest: async (resource, scope, signal) => {
      const path = collectionPath(resource, scope.namespace);
      const query = { limit: "1", ...selectors(scope) };
      // One object at most: the deadline of a get, not that of a list.
      const answer = await line.call({ ...reading("get", resource), path, query }, line.json, signal);
      if (!answer.ok) return answer;
      const version = textOf(fieldsOf(fieldsOf(answer.value)["metadata"])["resourceVersion"]);
      return version === undefined ? err({ kind: "garbled", detail: "a list without a resourceVersion" }) : ok(version);
    },

    watch: (resource, { resourceVersion, ...scope }, onEvent, signal) => {
      const path = collectionPath(resource, scope.namespace);
      const stream = watchStream(onEvent, budgets, line.tidy);
      const onChunk = (chunk: Buffer): KubeFailure | undefined => {
        const before = stream.events();
        const failure = stream.take(chunk);
        settings.onWatch({ resource: resourceName(resource), bytes: chunk.length, events: stream.events() - before });
        return failure;
      };
      const query = {
        watch: "true",
        resourceVersion,
        allowWatchBookmarks: "true",
        timeoutSeconds: String(300 + Math.floor(random() * 301)), // so that not all of them end at once
        ...selectors(scope),
      };
      const ended: Read<undefined> = (answer) => {
        const text = line.good(answer);
        const failure = text.ok ? stream.end() : text.error;
        return failure === undefined ? ok(undefined) : err(failure);
      };
      return line.call({ ...reading("watch", resource), path, query, onChunk }, ended, signal);
    },

    resources: async (signal) => {
      const get = (path: readonly string[]) =>
        line.call({ ...reading("get", anything), path: joined(path) }, line.json, signal);
      const groups = await get(["apis"]);
      if (!groups.ok) return groups;
      const found: Resource[] = [];
      for (const { group, version } of servedVersions(groups.value)) {
        const served = await get(["apis", group, version]);
        // One API service that is down must not hide all others.
        if (served.ok) for (const each of servedResources(served.value, group, version)) found.push(each);
      }
      return ok(found);
    },

    ask: (question, signal) => line.call({ ...reading("get", pods), path: podPath(question) }, line.good, signal),
  };
}

const pods: Resource = { group: "", version: "v1", plural: "pods", kind: "Pod", namespaced: true };

/** Stands for the kind where a question is about none. */
const anything: Resource = { group: "", version: "v1", plural: "*", kind: "*", namespaced: false };

const selectors = ({ fieldSelector, labelSelector }: Scope): Readonly<Record<string, string>> => ({
  ...(fieldSelector === undefined ? {} : { fieldSelector }),
  ...(labelSelector === undefined ? {} : { labelSelector }),
});

function writes(
  { call, json }: Line,
  { fieldManager }: Settings,
): Pick<KubeApi, "apply" | "create" | "patch" | "remove" | "replace"> {
  // A field that a server does not know must not make a write fail: the two sides need not be of one version. Only an
  // apply fails all the same, and is `invalid` then.
  const query = { fieldManager, fieldValidation: "Ignore" };
  return {
    create: (resource, body, signal) => {
      const path = creationPath(resource, textOf(metadataOf(body)["namespace"]));
      return call({ verb: "create", method: "POST", resource, path, body, query }, json, signal);
    },

    apply: (resource, ref, body, signal) => {
      const path = objectPath(resource, ref);
      const contentType = "application/apply-patch+yaml"; // JSON is YAML
      const forced = { ...query, force: "true" };
      const asked = { resource, path, body, query: forced, contentType, idempotent: true };
      return call({ verb: "apply", method: "PATCH", ...asked }, json, signal);
    },

    patch: (resource, ref, body, signal) => {
      const path = objectPath(resource, ref);
      const contentType = "application/merge-patch+json";
      // Without the guard, a repetition could undo what somebody wrote after the first one had been carried out.
      const idempotent = textOf(metadataOf(body)["resourceVersion"]) !== undefined;
      return call(
        { verb: "patch", method: "PATCH", resource, path, body, query, contentType, idempotent },
        json,
        signal,
      );
    },

    replace: (resource, ref, body, signal) => {
      const path = objectPath(resource, ref);
      return call({ verb: "replace", method: "PUT", resource, path, body, query }, json, signal);
    },

    remove: async (resource, ref, preconditions, signal) => {
      const path = objectPath(resource, ref);
      const body = { apiVersion: "v1", kind: "DeleteOptions", propagationPolicy: "Background", preconditions };
      const asked = { resource, path, body, idempotent: true };
      const result = await call({ verb: "delete", method: "DELETE", ...asked }, json, signal);
      return result.ok ? ok(undefined) : result;
    },
  };
}

const reading = (verb: "get" | "list" | "watch", resource: Resource) =>
  ({ verb, resource, method: "GET", idempotent: true }) as const;

const metadataOf = (body: object): Readonly<Record<string, unknown>> => fieldsOf(fieldsOf(body)["metadata"]);

function requestOf(asked: Asked, path: string, settings: Settings, signal: AbortSignal): HttpRequest {
  const { verb, resource, method, query = {}, body, contentType = "application/json", idempotent = false } = asked;
  const { requestTimeoutMs, listTimeoutMs, listIdleMs, watchIdleMs, budgets, userAgent } = settings;
  return {
    verb,
    resource,
    method,
    path: withQuery(path, query),
    headers: {
      accept: "application/json",
      "user-agent": userAgent,
      ...(body === undefined ? {} : { "content-type": contentType }),
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    idempotent,
    timeoutMs: verb === "list" ? listTimeoutMs : requestTimeoutMs,
    ...(verb === "list" ? { idleMs: listIdleMs } : verb === "watch" ? { idleMs: watchIdleMs } : {}),
    budgets,
    ...(asked.onChunk === undefined ? {} : { onChunk: asked.onChunk }),
    signal,
  };
}

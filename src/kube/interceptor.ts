// How a request travels: through a chain of plain functions, each of which may change it, delay it, repeat it or answer
// it itself. Credentials, rate, repetition, measurements and injected faults are all such functions.

import type { IncomingHttpHeaders } from "node:http";
import type { Budgets } from "../core/budgets.ts";
import type { Resource } from "../core/resource.ts";
import type { KubeFailure } from "./failure.ts";

/** What is asked of an API server. */
export type Verb = "get" | "list" | "watch" | "create" | "apply" | "patch" | "replace" | "delete";

/** One HTTP request on its way. */
export type HttpRequest = {
  readonly verb: Verb;
  readonly resource: Resource;
  readonly method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  /** Path and query, without the server's own prefix. */
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string;
  /** May be sent again even though the server may have carried it out. */
  readonly idempotent: boolean;
  /** The whole answer is here by then, connecting included; of a stream, its headers. */
  readonly timeoutMs: number;
  /** The longest silence while an answer is awaited or read. */
  readonly idleMs?: number;
  readonly budgets: Budgets;
  /** Hears of every byte of the answer, and ends it by answering with a failure. */
  readonly meter?: (bytes: number) => KubeFailure | undefined;
  /** Makes it a stream: takes the body of a good answer piece by piece, and ends it by answering with a failure. */
  readonly onChunk?: (chunk: Buffer) => KubeFailure | undefined;
  /** Ends it; the answer is then the signal's reason, thrown. */
  readonly signal: AbortSignal;
};

/** A whole answer, good or bad; the body of a stream has gone to `onChunk`. */
export type HttpResponse = {
  readonly kind: "response";
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer;
};

/** No whole answer. `repeat` says who may send the request again: anybody, as nothing was sent; idempotent ones; nobody. */
export type HttpLoss = {
  readonly kind: "lost";
  readonly failure: KubeFailure;
  readonly repeat: "always" | "idempotent" | "never";
};

/** What comes back; whatever the world does wrong is in here, only aborts and our own faults are thrown. */
export type HttpAnswer = HttpResponse | HttpLoss;

/** Sends a request and waits for its answer. */
export type Send = (request: HttpRequest) => Promise<HttpAnswer>;

/** One station on the way of every request. */
export type Interceptor = (request: HttpRequest, next: Send) => Promise<HttpAnswer>;

/** The stations in order, the first one outermost, around what finally sends. */
export function throughAll(interceptors: readonly Interceptor[], send: Send): Send {
  return interceptors.reduceRight<Send>((next, station) => (request) => station(request, next), send);
}

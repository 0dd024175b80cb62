// What we ask of one API server. The HTTP client implements it, and so may anything else that behaves alike.

import type { Resource, Scope } from "../core/resource.ts";
import type { Result } from "../core/result.ts";
import type { KubeFailure } from "./failure.ts";

/** One object of a kind. */
export type ObjectRef = { readonly name: string; readonly namespace?: string };

/** One line of a watch. A bookmark carries only a resourceVersion. */
export type WatchEvent =
  | { readonly type: "ADDED" | "MODIFIED" | "DELETED"; readonly object: unknown }
  | { readonly type: "BOOKMARK"; readonly resourceVersion: string };

/** What guards a removal: nothing but exactly this object, as it was seen, may go. */
export type Preconditions = { readonly uid?: string | undefined; readonly resourceVersion?: string | undefined };

/** A path on a port of a pod. */
export type PodQuestion = {
  readonly namespace: string;
  readonly pod: string;
  readonly port: number;
  readonly path: string;
};

/** Part of an object that has a path of its own. */
export type Subresource = "status";

/** One API server. Every call ends: by an answer, by its deadline or by the signal (which throws its reason). */
export type KubeApi = {
  /** Where it is, for messages: host and port, no credentials. */
  readonly server: string;
  /** Lists page by page; `onPage` sees each page once, and nothing of it is kept here. */
  list(
    resource: Resource,
    scope: Scope,
    onPage: (items: readonly unknown[]) => void,
    signal: AbortSignal,
  ): Promise<Result<{ readonly resourceVersion: string }, KubeFailure>>;
  /** The version that the server is at now: a small question, to be asked before a broken watch is taken up again. */
  newest(resource: Resource, scope: Scope, signal: AbortSignal): Promise<Result<string, KubeFailure>>;
  /** Streams events after a resourceVersion until the server closes the stream (ok) or something breaks. */
  watch(
    resource: Resource,
    scope: Scope & { readonly resourceVersion: string },
    onEvent: (event: WatchEvent) => void,
    signal: AbortSignal,
  ): Promise<Result<undefined, KubeFailure>>;
  get(resource: Resource, ref: ObjectRef, signal: AbortSignal): Promise<Result<unknown, KubeFailure>>;
  /** Creates; `exists` if there is one of that name, whoever's. */
  create(resource: Resource, body: object, signal: AbortSignal): Promise<Result<unknown, KubeFailure>>;
  /** Server-side apply under our field manager, taking over fields that others hold. A uid or resourceVersion in the body's metadata guards it. */
  apply(resource: Resource, ref: ObjectRef, body: object, signal: AbortSignal): Promise<Result<unknown, KubeFailure>>;
  /** JSON merge patch; a uid or resourceVersion in the body's metadata guards it. */
  patch(
    resource: Resource,
    ref: ObjectRef & { readonly subresource?: Subresource },
    body: object,
    signal: AbortSignal,
  ): Promise<Result<unknown, KubeFailure>>;
  /** Replaces a whole object; its resourceVersion guards it. */
  replace(resource: Resource, ref: ObjectRef, body: object, signal: AbortSignal): Promise<Result<unknown, KubeFailure>>;
  remove(
    resource: Resource,
    ref: ObjectRef,
    preconditions: Preconditions,
    signal: AbortSignal,
  ): Promise<Result<undefined, KubeFailure>>;
  /** Every kind that is served, each group in the version that it prefers; the core group is not among them. */
  resources(signal: AbortSignal): Promise<Result<readonly Resource[], KubeFailure>>;
  /** What a pod answers to a GET on one of its ports, asked through the API server. */
  ask(question: PodQuestion, signal: AbortSignal): Promise<Result<string, KubeFailure>>;
  /** Ends every connection. */
  close(): Promise<void>;
};

import type { Resource } from "../core/resource.ts";
import { err, ok, type Result } from "../core/result.ts";
import { quote } from "../core/shown.ts";
import type { ObjectRef, PodQuestion, Subresource } from "./api.ts";
import type { KubeFailure } from "./failure.ts";

/** The path of all objects of a kind, in one namespace or in all. */
export function collectionPath(resource: Resource, namespace: string | undefined): Result<string, KubeFailure> {
  const { group, version, plural, namespaced } = resource;
  const root = group === "" ? ["api", version] : ["apis", group, version];
  return joined([...root, ...(namespaced && namespace !== undefined ? ["namespaces", namespace] : []), plural]);
}

/** The path under which an object of a kind is created. */
export function creationPath(resource: Resource, namespace: string | undefined): Result<string, KubeFailure> {
  if (resource.namespaced && namespace === undefined) return invalid(`a ${resource.kind} needs a namespace`);
  return collectionPath(resource, namespace);
}

/** The path of one object or of a part of it. */
export function objectPath(
  resource: Resource,
  { name, namespace, subresource }: ObjectRef & { readonly subresource?: Subresource },
): Result<string, KubeFailure> {
  const collection = creationPath(resource, namespace);
  if (!collection.ok) return collection;
  const rest = joined([name, ...(subresource === undefined ? [] : [subresource])]);
  return rest.ok ? ok(`${collection.value}${rest.value}`) : rest;
}

/** The path through which an API server passes a question on to a pod. */
export function podPath({ namespace, pod, port, path }: PodQuestion): Result<string, KubeFailure> {
  const asked = path.split("/").filter((segment) => segment !== "");
  const named = joined([pod, ...asked]);
  if (!named.ok) return named;
  return joined(["api", "v1", "namespaces", namespace, "pods", `${pod}:${port}`, "proxy", ...asked]);
}

/** A path with its query, in which nothing means anything but itself. */
export function withQuery(path: string, query: Readonly<Record<string, string>>): string {
  const text = new URLSearchParams(query).toString();
  return text === "" ? path : `${path}?${text}`;
}

/** Segments as a path. Names come from other clusters: an empty one would turn a delete into a delete of everything, `..` into another path. */
export function joined(segments: readonly string[]): Result<string, KubeFailure> {
  const bad = segments.find((segment) => segment === "" || segment === "." || segment === ".." || unfit.test(segment));
  if (bad !== undefined) return invalid(`${quote(bad, 80)} cannot be part of a path`);
  return ok(segments.map((segment) => `/${encodeURIComponent(segment)}`).join(""));
}

/** What would be read as more than a name, and half a surrogate pair, which no URL can hold. */
const unfit = /[/%]|\p{Cs}/u;

const invalid = (detail: string): Result<never, KubeFailure> => err({ kind: "invalid", detail });

// What a request asks for, read from its method and path as a real API server does.

import type { SimRequest } from "./answer.ts";

/** What may be asked of a kind. */
export type SimVerb = "get" | "list" | "watch" | "create" | "update" | "patch" | "delete" | "deletecollection";

/** A request for objects of a kind. */
export type ResourceRoute = {
  readonly verb: SimVerb;
  readonly group: string;
  readonly version: string;
  readonly plural: string;
  readonly namespace: string;
  readonly name: string;
  /** The one object that a list or a watch is limited to, as far as rights are concerned. */
  readonly selected: string;
  readonly subresource: string;
};

/** A request, read. */
export type Route = {
  readonly path: string;
  readonly query: URLSearchParams;
  /** Of a kind's objects; otherwise of something about the server. */
  readonly resource: ResourceRoute | undefined;
};

/** Reads where a request leads. */
export function routeOf({ method, path: target }: Pick<SimRequest, "method" | "path">): Route {
  const mark = target.indexOf("?");
  const path = mark < 0 ? target : target.slice(0, mark);
  const query = new URLSearchParams(mark < 0 ? "" : target.slice(mark + 1));
  return { path, query, resource: resourceOf(method, path, query) };
}

function resourceOf(method: string, path: string, query: URLSearchParams): ResourceRoute | undefined {
  const [root, ...rest] = path
    .split("/")
    .filter((part) => part !== "")
    .map(decoded);
  const [group = "", version = "", ...parts] = root === "api" ? ["", ...rest] : root === "apis" ? rest : [];
  if ((root !== "api" && root !== "apis") || parts.length === 0) return undefined;
  const isInside = parts[0] === "namespaces" && parts.length > 2 && !namespaceParts.has(parts[2] ?? "");
  const [plural = "", name = "", subresource = ""] = isInside ? parts.slice(2) : parts;
  const namespace = isInside || (plural === "namespaces" && name !== "") ? (parts[1] ?? "") : "";
  const verb = verbOf(method, name, query);
  if (verb === undefined) return undefined;
  const selected = verb === "list" || verb === "watch" ? selectedName(query.get("fieldSelector") ?? "") : name;
  return { verb, group, version, plural, namespace, name, selected, subresource };
}

const selectedName = (fieldSelector: string): string =>
  /(?:^|,)metadata\.name==?([^,=!]+)/.exec(fieldSelector)?.[1] ?? "";

const namespaceParts = new Set(["status", "finalize"]);

function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch (error) {
    if (error instanceof URIError) return part;
    throw error;
  }
}

function verbOf(method: string, name: string, query: URLSearchParams): SimVerb | undefined {
  switch (method) {
    case "GET":
      if (name !== "") return "get";
      return isTrue(query.get("watch")) ? "watch" : "list";
    case "POST":
      return "create";
    case "PUT":
      return "update";
    case "PATCH":
      return "patch";
    case "DELETE":
      return name === "" ? "deletecollection" : "delete";
    default:
      return undefined;
  }
}

/** Whether a parameter of a query says yes. */
export const isTrue = (value: string | null): boolean => value === "true" || value === "1";

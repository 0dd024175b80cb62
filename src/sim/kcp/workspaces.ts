// Workspaces as kcp serves them, on one server per shard: the namespaces of a workspace carry its name in front, which
// nobody sees. So all workspaces of a shard share one store, and one count of its changes, as they do in kcp.

import { fieldsOf, listOf, textOf } from "../../core/json.ts";
import { badRequest, notFound, Refusal, type SimAnswer, type SimRequest } from "../answer.ts";
import type { SimServer } from "../server.ts";
import type { Fields } from "../value.ts";

/** Annotation of every object that is read across workspaces. */
const workspaceAnnotation = "kcp.io/cluster";

const mark = "--";

/** The namespace of a workspace as the server of its shard has it. */
export const hiddenNamespace = (workspace: string, namespace: string): string => `${workspace}${mark}${namespace}`;

/** Whose an object on a shard is, and in which namespace of theirs. */
export function placeOf(object: Fields): { readonly workspace: string; readonly namespace: string } | undefined {
  const hidden = textOf(fieldsOf(object["metadata"])["namespace"]);
  const at = hidden?.indexOf(mark) ?? -1;
  if (hidden === undefined || at < 0) return undefined;
  return { workspace: hidden.slice(0, at), namespace: hidden.slice(at + mark.length) };
}

const shown = new WeakMap<Fields, Fields>();

/** An object of a shard as its workspace sees it. */
export function asSeen(object: Fields): Fields {
  const known = shown.get(object);
  if (known !== undefined) return known;
  const place = placeOf(object);
  if (place === undefined) return object;
  const metadata = fieldsOf(object["metadata"]);
  const annotations = { ...fieldsOf(metadata["annotations"]), [workspaceAnnotation]: place.workspace };
  const unveiled = { ...object, metadata: { ...metadata, namespace: place.namespace, annotations } };
  shown.set(object, unveiled);
  return unveiled;
}

/** How a shard answers requests below `/clusters/<workspace>` and `/clusters/*`. */
export function workspaceHandler(
  server: SimServer,
  isBound: (workspace: string) => boolean,
): (request: SimRequest) => SimAnswer {
  return (request) => {
    try {
      return answer(server, isBound, request);
    } catch (error) {
      if (error instanceof Refusal) return error.reply;
      throw error;
    }
  };
}

function answer(server: SimServer, isBound: (workspace: string) => boolean, request: SimRequest): SimAnswer {
  const match = /^\/clusters\/([^/]+)(\/.*)$/.exec(request.path);
  const [, segment = "", rest = ""] = match ?? [];
  const workspace = decodeURIComponent(segment);
  if (match === null) return server.handle(request);
  if (workspace === "*") return seen(server.handle({ ...request, path: wildcard(request, rest) }));
  if (!isBound(workspace)) throw notFound({ group: "core.kcp.io", plural: "logicalclusters", kind: "" }, workspace);
  const path = rest.replace(
    /\/namespaces\/([^/?]+)/,
    (_, namespace: string) => `/namespaces/${workspace}${mark}${namespace}`,
  );
  return seen(server.handle({ ...request, path, ...hiddenBody(request.body, workspace) }));
}

function wildcard({ method }: SimRequest, path: string): string {
  if (method !== "GET") throw badRequest("only list and watch are allowed across workspaces");
  if (path.includes("/namespaces/")) {
    throw badRequest("cross-cluster LIST and WATCH are required to be cross-namespace");
  }
  return path;
}

function hiddenBody(body: string | undefined, workspace: string): { readonly body?: string } {
  if (body === undefined) return {};
  const object = fieldsOf(JSON.parse(body));
  const inside = (field: string): Fields => {
    const part = fieldsOf(object[field]);
    const namespace = textOf(part["namespace"]);
    if (namespace === undefined) return {};
    return { [field]: { ...part, namespace: hiddenNamespace(workspace, namespace) } };
  };
  return { body: JSON.stringify({ ...object, ...inside("metadata"), ...inside("regarding") }) };
}

function seen(answered: SimAnswer): SimAnswer {
  if (answered.kind === "watch") {
    const { watch } = answered;
    return {
      ...answered,
      watch: { ...watch, subscribe: (onLine, onEnd) => watch.subscribe((line) => onLine(seenLine(line)), onEnd) },
    };
  }
  const body = fieldsOf(answered.body);
  if (typeof answered.body !== "object" || answered.body === null) return answered;
  if (body["items"] === undefined) return { ...answered, body: asSeen(body) };
  return { ...answered, body: { ...body, items: listOf(body["items"]).map((item) => asSeen(fieldsOf(item))) } };
}

function seenLine(line: string): string {
  const { type, object } = fieldsOf(JSON.parse(line));
  return JSON.stringify({ type, object: asSeen(fieldsOf(object)) });
}

// A request for objects of a kind: which of the eight verbs it is, and what is read from it before the verb runs.

import { fieldsOf, listOf, textOf } from "../core/json.ts";
import {
  badRequest,
  invalid,
  json,
  methodNotAllowed,
  noSuchResource,
  notFound,
  notSupported,
  required,
  type SimAnswer,
  type SimReply,
  type SimRequest,
  unsupported,
} from "./answer.ts";
import { mediaType, patchTypes, readObject, yamlOf } from "./body.ts";
import { definitionKind } from "./definitions.ts";
import type { Kind } from "./kind.ts";
import { jsonPatch, mergePatch, strategicPatch } from "./patch.ts";
import { listBody, listObjects, selectionOf } from "./read.ts";
import { removalOptions, type Removed, removeObject } from "./removal.ts";
import { isTrue, type ResourceRoute, type Route } from "./route.ts";
import type { ServerParts } from "./server.ts";
import { tableOf, tableWish } from "./table.ts";
import type { SimUser } from "./users.ts";
import { type Fields, isFields, timeText } from "./value.ts";
import {
  applyObject,
  createObject,
  keyOf,
  loaded,
  managerFault,
  patchObject,
  replaceObject,
  type Write,
  type WriteTools,
  type Written,
} from "./write.ts";

/** A request, read as far as its kind. */
export type Asked = {
  readonly kind: Kind;
  readonly route: Route;
  readonly resource: ResourceRoute;
  readonly request: SimRequest;
  readonly user: SimUser;
};

/** Answers a request for objects of a kind; refusals are thrown. */
export function answerResource(parts: ServerParts, asked: Asked): SimAnswer {
  const { kind, resource } = asked;
  refuseMisplaced(asked);
  switch (resource.verb) {
    case "get":
      return getObject(parts, asked);
    case "list":
    case "watch":
      return readMany(parts, asked);
    case "create":
      if (resource.subresource === "token" && kind.plural === "serviceaccounts") return issueToken(parts, asked);
      return written(parts, asked, (write, tools) => createObject(tools, write, bodyObject(asked)));
    case "update":
      return written(parts, asked, (write, tools) => replaceObject(tools, write, bodyObject(asked)));
    case "patch":
      return patched(parts, asked);
    case "delete":
      return removed(parts, asked);
    case "deletecollection":
      return removedAll(parts, asked);
  }
}

function refuseMisplaced({ kind, resource }: Asked): void {
  const { verb, name, subresource } = resource;
  const isToken = subresource === "token" && kind.plural === "serviceaccounts";
  if (subresource !== "" && !isToken && !(subresource === "status" && kind.hasStatus)) {
    throw kind.custom ? notFound(kind, name) : noSuchResource();
  }
  if (kind.custom) {
    if (verb === "update" && name === "") throw badRequest("name must be provided");
    if (subresource === "" || verb === "get" || verb === "update" || verb === "patch") return;
    throw notSupported(kind, verb);
  }
  const isOne = name !== "";
  const isWrongPlace = verb === "create" ? isOne && !isToken : (verb === "update" || verb === "patch") && !isOne;
  if (isWrongPlace || (subresource === "status" && (verb === "delete" || verb === "create"))) throw methodNotAllowed();
}

function getObject({ store, nowMs }: ServerParts, asked: Asked): SimReply {
  const { kind, resource, route, request } = asked;
  const object = loaded(store, placeOf(asked));
  const wish = tableWish(request.headers["accept"], route.query);
  if (wish === undefined || resource.subresource !== "") return json(200, object);
  const { resourceVersion } = fieldsOf(object["metadata"]);
  return json(200, tableOf(kind, [object], { wish, nowMs: nowMs(), metadata: { resourceVersion } }));
}

function readMany({ store, watches, nowMs }: ServerParts, { kind, resource, route, request }: Asked): SimAnswer {
  const { query } = route;
  const selection = selectionOf(kind, kind.namespaced ? resource.namespace : "", query);
  const wish = tableWish(request.headers["accept"], query);
  if (resource.verb === "watch") return watches.open({ selection, query, wish });
  return listObjects(store, selection, { query, wish, nowMs: nowMs() });
}

const bodyObject = ({ request, kind }: Asked): Fields =>
  readObject(request.body ?? "", request.headers["content-type"], kind);

/** Where an object is; a Namespace is not in itself. */
const placeOf = ({ kind, resource }: Asked) => ({
  kind,
  namespace: kind.namespaced ? resource.namespace : "",
  name: resource.name,
});

function writeOf({ nowMs }: ServerParts, asked: Asked): Write {
  const { query } = asked.route;
  const agent = asked.request.headers["user-agent"] ?? "unknown";
  const manager = query.get("fieldManager") ?? "";
  const fault = managerFault(manager);
  if (fault !== undefined) throw invalid({ group: "meta.k8s.io", plural: "", kind: "PatchOptions" }, "", [fault]);
  return {
    ...placeOf(asked),
    subresource: asked.resource.subresource,
    manager: manager === "" ? (agent.split("/")[0] ?? agent).slice(0, 128) : manager,
    dryRun: query.getAll("dryRun").includes("All"),
    strict: query.get("fieldValidation") === "Strict",
    nowMs: nowMs(),
  };
}

const toolsOf = ({ store, names }: ServerParts): WriteTools => ({
  store,
  newUid: names.uid,
  newSuffix: names.suffix,
});

function written(parts: ServerParts, asked: Asked, run: (write: Write, tools: WriteTools) => Written): SimReply {
  const write = writeOf(parts, asked);
  const { object, created } = run(write, toolsOf(parts));
  const { name } = fieldsOf(object["metadata"]);
  if (write.kind === definitionKind && !write.dryRun && typeof name === "string") {
    parts.definitionsChanged(name, asked.resource.verb);
  }
  return json(created ? 201 : 200, object);
}

function patched(parts: ServerParts, asked: Asked): SimReply {
  const { kind, request, route, resource } = asked;
  const type = mediaType(request.headers["content-type"]);
  const types = patchTypes(kind.custom);
  if (!types.includes(type)) throw unsupported(types);
  if (resource.name === "") throw badRequest("name must be provided");
  const text = request.body ?? "";
  if (type === "application/apply-patch+yaml") {
    if ((route.query.get("fieldManager") ?? "") === "") throw managerMissing();
    const config = yamlOf(text);
    if (!isFields(config)) throw badRequest("error decoding YAML: not an object");
    const force = isTrue(route.query.get("force"));
    return written(parts, asked, (write, tools) => applyObject(tools, write, config, force));
  }
  return written(parts, asked, (write, tools) => {
    const before = loaded(tools.store, write);
    return patchObject(tools, write, before, changed(before, type, patchValue(text), kind));
  });
}

const managerMissing = () =>
  invalid({ group: "meta.k8s.io", plural: "", kind: "PatchOptions" }, "", [
    required("fieldManager", "is required for apply patch"),
  ]);

function patchValue(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw badRequest(`error decoding patch: ${error instanceof Error ? error.message : String(error)}`);
  }
}

function changed(before: Fields, type: string, patch: unknown, kind: Kind): Fields {
  if (type === "application/json-patch+json") return fieldsOf(jsonPatch(before, patch));
  if (!isFields(patch)) throw badRequest("json: cannot unmarshal array into Go value of type map[string]interface {}");
  if (type === "application/merge-patch+json") return fieldsOf(mergePatch(before, patch));
  return fieldsOf(strategicPatch(before, patch, kind.schema));
}

function removed(parts: ServerParts, asked: Asked): SimReply {
  const write = writeOf(parts, asked);
  const options = removalOptions(optionsIn(asked), asked.route.query);
  const outcome = removeObject(toolsOf(parts), write, options);
  if (write.kind === definitionKind && !write.dryRun) parts.definitionsChanged(write.name, "delete");
  return removalReply(outcome, write);
}

function removalReply({ gone, object }: Removed, { kind, name }: Write): SimReply {
  if (!gone) return json(200, object);
  const { uid } = fieldsOf(object["metadata"]);
  const details = { name, ...(kind.group === "" ? {} : { group: kind.group }), kind: kind.plural, uid };
  return json(200, { kind: "Status", apiVersion: "v1", metadata: {}, status: "Success", details });
}

function optionsIn({ request }: Asked): unknown {
  const { body = "" } = request;
  if (body === "") return {};
  const options = yamlOf(body);
  const named = textOf(fieldsOf(options)["kind"]);
  if (named !== undefined && named !== "DeleteOptions") throw badRequest(`expected DeleteOptions, not ${named}`);
  return options;
}

function removedAll(parts: ServerParts, asked: Asked): SimReply {
  const { kind, route, resource } = asked;
  const { query } = route;
  const selection = selectionOf(kind, kind.namespaced ? resource.namespace : "", query);
  const options = removalOptions(optionsIn(asked), query);
  const listed = listObjects(parts.store, selection, { query, wish: undefined, nowMs: 0 });
  const objects = listOf(fieldsOf(listed.body)["items"]).map(fieldsOf);
  const resourceVersion = String(parts.store.revision);
  const write = writeOf(parts, asked);
  for (const object of objects) {
    const metadata = fieldsOf(object["metadata"]);
    const [name, namespace] = [textOf(metadata["name"]) ?? "", textOf(metadata["namespace"]) ?? ""];
    removeObject(toolsOf(parts), { ...write, name, namespace }, options);
    if (kind === definitionKind) parts.definitionsChanged(name, "delete");
  }
  return json(200, listBody(kind, objects, { resourceVersion }));
}

/** A token for a ServiceAccount, good until it is revoked. */
function issueToken(parts: ServerParts, asked: Asked): SimReply {
  const { store, users, names, nowMs } = parts;
  const account = loaded(store, placeOf(asked));
  const { name, namespace, uid } = fieldsOf(account["metadata"]);
  const token = names.token();
  const [where, who] = [String(namespace), String(name)];
  users.admit(token, {
    name: `system:serviceaccount:${where}:${who}`,
    groups: ["system:serviceaccounts", `system:serviceaccounts:${where}`],
    account: { key: keyOf(where, who), uid: String(uid) },
  });
  const spec = fieldsOf(bodyOf(asked)["spec"]);
  const seconds = typeof spec["expirationSeconds"] === "number" ? spec["expirationSeconds"] : 3_600;
  return json(201, {
    kind: "TokenRequest",
    apiVersion: "authentication.k8s.io/v1",
    metadata: { name, namespace, uid, creationTimestamp: timeText(nowMs()), managedFields: [tokenOwner(parts, asked)] },
    spec: { audiences: ["https://kubernetes.default.svc"], ...spec, boundObjectRef: null },
    status: { token, expirationTimestamp: timeText(nowMs() + seconds * 1_000) },
  });
}

/** A request for a token is tracked like any other object, though it is never stored. */
function tokenOwner(parts: ServerParts, asked: Asked): Fields {
  const { manager } = writeOf(parts, asked);
  const fields = Object.keys(fieldsOf(bodyOf(asked)["spec"])).map((field) => [`f:${field}`, {}]);
  return {
    manager,
    operation: "Update",
    apiVersion: "authentication.k8s.io/v1",
    time: timeText(parts.nowMs()),
    fieldsType: "FieldsV1",
    fieldsV1: { "f:spec": Object.fromEntries(fields) },
    subresource: "token",
  };
}

const bodyOf = ({ request }: Asked): Fields => fieldsOf(yamlOf(request.body ?? "{}"));

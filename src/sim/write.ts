// Creating, replacing, patching and applying: each makes a candidate, and one path leads from a candidate to the store.

import { fieldsOf, listOf, textOf } from "../core/json.ts";
import {
  alreadyExists,
  applyConflict,
  badRequest,
  type Cause,
  conflict,
  internal,
  invalid,
  invalidValue,
  modifiedMeanwhile,
  notFound,
  Refusal,
} from "./answer.ts";
import { formed, formedByPatch } from "./body.ts";
import { builtinFaults } from "./builtin-kinds.ts";
import { faultsOf } from "./custom-object.ts";
import { apiVersionOfKind, goForm, type Kind } from "./kind.ts";
import { applied, type Manager, managersAfterUpdate, managersOf, withManagers, type Writer } from "./managed-fields.ts";
import { metadataFaults, metadataUpdateFaults } from "./object-meta.ts";
import type { Store } from "./store.ts";
import { typingFaults } from "./typed.ts";
import { type Fields, quote, sameBut, sameValue, timeText, withField } from "./value.ts";

/** One write: to what, by whom, and how. */
export type Write = {
  readonly kind: Kind;
  readonly namespace: string;
  readonly name: string;
  /** `status`, or nothing for the object itself. */
  readonly subresource: string;
  readonly manager: string;
  readonly dryRun: boolean;
  readonly strict: boolean;
  readonly nowMs: number;
};

/** What a server gives to a write. */
export type WriteTools = {
  readonly store: Store;
  readonly newUid: () => string;
  readonly newSuffix: () => string;
};

/** What came of a write. */
export type Written = { readonly object: Fields; readonly created: boolean };

/** Where an object is kept. */
export const keyOf = (namespace: string, name: string): string => (namespace === "" ? name : `${namespace}/${name}`);

const metadataOf = (object: Fields): Fields => fieldsOf(object["metadata"]);

/** The object as this version of its kind shows it; thrown, if there is none. */
export function loaded(store: Store, { kind, namespace, name }: Pick<Write, "kind" | "namespace" | "name">): Fields {
  const stored = store.get(kind.storage, keyOf(namespace, name));
  if (stored === undefined) throw notFound(kind.about, name);
  return kind.load(stored);
}

/** Creates an object. */
export function createObject(tools: WriteTools, write: Write, given: Fields): Written {
  const { kind, namespace } = write;
  const read = withoutSystemFields(inNamespace(formed(given, kind, write.strict), write));
  const metadata = metadataOf(read);
  if (textOf(metadata["resourceVersion"]) !== undefined) {
    throw internal("resourceVersion should not be set on objects to be created");
  }
  requireNamespace(tools.store, write);
  const prefix = textOf(metadata["generateName"]);
  const name = textOf(metadata["name"]) ?? (prefix === undefined ? "" : `${prefix}${tools.newSuffix()}`);
  const named = { ...read, metadata: name === "" ? metadata : { ...metadata, name } };
  const managed = withManagers(named, managersAfterUpdate(undefined, ownable(named, kind), [], writerOf(write)));
  return insert(tools, { ...write, name, namespace }, managed);
}

/** An object as it is when somebody comes to own its fields: with defaults, but without what admission adds. */
function ownable(object: Fields, kind: Kind): Fields {
  if (kind.custom) return object;
  // Only a new Node is tainted, and only a new Namespace gets its finalizers.
  return kind.kind === "Node" || kind.kind === "Namespace"
    ? kind.complete(object, { spec: fieldsOf(goForm(object, kind.schema))["spec"] })
    : kind.complete(object, undefined);
}

function insert(tools: WriteTools, write: Write, candidate: Fields): Written {
  const { kind, namespace, name } = write;
  const { store } = tools;
  const { status: _status, ...withoutStatus } = candidate;
  const metadata = {
    ...metadataOf(candidate),
    uid: tools.newUid(),
    creationTimestamp: timeText(write.nowMs),
    ...(kind.hasGeneration ? { generation: 1 } : {}),
  };
  const bare = { ...(kind.custom && kind.hasStatus ? withoutStatus : candidate), metadata };
  const object = kind.custom ? bare : kind.complete(bare, undefined);
  refuseInvalid(kind, object, undefined, name);
  const key = keyOf(namespace, name);
  const present = store.get(kind.storage, key);
  if (present !== undefined) {
    const refusal = alreadyExists(kind.about, name);
    if (metadataOf(present)["deletionTimestamp"] === undefined) throw refusal;
    const { message, reason, details } = fieldsOf(refusal.reply.body);
    throw new Refusal(409, { message: `object is being deleted: ${String(message)}`, reason, details });
  }
  if (write.dryRun) return { object, created: true };
  return { object: kind.load(store.put(kind.storage, key, kind.save(object))), created: true };
}

function withoutSystemFields(object: Fields): Fields {
  let metadata = metadataOf(object);
  for (const field of ["uid", ...systemFields]) metadata = withField(metadata, field, undefined);
  return { ...object, metadata };
}

function requireNamespace(store: Store, { kind, namespace }: Write): void {
  if (!kind.namespaced) return;
  const found = store.get("/namespaces", namespace);
  const about = { group: "", plural: "namespaces", kind: "Namespace" };
  if (found === undefined) throw notFound(about, namespace);
  if (metadataOf(found)["deletionTimestamp"] === undefined) return;
  const why = `unable to create new content in namespace ${namespace} because it is being terminated`;
  throw new Refusal(403, {
    message: `${kind.plural} is forbidden: ${why}`,
    reason: "Forbidden",
    details: {
      kind: kind.plural,
      causes: [
        {
          reason: "NamespaceTerminating",
          message: `namespace ${namespace} is being terminated`,
          field: "metadata.namespace",
        },
      ],
    },
  });
}

function inNamespace(object: Fields, { kind, namespace }: Write): Fields {
  const metadata = metadataOf(object);
  const stated = textOf(metadata["namespace"]);
  if (stated !== undefined && stated !== namespace) {
    throw badRequest("the namespace of the provided object does not match the namespace sent on the request");
  }
  return kind.namespaced ? withField(object, "metadata", withField(metadata, "namespace", namespace)) : object;
}

/** Replaces an object with what is given. */
export function replaceObject(tools: WriteTools, write: Write, given: Fields): Written {
  const { kind, name } = write;
  const read = formed(given, kind, write.strict);
  requireName(read, name);
  const placed = inNamespace(read, write);
  const { uid, resourceVersion } = metadataOf(placed);
  const stored = tools.store.get(kind.storage, keyOf(write.namespace, name));
  if (stored === undefined) {
    if (!kind.createsOnPut || write.subresource !== "") throw notFound(kind.about, name);
    return createObject(tools, write, given);
  }
  const before = kind.load(stored);
  if (uid !== undefined && uid !== metadataOf(before)["uid"]) {
    const wanted = `UID in precondition: ${textOf(uid) ?? ""}, UID in object meta: ${textOf(metadataOf(before)["uid"]) ?? ""}`;
    throw conflict(
      kind.about,
      name,
      `StorageError: invalid object, Code: 4, Key: ${storageKey(write)}, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: ${wanted}`,
    );
  }
  if (resourceVersion === undefined && !kind.putsUnconditionally) {
    const why = "must be specified for an update";
    throw invalid(kind.about, name, [invalidValue("metadata.resourceVersion", 0, why)], "plural");
  }
  return changeObject(tools, write, before, placed);
}

/** Where a real server keeps it, Nodes under their first name. */
const storageKey = ({ kind, namespace, name }: Write): string => {
  const group = kind.custom ? `/${kind.group}` : "";
  return `/registry${group}/${kind.kind === "Node" ? "minions" : kind.plural}/${keyOf(namespace, name)}`;
};

function requireName(object: Fields, name: string): void {
  const stated = textOf(metadataOf(object)["name"]);
  if (stated === undefined)
    throw badRequest(`the name of the object (${name} based on URL) was undeterminable: name must be provided`);
  if (stated !== name)
    throw badRequest(`the name of the object (${stated}) does not match the name on the URL (${name})`);
}

/** Changes an object into what a patch made of it. */
export function patchObject(tools: WriteTools, write: Write, before: Fields, patched: Fields): Written {
  const read = formedByPatch(patched, write.kind, write.strict);
  requireName(read, write.name);
  return changeObject(tools, write, before, inNamespace(read, write));
}

/** Applies a configuration, and creates the object if there is none. */
export function applyObject(tools: WriteTools, write: Write, config: Fields, force: boolean): Written {
  const { kind, name } = write;
  const expected = apiVersionOfKind(kind);
  if (config["kind"] !== kind.kind || config["apiVersion"] !== expected) {
    const [group, version] = groupVersion(textOf(config["apiVersion"]) ?? "");
    throw badRequest(`invalid object type: ${group}/${version}, Kind=${textOf(config["kind"]) ?? ""}`);
  }
  const metadata = metadataOf(config);
  if (metadata["managedFields"] !== undefined) throw badRequest("metadata.managedFields must be nil");
  const faults = typingFaults(config, kind.schema);
  if (faults.length > 0) {
    const who = `${textOf(metadata["namespace"]) ?? ""}/${textOf(metadata["name"]) ?? ""}`;
    const why = faults.length === 1 ? faults[0] : `errors:\n${faults.map((fault) => `  ${fault}`).join("\n")}`;
    throw internal(`failed to create typed patch object (${who}; ${expected}, Kind=${kind.kind}): ${why}`);
  }
  const stored = tools.store.get(kind.storage, keyOf(write.namespace, name));
  if (stored === undefined && write.subresource !== "") throw notFound(kind.about, name);
  const live = stored === undefined ? { apiVersion: expected, kind: kind.kind, metadata: {} } : kind.load(stored);
  const result = applied(live, config, { writer: writerOf(write), force });
  if (!result.ok) throw applyConflict(result.error);
  const { object, managers } = result.value;
  if (stored === undefined) return applyNew(tools, write, object, managers);
  const placed = inNamespace(formed(object, kind, write.strict), write);
  requireName(placed, name);
  return changeObject(tools, write, live, withManagers(placed, managers), { isManaged: true });
}

function applyNew(tools: WriteTools, write: Write, object: Fields, managers: readonly Manager[]): Written {
  const { kind, name } = write;
  requireNamespace(tools.store, write);
  const read = inNamespace(formed(object, kind, write.strict), write);
  requireName(read, name);
  const { uid, resourceVersion: _version, ...metadata } = metadataOf(read);
  if (uid !== undefined) {
    const why = `uid mismatch: the provided object specified uid ${textOf(uid) ?? ""}, and no existing object was found`;
    throw conflict(kind.about, name, why);
  }
  return insert(tools, write, withManagers({ ...read, metadata }, managers));
}

const groupVersion = (apiVersion: string): readonly [string, string] => {
  const [first = "", second] = apiVersion.split("/");
  return second === undefined ? ["", first] : [first, second];
};

/** From a candidate to the store: who owns it, whether it is valid, whether it is a change at all. */
export function changeObject(
  tools: WriteTools,
  write: Write,
  before: Fields,
  candidate: Fields,
  { isManaged = false }: { readonly isManaged?: boolean } = {},
): Written {
  const { kind, name } = write;
  const given = textOf(metadataOf(candidate)["resourceVersion"]);
  if (given !== undefined && !/^\d+$/.test(given))
    throw internal(`strconv.ParseUint: parsing ${quote(given)}: invalid syntax`);
  const old = metadataOf(before);
  if (given !== undefined && given !== old["resourceVersion"]) throw modifiedMeanwhile(kind.about, name);
  const split = divided(write, before, withSystemFields(candidate, old));
  const completed = kind.custom ? split : kind.complete(split, before);
  const stated = managersOf(candidate);
  const tracked = isManaged || stated.length > 0 ? stated : managersOf(before);
  const managers = isManaged ? tracked : managersAfterUpdate(before, completed, tracked, writerOf(write));
  const object = withGeneration(kind, before, withManagers(completed, managers));
  refuseInvalid(kind, object, before, name);
  if (isUnchanged(before, object)) return { object: before, created: false };
  if (write.dryRun) return { object, created: false };
  const key = keyOf(write.namespace, name);
  const { deletionTimestamp, finalizers } = metadataOf(object);
  if (deletionTimestamp !== undefined && listOf(finalizers).length === 0 && !isHeld(object)) {
    tools.store.remove(kind.storage, key);
    return { object, created: false };
  }
  return { object: kind.load(tools.store.put(kind.storage, key, kind.save(object))), created: false };
}

/** A namespace goes once its own finalizers are gone, which takes a controller. */
const isHeld = (object: Fields): boolean =>
  object["kind"] === "Namespace" && listOf(fieldsOf(object["spec"])["finalizers"]).length > 0;

const systemFields = ["creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "generation"];

function withSystemFields(object: Fields, old: Fields): Fields {
  let metadata = metadataOf(object);
  for (const field of systemFields) metadata = withField(metadata, field, old[field]);
  metadata = withField(metadata, "uid", metadata["uid"] ?? old["uid"]);
  return withField(object, "metadata", withField(metadata, "resourceVersion", old["resourceVersion"]));
}

/** Each path writes its own part: the object itself never its status, the status nothing else. */
function divided({ kind, subresource }: Write, before: Fields, candidate: Fields): Fields {
  if (!kind.hasStatus) return candidate;
  if (subresource === "") return withField(candidate, "status", before["status"]);
  const { managedFields } = metadataOf(candidate);
  // Of metadata, too: not even a wrong uid in it is noticed.
  if (kind.custom) {
    const metadata = withField(metadataOf(before), "managedFields", managedFields);
    return withField({ ...before, metadata }, "status", candidate["status"]);
  }
  return { ...candidate, spec: before["spec"] };
}

function withGeneration(kind: Kind, before: Fields, object: Fields): Fields {
  if (!kind.hasGeneration || sameValue(counted(kind, before), counted(kind, object))) return object;
  const metadata = metadataOf(object);
  const { generation } = metadata;
  return { ...object, metadata: { ...metadata, generation: (typeof generation === "number" ? generation : 0) + 1 } };
}

/** The part of an object whose changes are counted. */
function counted(kind: Kind, object: Fields): Fields {
  const { metadata, status, ...rest } = object;
  // A Deployment hands its annotations on, and an EndpointSlice belongs to whatever its labels say.
  if (kind.kind === "Deployment") return { ...rest, annotations: fieldsOf(metadata)["annotations"] };
  if (kind.kind === "EndpointSlice") return { ...rest, labels: fieldsOf(metadata)["labels"] };
  return kind.hasStatus ? rest : { ...rest, status };
}

/** Whether nothing changed but the times at which somebody wrote it. */
function isUnchanged(before: Fields, after: Fields): boolean {
  const [old, now] = [metadataOf(before), metadataOf(after)];
  const [had, has] = [old, now].map(({ managedFields }) => listOf(managedFields).map(fieldsOf));
  return (
    had?.length === has?.length &&
    sameBut("metadata", before, after) &&
    sameBut("managedFields", old, now) &&
    had?.every((entry, index) => sameBut("time", entry, has?.[index] ?? {})) === true
  );
}

function refuseInvalid(kind: Kind, object: Fields, before: Fields | undefined, name: string): void {
  const metadata = metadataOf(object);
  const general = before === undefined ? [] : metadataUpdateFaults(metadataOf(before), metadata);
  const wrongKind: readonly Cause[] =
    object["kind"] === kind.kind ? [] : [invalidValue("kind", object["kind"], `must be ${kind.kind}`)];
  const named = { ...kind.about, kind: textOf(object["kind"]) ?? kind.kind };
  const own = kind.custom
    ? [...wrongKind, ...faultsOf(object, kind.schema, metadataFaults(metadata, kind.checkName))]
    : builtinFaults(kind, object, before);
  const faults = [...general, ...general, ...own];
  if (faults.length > 0) throw invalid(named, name, faults);
}

/** Who writes, as managed fields know them. */
function writerOf({ kind, subresource, manager, nowMs }: Write): Writer {
  return {
    name: manager,
    apiVersion: apiVersionOfKind(kind),
    subresource,
    time: timeText(nowMs),
    schema: kind.schema,
    ignored: ignoredBy(kind, subresource),
    zero: kind.zero,
  };
}

function ignoredBy(kind: Kind, subresource: string): readonly (readonly string[])[] {
  if (!kind.hasStatus) return [];
  if (subresource === "") return [["f:status"]];
  if (!kind.custom) return [["f:spec"]];
  return [...kind.schema.properties.keys()].filter((field) => field !== "status").map((field) => [`f:${field}`]);
}

/** The name of a field manager that cannot be one, as the server refuses it. */
export const managerFault = (name: string): Cause | undefined =>
  name.length > 128
    ? {
        reason: "FieldValueTooLong",
        message: `Too long: may not be more than 128 bytes: ${quote(name)}`,
        field: "fieldManager",
      }
    : undefined;

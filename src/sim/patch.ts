// The four ways to change part of an object, apart from applying.

import { fieldsOf, listOf, textOf } from "../core/json.ts";
import { badRequest, unprocessable } from "./answer.ts";
import { fieldSchema, type Schema } from "./schema.ts";
import { type Fields, isFields, sameValue } from "./value.ts";

/** RFC 7386: objects are merged, null removes, all else replaces. */
export function mergePatch(target: unknown, patch: unknown): unknown {
  if (!isFields(patch)) return patch;
  const out: Record<string, unknown> = { ...fieldsOf(target) };
  for (const [key, value] of Object.entries(patch)) {
    if (value === null) delete out[key];
    else out[key] = mergePatch(out[key], value);
  }
  return out;
}

/**
 * Kubernetes' own: as a merge, but lists whose items are told apart are merged item by item. Directives other than
 * `$patch: delete` of an item are refused.
 */
export function strategicPatch(target: unknown, patch: unknown, schema: Schema | undefined): unknown {
  if (Array.isArray(patch) && schema !== undefined && schema.list === "map") return mergeItems(target, patch, schema);
  if (Array.isArray(patch) && schema?.list === "set") {
    return [...listOf(target), ...patch.filter((item) => !listOf(target).includes(item))];
  }
  if (!isFields(patch)) return patch;
  if ("$patch" in patch || "$retainKeys" in patch) throw badRequest("the simulation knows no such directive");
  const out: Record<string, unknown> = { ...fieldsOf(target) };
  for (const [key, value] of Object.entries(patch)) {
    if (key.startsWith("$setElementOrder/")) continue;
    if (key.startsWith("$deleteFromPrimitiveList/")) {
      const list = key.slice(key.indexOf("/") + 1);
      out[list] = listOf(out[list]).filter((item) => !listOf(value).includes(item));
    } else if (value === null) delete out[key];
    else out[key] = strategicPatch(out[key], value, schema === undefined ? undefined : fieldSchema(schema, key));
  }
  return out;
}

function mergeItems(target: unknown, patch: readonly unknown[], { keys, items }: Schema): unknown {
  const isSame = (a: unknown, b: unknown): boolean =>
    keys.every((key) => sameValue(fieldsOf(a)[key], fieldsOf(b)[key]));
  const live = listOf(target);
  const gone = patch.filter((item) => fieldsOf(item)["$patch"] === "delete");
  const given = patch.filter((item) => !gone.includes(item));
  const merged = given.map((item) => strategicPatch(live.find((other) => isSame(other, item)) ?? {}, item, items));
  const others = live.filter((other) => !patch.some((item) => isSame(item, other)));
  return interleaved(others, merged, (item) => live.findIndex((other) => isSame(other, item)));
}

/** What only the server has stands before what is patched only where it stood before it. */
function interleaved(
  others: readonly unknown[],
  given: readonly unknown[],
  placeOf: (item: unknown) => number,
): readonly unknown[] {
  const out: unknown[] = [];
  let [o, g] = [0, 0];
  while (o < others.length || g < given.length) {
    const place = placeOf(given[g]);
    const isFirst = g >= given.length || (o < others.length && place >= 0 && placeOf(others[o]) < place);
    out.push(isFirst ? others[o] : given[g]);
    if (isFirst) o += 1;
    else g += 1;
  }
  return out;
}

/** RFC 6902: one operation after the other; one that does not fit refuses all. */
export function jsonPatch(target: Fields, patch: unknown): unknown {
  if (!Array.isArray(patch)) throw badRequest("json: cannot unmarshal object into Go value of type jsonpatch.Patch");
  return patch.reduce((value: unknown, operation: unknown) => operated(value, fieldsOf(operation)), target);
}

function operated(document: unknown, { op, path, from, value }: Fields): unknown {
  const at = pointer(path);
  switch (op) {
    case "test":
      if (!sameValue(found(document, at) ?? null, value ?? null)) throw unprocessable();
      return document;
    case "add":
      return put(document, at, value, "add");
    case "replace":
      // A field that is not there is made, against the RFC: so does the library of real servers.
      if (Array.isArray(found(document, at.slice(0, -1))) && found(document, at) === undefined) throw unprocessable();
      return put(document, at, value, "replace");
    case "remove":
      if (found(document, at) === undefined) throw unprocessable();
      return put(document, at, undefined, "remove");
    case "copy":
      return put(document, at, found(document, pointer(from)), "add");
    case "move": {
      const source = pointer(from);
      return put(put(document, source, undefined, "remove"), at, found(document, source), "add");
    }
    default:
      throw unprocessable();
  }
}

function pointer(path: unknown): readonly string[] {
  const text = textOf(path) ?? "";
  return text
    .split("/")
    .slice(1)
    .map((part) => part.replaceAll("~1", "/").replaceAll("~0", "~"));
}

function found(document: unknown, [first, ...rest]: readonly string[]): unknown {
  if (first === undefined) return document;
  const next = Array.isArray(document) ? document[Number(first)] : fieldsOf(document)[first];
  return next === undefined ? undefined : found(next, rest);
}

type Edit = "add" | "replace" | "remove";

function put(document: unknown, [first, ...rest]: readonly string[], value: unknown, edit: Edit): unknown {
  if (first === undefined) return value;
  if (Array.isArray(document)) {
    const index = first === "-" ? document.length : Number(first);
    if (!Number.isInteger(index) || index < 0 || index > document.length) throw unprocessable();
    const out: unknown[] = [...document];
    if (rest.length > 0) out[index] = put(out[index], rest, value, edit);
    else out.splice(index, edit === "add" ? 0 : 1, ...(edit === "remove" ? [] : [value]));
    return out;
  }
  if (!isFields(document)) throw unprocessable();
  if (rest.length > 0) {
    if (document[first] === undefined) throw unprocessable();
    return { ...document, [first]: put(document[first], rest, value, edit) };
  }
  const { [first]: _old, ...others } = document;
  return edit === "remove" ? others : { ...document, [first]: value };
}

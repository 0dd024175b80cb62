// Objects seen through their schema: which fields they have, how two differ, how one is merged into another. The rules
// are those of structured-merge-diff.

import { fieldsOf } from "../core/json.ts";
import { FieldGatherer, type FieldSet, noFields } from "./field-set.ts";
import { anything, fieldSchema, type Schema } from "./schema.ts";
import { type Fields, isFields, sameValue } from "./value.ts";

/** How one object differs from an earlier one. */
export type Comparison = { readonly removed: FieldSet; readonly modified: FieldSet; readonly added: FieldSet };

/** Which fields an object has. */
export function fieldsIn(value: unknown, schema: Schema): FieldSet {
  const gathered = new FieldGatherer();
  gather(value, schema, [], gathered);
  return gathered.set;
}

function gather(value: unknown, schema: Schema, path: readonly string[], out: FieldGatherer): void {
  const shape = shapeOf(value, schema);
  if (shape === "leaf") {
    out.add(path);
    return;
  }
  if (shape === "list") {
    for (const [element, items] of grouped(value, schema)) {
      const [first] = items;
      if (items.length === 1) gather(first, schema.items ?? anything, [...path, element], out);
      out.add([...path, element]);
    }
    return;
  }
  for (const [key, field] of Object.entries(fieldsOf(value))) {
    const below = [...path, `f:${key}`];
    gather(field, fieldSchema(schema, key) ?? anything, below, out);
    if (field === null || (isFields(field) && Object.keys(field).length === 0) || !schema.properties.has(key)) {
      out.add(below);
    }
  }
}

type Shape = "leaf" | "list" | "map";

function shapeOf(value: unknown, schema: Schema): Shape {
  if (Array.isArray(value)) return schema.list === "atomic" ? "leaf" : "list";
  if (isFields(value)) return schema.atomic ? "leaf" : "map";
  if (value === null && schema.type === "array" && schema.list !== "atomic") return "list";
  return value === null && schema.type === "object" && !schema.atomic ? "map" : "leaf";
}

/** How the second value differs from the first. */
export function compare(before: unknown, after: unknown, schema: Schema): Comparison {
  const sets = { removed: new FieldGatherer(), modified: new FieldGatherer(), added: new FieldGatherer() };
  const both: Both = { schema, path: [], sets };
  for (const key of keysOf(before, after)) compareField(before, after, key, both);
  return { removed: sets.removed.set, modified: sets.modified.set, added: sets.added.set };
}

type Both = {
  readonly schema: Schema;
  readonly path: readonly string[];
  readonly sets: Readonly<Record<keyof Comparison, FieldGatherer>>;
};

function compareField(before: unknown, after: unknown, key: string, both: Both): void {
  const [old, now] = [fieldsOf(before)[key], fieldsOf(after)[key]];
  if (old === now && old !== undefined) return;
  const schema = fieldSchema(both.schema, key) ?? anything;
  compareAt(old, now, { schema, path: [...both.path, `f:${key}`], sets: both.sets });
}

function compareAt(before: unknown, after: unknown, both: Both): void {
  const { schema, path, sets } = both;
  if (before === after && before !== undefined) return;
  const known = after === undefined ? before : after;
  const shape = shapeOf(known, schema);
  const hollow = isHollow(before) && isHollow(after);
  if (shape === "leaf" || hollow || (before !== undefined && shapeOf(before, schema) !== shape)) {
    if (before === undefined) sets.added.add(path);
    else if (after === undefined) sets.removed.add(path);
    else if (!sameValue(before, after)) sets.modified.add(path);
    return;
  }
  if (shape === "list") compareLists(before, after, both);
  else for (const key of keysOf(before, after)) compareField(before, after, key, both);
  if (before === undefined) sets.added.add(path);
  else if (after === undefined) sets.removed.add(path);
}

const isHollow = (value: unknown): boolean =>
  value === undefined || value === null || (typeof value === "object" && Object.keys(value).length === 0);

const keysOf = (a: unknown, b: unknown): ReadonlySet<string> =>
  new Set([...Object.keys(fieldsOf(a)), ...Object.keys(fieldsOf(b))]);

function compareLists(before: unknown, after: unknown, both: Both): void {
  const { path, sets } = both;
  const [left, right] = [grouped(before, both.schema), grouped(after, both.schema)];
  const item = (element: string, a: unknown, b: unknown): void =>
    compareAt(a, b, { ...both, schema: both.schema.items ?? anything, path: [...path, element] });
  for (const element of new Set([...left.keys(), ...right.keys()])) {
    const [a, b] = [left.get(element) ?? [], right.get(element) ?? []];
    if (a.length <= 1 && b.length <= 1) item(element, a[0], b[0]);
    else if (a.length >= 2 && b.length >= 2) {
      if (!sameValue(a, b)) sets.modified.add([...path, element]);
    } else if (a.length >= 2) {
      if (b.length > 0) item(element, undefined, b[0]);
      sets.removed.add([...path, element]);
    } else {
      if (a.length > 0) item(element, a[0], undefined);
      sets.added.add([...path, element]);
    }
  }
}

/** The items of a list by what tells them apart, in the order of the list. */
function grouped(list: unknown, schema: Schema): ReadonlyMap<string, readonly unknown[]> {
  const out = new Map<string, unknown[]>();
  if (!Array.isArray(list)) return out;
  for (const item of list) {
    const element = elementOf(item, schema);
    const found = out.get(element);
    if (found === undefined) out.set(element, [item]);
    else found.push(item);
  }
  return out;
}

/** What an item of a list is called in a set of fields. */
export function elementOf(item: unknown, { list, keys, items }: Schema): string {
  if (list === "set") return `v:${JSON.stringify(item)}`;
  const fields = fieldsOf(item);
  const named = [...keys].sort().flatMap((key) => {
    const value = fields[key] ?? items?.properties.get(key)?.fallback;
    return value === undefined ? [] : [[key, value] as const];
  });
  return `k:${JSON.stringify(Object.fromEntries(named))}`;
}

/** An object with a configuration laid over it: maps and lists whose items are told apart are merged, all else is taken. */
export function merge(live: unknown, config: unknown, schema: Schema): unknown {
  if (config === undefined) return live;
  if (live === undefined || (isHollow(live) && isHollow(config))) return config;
  const shape = shapeOf(config, schema);
  if (shape === "leaf" || shapeOf(live, schema) !== shape) return config;
  if (shape === "list") return mergeLists(live, config, schema);
  const out: Record<string, unknown> = {};
  for (const key of keysOf(live, config)) {
    const value = merge(fieldsOf(live)[key], fieldsOf(config)[key], fieldSchema(schema, key) ?? anything);
    if (value !== undefined) out[key] = value;
  }
  return out;
}

/** Items of both in the order of the configuration, the live list's own where they stood between them. */
function mergeLists(live: unknown, config: unknown, schema: Schema): unknown {
  const [left, right] = [grouped(live, schema), grouped(config, schema)];
  const [lefts, rights] = [[...left.keys()], [...right.keys()]];
  const shared = rights.filter((element) => left.has(element));
  const done = new Set<string>();
  const out: unknown[] = [];
  const take = (element: string): void => {
    const [mine, theirs] = [left.get(element), right.get(element)];
    done.add(element);
    out.push(merge(mine?.length === 1 ? mine[0] : undefined, theirs?.[0], schema.items ?? anything));
  };
  let [l, r] = [0, 0];
  while (l < lefts.length || r < rights.length) {
    const [a, b] = [lefts[l], rights[r]];
    if (a !== undefined && a === b) {
      take(a);
      shared.shift();
      l += 1;
      r += 1;
    } else if (a !== undefined && b !== undefined && right.has(a) && shared[0] !== undefined && shared[0] !== a) l += 1;
    else if (a !== undefined && !right.has(a)) {
      for (const item of left.get(a) ?? []) out.push(item);
      l += 1;
    } else {
      if (a !== undefined && done.has(a)) l += 1;
      if (b === undefined) continue;
      take(b);
      if (shared[0] === b) shared.shift();
      r += 1;
    }
  }
  return out;
}

/** A value without the items and fields of a set; what becomes empty goes, too. */
export function removeFields(value: unknown, set: FieldSet, schema: Schema): unknown {
  if (set.size === 0) return value;
  const shape = shapeOf(value, schema);
  if (shape === "leaf") return isFields(value) || Array.isArray(value) ? undefined : value;
  if (shape === "list") {
    if (!Array.isArray(value)) return undefined;
    const items = value.flatMap((item): unknown[] => {
      const node = set.get(elementOf(item, schema));
      if (node?.member === true) return [];
      return [removeFields(item, node?.below ?? noFields, schema.items ?? anything)];
    });
    return items.length === 0 ? undefined : items;
  }
  const out: Record<string, unknown> = {};
  for (const [key, field] of Object.entries(fieldsOf(value))) {
    const node = set.get(`f:${key}`);
    if (node?.member === true) continue;
    // What is emptied is null, not gone: whoever owns it as a whole still does.
    out[key] = removeFields(field, node?.below ?? noFields, fieldSchema(schema, key) ?? anything) ?? null;
  }
  return Object.keys(out).length === 0 ? undefined : out;
}

/** What keeps an applied configuration from being read through its schema, as the server words it. */
export function typingFaults(value: unknown, schema: Schema, path = ""): readonly string[] {
  if (value === null) return [];
  if (Array.isArray(value)) {
    if (schema.type !== "array" && schema.type !== "any") return [mistyped(path, schema, value)];
    if (schema.list === "atomic") return value.flatMap((item) => typingFaults(item, schema.items ?? anything, path));
    const seen = new Set<string>();
    return value.flatMap((item) => {
      const element = elementOf(item, schema);
      const name = bracketed(element);
      const twice = seen.has(element) ? [`${path}: duplicate entries for key ${name}`] : [];
      seen.add(element);
      return [...twice, ...typingFaults(item, schema.items ?? anything, `${path}${name}`)];
    });
  }
  if (isFields(value)) {
    if (schema.type !== "object" && schema.type !== "any") return [mistyped(path, schema, value)];
    return Object.entries(value).flatMap(([key, field]) => {
      const known = fieldSchema(schema, key);
      if (known === undefined) return [`${path}.${key}: field not declared in schema`];
      return typingFaults(field, known, `${path}.${key}`);
    });
  }
  return scalarFault(value, schema, path);
}

function scalarFault(value: unknown, schema: Schema, path: string): readonly string[] {
  const actual = typeof value === "number" ? (Number.isInteger(value) ? "integer" : "number") : typeof value;
  if (schema.type === "any" || schema.type === actual || (schema.type === "number" && actual === "integer")) return [];
  return [mistyped(path, schema, value)];
}

/** What structured-merge-diff says, each type in a form of its own. */
function mistyped(path: string, { type }: Schema, value: unknown): string {
  switch (type) {
    case "string":
      return `${path}: expected string, got &value.valueUnstructured{Value:${JSON.stringify(value)}}`;
    case "boolean":
      return `${path}: expected boolean, got &{${goText(value)}}`;
    case "object":
      return `${path}: expected map, got &{${goText(value)}}`;
    case "array":
      return `${path}: expected list, got &{${goText(value)}}`;
    case "integer":
    case "number":
    case "any":
      return `${path}: expected numeric (int or float), got ${typeof value}`;
  }
}

const goText = (value: unknown): string => (typeof value === "string" ? value : JSON.stringify(value));

function bracketed(element: string): string {
  const rest = element.slice(2);
  if (element.startsWith("v:")) return `[=${rest}]`;
  const keys = Object.entries(fieldsOf(JSON.parse(rest))).map(([key, value]) => `${key}=${JSON.stringify(value)}`);
  return `[${keys.join(",")}]`;
}

/** The fields that are nobody's: what the server itself keeps. */
export const unowned: FieldSet = (() => {
  const gathered = new FieldGatherer();
  for (const field of ["apiVersion", "kind", "metadata"]) gathered.add([`f:${field}`]);
  const kept = ["name", "namespace", "creationTimestamp", "selfLink", "uid", "clusterName", "generation"];
  for (const field of [...kept, "managedFields", "resourceVersion"]) gathered.add(["f:metadata", `f:${field}`]);
  return gathered.set;
})();

/** The object without its managed fields, as it is compared and merged. */
export function withoutManagers(object: Fields): Fields {
  const { managedFields: _managed, ...metadata } = fieldsOf(object["metadata"]);
  return { ...object, metadata };
}

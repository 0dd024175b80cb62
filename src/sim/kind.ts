import type { About, Cause } from "./answer.ts";
import type { NameCheck } from "./object-meta.ts";
import type { Schema } from "./schema.ts";
import type { FieldReader } from "./selector.ts";
import { type Fields, isEmptyValue, isFields, mapFields, mapItems } from "./value.ts";

/** A column of `kubectl get`. */
export type Column = {
  readonly name: string;
  readonly type: string;
  readonly format: string;
  readonly description: string;
  readonly priority: number;
  /** What stands in it; `nowMs` for ages. */
  readonly cell: (object: Fields, nowMs: number) => unknown;
};

/** A kind as it is served in one version. */
export type Kind = About & {
  readonly version: string;
  readonly singular: string;
  readonly listKind: string;
  readonly shortNames: readonly string[];
  readonly categories: readonly string[];
  readonly namespaced: boolean;
  /** Of a CustomResourceDefinition. */
  readonly custom: boolean;
  /** Has a status with a path of its own. */
  readonly hasStatus: boolean;
  /** Counts the changes of what is asked for. */
  readonly hasGeneration: boolean;
  /** A PUT may create. */
  readonly createsOnPut: boolean;
  /** A PUT needs no resourceVersion. */
  readonly putsUnconditionally: boolean;
  readonly schema: Schema;
  readonly columns: readonly Column[];
  readonly checkName: NameCheck;
  readonly readers: ReadonlyMap<string, FieldReader>;
  /** Where its objects are kept; two kinds may be views of one. */
  readonly storage: string;
  /** Fills in what the server fills in. */
  readonly complete: (object: Fields, before: Fields | undefined) => Fields;
  /** What is wrong with an object beyond its shape. */
  readonly check: (object: Fields, before: Fields | undefined) => readonly Cause[];
  /** What refusals of its objects name. */
  readonly about: About;
  /** What Go writes for an object with nothing in it, beside its metadata. */
  readonly zero: Fields;
  /** From the stored form to this version's, and back. */
  readonly load: (stored: Fields) => Fields;
  readonly save: (object: Fields) => Fields;
};

/** The `apiVersion` of a kind's objects. */
export const apiVersionOfKind = ({ group, version }: Pick<Kind, "group" | "version">): string =>
  group === "" ? version : `${group}/${version}`;

/** An object of a kind that is built in, as Go would read and write it: without unknown and without empty fields. */
export function goForm(value: unknown, schema: Schema): unknown {
  if (Array.isArray(value)) {
    const { items } = schema;
    return items === undefined ? value : mapItems(value, (item) => goForm(item, items));
  }
  if (!isFields(value)) return value;
  if (schema.properties.size === 0) return mapFields(value, (each) => (each === null ? "" : each));
  return mapFields(value, (field, key) => {
    const known = schema.properties.get(key);
    if (known === undefined || field === null) return undefined;
    const formed = goForm(field, known);
    return known.keep || !isEmptyValue(formed) ? formed : undefined;
  });
}

/** What Go could not read, as it says so: the first value of another type than its field. */
export function goFault(value: unknown, schema: Schema, type: string, path = ""): string | undefined {
  if (value === null || schema.type === "any") return undefined;
  const actual = Array.isArray(value) ? "array" : typeof value === "boolean" ? "bool" : typeof value;
  const wanted = {
    object: "object",
    array: "array",
    string: "string",
    integer: "number",
    number: "number",
    boolean: "bool",
  };
  if (actual !== wanted[schema.type]) {
    const goType = schema.type === "boolean" ? "bool" : schema.type === "integer" ? "int32" : schema.type;
    return `json: cannot unmarshal ${actual} into Go struct field ${type}.${path} of type ${goType}`;
  }
  if (Array.isArray(value)) {
    const { items } = schema;
    return items === undefined ? undefined : firstOf(value, (item) => goFault(item, items, type, path));
  }
  if (!isFields(value)) return undefined;
  return firstOf(Object.entries(value), ([key, field]) => {
    const named = schema.properties.get(key);
    if (named === undefined)
      return schema.additional === undefined ? undefined : goFault(field, schema.additional, type, path);
    const inner =
      named.type === "object" && named.properties.size > 0
        ? `${type}${key.charAt(0).toUpperCase()}${key.slice(1)}`
        : type;
    return goFault(field, named, inner, path === "" ? key : `${path}.${key}`);
  });
}

function firstOf<T>(list: readonly T[], find: (item: T) => string | undefined): string | undefined {
  for (const item of list) {
    const fault = find(item);
    if (fault !== undefined) return fault;
  }
  return undefined;
}

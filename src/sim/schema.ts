// What a kind's objects look like: enough to prune, to default, to validate and to say who owns which field. Both
// the kinds that are built in and those of CustomResourceDefinitions are described this way.

import { fieldsOf, listOf, textOf } from "../core/json.ts";
import { type CelRule, compileRule } from "./cel.ts";
import { type Fields, isFields } from "./value.ts";

/** How the items of a list are told apart: not at all, by their value, or by some of their fields. */
export type ListType = "atomic" | "set" | "map";

/** One value of an object. */
export type Schema = {
  readonly type: "object" | "array" | "string" | "integer" | "number" | "boolean" | "any";
  readonly nullable: boolean;
  /** Named fields. */
  readonly properties: ReadonlyMap<string, Schema>;
  /** What every other key of a map holds. */
  readonly additional: Schema | undefined;
  readonly items: Schema | undefined;
  /** Keeps fields that it does not know. */
  readonly open: boolean;
  readonly list: ListType;
  readonly keys: readonly string[];
  /** A map that is owned as a whole. */
  readonly atomic: boolean;
  readonly fallback: unknown;
  /** The keywords that validation looks at, as they were written. */
  readonly checks: Fields;
  readonly rules: readonly CelRule[];
  /** Of a kind that is built in: stays in the object even with nothing in it. */
  readonly keep: boolean;
};

const blank: Schema = {
  type: "any",
  nullable: false,
  properties: new Map(),
  additional: undefined,
  items: undefined,
  open: false,
  list: "atomic",
  keys: [],
  atomic: false,
  fallback: undefined,
  checks: {},
  rules: [],
  keep: false,
};

/** Anything: what lies under a value that keeps unknown fields. */
export const anything: Schema = { ...blank, open: true };

/** Text. */
export const text: Schema = { ...blank, type: "string" };

/** A whole number. */
export const integer: Schema = { ...blank, type: "integer" };

/** True or false. */
export const truth: Schema = { ...blank, type: "boolean" };

/** An object with exactly these fields. */
export const record = (properties: Readonly<Record<string, Schema>>): Schema => ({
  ...blank,
  type: "object",
  properties: new Map(Object.entries(properties)),
});

/** An object with whatever keys, each with such a value. */
export const mapOf = (additional: Schema): Schema => ({ ...blank, type: "object", additional });

/** A list that is owned as a whole. */
export const listOfAll = (items: Schema): Schema => ({ ...blank, type: "array", items });

/** A list without doubles, each item owned by itself. */
export const setOf = (items: Schema): Schema => ({ ...blank, type: "array", items, list: "set" });

/** A list whose items are told apart by some of their fields. */
export const listBy = (keys: readonly string[], items: Schema): Schema => ({
  ...blank,
  type: "array",
  items,
  list: "map",
  keys,
});

/** A value that is owned as a whole. */
export const asOne = (schema: Schema): Schema => ({ ...schema, atomic: true });

/** A value that stays in the object even with nothing in it. */
export const kept = (schema: Schema): Schema => ({ ...schema, keep: true });

/** The metadata of every object. */
export const objectMeta: Schema = record({
  name: text,
  generateName: text,
  namespace: text,
  selfLink: text,
  uid: text,
  resourceVersion: text,
  generation: integer,
  creationTimestamp: text,
  deletionTimestamp: text,
  deletionGracePeriodSeconds: kept(integer),
  labels: mapOf(text),
  annotations: mapOf(text),
  ownerReferences: listBy(
    ["uid"],
    asOne(
      record({
        apiVersion: text,
        kind: text,
        name: text,
        uid: text,
        controller: kept(truth),
        blockOwnerDeletion: kept(truth),
      }),
    ),
  ),
  finalizers: setOf(text),
  managedFields: listOfAll(anything),
});

/** The schema of a kind of our own making: these fields beside apiVersion, kind and metadata. */
export const kindSchema = (properties: Readonly<Record<string, Schema>>): Schema =>
  record({ apiVersion: text, kind: text, metadata: objectMeta, ...properties });

/** The schema in a CustomResourceDefinition; throws what is wrong with a rule in it. */
export function customSchema(written: unknown): Schema {
  const schema = read(written);
  const properties = new Map(schema.properties);
  properties.set("apiVersion", text).set("kind", text).set("metadata", objectMeta);
  return { ...schema, type: "object", properties };
}

function read(written: unknown): Schema {
  const fields = fieldsOf(written);
  const { properties, additionalProperties, items, nullable } = fields;
  const open = fields["x-kubernetes-preserve-unknown-fields"] === true;
  const list = fields["x-kubernetes-list-type"];
  return {
    ...blank,
    type: typeOf(fields),
    nullable: nullable === true,
    properties: new Map(Object.entries(fieldsOf(properties)).map(([key, value]) => [key, read(value)])),
    additional: isFields(additionalProperties) ? read(additionalProperties) : open ? anything : undefined,
    items: items === undefined ? undefined : read(items),
    open,
    list: list === "set" || list === "map" ? list : "atomic",
    keys: listOf(fields["x-kubernetes-list-map-keys"]).flatMap((key) => textOf(key) ?? []),
    atomic: fields["x-kubernetes-map-type"] === "atomic",
    fallback: fields["default"],
    checks: fields,
    rules: listOf(fields["x-kubernetes-validations"]).map(compileRule),
  };
}

function typeOf({ type, ...rest }: Fields): Schema["type"] {
  if (rest["x-kubernetes-int-or-string"] === true) return "any";
  switch (type) {
    case "object":
    case "array":
    case "string":
    case "integer":
    case "number":
    case "boolean":
      return type;
    default:
      return "any";
  }
}

/** The schema of one field of an object; nothing, if it has none. */
export const fieldSchema = (schema: Schema, key: string): Schema | undefined =>
  schema.properties.get(key) ?? schema.additional ?? (schema.open || schema.type === "any" ? anything : undefined);

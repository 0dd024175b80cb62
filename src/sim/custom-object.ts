// Objects of CustomResourceDefinitions: what is dropped, what is filled in, and what is refused, in the words of a real
// API server.

import { fieldsOf, listOf } from "../core/json.ts";
import { type Cause, invalidValue, required } from "./answer.ts";
import { fieldSchema, type Schema } from "./schema.ts";
import { elementOf } from "./typed.ts";
import { isFields, mapFields, mapItems, quote, sameValue, withField } from "./value.ts";

/** The value without fields that the schema does not know, and without nulls where none may be. */
export function prune(value: unknown, schema: Schema): unknown {
  if (Array.isArray(value)) {
    const { items } = schema;
    return items === undefined ? value : mapItems(value, (item) => prune(item, items));
  }
  if (!isFields(value)) return value;
  return mapFields(value, (field, key) => {
    const known = schema.properties.get(key) ?? schema.additional;
    if (known === undefined) return schema.open || schema.type === "any" ? field : undefined;
    const isKept = field !== null || known.nullable || known.open || known.fallback !== undefined;
    return isKept ? prune(field, known) : undefined;
  });
}

/** The paths of fields that the schema does not know. */
export function unknownFields(value: unknown, schema: Schema, path = ""): readonly string[] {
  if (Array.isArray(value)) {
    const { items } = schema;
    return items === undefined ? [] : value.flatMap((item, index) => unknownFields(item, items, `${path}[${index}]`));
  }
  return Object.entries(fieldsOf(value)).flatMap(([key, field]) => {
    const below = path === "" ? key : `${path}.${key}`;
    const known = fieldSchema(schema, key);
    return known === undefined ? [below] : unknownFields(field, known, below);
  });
}

/** The value with defaults where there is nothing. */
export function withDefaults(value: unknown, schema: Schema): unknown {
  if (Array.isArray(value)) {
    const { items } = schema;
    return items === undefined ? value : mapItems(value, (item) => withDefaults(item, items));
  }
  if (!isFields(value)) return value;
  let out = mapFields(value, (field, key) => {
    const known = schema.properties.get(key) ?? schema.additional;
    return known === undefined ? field : withDefaults(field, known);
  });
  for (const [key, { fallback, nullable }] of schema.properties) {
    const isMissing = out[key] === undefined || (out[key] === null && !nullable);
    if (fallback !== undefined && isMissing) out = withField(out, key, fallback);
  }
  return out;
}

/** What is wrong with a value: first its shape and, if that lets them run, the rules of its schema. */
export function faultsOf(value: unknown, schema: Schema, nameFaults: readonly Cause[] = []): readonly Cause[] {
  // A status is validated by itself, so that what is wrong in it is named as seen from there.
  const shape = shapeFaults(value, schema, "").map((fault) =>
    fault.field.startsWith("status.")
      ? { ...fault, message: fault.message.replace(`: ${fault.field} in body`, `: ${fault.field.slice(7)} in body`) }
      : fault,
  );
  const faults = [...nameFaults, ...shape];
  if (!hasRules(schema)) return faults;
  if (faults.some(({ reason }) => blocking.has(reason))) return [...faults, unchecked];
  return [...faults, ...ruleFaults(value, schema, "")];
}

const blocking = new Set([
  "FieldValueNotSupported",
  "FieldValueRequired",
  "FieldValueTooLong",
  "FieldValueTooMany",
  "FieldValueTypeInvalid",
]);

const unchecked: Cause = {
  reason: "FieldValueInvalid",
  message:
    "Invalid value: null: some validation rules were not checked because the object was invalid; correct the existing errors to complete validation",
  field: "<nil>",
};

const ruled = new WeakMap<Schema, boolean>();

function hasRules(schema: Schema): boolean {
  const known = ruled.get(schema);
  if (known !== undefined) return known;
  const below = [...schema.properties.values(), schema.additional, schema.items];
  const has = schema.rules.length > 0 || below.some((each) => each !== undefined && hasRules(each));
  ruled.set(schema, has);
  return has;
}

function ruleFaults(value: unknown, schema: Schema, path: string): readonly Cause[] {
  if (value === undefined || value === null) return [];
  const own = schema.rules.flatMap(({ holds, message }): Cause[] => {
    const held = holds(value);
    if (held === true) return [];
    const why = held === false ? message : `${quote(typeName(value))}: ${held} evaluating rule: ${message}`;
    return [{ reason: "FieldValueInvalid", message: `Invalid value: ${why}`, field: path }];
  });
  if (Array.isArray(value)) {
    const { items } = schema;
    return items === undefined
      ? own
      : [...own, ...value.flatMap((item, index) => ruleFaults(item, items, `${path}[${index}]`))];
  }
  return [
    ...own,
    ...Object.entries(fieldsOf(value)).flatMap(([key, field]) => {
      const known = schema.properties.get(key) ?? schema.additional;
      return known === undefined ? [] : ruleFaults(field, known, joined(path, key));
    }),
  ];
}

const joined = (path: string, key: string): string => (path === "" ? key : `${path}.${key}`);

function shapeFaults(value: unknown, schema: Schema, path: string): readonly Cause[] {
  if (value === null && schema.nullable) return [];
  const actual = typeName(value);
  const { type, checks } = schema;
  if (type !== "any" && actual !== type && !(type === "number" && actual === "integer")) {
    return typeFaults(path, schema, actual);
  }
  const choices = listOf(checks["enum"]);
  if (choices.length > 0 && !choices.some((choice) => sameValue(choice, value))) {
    const supported = choices.map((choice) => JSON.stringify(choice)).join(", ");
    const message = `Unsupported value: ${JSON.stringify(value)}: supported values: ${supported}`;
    return [{ reason: "FieldValueNotSupported", message, field: path }];
  }
  if (typeof value === "string") return textFaults(value, schema, path);
  if (typeof value === "number") return numberFaults(value, schema, path);
  if (Array.isArray(value)) return listFaults(value, schema, path);
  return isFields(value) ? objectFaults(value, schema, path) : [];
}

function typeFaults(path: string, { type, checks }: Schema, actual: string): readonly Cause[] {
  if (type !== "integer" || actual !== "number") return [wrongType(path, type, actual)];
  const { format } = checks;
  const wanted = typeof format === "string" ? `with format ${format}` : "(default format)";
  const message = `Invalid value: "": Checked value must be of type integer ${wanted} in ${path}`;
  return [
    typeof format === "string" ? wrongType(path, format, "float64") : wrongType(path, type, actual),
    { reason: "FieldValueInvalid", message, field: "<nil>" },
  ];
}

const wrongType = (path: string, wanted: string, actual: string): Cause => ({
  reason: "FieldValueTypeInvalid",
  message: `Invalid value: ${quote(actual)}: ${path} in body must be of type ${wanted}: ${quote(actual)}`,
  field: path,
});

function typeName(value: unknown): string {
  if (value === null) return "null";
  if (Array.isArray(value)) return "array";
  if (typeof value === "number") return Number.isInteger(value) ? "integer" : "number";
  return typeof value;
}

function textFaults(value: string, { checks }: Schema, path: string): readonly Cause[] {
  const { maxLength, minLength, pattern, format } = checks;
  const size = Array.from(value).length;
  if (typeof maxLength === "number" && size > maxLength) {
    const message = `Too long: may not be more than ${maxLength} bytes`;
    return [{ reason: "FieldValueTooLong", message, field: path }];
  }
  if (typeof minLength === "number" && size < minLength) {
    return [invalidValue(path, value, `${path} in body should be at least ${minLength} chars long`)];
  }
  if (typeof pattern === "string" && !new RegExp(pattern, "u").test(value)) {
    return [invalidValue(path, value, `${path} in body should match '${pattern}'`)];
  }
  if (format === "date-time" && !dateTime.test(value)) return [wrongType(path, "date-time", value)];
  return [];
}

const dateTime = /^\d{4}-\d{2}-\d{2}[Tt]\d{2}:\d{2}:\d{2}(\.\d+)?([Zz]|[+-]\d{2}:?\d{2})$/;

function numberFaults(value: number, { checks }: Schema, path: string): readonly Cause[] {
  const { maximum, minimum, exclusiveMaximum, exclusiveMinimum } = checks;
  const faults: Cause[] = [];
  if (typeof maximum === "number" && (exclusiveMaximum === true ? value >= maximum : value > maximum)) {
    const bound = exclusiveMaximum === true ? "less than" : "less than or equal to";
    faults.push(invalidValue(path, value, `${path} in body should be ${bound} ${maximum}`));
  }
  if (typeof minimum === "number" && (exclusiveMinimum === true ? value <= minimum : value < minimum)) {
    const bound = exclusiveMinimum === true ? "greater than" : "greater than or equal to";
    faults.push(invalidValue(path, value, `${path} in body should be ${bound} ${minimum}`));
  }
  return faults;
}

function listFaults(value: readonly unknown[], schema: Schema, path: string): readonly Cause[] {
  const { maxItems, minItems } = schema.checks;
  const { items } = schema;
  const faults: Cause[] = [];
  if (typeof minItems === "number" && value.length < minItems) {
    faults.push(invalidValue(path, value.length, `${path} in body should have at least ${minItems} items`));
  }
  if (typeof maxItems === "number" && value.length > maxItems) {
    const message = `Too many: ${value.length}: must have at most ${maxItems} items`;
    faults.push({ reason: "FieldValueTooMany", message, field: path });
  }
  const below =
    items === undefined ? [] : value.flatMap((item, index) => shapeFaults(item, items, `${path}[${index}]`));
  return [...faults, ...below, ...doubles(value, schema, path)];
}

function doubles(value: readonly unknown[], schema: Schema, path: string): readonly Cause[] {
  if (schema.list === "atomic") return [];
  const seen = new Set<string>();
  return value.flatMap((item, index): Cause[] => {
    const element = elementOf(item, schema);
    if (!seen.has(element)) {
      seen.add(element);
      return [];
    }
    const message = `Duplicate value: ${element.slice(2)}`;
    return [{ reason: "FieldValueDuplicate", message, field: `${path}[${index}]` }];
  });
}

function objectFaults(value: Readonly<Record<string, unknown>>, schema: Schema, path: string): readonly Cause[] {
  const below = Object.entries(value).flatMap(([key, field]) => {
    if (path === "" && (key === "metadata" || key === "apiVersion" || key === "kind")) return [];
    const known = schema.properties.get(key) ?? schema.additional;
    return known === undefined ? [] : shapeFaults(field, known, joined(path, key));
  });
  const missing = listOf(schema.checks["required"]).flatMap((key) =>
    typeof key === "string" && !(key in value) ? [required(joined(path, key))] : [],
  );
  return [...below, ...missing];
}

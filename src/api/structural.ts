import { z } from "zod";

// From zod to what apiextensions.k8s.io/v1 calls a structural schema. Whatever it would refuse is refused here, at the
// place it was written, and not by an API server at install time.

/** A schema that an API server accepts in a CRD. Every place has a type but those that take a number or a text. */
export interface StructuralSchema {
  readonly type?: string;
  readonly properties?: Readonly<Record<string, StructuralSchema>>;
  readonly items?: StructuralSchema;
  readonly additionalProperties?: StructuralSchema;
  readonly [keyword: string]: unknown;
}

/** The keywords that may stand in a structural schema of ours, in the order in which they are written. */
export const structuralKeywords = [
  "description",
  "type",
  "format",
  "enum",
  "pattern",
  "default",
  "minimum",
  "exclusiveMinimum",
  "maximum",
  "exclusiveMaximum",
  "minLength",
  "maxLength",
  "minItems",
  "maxItems",
  "maxProperties",
  "required",
  "properties",
  "additionalProperties",
  "items",
  "x-kubernetes-list-type",
  "x-kubernetes-list-map-keys",
  "x-kubernetes-int-or-string",
  "x-kubernetes-preserve-unknown-fields",
  "x-kubernetes-validations",
] as const;

/** Renders a zod schema as a structural schema; throws, naming the place, where it cannot be one. */
export function structuralSchema(schema: z.core.$ZodType, place: string): StructuralSchema {
  return structural(z.toJSONSchema(schema, { target: "openapi-3.0", io: "input", reused: "inline" }), place);
}

function structural(written: unknown, place: string): StructuralSchema {
  if (!isFields(written)) return refuse(place, "is not a schema");
  const fields = rewritten(written);
  const unknown = Object.keys(fields).filter((keyword) => !structuralKeywords.some((known) => known === keyword));
  if (unknown.length > 0) return refuse(place, `uses ${unknown.join(", ")}`);
  const { type, properties, additionalProperties, items } = fields;
  if (fields[takesBoth] === true) return inOrder(fields);
  if (typeof type !== "string") return refuse(place, "has no single type");
  if (type === "array" && items === undefined) return refuse(place, "is an array without items");
  if (properties !== undefined && additionalProperties !== undefined) {
    return refuse(place, "has both properties and additionalProperties");
  }
  const nested: Record<string, unknown> = { ...fields };
  if (isFields(properties)) {
    nested["properties"] = Object.fromEntries(
      Object.entries(properties).map(([name, property]) => [name, structural(property, `${place}.${name}`)]),
    );
  }
  if (items !== undefined) nested["items"] = structural(items, `${place}[]`);
  if (additionalProperties !== undefined) {
    nested["additionalProperties"] = structural(additionalProperties, `${place}.*`);
  }
  return { ...inOrder(nested), type };
}

const keepsAll = "x-kubernetes-preserve-unknown-fields";
const takesBoth = "x-kubernetes-int-or-string";

function rewritten(fields: Fields): Fields {
  // Where a number and a text are taken alike, a CRD may say nothing of the type.
  if (fields[takesBoth] === true) return { ...described(fields), [takesBoth]: true };
  // What is kept whatever it holds cannot be described any closer, but for the fields that are known.
  if (fields[keepsAll] === true && fields["properties"] === undefined) {
    return { ...described(fields), type: "object", [keepsAll]: true };
  }
  if (fields["type"] === "integer") return sizedInteger(fields);
  if (fields["format"] === "date-time") {
    const { pattern: _implied, ...rest } = fields;
    return rest;
  }
  return fields;
}

function described({ description }: Fields): Fields {
  return description === undefined ? {} : { description };
}

const int32Max = 2 ** 31 - 1;

// zod states the limits of a number's own type as bounds; OpenAPI has a format for them.
function sizedInteger({ minimum, maximum, ...rest }: Fields): Fields {
  const small = typeof maximum === "number" && maximum <= int32Max;
  const implied = new Set<unknown>([-int32Max - 1, int32Max, Number.MIN_SAFE_INTEGER, Number.MAX_SAFE_INTEGER]);
  return {
    format: small ? "int32" : "int64",
    ...(implied.has(minimum) ? {} : { minimum }),
    ...(implied.has(maximum) ? {} : { maximum }),
    ...rest,
  };
}

function inOrder(fields: Fields): Fields {
  return Object.fromEntries(
    structuralKeywords.flatMap((keyword) => (fields[keyword] === undefined ? [] : [[keyword, fields[keyword]]])),
  );
}

type Fields = Readonly<Record<string, unknown>>;

function isFields(value: unknown): value is Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function refuse(place: string, why: string): never {
  throw new Error(`${place} cannot be part of a CRD: it ${why}`);
}

import { z } from "zod";

// What every schema of a Kubernetes object is built from. The schemas are written so that they can also be rendered
// as a CRD: no unions of types, no strict objects, rules as data.

/** `T` as a value nobody changes, all the way down. */
export type Immutable<T> = T extends readonly (infer Item)[]
  ? readonly Immutable<Item>[]
  : T extends object
    ? { readonly [Key in keyof T]: Immutable<T[Key]> }
    : T;

/** A rule stated once and enforced twice, with one message: as CEL by the API server and as a check by zod. */
export type Rule<T> = {
  readonly cel: string;
  readonly message: string;
  readonly holds: (value: T) => boolean;
};

/** An object of which only the named fields are read; the others are ignored and not copied. */
export function apiObject<Shape extends z.core.$ZodShape>(
  shape: Shape,
  rules: readonly Rule<z.output<z.ZodObject<Shape>>>[] = [],
) {
  const fields = z.object(shape);
  if (rules.length === 0) return z.preprocess(withoutNulls, fields);
  const checked = fields
    .superRefine((value, context) => {
      for (const rule of rules) {
        if (!rule.holds(value)) context.addIssue({ code: "custom", message: rule.message });
      }
    })
    .meta({ "x-kubernetes-validations": rules.map(({ cel, message }) => ({ rule: cel, message })) });
  return z.preprocess(withoutNulls, checked);
}

/**
 * Labels and annotations. One value that is no text must not make the object unreadable: a number or a boolean, which is
 * what YAML makes of an unquoted 25, is taken as its text, and anything else as not given.
 */
export const stringMap = z.record(z.string(), z.unknown()).transform((values): Record<string, string> => {
  const scalars = Object.entries(values).flatMap(([key, value]) =>
    typeof value === "string" || typeof value === "number" || typeof value === "boolean" ? [[key, String(value)]] : [],
  );
  return Object.fromEntries(scalars);
});

/** The part of `metadata` that we read of any object. */
export const metadataFields = {
  name: z.string().min(1),
  uid: z.string().optional(),
  resourceVersion: z.string().optional(),
  labels: stringMap.optional(),
  annotations: stringMap.optional(),
  creationTimestamp: z.string().optional(),
  deletionTimestamp: z.string().optional(),
};

/** The part of `metadata` that we read of a namespaced object; a manifest that names no namespace means `default`. */
export const namespacedMetadataFields = { ...metadataFields, namespace: z.string().min(1).default("default") };

/** The value without its null fields: the API server, too, takes a null where none is allowed as a field not given. */
export function withoutNulls(value: unknown): unknown {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return value;
  const entries = Object.entries(value);
  const given = entries.filter(([, field]) => field !== null);
  return given.length === entries.length ? value : Object.fromEntries(given);
}

/** The fields of a value from outside; none, if it is not an object. */
export function fieldsOf(value: unknown): Readonly<Record<string, unknown>> {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return {};
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- an object, so every field of it is unknown
  return value as Readonly<Record<string, unknown>>;
}

/** A value as text, if it is text with something in it. */
export const textOf = (value: unknown): string | undefined =>
  typeof value === "string" && value !== "" ? value : undefined;

/** The elements of a value; none, if it is not a list. */
export const listOf = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : []);

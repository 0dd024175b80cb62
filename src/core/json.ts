/** The fields of a value from outside; none, if it is not an object. */
export function fieldsOf(value: unknown): Readonly<Record<string, unknown>> {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return {};
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- an object, so every field of it is unknown
  return value as Readonly<Record<string, unknown>>;
}

/** Deeper than any object we read; what lies below counts as equal, so that a cycle or a bomb ends somewhere. */
const depthMax = 24;

/** The same text for the same value, whatever the order of its keys. */
export function canonicalText(value: unknown, depth = 0): string {
  if (typeof value !== "object" || value === null)
    return typeof value === "bigint" ? `${value}n` : (JSON.stringify(value) ?? "");
  if (depth === depthMax) return "…";
  if (Array.isArray(value)) return `[${value.map((element) => canonicalText(element, depth + 1)).join(",")}]`;
  const entries = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0));
  return `{${entries.map(([key, field]) => `${JSON.stringify(key)}:${canonicalText(field, depth + 1)}`).join(",")}}`;
}

/** A value as text, if it is text with something in it. */
export const textOf = (value: unknown): string | undefined =>
  typeof value === "string" && value !== "" ? value : undefined;

/** The elements of a value; none, if it is not a list. */
export const listOf = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : []);

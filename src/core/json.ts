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

/** Whether two values are the same, whatever the order of their keys; at once where they are one. */
export function sameJson(a: unknown, b: unknown, depth = 0): boolean {
  if (a === b) return true;
  if (typeof a !== "object" || typeof b !== "object" || a === null || b === null) {
    return canonicalText(a, depth) === canonicalText(b, depth);
  }
  if (depth === depthMax) return true;
  if (Array.isArray(a) || Array.isArray(b)) {
    if (!Array.isArray(a) || !Array.isArray(b) || a.length !== b.length) return false;
    return a.every((element, index) => sameJson(element, b[index], depth + 1));
  }
  const [left, right] = [fieldsOf(a), fieldsOf(b)];
  const keys = Object.keys(left);
  if (keys.length !== Object.keys(right).length) return false;
  return keys.every((key) => Object.hasOwn(right, key) && sameJson(left[key], right[key], depth + 1));
}

/** A value as text, if it is text with something in it. */
export const textOf = (value: unknown): string | undefined =>
  typeof value === "string" && value !== "" ? value : undefined;

/** The elements of a value; none, if it is not a list. */
export const listOf = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : []);

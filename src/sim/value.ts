// JSON values as they are stored. A stored value never changes: whoever wants another one makes another one.

/** An object from a request or from the store. */
export type Fields = Readonly<Record<string, unknown>>;

/** Whether a value is an object, not a list and not null. */
export function isFields(value: unknown): value is Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Whether two values are the same, whatever the order of their keys. */
export function sameValue(a: unknown, b: unknown): boolean {
  if (a === b) return true;
  if (Array.isArray(a)) {
    return Array.isArray(b) && a.length === b.length && a.every((item, index) => sameValue(item, b[index]));
  }
  if (!isFields(a) || !isFields(b)) return false;
  const keys = Object.keys(a);
  return keys.length === Object.keys(b).length && keys.every((key) => key in b && sameValue(a[key], b[key]));
}

/** Whether two objects are the same but for one field. */
export function sameBut(left: string, a: Fields, b: Fields): boolean {
  const keys = Object.keys(a).filter((key) => key !== left);
  const others = Object.keys(b).length - (left in b ? 1 : 0);
  return keys.length === others && keys.every((key) => key in b && sameValue(a[key], b[key]));
}

/** An object with one field set, or without it if the value is undefined. */
export function withField(fields: Fields, key: string, value: unknown): Fields {
  if (value !== undefined) return fields[key] === value ? fields : { ...fields, [key]: value };
  if (!(key in fields)) return fields;
  const { [key]: _gone, ...rest } = fields;
  return rest;
}

/** An object with every field made anew, without those that become undefined; itself, if all of them stay. */
export function mapFields(fields: Fields, map: (value: unknown, key: string) => unknown): Fields {
  const keys = Object.keys(fields);
  const made = keys.map((key) => map(fields[key], key));
  if (keys.every((key, index) => made[index] !== undefined && made[index] === fields[key])) return fields;
  const out: Record<string, unknown> = {};
  for (const [index, key] of keys.entries()) if (made[index] !== undefined) out[key] = made[index];
  return out;
}

/** A list with every item made anew; itself, if all of them stay. */
export function mapItems(list: readonly unknown[], map: (item: unknown) => unknown): readonly unknown[] {
  const made = list.map(map);
  return made.every((item, index) => item === list[index]) ? list : made;
}

/** Whether there is nothing in a value: what Go leaves out of an object. */
export function isEmptyValue(value: unknown): boolean {
  if (value === null || value === undefined || value === "" || value === 0 || value === false) return true;
  return Array.isArray(value) ? value.length === 0 : isFields(value) && Object.keys(value).length === 0;
}

/** Text in quotes, as Go prints it. */
export const quote = (text: string): string => JSON.stringify(text);

/** A time as API servers write it: whole seconds. */
export const timeText = (ms: number): string => `${new Date(ms).toISOString().slice(0, 19)}Z`;

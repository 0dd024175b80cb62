// How much memory a value takes, roughly: enough to keep what one place fills within a budget. Where V8 shares something
// between values, each of them counts it; what it does not share is not counted for less than it takes.

import { fieldsOf } from "./json.ts";
import { Redacted } from "./redacted.ts";

const wordBytes = 8;
const objectBytes = 3 * wordBytes;
const textBytes = 3 * wordBytes;
const fieldBytes = 2 * wordBytes;
/** What a key and its value cost in a table: half of its places are free. */
const entryBytes = 12 * wordBytes;
/** An object with more fields is a table. */
const fieldsMax = 64;

/** About how many bytes a plain value takes: objects, arrays, maps, sets, texts and numbers, all the way down. */
export function bytesOf(value: unknown): number {
  if (typeof value === "string") return textBytes + value.length;
  if (typeof value !== "object" || value === null) return wordBytes;
  let bytes = objectBytes;
  if (Array.isArray(value)) {
    for (const item of value) bytes += wordBytes + bytesOf(item);
  } else if (value instanceof Map) {
    for (const [key, item] of value) bytes += entryBytes + bytesOf(key) + bytesOf(item);
  } else if (value instanceof Set) {
    for (const item of value) bytes += entryBytes + bytesOf(item);
  } else if (value instanceof Redacted) bytes += bytesOf(value.expose());
  else bytes += bytesOfFields(value);
  return bytes;
}

function bytesOfFields(value: object): number {
  let bytes = 0;
  let fields = 0;
  const record = fieldsOf(value);
  for (const key in record) {
    fields += 1;
    bytes += fieldBytes + key.length + bytesOf(record[key]);
  }
  return fields > fieldsMax ? bytes + fields * entryBytes : bytes;
}

// Sets of fields, as `metadata.managedFields` holds them. The rules are those of structured-merge-diff, which real API
// servers use; an element is written as there: `f:name`, `k:{"type":"Ready"}`, `v:"text"`, `i:0`.

import { fieldsOf } from "../core/json.ts";
import { fieldSchema, type Schema } from "./schema.ts";
import type { Fields } from "./value.ts";

/** A set of fields: at each element, whether it is in the set, and what is below it. */
export type FieldSet = ReadonlyMap<string, FieldNode>;

/** One element of a set. */
export type FieldNode = { readonly member: boolean; readonly below: FieldSet };

/** No fields. */
export const noFields: FieldSet = new Map();

/** A set that is being gathered. */
export class FieldGatherer {
  readonly #root: Branch = { member: false, below: new Map() };

  /** Puts the field at a path into the set. */
  add(path: readonly string[]): void {
    let at = this.#root;
    for (const element of path) {
      let next = at.below.get(element);
      if (next === undefined) {
        next = { member: false, below: new Map() };
        at.below.set(element, next);
      }
      at = next;
    }
    at.member = true;
  }

  /** What was put in. */
  get set(): FieldSet {
    return this.#root.below;
  }
}

type Branch = { member: boolean; readonly below: Map<string, Branch> };

/** What is in either; the first itself, if the second adds nothing. */
export function union(a: FieldSet, b: FieldSet): FieldSet {
  if (a.size === 0) return b;
  if (b.size === 0) return a;
  let out: Map<string, FieldNode> | undefined;
  for (const [element, node] of b) {
    const other = a.get(element);
    const below = other === undefined ? node.below : union(other.below, node.below);
    if (other !== undefined && below === other.below && (other.member || !node.member)) continue;
    out ??= new Map(a);
    out.set(element, other === undefined ? node : { member: node.member || other.member, below });
  }
  return out ?? a;
}

/** What is in the first and not in the second; what lies below a field of the second stays. The first itself, if nothing goes. */
export function difference(a: FieldSet, b: FieldSet): FieldSet {
  if (a.size === 0 || b.size === 0) return a;
  let out: Map<string, FieldNode> | undefined;
  for (const [element, other] of b) {
    const node = a.get(element);
    if (node === undefined) continue;
    const left = { member: node.member && !other.member, below: difference(node.below, other.below) };
    if (left.member === node.member && left.below === node.below) continue;
    out ??= new Map(a);
    if (left.member || left.below.size > 0) out.set(element, left);
    else out.delete(element);
  }
  return out ?? a;
}

/** What is in both. */
export function intersection(a: FieldSet, b: FieldSet): FieldSet {
  const out = new Map<string, FieldNode>();
  for (const [element, node] of a) {
    const other = b.get(element);
    if (other === undefined) continue;
    const shared = { member: node.member && other.member, below: intersection(node.below, other.below) };
    if (shared.member || shared.below.size > 0) out.set(element, shared);
  }
  return out;
}

/** A set without some fields and all that is below them. */
export function without(a: FieldSet, paths: readonly (readonly string[])[]): FieldSet {
  return paths.reduce<FieldSet>((set, path) => cut(set, path), a);
}

function cut(set: FieldSet, [first, ...rest]: readonly string[]): FieldSet {
  const node = first === undefined ? undefined : set.get(first);
  if (first === undefined || node === undefined) return set;
  const out = new Map(set);
  const below = rest.length === 0 ? noFields : cut(node.below, rest);
  if (rest.length > 0 && (node.member || below.size > 0)) out.set(first, { member: node.member, below });
  else out.delete(first);
  return out;
}

/** The set with every named field in it that has something below it; maps and list items are not named fields. */
export function withNamedFields(set: FieldSet, schema: Schema | undefined): FieldSet {
  const out = new Map<string, FieldNode>();
  for (const [element, node] of set) {
    const isField = element.startsWith("f:");
    const name = element.slice(2);
    const named = isField && node.below.size > 0 && schema?.properties.has(name) === true;
    const next = schema === undefined ? undefined : isField ? fieldSchema(schema, name) : schema.items;
    out.set(element, { member: node.member || named, below: withNamedFields(node.below, next) });
  }
  return out;
}

const written = new WeakMap<FieldSet, Fields>();
const read = new WeakMap<object, FieldSet>();

/** The set as `fieldsV1`; the same object for the same set. */
export function fieldsV1(set: FieldSet): Fields {
  const known = written.get(set);
  if (known !== undefined) return known;
  const out: Record<string, unknown> = {};
  for (const [element, { member, below }] of inOrder(set)) {
    out[element] = below.size === 0 ? {} : member ? { ".": {}, ...fieldsV1(below) } : fieldsV1(below);
  }
  written.set(set, out);
  read.set(out, set);
  return out;
}

/** The set in a `fieldsV1`. */
export function fieldSetOf(value: unknown): FieldSet {
  const fields = fieldsOf(value);
  const known = read.get(fields);
  if (known !== undefined) return known;
  const out = new Map<string, FieldNode>();
  for (const [element, node] of Object.entries(fields)) {
    if (element === ".") continue;
    const below = fieldSetOf(node);
    out.set(element, { member: "." in fieldsOf(node) || below.size === 0, below });
  }
  read.set(fields, out);
  return out;
}

/** The paths of all fields in a set as messages write them: at each level what is in the set, then what is below. */
export function pathTexts(set: FieldSet, prefix = ""): readonly string[] {
  const entries = inOrder(set).map(([element, node]) => ({ path: `${prefix}${elementText(element)}`, ...node }));
  return [
    ...entries.filter(({ member }) => member).map(({ path }) => path),
    ...entries.flatMap(({ path, below }) => pathTexts(below, path)),
  ];
}

const kindOrder = "fkvi";

function inOrder(set: FieldSet): readonly (readonly [string, FieldNode])[] {
  return [...set].sort(([a], [b]) => {
    const kinds = kindOrder.indexOf(a.charAt(0)) - kindOrder.indexOf(b.charAt(0));
    return kinds === 0 ? (a < b ? -1 : a > b ? 1 : 0) : kinds;
  });
}

function elementText(element: string): string {
  const rest = element.slice(2);
  if (element.startsWith("f:")) return `.${rest}`;
  if (element.startsWith("v:")) return `[=${rest}]`;
  if (element.startsWith("i:")) return `[${rest}]`;
  const keys = Object.entries(fieldsOf(JSON.parse(rest))).map(([key, value]) => `${key}=${JSON.stringify(value)}`);
  return `[${keys.join(",")}]`;
}

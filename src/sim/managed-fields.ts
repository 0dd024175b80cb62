// Who owns which field of an object: kept in `metadata.managedFields`, changed by every write, asked by every apply.

import { fieldsOf, listOf, textOf } from "../core/json.ts";
import { err, ok, type Result } from "../core/result.ts";
import {
  difference,
  fieldSetOf,
  fieldsV1,
  type FieldSet,
  intersection,
  noFields,
  pathTexts,
  union,
  withNamedFields,
  without,
} from "./field-set.ts";
import type { Schema } from "./schema.ts";
import { compare, fieldsIn, merge, removeFields, unowned, withoutManagers } from "./typed.ts";
import { type Fields, quote, sameValue } from "./value.ts";

/** What one manager owns, and how it came to it. */
export type Manager = {
  readonly name: string;
  readonly operation: "Apply" | "Update";
  readonly apiVersion: string;
  readonly subresource: string;
  readonly time: string;
  readonly fields: FieldSet;
};

/** Who writes, and what of it is not theirs to own. */
export type Writer = {
  readonly name: string;
  readonly apiVersion: string;
  readonly subresource: string;
  readonly time: string;
  readonly schema: Schema;
  /** Fields that this path does not write: the status, or everything but the status. */
  readonly ignored: readonly (readonly string[])[];
  /** An object of the kind with nothing in it. */
  readonly zero: Fields;
};

/** A field that somebody else owns. */
export type Conflict = { readonly manager: string; readonly path: string };

/** More managers that update than this are made one. */
const updatersMax = 10;

/** The managers in an object. */
export function managersOf(object: Fields): readonly Manager[] {
  return listOf(fieldsOf(object["metadata"])["managedFields"]).map((entry): Manager => {
    const { manager, operation, apiVersion, subresource, time, fieldsV1: fields } = fieldsOf(entry);
    return {
      name: textOf(manager) ?? "",
      operation: operation === "Apply" ? "Apply" : "Update",
      apiVersion: textOf(apiVersion) ?? "",
      subresource: textOf(subresource) ?? "",
      time: textOf(time) ?? "",
      fields: fieldSetOf(fields),
    };
  });
}

/** The object with these managers. */
export function withManagers(object: Fields, managers: readonly Manager[]): Fields {
  const bare = withoutManagers(object);
  if (managers.length === 0) return bare;
  const managedFields = [...managers].sort(inOrder).map(({ name, subresource, fields, ...rest }) => ({
    manager: name,
    operation: rest.operation,
    apiVersion: rest.apiVersion,
    ...(rest.time === "" ? {} : { time: rest.time }),
    fieldsType: "FieldsV1",
    fieldsV1: fieldsV1(fields),
    ...(subresource === "" ? {} : { subresource }),
  }));
  return { ...bare, metadata: { ...fieldsOf(bare["metadata"]), managedFields } };
}

function inOrder(a: Manager, b: Manager): number {
  const key = ({ operation, time, name, apiVersion, subresource }: Manager): string =>
    [operation, time, name, apiVersion, subresource].join("\u0000");
  return key(a) < key(b) ? -1 : 1;
}

/** Who owns what once an object has been written anew; `before` is undefined when it is created. */
export function managersAfterUpdate(
  before: Fields | undefined,
  after: Fields,
  managers: readonly Manager[],
  writer: Writer,
): readonly Manager[] {
  if (before !== undefined && managers.length === 0) return managers; // never tracked, and not begun by an update
  const old = before === undefined ? writer.zero : withoutManagers(before);
  const { removed, modified, added } = compare(old, withoutManagers(after), writer.schema);
  const changed = kept(union(modified, added), writer);
  const gone = kept(removed, writer);
  const left = released(managers, changed, gone);
  const taken = difference(changed, unowned);
  if (taken.size === 0) return left;
  const own = left.find((each) => isSame(each, writer, "Update"));
  const last = managers.find((each) => isSame(each, writer, "Update"));
  const fields = own === undefined ? taken : union(own.fields, taken);
  // Whoever writes the same fields again owns the same set, which has been written down already.
  const isAsBefore =
    last !== undefined && difference(last.fields, fields).size === 0 && union(last.fields, fields) === last.fields;
  const mine: Manager = { ...asManager(writer, "Update"), fields: isAsBefore ? last.fields : fields };
  return capped([...left.filter((each) => each !== own), mine]);
}

/** An object with a configuration applied to it, and who owns what then; or what others own of it. */
export function applied(
  live: Fields,
  config: Fields,
  { writer, force }: { readonly writer: Writer; readonly force: boolean },
): Result<{ readonly object: Fields; readonly managers: readonly Manager[] }, readonly Conflict[]> {
  const { schema } = writer;
  const before = withoutManagers(live);
  const tracked = managersOf(live);
  const first = { ...writer, name: "before-first-apply", subresource: "" };
  const managers = tracked.length > 0 ? tracked : managersAfterUpdate(undefined, before, [], first);
  const last = managers.find((each) => isSame(each, writer, "Apply"));
  const others = managers.filter((each) => each !== last);
  const wanted = kept(fieldsIn(config, schema), writer);
  const merged = merge(before, config, schema);
  const owned = others.reduce((all, { fields }) => union(all, fields), wanted);
  const object = fieldsOf(last === undefined ? merged : pruned(merged, owned, last.fields, schema));
  const { removed, modified, added } = compare(before, object, schema);
  const changed = kept(union(modified, added), writer);
  if (!force) {
    const conflicts = others.flatMap((other) =>
      pathTexts(intersection(other.fields, changed)).map((path) => ({ manager: managerText(other), path })),
    );
    if (conflicts.length > 0) return err(conflicts);
  }
  const left = released(others, changed, kept(removed, writer));
  const fields = difference(wanted, unowned);
  // Who applies what is there already owns it, but has not written it at any time.
  const time = sameValue(before, object) ? (last?.time ?? "") : writer.time;
  const mine = { ...asManager(writer, "Apply"), time, fields };
  return ok({ object, managers: fields.size === 0 ? left : [...left, mine] });
}

const kept = (set: FieldSet, { ignored }: Writer): FieldSet => without(set, ignored);

const isSame = (manager: Manager, writer: Writer, operation: Manager["operation"]): boolean =>
  manager.name === writer.name &&
  manager.operation === operation &&
  manager.subresource === writer.subresource &&
  (operation === "Apply" || manager.apiVersion === writer.apiVersion);

const asManager = ({ name, apiVersion, subresource, time }: Writer, operation: Manager["operation"]): Manager => ({
  name,
  operation,
  apiVersion,
  subresource,
  time,
  fields: noFields,
});

function released(managers: readonly Manager[], changed: FieldSet, gone: FieldSet): readonly Manager[] {
  return managers
    .map((manager) => ({ ...manager, fields: difference(difference(manager.fields, changed), gone) }))
    .filter(({ fields }) => fields.size > 0);
}

/** Takes out what the manager applied last time, if neither it nor anybody else claims it now. */
function pruned(merged: unknown, owned: FieldSet, last: FieldSet, schema: Schema): unknown {
  const named = (set: FieldSet): FieldSet => withNamedFields(set, schema);
  const all = named(fieldsIn(merged, schema));
  const bare = named(fieldsIn(removeFields(merged, named(last), schema) ?? {}, schema));
  const restored = removeFields(merged, difference(all, union(bare, named(owned))), schema) ?? {};
  const left = named(fieldsIn(restored, schema));
  return removeFields(merged, intersection(difference(all, left), named(last)), schema);
}

function capped(managers: readonly Manager[]): readonly Manager[] {
  const updaters = managers.filter(({ operation }) => operation === "Update").sort(inOrder);
  const excess = updaters.length - updatersMax;
  if (excess <= 0) return managers;
  const old = updaters.slice(0, excess + 1);
  const [first] = old;
  if (first === undefined) return managers;
  const fields = old.reduce((all, each) => union(all, each.fields), noFields);
  const time = old[old.length - 1]?.time ?? first.time;
  const bucket = { ...first, name: "ancient-changes", subresource: "", time, fields };
  return [...managers.filter((each) => !old.includes(each)), bucket];
}

function managerText({ name, operation, apiVersion, subresource }: Manager): string {
  const where = subresource === "" ? "" : ` with subresource ${quote(subresource)}`;
  return `${quote(name)}${where}${operation === "Update" ? ` using ${apiVersion}` : ""}`;
}

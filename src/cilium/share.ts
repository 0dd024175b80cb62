// Our share of an object that is others' as well: keys of a Secret, annotations of a Service. What we put there, for
// whom, and what was there before is recorded on the object itself, in the same write. So nobody's entry is lost, and
// when the last intent lets go the object is what it was.
//
//   at a path                        what is written                  what is recorded
//   wished for                       the wish                         for whom, what was there before, what we set
//   recorded, an intent in doubt     what is there                    as before
//   recorded, no longer wished for   what was there before, unless    nothing
//                                    somebody changed it since
//
// A secret is never recorded but by its hash, so nothing could put it back: one that is there before us stays, and what
// we put in its place at a time when we did not know better goes without it.

import { canonicalText, fieldsOf, listOf, textOf } from "../core/json.ts";
import { shortHash } from "../core/naming.ts";
import { type Content, type Desired, type Field, type Item, type Operation, withFate } from "../core/plan.ts";
import { Redacted } from "../core/redacted.ts";
import { compareText } from "../core/world.ts";

/** The label on an object that we made. */
export const managedByLabel = "app.kubernetes.io/managed-by";

/** What that label says. */
export const managedBy = "causeway";

/** What we did at one path of an object: what was there before, and what we set; `*` if whatever is there is ours. */
export type ShareEntry = {
  readonly intents: readonly string[];
  readonly was: string | null;
  readonly set: string;
};

/** What we did to an object, by path. */
export type ShareRecord = ReadonlyMap<string, ShareEntry>;

/** An object of which a part may be ours. */
export type SharedObject = {
  /** `<namespace>/<name>`. */
  readonly name: string;
  readonly uid: string | undefined;
  readonly resourceVersion: string | undefined;
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
  /** What is at each path that could be ours; of a secret, its hash. */
  readonly values: Readonly<Record<string, string>>;
  /** Whether it holds nothing beside `values`. */
  readonly isOtherwiseEmpty: boolean;
  /** Only that it is there is known, and so nothing of it may be written. */
  readonly isContentUnknown?: true;
};

/**
 * What should be at a path. Of a secret `value` is only the hash, or a mark for something still to be made, and `sealed`
 * is what to write if it differs; a secret that is there already is never overwritten unless we put it there.
 */
export type ShareWish = {
  readonly path: string;
  readonly value: string;
  readonly secret?: true;
  readonly sealed?: unknown;
  readonly intents: readonly string[];
};

/** What is known of an intent that had a share: it has let go for certain, or that cannot be told. */
export type ShareFate = "gone" | "doubtful";

/** Everything that a share is planned from. */
export type ShareInput = {
  readonly kind: string;
  readonly name: string;
  /** Who we are: another Causeway keeps a record of its own. */
  readonly instance: string;
  readonly object: SharedObject | undefined;
  readonly wishes: readonly ShareWish[];
  readonly fateOf: (intent: string, path: string) => ShareFate;
  readonly because: string;
  readonly releasedBecause: string;
};

/** What is wanted of an object, and what is there; nothing at all, if it is none of our business. */
export type SharePlan = {
  readonly desired: Desired | undefined;
  readonly item: Item | undefined;
  /** Where a secret of ours goes, and the one that was there before cannot be put back. */
  readonly lost?: readonly { readonly path: string; readonly intents: readonly string[] }[];
};

const whateverIsThere = "*";

/** The path of the record among the fields of a share; no key of a Secret and no annotation can have it. */
export const recordPath = "@record";

/** The annotation that holds the record of one Causeway. */
export const recordAnnotation = (instance: string): string => `causeway.dev/shares-${shortHash(instance)}`;

type Reading = { readonly record: ShareRecord; readonly isSpoilt: boolean };

const readings = new WeakMap<Readonly<Record<string, string>>, Map<string, Reading>>();

/** Reads what we recorded on an object, once; what cannot be read is no record. */
export const readRecord = (annotations: Readonly<Record<string, string>>, instance: string): ShareRecord =>
  readingOf(annotations, instance).record;

/** Whether somebody made a record of ours unreadable, as a whole or in part: then nobody knows what of an object is ours. */
export const isRecordSpoilt = (annotations: Readonly<Record<string, string>>, instance: string): boolean =>
  readingOf(annotations, instance).isSpoilt;

function readingOf(annotations: Readonly<Record<string, string>>, instance: string): Reading {
  const known = readings.get(annotations) ?? new Map<string, Reading>();
  readings.set(annotations, known);
  const reading = known.get(instance) ?? parseRecord(annotations[recordAnnotation(instance)]);
  known.set(instance, reading);
  return reading;
}

function parseRecord(text: string | undefined): Reading {
  const record = new Map<string, ShareEntry>();
  if (text === undefined) return { record, isSpoilt: false };
  const parsed = jsonOf(text);
  let isSpoilt = !isObject(parsed);
  for (const [path, entry] of Object.entries(fieldsOf(parsed))) {
    const { for: intents, was, set } = fieldsOf(entry);
    if (typeof set !== "string") {
      isSpoilt = true;
      continue;
    }
    record.set(path, {
      intents: listOf(intents).flatMap((each) => textOf(each) ?? []),
      was: typeof was === "string" ? was : null,
      set,
    });
  }
  return { record, isSpoilt };
}

/** Plans our share of one object. */
export function planShare(input: ShareInput): SharePlan {
  const { object, instance } = input;
  const record = readRecord(object?.annotations ?? {}, instance);
  const wishes = new Map(input.wishes.map((wish) => [wish.path, wish]));
  if (object?.isContentUnknown === true) return { desired: undefined, item: heldItem(input, object, record) };
  if (wishes.size === 0 && record.size === 0) return { desired: undefined, item: undefined };
  const next = new Map<string, ShareEntry>();
  const fields: Record<string, Field> = {};
  const sealed: Record<string, unknown> = {};
  const lost: { readonly path: string; readonly intents: readonly string[] }[] = [];
  for (const path of [...new Set([...wishes.keys(), ...record.keys()])].sort(compareText)) {
    const [wish, before] = [wishes.get(path), record.get(path)];
    const present = object?.values[path] ?? null;
    if (wish?.secret === true && before === undefined && present !== null) continue;
    if (wish !== undefined) {
      const was = before === undefined ? present : before.was;
      const set = wish.secret === true ? whateverIsThere : wish.value;
      // An intent in doubt keeps its hold although somebody else wishes for the same.
      const doubtful = (before?.intents ?? []).filter((intent) => input.fateOf(intent, path) === "doubtful");
      next.set(path, { intents: sorted([...wish.intents, ...doubtful]), was, set });
      fields[path] = wish.value;
      if (wish.sealed !== undefined) sealed[path] = wish.sealed;
    } else if (before !== undefined && before.intents.some((intent) => input.fateOf(intent, path) === "doubtful")) {
      next.set(path, before);
      fields[path] = present;
    } else if (before?.set === whateverIsThere) {
      fields[path] = null;
      if (before.was !== null && present !== null) lost.push({ path, intents: before.intents });
    } else if (before !== undefined) {
      fields[path] = before.set === present ? before.was : present;
    }
  }
  if (next.size === 0 && record.size === 0) return { desired: undefined, item: undefined };
  const told = lost.length === 0 ? {} : { lost };
  const item = object === undefined ? undefined : itemOf(input, object, record, fields);
  if (next.size === 0) return { desired: undefined, item, ...told };
  const intents = sorted([...next.values()].flatMap((entry) => entry.intents));
  const desired: Desired = {
    ...slotOf(input),
    intents,
    labels: object === undefined ? { [managedByLabel]: managedBy } : object.labels,
    fields: { ...fields, [recordPath]: recordText(next) },
    ...(Object.keys(sealed).length === 0 ? {} : { sealed: new Redacted(sealed) }),
    claims: [],
    claimsPath: "",
    because: input.because,
    reasons: {},
  };
  return { desired, item, ...told };
}

function itemOf(
  input: ShareInput,
  object: SharedObject,
  record: ShareRecord,
  fields: Readonly<Record<string, Field>>,
): Item {
  const here = Object.fromEntries(Object.keys(fields).map((path) => [path, object.values[path] ?? null]));
  const intents = sorted([...record.values()].flatMap((entry) => entry.intents));
  const recorded = object.annotations[recordAnnotation(input.instance)] ?? null;
  const isOurs = object.labels[managedByLabel] === managedBy;
  const isEmpty = Object.keys(object.values).every((path) => (fields[path] ?? null) === null && path in fields);
  const leave: Content = { labels: object.labels, fields: { ...fields, [recordPath]: null } };
  const whole = isOurs && object.isOtherwiseEmpty && isEmpty;
  return {
    ...slotOf(input),
    uid: object.uid,
    resourceVersion: object.resourceVersion,
    intent: intents[0],
    intents,
    party: undefined,
    claims: [],
    labels: object.labels,
    fields: { ...here, [recordPath]: recorded },
    standing: {
      owner: "us",
      adopted: false,
      ifUnwanted: { do: "delete", reason: input.releasedBecause, ...(whole ? {} : { leave }) },
    },
  };
}

/** Nobody can tell what would be lost with an object whose content is not known. */
function heldItem(input: ShareInput, object: SharedObject, record: ShareRecord): Item | undefined {
  if (record.size === 0) return undefined;
  const ifUnwanted = { do: "hold", reason: "ContentUnknown", detail: "what is in it is not known" } as const;
  return withFate(itemOf(input, object, record, {}), ifUnwanted);
}

/** Whether a write is for the sake of an intent: others that share the object may be all that it changes anything for. */
export function isWriteFor(intent: string, { intents, changes, content }: Operation): boolean {
  if (intents.length < 2 || content === undefined) return true;
  const record = changes.find(({ path }) => path === recordPath);
  const after = parseRecord(fieldText(content.fields[recordPath])).record;
  const before = record === undefined ? after : parseRecord(fieldText(record.from)).record;
  const holds = (of: ShareRecord, path: string): boolean => of.get(path)?.intents.includes(intent) === true;
  if (before.size + after.size === 0) return true;
  const isChanged = new Set(changes.map(({ path }) => path));
  return [...new Set([...before.keys(), ...after.keys()])].some(
    (path) =>
      holds(before, path) !== holds(after, path) ||
      (isChanged.has(path) && (holds(before, path) || holds(after, path))),
  );
}

const fieldText = (field: Field | undefined): string | undefined => (typeof field === "string" ? field : undefined);

/** A share as a merge patch: `at` says where a path is in the object, and how what is there is written. */
export function shareManifest(
  kind: { readonly apiVersion: string; readonly kind: string },
  name: string,
  instance: string,
  content: Content,
  at: (path: string, value: string | null, sealed: unknown) => Readonly<Record<string, unknown>>,
): Readonly<Record<string, unknown>> {
  const [namespace, plain] = name.split("/");
  const secrets = content.sealed?.expose() ?? {};
  let body: Readonly<Record<string, unknown>> = {
    ...kind,
    metadata: {
      namespace,
      name: plain,
      labels: content.labels,
      annotations: { [recordAnnotation(instance)]: content.fields[recordPath] ?? null },
    },
  };
  for (const [path, value] of Object.entries(content.fields)) {
    if (path === recordPath) continue;
    body = merged(body, at(path, typeof value === "string" ? value : null, secrets[path]));
  }
  return body;
}

/** The hash that stands for a secret in fields, records and plans. */
export const sealedHash = (text: string): string => `sha256:${shortHash(text)}`;

function merged(
  a: Readonly<Record<string, unknown>>,
  b: Readonly<Record<string, unknown>>,
): Readonly<Record<string, unknown>> {
  const joined: Record<string, unknown> = { ...a };
  for (const [key, value] of Object.entries(b)) {
    const old = joined[key];
    joined[key] = isObject(old) && isObject(value) ? merged(old, value) : value;
  }
  return joined;
}

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null && !Array.isArray(value);

const slotOf = ({ kind, name }: ShareInput) => ({ kind, name, slot: `${kind}/${name}`, origin: `${kind}/${name}` });

const sorted = (intents: readonly string[]): readonly string[] => [...new Set(intents)].sort(compareText);

const recordText = (record: ShareRecord): string =>
  canonicalText(
    Object.fromEntries([...record].map(([path, { intents, was, set }]) => [path, { for: intents, was, set }])),
  );

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

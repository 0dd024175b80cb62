// Our share of an object that is others' as well: keys of a Secret, annotations of a Service. What we put there, for
// whom, and what was there before is recorded on the object itself, in the same write. So nobody's entry is lost, and
// when the last intent lets go the object is what it was. It is never deleted, also if we made it: it is left empty, since
// whoever may delete and create Secrets may have any token of their namespace.
//
//   at a path                        what is written                  what is recorded
//   wished for                       the wish                         for whom, what was there before, what we set
//   wished for by some of them       the wish                         also for those that may not let go yet
//   recorded, an intent in doubt     what is there                    as before
//   recorded, held by the last gate  what is there                    as before
//   recorded, no longer wished for   what was there before, unless    nothing
//                                    somebody changed it since
//
// A secret is never recorded but by its hash, so nothing could put it back: one that is there before us stays, and what
// we put in its place at a time when we did not know better goes without it.

import { appendAll } from "../core/list.ts";
import { shortHash } from "../core/naming.ts";
import {
  type Content,
  type Desired,
  type Edit,
  type Field,
  type Item,
  type Operation,
  type Part,
  type Stay,
  withFate,
} from "../core/plan.ts";
import { Redacted } from "../core/redacted.ts";
import { compareText } from "../core/world.ts";
import type { DoubtfulEdit } from "./edit.ts";
import { aboutOf, nextRecord, parseRecord, type Reading, type ShareEntry, type ShareRecord } from "./share-record.ts";

/** The label on an object that we made. */
export const managedByLabel = "app.kubernetes.io/managed-by";

/** What that label says. */
export const managedBy = "causeway";

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
  /** The member of a mesh that it is about, as each intent calls it. */
  readonly about?: Readonly<Record<string, string>>;
  /** The UID of the cluster that it leads to, as a hash. */
  readonly uid?: string;
};

/** What is known of an intent that had a share: it has let go for certain, by an edit, or that cannot be told. */
export type ShareFate = "gone" | "doubtful" | Edit | DoubtfulEdit;

/** Everything that a share is planned from. */
export type ShareInput = {
  readonly kind: string;
  readonly name: string;
  /** Who we are: another Causeway keeps a record of its own. */
  readonly instance: string;
  readonly object: SharedObject | undefined;
  readonly wishes: readonly ShareWish[];
  readonly fateOf: (intent: string, path: string) => ShareFate;
  /** Why what would go at a path has to stay, if it has. */
  readonly stayOf?: (path: string) => Stay | undefined;
  readonly because: string;
  readonly releasedBecause: string;
};

/** What is wanted of an object, and what is there; nothing at all, if it is none of our business. */
export type SharePlan = {
  readonly desired: Desired | undefined;
  readonly item: Item | undefined;
  /** What goes. */
  readonly parts?: readonly Part[];
  /** What stays because nobody can tell what the edit means that would take it away. */
  readonly doubted?: readonly DoubtfulEdit[];
  /** Where a secret of ours goes, and the one that was there before cannot be put back. */
  readonly lost?: readonly { readonly path: string; readonly intents: readonly string[] }[];
};

const whateverIsThere = "*";

/** The path of the record among the fields of a share; no key of a Secret and no annotation can have it. */
export const recordPath = "@record";

const recordPrefix = "causeway.dev/shares-";

/** The annotation that holds the record of one Causeway. */
export const recordAnnotation = (instance: string): string => `${recordPrefix}${shortHash(instance)}`;

/** The paths of an object that the record of any Causeway names. */
export const recordedPaths = (annotations: Readonly<Record<string, string>>): ReadonlySet<string> =>
  new Set(
    Object.entries(annotations).flatMap(([key, text]) =>
      key.startsWith(recordPrefix) ? [...parseRecord(text).record.keys()] : [],
    ),
  );

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
  const parts: Part[] = [];
  const doubted: DoubtfulEdit[] = [];
  const { slot } = slotOf(input);
  let held: Stay | undefined;
  for (const path of [...new Set([...wishes.keys(), ...record.keys()])].sort(compareText)) {
    const [wish, before] = [wishes.get(path), record.get(path)];
    const present = object?.values[path] ?? null;
    if (wish?.secret === true && before === undefined && present !== null) continue;
    if (wish !== undefined) {
      const was = before === undefined ? present : before.was;
      const set = wish.secret === true ? whateverIsThere : wish.value;
      // An intent that may not let go now keeps its hold although somebody else wishes for the same.
      const others = (before?.intents ?? []).filter((intent) => !wish.intents.includes(intent));
      const { doubts, edits, unsure, editing } = fatesOf(others, path, input);
      appendAll(doubted, doubts);
      if (edits.length > 0) parts.push({ slot, path, intents: editing, edits });
      const staying = input.stayOf?.(path) === undefined ? unsure : [...unsure, ...editing];
      const intents = sorted([...wish.intents, ...staying]);
      const uid = wish.uid ?? before?.uid;
      const leadsTo = uid === undefined ? {} : { uid };
      next.set(path, { intents, was, set, ...aboutFor(intents, before, wish.about, doubts), ...leadsTo });
      fields[path] = wish.value;
      if (wish.sealed !== undefined) sealed[path] = wish.sealed;
    } else if (before !== undefined) {
      const { doubts, edits, unsure } = fatesOf(before.intents, path, input);
      const stay = input.stayOf?.(path);
      held ??= stay;
      appendAll(doubted, doubts);
      if (stay !== undefined || unsure.length > 0) {
        next.set(path, { ...before, ...aboutFor(before.intents, before, {}, doubts) });
        fields[path] = present;
        continue;
      }
      parts.push({ slot, path, intents: before.intents, edits });
      if (before.set !== whateverIsThere) fields[path] = before.set === present ? before.was : present;
      else {
        fields[path] = null;
        if (before.was !== null && present !== null) lost.push({ path, intents: before.intents });
      }
    }
  }
  if (next.size === 0 && record.size === 0) return { desired: undefined, item: undefined };
  const told = {
    ...(lost.length === 0 ? {} : { lost }),
    ...(parts.length === 0 ? {} : { parts }),
    ...(doubted.length === 0 ? {} : { doubted }),
  };
  const item = object === undefined ? undefined : itemOf(input, object, record, fields, held);
  if (next.size === 0) return { desired: undefined, item, ...told };
  const intents = sorted([...next.values()].flatMap((entry) => entry.intents));
  const desired: Desired = {
    ...slotOf(input),
    intents,
    labels: object === undefined ? { [managedByLabel]: managedBy } : object.labels,
    fields: { ...fields, [recordPath]: nextRecord(record, next, changesAny(fields, object)) },
    ...(Object.keys(sealed).length === 0 ? {} : { sealed: new Redacted(sealed) }),
    claims: [],
    claimsPath: "",
    because: input.because,
    reasons: {},
  };
  return { desired, item, ...told };
}

/** What is known of those for whom something is there. */
type Fates = {
  /** Those of whom nobody can tell whether they let go, and the edits that nobody can tell the meaning of. */
  readonly unsure: readonly string[];
  readonly doubts: readonly DoubtfulEdit[];
  /** Those who let go by an edit. */
  readonly editing: readonly string[];
  readonly edits: readonly Edit[];
};

function fatesOf(intents: readonly string[], path: string, { fateOf }: ShareInput): Fates {
  const [unsure, doubts, editing, edits] = [[] as string[], [] as DoubtfulEdit[], [] as string[], [] as Edit[]];
  for (const intent of intents) {
    const fate = fateOf(intent, path);
    if (fate === "gone") continue;
    if (fate === "doubtful" || isDoubt(fate)) {
      unsure.push(intent);
      if (fate !== "doubtful") doubts.push(fate);
    } else {
      editing.push(intent);
      edits.push(fate);
    }
  }
  return { unsure, doubts, editing, edits };
}

const isDoubt = (edit: Edit | DoubtfulEdit): edit is DoubtfulEdit => "doubt" in edit;

/** The members that an entry is about: as the wish says, as the record does, or as a doubt suspects. */
function aboutFor(
  intents: readonly string[],
  before: ShareEntry | undefined,
  wished: Readonly<Record<string, string>> = {},
  doubts: readonly DoubtfulEdit[] = [],
): Pick<ShareEntry, "about"> {
  return aboutOf(
    intents.flatMap((intent): [string, string][] => {
      const suspected = doubts.find((edit) => edit.intent === intent)?.member;
      const name = wished[intent] ?? before?.about?.[intent] ?? suspected;
      return name === undefined ? [] : [[intent, name]];
    }),
  );
}

const changesAny = (fields: Readonly<Record<string, Field>>, object: SharedObject | undefined): boolean =>
  Object.entries(fields).some(([path, value]) => value !== (object?.values[path] ?? null));

function itemOf(
  input: ShareInput,
  object: SharedObject,
  record: ShareRecord,
  fields: Readonly<Record<string, Field>>,
  held?: Stay,
): Item {
  const here = Object.fromEntries(Object.keys(fields).map((path) => [path, object.values[path] ?? null]));
  const intents = sorted([...record.values()].flatMap((entry) => entry.intents));
  const recorded = object.annotations[recordAnnotation(input.instance)] ?? null;
  const leave: Content = { labels: object.labels, fields: { ...fields, [recordPath]: null } };
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
      ifUnwanted: held === undefined ? { do: "delete", reason: input.releasedBecause, leave } : { do: "hold", ...held },
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

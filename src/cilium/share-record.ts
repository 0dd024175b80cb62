// The record of our share of an object, as it is written in an annotation of the object.

import { canonicalText, fieldsOf, listOf, textOf } from "../core/json.ts";

/** What we did at one path of an object: what was there before, and what we set; `*` if whatever is there is ours. */
export type ShareEntry = {
  readonly intents: readonly string[];
  readonly was: string | null;
  readonly set: string;
  /** The member of a mesh that it is about, as each intent calls it. Records of earlier versions do not tell. */
  readonly about?: Readonly<Record<string, string>>;
  /** The UID of the cluster that it leads to, as a hash. Records of earlier versions do not tell. */
  readonly uid?: string;
};

/** What we did to an object, by path. */
export type ShareRecord = ReadonlyMap<string, ShareEntry>;

/** A record, and whether a part of it cannot be read. */
export type Reading = { readonly record: ShareRecord; readonly isSpoilt: boolean };

/** Reads the text of a record. */
export function parseRecord(text: string | undefined): Reading {
  const record = new Map<string, ShareEntry>();
  if (text === undefined) return { record, isSpoilt: false };
  const parsed = jsonOf(text);
  let isSpoilt = !isObject(parsed);
  for (const [path, entry] of Object.entries(fieldsOf(parsed))) {
    const { for: intents, was, set, about, uid } = fieldsOf(entry);
    if (typeof set !== "string") {
      isSpoilt = true;
      continue;
    }
    record.set(path, {
      intents: listOf(intents).flatMap((each) => textOf(each) ?? []),
      was: typeof was === "string" ? was : null,
      set,
      ...aboutOf(
        Object.entries(fieldsOf(about)).flatMap(([id, name]) =>
          typeof name === "string" ? [[id, name] as const] : [],
        ),
      ),
      ...(typeof uid === "string" ? { uid } : {}),
    });
  }
  return { record, isSpoilt };
}

/** The members that an entry is about, if any. */
export const aboutOf = (names: readonly (readonly [string, string])[]): Pick<ShareEntry, "about"> =>
  names.length === 0 ? {} : { about: Object.fromEntries(names) };

/**
 * The record to write. That it does not tell yet whom an entry is about or where it leads is no reason to write it; what
 * is written for another reason tells.
 */
export function nextRecord(record: ShareRecord, next: ShareRecord, isWritten: boolean): string {
  if (isWritten) return recordText(next);
  const plain = [...next].map(([path, entry]): [string, ShareEntry] => {
    const { about, uid, ...rest } = entry;
    const before = record.get(path);
    const isTold = { about: before?.about !== undefined, uid: before?.uid !== undefined };
    return [
      path,
      { ...rest, ...(isTold.about && about ? { about } : {}), ...(isTold.uid && uid !== undefined ? { uid } : {}) },
    ];
  });
  const before = recordText(record);
  return recordText(new Map(plain)) === before ? before : recordText(next);
}

const recordText = (record: ShareRecord): string =>
  canonicalText(
    Object.fromEntries(
      [...record].map(([path, { intents, was, set, about, uid }]) => [
        path,
        { for: intents, was, set, ...(about === undefined ? {} : { about }), ...(uid === undefined ? {} : { uid }) },
      ]),
    ),
  );

const isObject = (value: unknown): boolean => typeof value === "object" && value !== null && !Array.isArray(value);

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

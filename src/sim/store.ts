// What one server holds, in the order in which it came to hold it. Every change has a number of its own, and the
// latest changes are kept, so that watches can begin in the past and long lists stay of one piece.

import { fieldsOf } from "../core/json.ts";
import type { Fields } from "./value.ts";

/** One change. `before` is undefined when an object was made; `after` of a removal is the object as it went. */
export type Change = {
  readonly revision: number;
  readonly key: string;
  readonly type: "ADDED" | "MODIFIED" | "DELETED";
  readonly before: Fields | undefined;
  readonly after: Fields;
};

/** What a store held at one moment, to be put back later. */
export type SimSnapshot = {
  readonly revision: number;
  readonly objects: ReadonlyMap<string, ReadonlyMap<string, Fields>>;
};

type Collection = {
  objects: Map<string, Fields>;
  keys: readonly string[] | undefined;
  history: Change[];
  /** Changes up to this one are forgotten. */
  floor: number;
  readonly listeners: Set<(change: Change) => void>;
};

/** The objects of one server, by where they are kept and by key: `namespace/name`, or `name`. */
export class Store {
  readonly #collections = new Map<string, Collection>();
  readonly #changesMax: number;
  #revision = 1;
  /** What was forgotten before a collection had its first change. */
  #floor = 0;

  constructor(changesMax: number) {
    this.#changesMax = changesMax;
  }

  /** The number of the last change. */
  get revision(): number {
    return this.#revision;
  }

  /** How many objects there are. */
  get size(): number {
    let objects = 0;
    for (const collection of this.#collections.values()) objects += collection.objects.size;
    return objects;
  }

  get(storage: string, key: string): Fields | undefined {
    return this.#collections.get(storage)?.objects.get(key);
  }

  /** All objects, by key and in its order. */
  all(storage: string): readonly (readonly [string, Fields])[] {
    const collection = this.#collections.get(storage);
    if (collection === undefined) return [];
    collection.keys ??= [...collection.objects.keys()].sort();
    return collection.keys.flatMap((key) => {
      const object = collection.objects.get(key);
      return object === undefined ? [] : [[key, object] as const];
    });
  }

  /** All objects as they were after a change; nothing, if that is forgotten. */
  allAt(storage: string, revision: number): readonly (readonly [string, Fields])[] | undefined {
    if (revision === this.#revision) return this.all(storage);
    const collection = this.#collection(storage);
    if (revision < collection.floor) return undefined;
    const then = new Map(collection.objects);
    for (const change of collection.history.toReversed()) {
      if (change.revision <= revision) break;
      if (change.before === undefined) then.delete(change.key);
      else then.set(change.key, change.before);
    }
    return [...then].sort(([a], [b]) => (a < b ? -1 : 1));
  }

  /** Makes or changes an object; answers with it as it is kept, its resourceVersion in it. */
  put(storage: string, key: string, object: Fields): Fields {
    const collection = this.#collection(storage);
    const before = collection.objects.get(key);
    const revision = this.#next();
    const after = numbered(object, revision);
    collection.objects.set(key, after);
    if (before === undefined) collection.keys = undefined;
    this.#record(collection, { revision, key, type: before === undefined ? "ADDED" : "MODIFIED", before, after });
    return after;
  }

  /** Removes an object. Whoever watches sees it as it was kept last, whatever the write that ended it said. */
  remove(storage: string, key: string): void {
    const collection = this.#collection(storage);
    const before = collection.objects.get(key);
    if (before === undefined) return;
    const revision = this.#next();
    collection.objects.delete(key);
    collection.keys = undefined;
    this.#record(collection, { revision, key, type: "DELETED", before, after: numbered(before, revision) });
  }

  /** The changes after one; nothing, if some of them are forgotten. */
  since(storage: string, revision: number): readonly Change[] | undefined {
    const collection = this.#collection(storage);
    if (revision < collection.floor) return undefined;
    return collection.history.filter((change) => change.revision > revision);
  }

  /** The oldest number that `since` takes. */
  floorOf(storage: string): number {
    return this.#collection(storage).floor;
  }

  /** Hears of every change from now on; the answer ends it. */
  listen(storage: string, listener: (change: Change) => void): () => void {
    const { listeners } = this.#collection(storage);
    listeners.add(listener);
    return () => listeners.delete(listener);
  }

  /** Forgets every change so far. */
  compact(): void {
    this.#floor = this.#revision;
    for (const collection of this.#collections.values()) {
      collection.history = [];
      collection.floor = this.#revision;
    }
  }

  snapshot(): SimSnapshot {
    const objects = new Map(
      [...this.#collections].map(([storage, collection]) => [storage, new Map(collection.objects)]),
    );
    return { revision: this.#revision, objects };
  }

  /** Holds again what it held then; nothing that came later is remembered, not even that it came. */
  restore({ revision, objects }: SimSnapshot): void {
    this.#revision = revision;
    this.#floor = revision;
    for (const storage of objects.keys()) this.#collection(storage);
    for (const [storage, collection] of this.#collections) {
      collection.objects = new Map(objects.get(storage));
      collection.keys = undefined;
      collection.history = [];
      collection.floor = revision;
    }
  }

  #collection(storage: string): Collection {
    let collection = this.#collections.get(storage);
    if (collection === undefined) {
      collection = { objects: new Map(), keys: undefined, history: [], floor: this.#floor, listeners: new Set() };
      this.#collections.set(storage, collection);
    }
    return collection;
  }

  #next(): number {
    this.#revision += 1;
    return this.#revision;
  }

  #record(collection: Collection, change: Change): void {
    collection.history.push(change);
    if (collection.history.length > this.#changesMax) {
      const dropped = collection.history.splice(0, Math.ceil(this.#changesMax / 4));
      collection.floor = dropped[dropped.length - 1]?.revision ?? collection.floor;
    }
    for (const listener of Array.from(collection.listeners)) listener(change);
  }
}

function numbered(object: Fields, revision: number): Fields {
  return { ...object, metadata: { ...fieldsOf(object["metadata"]), resourceVersion: String(revision) } };
}

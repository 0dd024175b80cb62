// What one list and the watch after it say of a kind: compact facts by key, never the objects themselves. It must never
// lose an object silently, and never let an old message undo what a newer one said.

import { type BudgetName, type Budgets, type OverBudget, overBudget } from "../core/budgets.ts";
import { fieldsOf, textOf } from "../core/json.ts";
import type { Scope } from "../core/resource.ts";
import { inScope } from "../core/scope.ts";
import { bytesOf } from "../core/size.ts";
import type { WatchEvent } from "./api.ts";
import { canWatchFrom, compareVersions, isOlder, newerOf } from "./resource-version.ts";
import { messageOf } from "./thrown.ts";

/** What is kept of an object. Without a uid of its own, an object has the empty one. */
export type Held<F> = {
  readonly fact: F;
  readonly uid: string;
  readonly resourceVersion: string;
  /** About how much memory it takes, its key included. */
  readonly bytes: number;
};

/** What all stores of one place keep together. */
export type Room = { bytes: number };

/** How objects are read, and what to do when that goes wrong. */
export type FactStoreOptions<F> = {
  readonly read: (raw: unknown) => F;
  readonly same: (a: F, b: F) => boolean;
  /** Objects have keys with a namespace. */
  readonly namespaced: boolean;
  /** Where one list shows several workspaces: the one that an object is in, which its key begins with. */
  readonly workspaceOf?: ((raw: unknown) => string | undefined) | undefined;
  readonly budgets: Budgets;
  /** The budget for how many objects there may be. */
  readonly objects: BudgetName;
  /** Shared with the other stores of the same place; without, what is kept is not counted. */
  readonly room?: Room | undefined;
  /** What the server was asked for; an object of another name or namespace is not even read. */
  readonly scope?: Scope;
  /** An object without a name, or a bug of ours; the caller says so where people see it. */
  readonly onFault: (fault: StoreFault, detail: string) => void;
};

/** Why an object could not be taken in. */
export type StoreFault = "unkeyed" | "unasked" | "read" | "same";

/** What a message did to the store. Full: it was not taken in, because there is a limit. */
export type Outcome = "changed" | "unchanged" | "full";

/** A list on its way; nothing of it is visible before it is complete. */
export type Listing<F> = {
  readonly gathered: Map<string, Held<F>>;
  readonly unreadable: Set<string>;
  nameless: number;
  bytes: number;
  readonly round: number;
  /** The newest version known when the list began. */
  readonly seen: string | undefined;
};

/** Deletions of ours that may be remembered at a time; the oldest are dropped first, and cost a flicker at worst. */
const forgottenMax = 10_000;

type Identity = {
  readonly key: string;
  readonly uid: string;
  readonly resourceVersion: string;
  /** How long the longest of its names is. */
  readonly longest: number;
};

/** The facts of one kind, as a list, a watch and our own writes tell them. */
export class FactStore<F> {
  readonly #options: FactStoreOptions<F>;
  #objects = new Map<string, Held<F>>();
  /** Somebody holds `#objects` as it is: copy it before the next change. */
  #lent = false;
  /** Own writes that the watch has not confirmed yet, even if we deleted the object since: nothing older counts. */
  readonly #absorbed = new Map<string, { readonly resourceVersion: string; readonly round: number }>();
  /** Uids of objects we deleted, with the round in which we did. */
  readonly #forgotten = new Map<string, number>();
  /** Keys of objects that could not be read even once. */
  #unreadable = new Set<string>();
  #nameless = 0;
  /** Up to here the server has told us everything. */
  #told: string | undefined;
  /** The newest version from this server, told or absorbed. */
  #seen: string | undefined;
  /** Counts lists begun. */
  #round = 0;
  /** What the objects take. */
  #bytes = 0;
  #excess: OverBudget | undefined;

  constructor(options: FactStoreOptions<F>) {
    this.#options = options;
  }

  /** The facts as they are now; what is handed out never changes. */
  snapshot(): ReadonlyMap<string, Held<F>> {
    this.#lent = true;
    return this.#objects;
  }

  /** Why something was not taken in, when it last was not. */
  get excess(): OverBudget | undefined {
    return this.#excess;
  }

  /** Objects that exist but are not in the snapshot, because they have no name or cannot be read. */
  get unkeyed(): number {
    return this.#nameless + this.#unreadable.size;
  }

  /** Begins a list; one that never completes is simply dropped. */
  beginList(): Listing<F> {
    this.#round += 1;
    const nothing = { gathered: new Map<string, Held<F>>(), unreadable: new Set<string>(), nameless: 0, bytes: 0 };
    return { ...nothing, round: this.#round, seen: this.#seen };
  }

  /** Gathers a page of a list aside; answers whether there is room for it. */
  gather(listing: Listing<F>, items: readonly unknown[]): boolean {
    for (const raw of items) {
      if (!this.#isAskedFor(raw)) continue;
      const identity = this.#identify(raw);
      if (identity === undefined) {
        listing.nameless += 1;
        continue;
      }
      if (!this.#isShort(identity)) return false;
      // A list has each object once. What came after the first page's version, the watch will tell.
      if (listing.gathered.has(identity.key) || listing.unreadable.has(identity.key)) continue;
      const held = this.#read(raw, identity);
      listing.bytes += held?.bytes ?? 0;
      if (held === undefined) listing.unreadable.add(identity.key);
      else listing.gathered.set(identity.key, held);
      if (!this.#mayCount(listing.gathered.size + listing.unreadable.size)) return false;
      if (!this.#mayTake(listing.bytes - this.#bytes)) return false;
    }
    return true;
  }

  /** Puts a complete list in place of everything, but for writes of ours that are newer. */
  completeList(listing: Listing<F>, resourceVersion: string): { changed: boolean; wentBackwards: boolean } {
    const unkeyed = this.unkeyed;
    const wentBackwards = listing.seen !== undefined && isOlder(resourceVersion, listing.seen);
    this.#retire(listing, { resourceVersion, wentBackwards });
    for (const key of this.#absorbed.keys()) {
      const held = this.#objects.get(key);
      if (held === undefined) listing.gathered.delete(key);
      else listing.gathered.set(key, held);
      listing.unreadable.delete(key);
    }
    let changed = false;
    // Into the map there is, not a new one: it keeps its keys, which others hold as well.
    for (const key of this.#objects.keys()) {
      if (!listing.gathered.has(key)) changed = this.#drop(key) || changed;
    }
    for (const [key, held] of listing.gathered) changed = this.#put(key, held) || changed;
    this.#nameless = listing.nameless;
    this.#unreadable = listing.unreadable;
    this.#told = resourceVersion;
    this.#seen = wentBackwards ? resourceVersion : newerOf(this.#seen, resourceVersion);
    return { changed: changed || this.unkeyed !== unkeyed, wentBackwards };
  }

  /** Takes in a line of the watch. */
  take(event: WatchEvent): Outcome {
    if (event.type === "BOOKMARK") {
      this.#tell(event.resourceVersion);
      return "unchanged";
    }
    if (!this.#isAskedFor(event.object)) return "unchanged";
    const identity = this.#identify(event.object);
    if (identity === undefined) {
      this.#nameless += 1;
      return this.#nameless === 1 ? "changed" : "unchanged";
    }
    if (!this.#isShort(identity)) return "full";
    const outcome = event.type === "DELETED" ? this.#deleted(identity) : this.#sighted(identity, event.object);
    if (outcome !== "full") this.#tell(identity.resourceVersion);
    return outcome;
  }

  /** The key of an object; nothing if it has none. */
  keyOf(raw: unknown): string | undefined {
    const { name, namespace } = fieldsOf(fieldsOf(raw)["metadata"]);
    if (textOf(name) === undefined) return undefined;
    return this.#options.namespaced ? `${textOf(namespace)}/${textOf(name)}` : textOf(name);
  }

  /** Takes in the answer to a write of our own, unless the watch has told of it, or of what came after, already. */
  absorb(raw: unknown): Outcome {
    const identity = this.#identify(raw);
    if (identity === undefined) return "unchanged";
    const { key, uid, resourceVersion } = identity;
    if (this.#forgotten.has(uid)) return "unchanged";
    // Everything up to `told` is in the store. If this is not, then it was deleted since, and nothing would remove it again.
    const order = this.#told === undefined ? undefined : compareVersions(resourceVersion, this.#told);
    if (order !== undefined && order <= 0) return "unchanged";
    if (this.#undoes(identity)) return "unchanged";
    if (!this.#isShort(identity)) return "full";
    const held = this.#read(raw, identity);
    if (held === undefined) return "unchanged";
    if (!this.#hasRoom(key, held)) return "full";
    this.#absorbed.set(key, { resourceVersion, round: this.#round });
    if (canWatchFrom(resourceVersion)) this.#seen = newerOf(this.#seen, resourceVersion);
    this.#unreadable.delete(key);
    return this.#put(key, held) ? "changed" : "unchanged";
  }

  /** Takes out what we deleted, and remembers it, so that late messages do not bring it back. */
  forget(key: string, uid: string | undefined): Outcome {
    const held = this.#objects.get(key);
    const gone = uid ?? held?.uid ?? "";
    if (gone !== "") {
      this.#forgotten.delete(gone); // to the end of the row: it is the youngest again
      this.#forgotten.set(gone, this.#round);
      for (const oldest of this.#forgotten.keys()) {
        if (this.#forgotten.size <= forgottenMax) break;
        this.#forgotten.delete(oldest);
      }
    }
    if (held === undefined || held.uid !== (uid ?? held.uid)) return "unchanged";
    return this.#drop(key) ? "changed" : "unchanged";
  }

  #sighted(identity: Identity, raw: unknown): Outcome {
    const { key, uid } = identity;
    if (this.#undoes(identity)) return "unchanged";
    if (this.#forgotten.has(uid)) {
      this.#absorbed.delete(key);
      return "unchanged";
    }
    const held = this.#read(raw, identity);
    if (!this.#hasRoom(key, held)) return "full";
    this.#absorbed.delete(key);
    if (held !== undefined) {
      const wasUnreadable = this.#unreadable.delete(key);
      return this.#put(key, held) || wasUnreadable ? "changed" : "unchanged";
    }
    const isNew = !this.#unreadable.has(key);
    this.#unreadable.add(key);
    return this.#drop(key) || isNew ? "changed" : "unchanged";
  }

  #deleted(identity: Identity): Outcome {
    const { key, uid } = identity;
    this.#forgotten.delete(uid);
    if (this.#undoes(identity)) return "unchanged";
    this.#absorbed.delete(key);
    const held = this.#objects.get(key);
    if (held !== undefined && held.uid !== uid && held.uid !== "" && uid !== "") return "unchanged";
    const wasUnreadable = this.#unreadable.delete(key);
    return this.#drop(key) || wasUnreadable ? "changed" : "unchanged";
  }

  /** Forgets what a complete list makes obsolete: everything, if time went backwards on the server. */
  #retire(
    listing: Listing<F>,
    { resourceVersion, wentBackwards }: { readonly resourceVersion: string; readonly wentBackwards: boolean },
  ): void {
    for (const [uid, round] of this.#forgotten) {
      if (wentBackwards || round < listing.round) this.#forgotten.delete(uid);
    }
    for (const [key, { uid }] of listing.gathered) if (this.#forgotten.has(uid)) listing.gathered.delete(key);
    for (const [key, write] of this.#absorbed) {
      const order = compareVersions(write.resourceVersion, resourceVersion);
      const isNewer = order === undefined ? write.round === listing.round : order > 0;
      if (wentBackwards || !isNewer) this.#absorbed.delete(key);
    }
  }

  /** Whether a message is older than a write of ours to the same name, whichever object had it then. */
  #undoes({ key, resourceVersion }: Identity): boolean {
    const write = this.#absorbed.get(key);
    return write !== undefined && isOlder(resourceVersion, write.resourceVersion);
  }

  #hasRoom(key: string, held: Held<F> | undefined): boolean {
    const before = this.#objects.get(key);
    const isKnown = before !== undefined || this.#unreadable.has(key);
    if (!isKnown && !this.#mayCount(this.#objects.size + this.#unreadable.size + 1)) return false;
    return this.#mayTake((held?.bytes ?? 0) - (before?.bytes ?? 0));
  }

  #mayCount(objects: number): boolean {
    const { budgets, objects: name } = this.#options;
    return objects <= budgets[name] || this.#refuse(name, objects);
  }

  /** Whether there is room for so many bytes more; whatever makes it less may always be taken in. */
  #mayTake(moreBytes: number): boolean {
    const { budgets, room } = this.#options;
    if (room === undefined || moreBytes <= 0) return true;
    const bytes = room.bytes + moreBytes;
    return bytes <= budgets["facts-bytes"] || this.#refuse("facts-bytes", bytes);
  }

  #isShort({ longest }: Identity): boolean {
    return longest <= this.#options.budgets["name-characters"] || this.#refuse("name-characters", longest);
  }

  #refuse(name: BudgetName, seen: number): false {
    this.#excess = overBudget(name, seen, this.#options.budgets);
    return false;
  }

  #tell(resourceVersion: string): void {
    if (!canWatchFrom(resourceVersion)) return;
    this.#told = newerOf(this.#told, resourceVersion);
    this.#seen = newerOf(this.#seen, resourceVersion);
  }

  #put(key: string, held: Held<F>): boolean {
    const before = this.#objects.get(key);
    if (before === held) return false;
    this.#count(held.bytes - (before?.bytes ?? 0));
    this.#own().set(key, held);
    return before === undefined || before.uid !== held.uid || !this.#same(before.fact, held.fact);
  }

  #drop(key: string): boolean {
    const held = this.#objects.get(key);
    if (held === undefined) return false;
    this.#count(-held.bytes);
    return this.#own().delete(key);
  }

  #count(bytes: number): void {
    this.#bytes += bytes;
    if (this.#options.room !== undefined) this.#options.room.bytes += bytes;
  }

  #own(): Map<string, Held<F>> {
    if (this.#lent) {
      this.#objects = new Map(this.#objects);
      this.#lent = false;
    }
    return this.#objects;
  }

  /** By name and namespace alone: what a label selector left out may be on its way out. */
  #isAskedFor(raw: unknown): boolean {
    const { namespace, fieldSelector } = this.#options.scope ?? {};
    const isAsked = inScope(raw, {
      ...(namespace === undefined ? {} : { namespace }),
      ...(fieldSelector === undefined ? {} : { fieldSelector }),
    });
    if (!isAsked) this.#options.onFault("unasked", "its name or namespace is another one");
    return isAsked;
  }

  #identify(raw: unknown): Identity | undefined {
    const metadata = fieldsOf(fieldsOf(raw)["metadata"]);
    const name = textOf(metadata["name"]);
    const namespace = textOf(metadata["namespace"]);
    if (name === undefined || (this.#options.namespaced && namespace === undefined)) {
      this.#options.onFault("unkeyed", `metadata.${name === undefined ? "name" : "namespace"} is missing`);
      return undefined;
    }
    const { workspaceOf, namespaced } = this.#options;
    const workspace = workspaceOf?.(raw);
    if (workspaceOf !== undefined && workspace === undefined) {
      this.#options.onFault("unkeyed", "the workspace is missing");
      return undefined;
    }
    const inside = namespaced ? `${namespace}/${name}` : name;
    const uid = textOf(metadata["uid"]) ?? "";
    const resourceVersion = textOf(metadata["resourceVersion"]) ?? "";
    const texts = [name, namespace, workspace, uid, resourceVersion];
    return {
      key: workspace === undefined ? inside : `${workspace}|${inside}`,
      uid,
      resourceVersion,
      longest: texts.reduce((most, text) => Math.max(most, text?.length ?? 0), 0),
    };
  }

  /** The fact of an object; if reading it fails, which is a bug of ours, what was last read of the same object. */
  #read(raw: unknown, { key, uid, resourceVersion }: Identity): Held<F> | undefined {
    try {
      const fact = this.#options.read(raw);
      return {
        fact,
        uid,
        resourceVersion,
        bytes: bytesOf(fact) + bytesOf(key) + bytesOf(uid) + bytesOf(resourceVersion),
      };
    } catch (error) {
      this.#options.onFault("read", messageOf(error));
      const before = this.#objects.get(key);
      return before?.uid === uid ? before : undefined;
    }
  }

  #same(a: F, b: F): boolean {
    try {
      return this.#options.same(a, b);
    } catch (error) {
      this.#options.onFault("same", messageOf(error));
      return false;
    }
  }
}

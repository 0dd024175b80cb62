// Watches: what happened since, what happens from now on, and a word now and then that nothing happened.

import { fieldsOf } from "../core/json.ts";
import type { Clock } from "../kube/runtime.ts";
import { expired, internal, type SimAnswer, type SimLine } from "./answer.ts";
import { apiVersionOfKind, type Kind } from "./kind.ts";
import { isInside, numberIn, revisionIn, type Selection } from "./read.ts";
import { isTrue } from "./route.ts";
import type { Change, Store } from "./store.ts";
import { tableOf, type TableWish } from "./table.ts";
import type { Fields } from "./value.ts";

/** How often a server says that nothing happened, and how long before the end of a watch. */
const bookmarkMs = 60_000;
const lastBookmarkMs = 2_000;
const timeoutDefaultMs = 1_800_000;

/** What a watch is opened with. */
export type Watching = {
  readonly selection: Selection;
  readonly query: URLSearchParams;
  readonly wish: TableWish | undefined;
};

const texts = new WeakMap<Fields, string>();

/** The JSON of an object, made once. */
export function objectText(object: Fields): string {
  const known = texts.get(object);
  if (known !== undefined) return known;
  const made = JSON.stringify(object);
  texts.set(object, made);
  return made;
}

/** The watches of one server. */
export class Watches {
  readonly #store: Store;
  readonly #clock: Pick<Clock, "nowMs" | "after">;
  readonly #open = new Set<Stream>();

  constructor(store: Store, clock: Pick<Clock, "nowMs" | "after">) {
    this.#store = store;
    this.#clock = clock;
  }

  /** How many are open. */
  get size(): number {
    return this.#open.size;
  }

  /** Ends all of them, as a server that goes down does. */
  endAll(): void {
    for (const stream of Array.from(this.#open)) stream.end();
  }

  open(watching: Watching): SimAnswer {
    const stated = watching.query.get("resourceVersion") ?? "";
    if (!/^\d*$/.test(stated)) {
      const why = `strconv.ParseUint: parsing ${JSON.stringify(stated)}: invalid syntax`;
      throw internal(`resourceVersion: Invalid value: ${JSON.stringify(stated)}: ${why}`);
    }
    const since = revisionIn(stated);
    numberIn(watching.query, "timeoutSeconds");
    const stream = new Stream(watching, this.#clock, () => this.#open.delete(stream));
    const { kind } = watching.selection;
    const floor = this.#store.floorOf(kind.storage);
    if (since > 0 && since < floor) {
      const { body } = expired(`too old resource version: ${since} (${floor})`).reply;
      stream.write(`{"type":"ERROR","object":${JSON.stringify(body)}}`);
      stream.end();
    } else {
      this.#open.add(stream);
      this.#begin(stream, watching, since);
    }
    const headers = { "content-type": "application/json" };
    return { kind: "watch", status: 200, headers, watch: stream };
  }

  #begin(stream: Stream, { selection, query }: Watching, since: number): void {
    const { kind, namespace } = selection;
    const sendsInitial = query.get("sendInitialEvents");
    const wantsInitial = sendsInitial === null ? since === 0 : isTrue(sendsInitial);
    if (wantsInitial) {
      for (const [key, stored] of this.#store.all(kind.storage)) {
        const object = kind.load(stored);
        if (isInside(key, namespace) && selection.selects(object)) stream.send("ADDED", object);
      }
      if (isTrue(sendsInitial)) stream.bookmark(this.#store.revision, true);
    } else for (const change of this.#store.since(kind.storage, since) ?? []) stream.hear(change);
    stream.listen(this.#store, since);
  }
}

class Stream {
  readonly #watching: Watching;
  readonly #clock: Pick<Clock, "nowMs" | "after">;
  readonly #onEnd: () => void;
  readonly #early: SimLine[] = [];
  #isFirstTable = true;
  #isOver = false;
  #deliver: ((line: SimLine) => void) | undefined;
  #finish: (() => void) | undefined;
  #callOff: readonly (() => void)[] = [];

  constructor(watching: Watching, clock: Pick<Clock, "nowMs" | "after">, onEnd: () => void) {
    this.#watching = watching;
    this.#clock = clock;
    this.#onEnd = onEnd;
  }

  readonly subscribe = (onLine: (line: SimLine) => void, onEnd: () => void): void => {
    this.#deliver = onLine;
    this.#finish = onEnd;
    for (const line of this.#early.splice(0)) onLine(line);
    if (this.#isOver) onEnd();
  };

  readonly cancel = (): void => {
    this.#deliver = undefined;
    this.#finish = undefined;
    this.#early.splice(0);
    this.end();
  };

  /** Hears of changes after a number from now on, and ends when its time is over. */
  listen(store: Store, since: number): void {
    const { query, selection } = this.#watching;
    const seconds = numberIn(query, "timeoutSeconds");
    const timeoutMs = seconds > 0 ? seconds * 1_000 : timeoutDefaultMs;
    const stop = store.listen(selection.kind.storage, (change) => {
      if (change.revision > since) this.hear(change);
    });
    const callOffEnd = this.#clock.after(timeoutMs, () => this.end());
    this.#callOff = [stop, callOffEnd];
    if (isTrue(query.get("allowWatchBookmarks"))) this.#promise(store, timeoutMs);
  }

  #promise(store: Store, leftMs: number): void {
    const inMs = Math.min(bookmarkMs, leftMs - lastBookmarkMs);
    if (inMs <= 0) return;
    const callOff = this.#clock.after(inMs, () => {
      this.bookmark(store.revision, false);
      this.#promise(store, leftMs - inMs);
    });
    this.#callOff = [...this.#callOff.slice(0, 2), callOff];
  }

  hear({ key, type, before, after }: Change): void {
    const { kind, namespace, selects } = this.#watching.selection;
    if (!isInside(key, namespace)) return;
    const [old, now] = [before === undefined ? undefined : kind.load(before), kind.load(after)];
    const [was, is] = [old !== undefined && selects(old), type !== "DELETED" && selects(now)];
    if (is) this.send(was ? "MODIFIED" : "ADDED", now);
    else if (was && old !== undefined) this.send("DELETED", type === "DELETED" ? now : stamped(old, now));
  }

  send(type: Change["type"], object: Fields): void {
    const { wish, selection } = this.#watching;
    if (wish === undefined) {
      this.write(`{"type":"${type}","object":${objectText(object)}}`);
      return;
    }
    const { resourceVersion } = fieldsOf(object["metadata"]);
    const table = tableOf(selection.kind, [object], {
      wish,
      nowMs: this.#clock.nowMs(),
      metadata: { resourceVersion },
      isFirst: this.#isFirstTable,
    });
    this.#isFirstTable = false;
    this.write(JSON.stringify({ type, object: table }));
  }

  bookmark(revision: number, isEndOfInitial: boolean): void {
    const object = bookmarkOf(this.#watching.selection.kind, revision, isEndOfInitial);
    this.write(JSON.stringify({ type: "BOOKMARK", object }));
  }

  write(line: SimLine): void {
    if (this.#isOver) return;
    if (this.#deliver === undefined) this.#early.push(line);
    else this.#deliver(line);
  }

  end(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    for (const callOff of this.#callOff) callOff();
    this.#onEnd();
    this.#finish?.();
  }
}

/** An object that left the selection, as it was, at the time of the change that made it leave. */
function stamped(object: Fields, after: Fields): Fields {
  const { resourceVersion } = fieldsOf(after["metadata"]);
  return { ...object, metadata: { ...fieldsOf(object["metadata"]), resourceVersion } };
}

function bookmarkOf(kind: Kind, revision: number, isEndOfInitial: boolean): Fields {
  const annotations = isEndOfInitial ? { annotations: { "k8s.io/initial-events-end": "true" } } : {};
  const metadata = { resourceVersion: String(revision), ...annotations };
  return { kind: kind.kind, apiVersion: apiVersionOfKind(kind), metadata };
}

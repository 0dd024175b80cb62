// A case: a story of requests, told to two servers, whose answers must be the same.

import { expect, test } from "vitest";
import type { Ask, OpenWatch, Target, Told } from "./conformance-target.ts";
import { normaliser } from "./conformance-normal.ts";
import { eventually } from "./eventually.ts";

/** What a case can do. What it is told is also written down, to be compared. */
export type Teller = {
  readonly ask: (method: string, path: string, body?: unknown, more?: Partial<Ask>) => Promise<Told>;
  /** Asks without writing down what it is told. */
  readonly quietly: (method: string, path: string) => Promise<void>;
  /** Waits until a path answers with a status: a real server does some things in the background, the simulated one does not. */
  readonly settle: (path: string, status: number) => Promise<void>;
  /** Opens a watch; it is closed at the end of the case at the latest. */
  readonly watch: (path: string, more?: Partial<Ask>) => Promise<OpenWatch>;
  /** Waits until a watch has told so many events, and writes them all down. */
  readonly events: (watch: OpenWatch, count: number) => Promise<void>;
  /** Waits until a watch has told of an object of this name, and writes down everything before. */
  readonly until: (watch: OpenWatch, name: string) => Promise<void>;
  /** Waits until a watch is over, and writes down what it told. */
  readonly ended: (watch: OpenWatch) => Promise<void>;
};

/** A case by its name; `known` is the entry of docs/conformance.md that says in what the two differ, and then they must. */
export type Case = {
  readonly name: string;
  readonly run: (tell: Teller) => Promise<void>;
  readonly known?: string;
};

type Event = { readonly object?: { readonly metadata?: { readonly name?: string } } };
type Note = { readonly what: string; readonly status?: number; readonly body: unknown };

/** What one server says to a case, normalised. */
export async function story(target: Target, run: Case["run"]): Promise<readonly Note[]> {
  const notes: Note[] = [];
  const open: OpenWatch[] = [];
  const normal = normaliser();
  await target.reset();
  const teller: Teller = {
    ask: async (method, path, body, more = {}) => {
      const told = await target.ask({ method, path, ...(body === undefined ? {} : { body }), ...more });
      notes.push({ what: `${method} ${normalPath(path)}`, status: told.status, body: normal(told.body) });
      return told;
    },
    quietly: async (method, path) => {
      await target.ask({ method, path });
    },
    settle: async (path, status) => {
      const isThere = async (): Promise<boolean> => (await target.ask({ method: "GET", path })).status === status;
      await eventually(`${path} to answer ${status}`, isThere);
    },
    watch: async (path, more = {}) => {
      const watch = await target.watch({ method: "GET", path, ...more });
      notes.push({ what: `watch ${normalPath(path)}`, status: watch.status, body: undefined });
      open.push(watch);
      return watch;
    },
    events: async (watch, count) => {
      await eventually(
        `${count} events`,
        async () => {
          if (watch.events.length >= count) return true;
          throw new Error(`${target.name}: ${watch.events.length} of ${count}: ${JSON.stringify(watch.events)}`);
        },
        15_000,
      );
      notes.push({ what: "events", body: watch.events.map(normal) });
    },
    until: async (watch, name) => {
      const isNamed = (event: unknown): boolean => (event as Event).object?.metadata?.name === name;
      await eventually(`word of ${name}`, async () => watch.events.some(isNamed), 15_000);
      notes.push({ what: "events", body: watch.events.map(normal) });
    },
    ended: async (watch) => {
      await eventually("the end of a watch", async () => watch.isOver());
      // When a bookmark comes is the server's own affair.
      const told = watch.events.filter((event) => (event as { type?: string }).type !== "BOOKMARK");
      notes.push({ what: "ended", body: told.map(normal) });
    },
  };
  try {
    await run(teller);
  } finally {
    await Promise.all(open.map((watch) => watch.close()));
  }
  return notes;
}

const normalPath = (path: string): string =>
  path.replaceAll(/resourceVersion=\d+/g, "resourceVersion=<rv>").replaceAll(/continue=[^&]+/g, "continue=<token>");

/** Runs cases on both servers and compares what they say. */
export function compareCases(
  cases: readonly Case[],
  targets: () => { readonly real: Target; readonly sim: Target },
): void {
  for (const { name, run, known } of cases) {
    test(known === undefined ? name : `${name} (known to differ: ${known})`, async () => {
      const { real, sim } = targets();
      const expected = await story(real, run);
      const actual = await story(sim, run);
      if (known === undefined) expect(actual).toEqual(expected);
      else expect(actual).not.toEqual(expected);
    });
  }
}

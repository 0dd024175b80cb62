// Names in endpoints, resolved by us and written as addresses: one name that does not resolve stops Kilo on every node.

import type { Runtime } from "../kube/runtime.ts";

/** Asks for the addresses of a name; rejects if there are none. */
export type Lookup = (name: string) => Promise<readonly string[]>;

/** What names resolve to. */
export type Resolver = {
  /** Asks for these names from now on, and for no others. */
  readonly want: (names: readonly string[]) => void;
  /** The answers so far; a name that does not resolve keeps its last answer for an hour. */
  readonly answers: () => ReadonlyMap<string, string>;
  /** Whether every wanted name has been asked for once. */
  readonly isSettled: () => boolean;
};

const refreshMs = 60_000;
const keepMs = 3_600_000;
const namesMax = 10_000;
const concurrencyMax = 16;

type Entry = { address?: string; answeredMs: number; askedMs: number | undefined; asking: boolean };

/** Resolves in the background; `onChange` when an answer changes. */
export function startResolver(lookup: Lookup, runtime: Runtime, onChange: () => void, signal: AbortSignal): Resolver {
  const entries = new Map<string, Entry>();
  let known: ReadonlyMap<string, string> = new Map();
  let asking = 0;

  const ask = async (name: string, entry: Entry): Promise<void> => {
    entry.asking = true;
    asking += 1;
    const first = entry.askedMs === undefined;
    const before = entry.address;
    try {
      const addresses = await lookup(name);
      const address = before !== undefined && addresses.includes(before) ? before : preferred(addresses);
      if (address !== undefined) {
        entry.address = address;
        entry.answeredMs = runtime.clock.monotonicMs();
      }
    } catch (error) {
      if (first) runtime.log.warn("name does not resolve", { name, error: String(error) });
    }
    if (runtime.clock.monotonicMs() - entry.answeredMs > keepMs) delete entry.address;
    entry.askedMs = runtime.clock.monotonicMs();
    entry.asking = false;
    asking -= 1;
    if (signal.aborted) return;
    if (entry.address !== before) known = collect(entries);
    if (first || entry.address !== before) onChange();
    tick();
  };

  const tick = (): void => {
    const now = runtime.clock.monotonicMs();
    for (const [name, entry] of entries) {
      if (asking >= concurrencyMax) return;
      if (entry.asking || (entry.askedMs !== undefined && now - entry.askedMs < refreshMs)) continue;
      void ask(name, entry);
    }
  };

  let cancel = runtime.clock.after(refreshMs / 2, repeat);
  signal.addEventListener("abort", () => cancel(), { once: true });

  function repeat(): void {
    tick();
    cancel = runtime.clock.after(refreshMs / 2, repeat);
  }

  return {
    want: (names) => {
      const wanted = new Set(names.slice(0, namesMax));
      let hasFewer = false;
      for (const name of entries.keys()) if (!wanted.has(name)) hasFewer = entries.delete(name);
      for (const name of wanted) {
        if (!entries.has(name)) entries.set(name, { answeredMs: 0, askedMs: undefined, asking: false });
      }
      if (hasFewer) known = collect(entries);
      tick();
    },
    answers: () => known,
    isSettled: () => [...entries.values()].every(({ askedMs }) => askedMs !== undefined),
  };
}

const preferred = (addresses: readonly string[]): string | undefined => {
  const sorted = [...addresses].sort((a, b) => (a < b ? -1 : a > b ? 1 : 0));
  return sorted.find((address) => !address.includes(":")) ?? sorted[0];
};

const collect = (entries: ReadonlyMap<string, Entry>): ReadonlyMap<string, string> =>
  new Map([...entries].flatMap(([name, { address }]) => (address === undefined ? [] : [[name, address] as const])));

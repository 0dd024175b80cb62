// Names in endpoints, resolved by us and written as addresses: one name that does not resolve stops Kilo on every node.
// Each cluster has a queue, slots and a quota of its own: names of one cluster, however many or slow, never delay those
// of another.

import type { ClusterId, NameQuota } from "../core/world.ts";
import type { Runtime } from "../kube/runtime.ts";

/** Asks for the addresses of a name; rejects if there are none. */
export type Lookup = (name: string) => Promise<readonly string[]>;

/** What names resolve to. */
export type Resolver = {
  /** Asks for these names of these clusters from now on, and for no others. */
  readonly want: (names: ReadonlyMap<ClusterId, readonly string[]>) => void;
  /** The answers so far; a name that does not resolve keeps its last answer for an hour. */
  readonly answers: () => ReadonlyMap<string, string>;
  /** Clusters with a name that is looked up and was never asked for so far. */
  readonly unsettled: () => readonly ClusterId[];
  /** Clusters that mention more names than are looked up for one of them. */
  readonly excess: () => ReadonlyMap<ClusterId, NameQuota>;
};

/** How many names are looked up for one cluster, if nothing else is said. */
export const namesPerCluster = 1_000;

const refreshMs = 60_000;
const keepMs = 3_600_000;
const logMs = 60_000;
const slotsPerCluster = 8;
const namesLogged = 5;

type Entry = { address?: string; answeredMs: number; askedMs: number | undefined; asking: boolean };

type Place = {
  readonly cluster: ClusterId;
  names: ReadonlySet<string>;
  wanted: number;
  /** Names that are due, in order. */
  queue: string[];
  asking: number;
  failed: { count: number; names: string[]; error: string };
  loggedMs: number | undefined;
};

/** Resolves in the background; `onChange` when an answer changes. */
export function startResolver(
  lookup: Lookup,
  runtime: Runtime,
  onChange: () => void,
  signal: AbortSignal,
  namesMax: number = namesPerCluster,
): Resolver {
  const { clock, log } = runtime;
  const entries = new Map<string, Entry>();
  const places = new Map<ClusterId, Place>();
  let known: ReadonlyMap<string, string> = new Map();
  let excess: ReadonlyMap<ClusterId, NameQuota> = new Map();

  const isDue = ({ asking, askedMs }: Entry): boolean =>
    !asking && (askedMs === undefined || clock.monotonicMs() - askedMs >= refreshMs);

  const ask = async (name: string, entry: Entry, place: Place): Promise<void> => {
    entry.asking = true;
    place.asking += 1;
    const first = entry.askedMs === undefined;
    const before = entry.address;
    try {
      const addresses = await lookup(name);
      const address = before !== undefined && addresses.includes(before) ? before : preferred(addresses);
      if (address !== undefined) {
        entry.address = address;
        entry.answeredMs = clock.monotonicMs();
      } else if (first) failed(place, name, "no address");
    } catch (error) {
      if (first) failed(place, name, String(error));
    }
    if (clock.monotonicMs() - entry.answeredMs > keepMs) delete entry.address;
    entry.askedMs = clock.monotonicMs();
    entry.asking = false;
    place.asking -= 1;
    if (signal.aborted) return;
    if (entry.address !== before && entries.get(name) === entry) {
      known = collect(entries);
      onChange();
    }
    pump(place);
  };

  const pump = (place: Place): void => {
    let next = 0;
    while (place.asking < slotsPerCluster && next < place.queue.length) {
      const name = place.queue[next] ?? "";
      const entry = entries.get(name);
      next += 1;
      if (entry !== undefined && place.names.has(name) && isDue(entry)) void ask(name, entry, place);
    }
    place.queue = place.queue.slice(next);
  };

  const fill = (place: Place): void => {
    place.queue = [...place.names].filter((name) => {
      const entry = entries.get(name);
      return entry !== undefined && isDue(entry);
    });
    pump(place);
  };

  /** One line per cluster and minute, however many names fail. */
  const failed = (place: Place, name: string, error: string): void => {
    place.failed.count += 1;
    place.failed.error = error;
    if (place.failed.names.length < namesLogged) place.failed.names.push(name);
    tell(place);
  };

  const tell = (place: Place): void => {
    const { count, names, error } = place.failed;
    if (count === 0 || (place.loggedMs !== undefined && clock.monotonicMs() - place.loggedMs < logMs)) return;
    log.warn("names of endpoints do not resolve", { cluster: place.cluster, count, names, error });
    place.loggedMs = clock.monotonicMs();
    place.failed = { count: 0, names: [], error: "" };
  };

  let cancel = clock.after(refreshMs / 2, repeat);
  signal.addEventListener("abort", () => cancel(), { once: true });

  function repeat(): void {
    for (const place of places.values()) {
      tell(place);
      fill(place);
    }
    cancel = clock.after(refreshMs / 2, repeat);
  }

  const placeOf = (cluster: ClusterId): Place => {
    const made: Place = places.get(cluster) ?? {
      cluster,
      names: new Set(),
      wanted: 0,
      queue: [],
      asking: 0,
      failed: { count: 0, names: [], error: "" },
      loggedMs: undefined,
    };
    places.set(cluster, made);
    return made;
  };

  const follow = (cluster: ClusterId, names: readonly string[]): void => {
    const place = placeOf(cluster);
    const wanted = new Set(names);
    if (wanted.size > namesMax && place.wanted <= namesMax) {
      log.warn("more names in endpoints than are looked up for one cluster", {
        cluster,
        names: wanted.size,
        max: namesMax,
      });
    }
    place.wanted = wanted.size;
    place.names = withinQuota(wanted, place.names, namesMax);
    for (const name of place.names) {
      if (entries.has(name)) continue;
      entries.set(name, { answeredMs: 0, askedMs: undefined, asking: false });
    }
  };

  return {
    want: (wanted) => {
      for (const [cluster, names] of wanted) follow(cluster, names);
      for (const [cluster, place] of places) {
        if (wanted.has(cluster)) continue;
        place.names = new Set();
        place.wanted = 0;
        if (place.asking === 0) places.delete(cluster);
      }
      const all = new Set<string>();
      for (const { names } of places.values()) for (const name of names) all.add(name);
      let hasFewer = false;
      for (const name of entries.keys()) if (!all.has(name)) hasFewer = entries.delete(name);
      if (hasFewer) known = collect(entries);
      excess = excessOf(places, namesMax, excess);
      for (const place of places.values()) fill(place);
    },
    answers: () => known,
    unsettled: () =>
      [...places.values()].flatMap(({ cluster, names }) =>
        [...names].some((name) => entries.get(name)?.askedMs === undefined) ? [cluster] : [],
      ),
    excess: () => excess,
  };
}

/** Names that were looked up stay; the others follow in the order they are given. */
function withinQuota(wanted: ReadonlySet<string>, before: ReadonlySet<string>, max: number): ReadonlySet<string> {
  if (wanted.size <= max) return wanted;
  const chosen = new Set([...before].filter((name) => wanted.has(name)));
  for (const name of wanted) {
    if (chosen.size >= max) break;
    chosen.add(name);
  }
  return chosen;
}

/** The same map while it says the same: the planner takes another one for news. */
function excessOf(
  places: ReadonlyMap<ClusterId, Place>,
  max: number,
  before: ReadonlyMap<ClusterId, NameQuota>,
): ReadonlyMap<ClusterId, NameQuota> {
  const found = new Map<ClusterId, NameQuota>();
  for (const { cluster, wanted } of places.values()) if (wanted > max) found.set(cluster, { names: wanted, max });
  const isSame =
    found.size === before.size && [...found].every(([cluster, { names }]) => before.get(cluster)?.names === names);
  return isSame ? before : found;
}

const preferred = (addresses: readonly string[]): string | undefined => {
  const sorted = [...addresses].sort((a, b) => (a < b ? -1 : a > b ? 1 : 0));
  return sorted.find((address) => !address.includes(":")) ?? sorted[0];
};

const collect = (entries: ReadonlyMap<string, Entry>): ReadonlyMap<string, string> =>
  new Map([...entries].flatMap(([name, { address }]) => (address === undefined ? [] : [[name, address] as const])));

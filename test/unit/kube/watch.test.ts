import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { defaultBudgets, overBudget } from "../../../src/core/budgets.ts";
import type { KubeFailure } from "../../../src/kube/failure.ts";
import { canWatchFrom, compareVersions, isOlder, newerOf } from "../../../src/kube/resource-version.ts";
import type { WatchEffect, WatchInput, WatchState } from "../../../src/kube/watch.ts";
import { startWatch, step, waitMaxMs } from "../../../src/kube/watch.ts";

const fail = (kind: Exclude<KubeFailure["kind"], "throttled" | "overBudget">): KubeFailure => ({ kind, detail: "" });
const throttled = (retryAfterMs: number): KubeFailure => ({ kind: "throttled", detail: "", retryAfterMs });
const listed = (resourceVersion = "10"): WatchInput => ({ type: "listed", resourceVersion });
const listFailed = (failure: KubeFailure): WatchInput => ({ type: "listFailed", failure });
const delivered = (resourceVersion: string): WatchInput => ({ type: "delivered", resourceVersion });
const closed = (livedMs = 60_000): WatchInput => ({ type: "closed", livedMs });
const watchFailed = (failure: KubeFailure, livedMs = 0): WatchInput => ({ type: "watchFailed", failure, livedMs });
const waited: WatchInput = { type: "waited" };

/** What the machine does, in short, when these things happen one after the other; waits are whole ones. */
function story(...inputs: readonly WatchInput[]): string[] {
  let { state } = startWatch();
  return inputs.map((input) => {
    const next = step(state, input, 1);
    state = next.state;
    return inShort(next.effect);
  });
}

const inShort = (effect: WatchEffect): string =>
  effect.do === "watch" ? `watch ${effect.resourceVersion}` : effect.do === "wait" ? `wait ${effect.ms}` : effect.do;

/** The waits of a failure that repeats itself until the machine would list, or for so many times. */
const waits = (input: WatchInput, times: number, ...first: readonly WatchInput[]): string[] =>
  story(...first, ...Array.from({ length: times }, () => [input, waited]).flat())
    .slice(first.length)
    .filter((_, index) => index % 2 === 0);

describe("step", () => {
  test("a budget that is exceeded is met with pauses that grow to two minutes, and always a list after them", () => {
    const excess = overBudget("objects.nodes", 6_000, defaultBudgets);
    const wholeWaits = ["wait 2000", "wait 4000", "wait 8000", "wait 16000", "wait 32000", "wait 64000", "wait 120000"];
    expect(waits(listFailed(excess), 8)).toEqual([...wholeWaits, "wait 120000"]);
    // Between two lines that are too long the watch delivers, and each list is good: neither makes it start over.
    const round = [listed(), delivered("11"), watchFailed(excess, 5_000), waited];
    expect(story(...round, ...round, ...round).filter((effect) => effect.startsWith("wait"))).toEqual([
      "wait 2000",
      "wait 4000",
      "wait 8000",
    ]);
    expect(story(...round).at(-1)).toBe("list");
    const quiet = [listed(), watchFailed(fail("unreachable"), 60_000), waited, watchFailed(excess), waited];
    expect(story(...round, ...quiet).filter((effect) => effect === "wait 2000")).toHaveLength(2);
  });

  test("begins with a list", () => {
    expect(startWatch()).toMatchObject({ state: { at: "listing" }, effect: { do: "list" } });
  });

  test("watches from where the list was taken", () => {
    expect(story(listed("7"))).toEqual(["watch 7"]);
  });

  test.each(["", "0"])("never watches from %j: a server would say nothing of what was deleted", (version) => {
    expect(story(listed(version), waited)).toEqual(["wait 100", "list"]);
    expect(story(listed("10"), delivered(version), closed())).toEqual(["watch 10", "nothing", "watch 10"]);
  });

  test("goes on at once, from the last version, when the server closes the watch in good order", () => {
    expect(story(listed("10"), delivered("11"), delivered("15"), closed())).toEqual([
      "watch 10",
      "nothing",
      "nothing",
      "watch 15",
    ]);
  });

  test("versions that come out of order do not move it back", () => {
    expect(story(listed("10"), delivered("15"), delivered("9"), closed()).at(-1)).toBe("watch 15");
    expect(story(listed("99"), delivered("100"), closed()).at(-1)).toBe("watch 100");
  });

  test("versions that are no numbers are taken as they come", () => {
    expect(story(listed("b"), delivered("a"), closed()).at(-1)).toBe("watch a");
  });

  test("a server that closes each watch at once is given pauses from the third time on, and listed in the end", () => {
    const quick = closed(999);
    expect(
      story(listed("10"), quick, quick, quick, waited, quick, waited, quick, waited, quick, waited, quick),
    ).toEqual([
      "watch 10",
      "watch 10",
      "watch 10",
      "wait 100",
      "watch 10",
      "wait 200",
      "watch 10",
      "wait 400",
      "watch 10",
      "wait 800",
      "watch 10",
      "wait 1600",
    ]);
    expect(
      story(listed("10"), quick, quick, ...Array.from({ length: 5 }, () => [quick, waited]).flat()).slice(-2),
    ).toEqual(["wait 1600", "list"]);
  });

  test("a server that closes each watch after an event is given the shortest pause, and never listed for it", () => {
    const round = [delivered("11"), closed(5), waited];
    const effects = story(listed("10"), ...Array.from({ length: 20 }, () => round).flat());
    expect(new Set(effects.slice(7))).toEqual(new Set(["nothing", "wait 100", "watch 11"]));
  });

  test("a watch that lived for a second ends a row of those closed at once", () => {
    const quick = closed(0);
    expect(story(listed(), quick, quick, closed(1_000), quick, quick).slice(1)).toEqual(
      Array.from({ length: 5 }, () => "watch 10"),
    );
  });

  test("gone: lists at once the first time, and after growing pauses when it repeats itself", () => {
    const gone = watchFailed(fail("gone"));
    expect(story(listed(), gone, listed("20"), gone, waited, listed("30"), gone, waited, listed("40"), gone)).toEqual([
      "watch 10",
      "list",
      "watch 20",
      "wait 100",
      "list",
      "watch 30",
      "wait 200",
      "list",
      "watch 40",
      "wait 400",
    ]);
  });

  test("gone after a single event each time is no reason to list without pause", () => {
    const gone = watchFailed(fail("gone"));
    expect(story(listed(), delivered("11"), gone, listed("20"), delivered("21"), gone).at(-1)).toBe("wait 100");
  });

  test("gone after a watch that held for a while is the first time again", () => {
    const gone = watchFailed(fail("gone"), 5_000);
    expect(story(listed(), gone, listed(), gone, listed(), gone)).toEqual([
      "watch 10",
      "list",
      "watch 10",
      "list",
      "watch 10",
      "list",
    ]);
  });

  test("a list whose continue token expired begins anew at once, and repeated after pauses", () => {
    expect(story(listFailed(fail("gone")), listFailed(fail("gone")), waited, listFailed(fail("gone")))).toEqual([
      "list",
      "wait 100",
      "list",
      "wait 200",
    ]);
  });

  test.each(["notFound", "invalid", "exists", "conflict"] as const)("%s on a watch: lists again", (kind) => {
    expect(story(listed(), watchFailed(fail(kind)))).toEqual(["watch 10", "list"]);
  });

  test.each(["unreachable", "garbled", "unauthorized", "forbidden"] as const)(
    "%s on a watch: resumes from the last version after a growing pause, and lists after the fifth time",
    (kind) => {
      const broken = watchFailed(fail(kind));
      expect(story(listed(), delivered("12"), broken, waited, broken, waited, broken, waited, broken, waited)).toEqual([
        "watch 10",
        "nothing",
        "wait 100",
        "watch 12",
        "wait 200",
        "watch 12",
        "wait 400",
        "watch 12",
        "wait 800",
        "watch 12",
      ]);
      expect(waits(broken, 5, listed())).toEqual(["wait 100", "wait 200", "wait 400", "wait 800", "wait 1600"]);
      expect(story(listed(), ...Array.from({ length: 5 }, () => [broken, waited]).flat()).at(-1)).toBe("list");
    },
  );

  test.each([
    ["delivered something", [delivered("11"), watchFailed(fail("unreachable"))]],
    ["lived for 5 s", [watchFailed(fail("unreachable"), 5_000)]],
  ])("a watch that %s ends a row of failures", (_, good) => {
    const broken = watchFailed(fail("unreachable"));
    const effects = story(listed(), broken, waited, broken, waited, broken, waited, ...good);
    expect(effects.at(-1)).toBe("wait 100");
  });

  test("a list ends a row of failures", () => {
    const effects = story(listFailed(fail("unreachable")), waited, listFailed(fail("unreachable")), waited, listed());
    expect(effects).toEqual(["wait 100", "list", "wait 200", "list", "watch 10"]);
    expect(story(listFailed(fail("garbled")), waited, listed(), watchFailed(fail("unreachable"))).at(-1)).toBe(
      "wait 100",
    );
  });

  test("a server that lists but cannot be watched is listed less and less often", () => {
    const broken = watchFailed(fail("unreachable"));
    const round = [...Array.from({ length: 5 }, () => [broken, waited]).flat(), listed()];
    const effects = story(listed(), ...Array.from({ length: 12 }, () => round).flat());
    const before = effects.flatMap((effect, index) => (effect === "list" ? [effects[index - 1]] : []));
    expect(before).toEqual([
      "wait 1600",
      "wait 1600",
      "wait 1600",
      "wait 1600",
      "wait 1600",
      "wait 3200",
      "wait 6400",
      "wait 12800",
      "wait 25600",
      "wait 30000",
      "wait 30000",
      "wait 30000",
    ]);
  });

  test.each([
    ["unreachable", 30_000],
    ["garbled", 30_000],
    ["invalid", 30_000],
    ["unauthorized", 60_000],
    ["forbidden", 60_000],
    ["notFound", 5_000],
  ] as const)("%s on a list: pauses double up to %i ms", (kind, maxMs) => {
    const all = waits(listFailed(fail(kind)), 15).map((wait) => Number(wait.slice(5)));
    expect(all.slice(0, 5)).toEqual([100, 200, 400, 800, 1_600]);
    expect(all.at(-1)).toBe(maxMs);
    expect(all).toEqual(all.toSorted((a, b) => a - b));
  });

  test("throttled: waits as long as it is asked to and its own pause, but not for ever", () => {
    expect(story(listFailed(throttled(7_000)))).toEqual(["wait 7100"]);
    expect(story(listed(), watchFailed(throttled(7_000)), waited)).toEqual(["watch 10", "wait 7100", "watch 10"]);
    expect(story(listFailed(throttled(86_400_000)))).toEqual(["wait 300100"]);
    expect(story(listFailed(throttled(Number.NaN)))).toEqual(["wait 100"]);
    expect(story(listFailed(throttled(-5)))).toEqual(["wait 100"]);
  });

  test("a pause lies between half and the whole", () => {
    const wait = (random: number) => step(startWatch().state, listFailed(fail("unreachable")), random).effect;
    expect(wait(0)).toEqual({ do: "wait", ms: 50 });
    expect(wait(0.5)).toEqual({ do: "wait", ms: 75 });
  });

  test("what does not fit the state changes nothing", () => {
    const { state } = startWatch();
    for (const input of [delivered("5"), closed(), watchFailed(fail("gone")), waited])
      expect(step(state, input, 0)).toEqual({ state, effect: { do: "nothing" } });
  });
});

const alphabet: readonly WatchInput[] = [
  listed("10"),
  listed("5"),
  listed("0"),
  listFailed(fail("unreachable")),
  listFailed(fail("gone")),
  delivered("12"),
  delivered("7"),
  closed(0),
  closed(60_000),
  watchFailed(fail("gone")),
  watchFailed(fail("unreachable"), 0),
  watchFailed(throttled(1_000), 60_000),
  waited,
];

/** What has been promised, followed beside the machine. */
type Promised = { readonly seen: string | undefined; readonly mustList: boolean };

/** Checks one step against every promise, and answers with what is promised next. */
function check(before: WatchState, input: WatchInput, promised: Promised, random: number): [WatchState, Promised] {
  const { state, effect } = step(before, input, random);
  let { seen, mustList } = promised;
  if (before.at === "listing" && input.type === "listed" && canWatchFrom(input.resourceVersion)) {
    seen = input.resourceVersion;
    mustList = false;
  }
  if (before.at === "watching") {
    if (input.type === "delivered" && canWatchFrom(input.resourceVersion)) seen = newerOf(seen, input.resourceVersion);
    if (input.type === "watchFailed" && input.failure.kind === "gone") mustList = true;
  }
  if (effect.do === "watch") {
    if (!canWatchFrom(effect.resourceVersion)) throw new Error("watched without a resourceVersion");
    if (seen === undefined || isOlder(effect.resourceVersion, seen)) throw new Error("resumed before what it had seen");
    if (mustList) throw new Error("resumed what is gone");
  }
  if (effect.do === "list") mustList = false;
  if (effect.do === "wait" && !(effect.ms > 0 && effect.ms <= waitMaxMs)) throw new Error(`waits ${effect.ms} ms`);
  const expected = { list: "listing", watch: "watching", wait: "waiting", nothing: before.at }[effect.do];
  if (state.at !== expected) throw new Error(`${effect.do} in ${state.at}`);
  return [state, { seen, mustList }];
}

describe("whatever happens", () => {
  test("in every sequence of six inputs the promises hold", () => {
    let paths = 0;
    const walk = (state: WatchState, promised: Promised, left: number): void => {
      paths += 1;
      if (left === 0) return;
      for (const input of alphabet) {
        const [next, then] = check(state, input, promised, 0.5);
        if (next === state) continue; // did not fit: nothing changed
        walk(next, then, left - 1);
      }
    };
    walk(startWatch().state, { seen: undefined, mustList: false }, 6);
    expect(paths).toBeGreaterThan(10_000);
  });

  test("in long random histories the promises hold", () => {
    const version = fc.oneof(fc.nat(50).map(String), fc.constantFrom("", "0", "18446744073709551616", "a-b"));
    const failure = fc.oneof(
      fc.constantFrom(...(["unreachable", "unauthorized", "forbidden", "notFound", "exists"] as const)).map(fail),
      fc.constantFrom(...(["conflict", "gone", "invalid", "garbled"] as const)).map(fail),
      fc.double().map(throttled),
    );
    const livedMs = fc.constantFrom(0, 999, 1_000, 4_999, 5_000, 600_000);
    const input: fc.Arbitrary<WatchInput> = fc.oneof(
      version.map(listed),
      failure.map(listFailed),
      version.map(delivered),
      livedMs.map(closed),
      fc.tuple(failure, livedMs).map(([why, ms]) => watchFailed(why, ms)),
      fc.constant(waited),
    );
    const random = fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true });
    fc.assert(
      fc.property(fc.array(fc.tuple(input, random), { maxLength: 200 }), (history) => {
        let state = startWatch().state;
        let promised: Promised = { seen: undefined, mustList: false };
        for (const [next, chance] of history) [state, promised] = check(state, next, promised, chance);
      }),
      { seed: 20261115, numRuns: 1_000 },
    );
  });
});

describe("compareVersions", () => {
  test.each([
    ["9", "10", -1],
    ["10", "9", 1],
    ["10", "10", 0],
    ["18446744073709551615", "18446744073709551616", -1],
  ])("%s and %s", (a, b, sign) => {
    expect(Math.sign(compareVersions(a, b) ?? Number.NaN)).toBe(sign);
  });

  test.each(["", "0", "007", "a", "1.5", "-1"])("%j cannot be put in order, and is older than nothing", (version) => {
    expect(compareVersions(version, "5")).toBeUndefined();
    expect(isOlder(version, "5")).toBe(false);
    expect(isOlder("5", version)).toBe(false);
  });
});

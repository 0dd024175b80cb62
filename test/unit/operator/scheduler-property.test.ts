import * as fc from "fast-check";
import { expect, test } from "vitest";
import { createScheduler, type Outcome } from "../../../src/operator/scheduler.ts";
import { VirtualClock } from "../../../src/sim/virtual-clock.ts";

type Step =
  | { readonly do: "add"; readonly key: string; readonly delayMs: number }
  | { readonly do: "remove"; readonly key: string }
  | { readonly do: "advance"; readonly ms: number };

type Behaviour = { readonly ms: number; readonly end: Outcome | "throw" };

const keys = ["plan", "report/a", "report/b", "converge/a", "converge/b", "converge/c", "converge/d"];
const anyKey = fc.constantFrom(...keys);
const anyStep: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({ do: fc.constant("add"), key: anyKey, delayMs: fc.constantFrom(0, 0, 0, 5, 400) }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("remove"), key: anyKey }) },
  { weight: 4, arbitrary: fc.record({ do: fc.constant("advance"), ms: fc.constantFrom(0, 1, 7, 90, 250, 1_300) }) },
);
const anyBehaviour: fc.Arbitrary<Behaviour> = fc.record({
  ms: fc.constantFrom(0, 0, 3, 50, 260, 15_000),
  end: fc.constantFrom<Outcome | "throw">({}, {}, {}, { again: "now" }, { again: "backoff" }, { again: 80 }, "throw"),
});

const gatherMs = 250;
const concurrency = 3;
const lanes = (key: string) =>
  key.startsWith("converge/") ? { lane: "converge", max: 2 } : { lane: "other", max: concurrency };

type Event = { readonly what: "add" | "remove" | "start" | "end" | "fail"; readonly key: string; readonly ms: number };

async function play(steps: readonly Step[], behaviours: readonly Behaviour[], chance: readonly number[]) {
  let rolls = 0;
  const clock = new VirtualClock();
  const left = [...behaviours];
  const events: Event[] = [];
  const note = (what: Event["what"], key: string): void => void events.push({ what, key, ms: clock.monotonicMs() });
  const scheduler = createScheduler({
    runtime: { clock, random: () => chance[(rolls += 1) % chance.length] ?? 0 },
    signal: new AbortController().signal,
    onError: () => {},
    concurrency,
    gatherMs,
    lanes,
    run: async (key) => {
      note("start", key);
      const { ms, end } = left.shift() ?? { ms: 1, end: {} };
      if (ms > 0) await clock.sleep(ms);
      note(end === "throw" || end.again === "backoff" ? "fail" : "end", key);
      if (end === "throw") throw new Error("broken invariant: a test");
      return end;
    },
  });
  for (const step of steps) {
    if (step.do === "advance") await clock.advance(step.ms);
    else {
      note(step.do, step.key);
      if (step.do === "add") scheduler.add(step.key, { delayMs: step.delayMs });
      else scheduler.remove(step.key);
    }
  }
  await clock.advance(20 * 60_000);
  return { events, held: scheduler.size(), timers: clock.pending };
}

test("whatever is added, removed, slow or failing: one run per key, a run after every add, lanes within limits", async () => {
  const script = fc.tuple(
    fc.array(anyStep, { maxLength: 60, size: "max" }),
    fc.array(anyBehaviour, { maxLength: 40, size: "max" }),
    fc.array(fc.double({ min: 0, max: 0.999, noNaN: true }), { minLength: 1, maxLength: 5 }),
  );
  let met = 0;
  const property = fc.asyncProperty(script, async ([steps, behaviours, chance]) => {
    const { events, held, timers } = await play(steps, behaviours, chance);
    const running = new Set<string>();
    const notBeforeMs = new Map<string, number>();
    for (const [index, { what, key, ms }] of events.entries()) {
      if (what === "start") {
        expect(running, "one key once at a time").not.toContain(key);
        expect(ms, "starts are a window apart").toBeGreaterThanOrEqual(notBeforeMs.get(key) ?? 0);
        notBeforeMs.set(key, ms + gatherMs);
        running.add(key);
        // One more than the concurrency only if it is the first of its lane.
        const beside = [...running].filter((other) => lanes(other).lane === lanes(key).lane).length;
        expect(running.size).toBeLessThanOrEqual(beside === 1 ? concurrency + 1 : concurrency);
        expect([...running].filter((other) => lanes(other).lane === "converge").length).toBeLessThanOrEqual(2);
      } else if (what === "end") running.delete(key);
      else if (what === "fail") {
        running.delete(key);
        // A back-off may be shorter than the window, and counts for nothing if the key was removed meanwhile.
        if (notBeforeMs.has(key)) notBeforeMs.set(key, ms + 25);
      } else if (what === "remove") notBeforeMs.delete(key);
      else if (what === "add") {
        const later = events.slice(index + 1).filter((event) => event.key === key);
        const next = later.find((event) => event.what === "start" || event.what === "remove");
        expect(next, `a run of ${key} after the add at ${ms}`).toBeDefined();
        met += next?.what === "start" ? 1 : 0;
      }
    }
    expect([running.size, held, timers], "nothing is left over").toEqual([0, 0, 0]);
  });
  await fc.assert(property, { numRuns: 250, seed: 20261115 });
  expect(met).toBeGreaterThan(1_500);
}, 60_000);

test("nobody starves: with keys that never stop asking, every other key runs within one round", async () => {
  const property = fc.asyncProperty(
    fc.integer({ min: 1, max: 5 }),
    fc.integer({ min: 1, max: 30 }),
    fc.integer({ min: 1, max: 3 }),
    async (hogs, others, slots) => {
      const clock = new VirtualClock();
      const started = new Map<string, number>();
      const scheduler = createScheduler({
        runtime: { clock, random: () => 0.5 },
        signal: new AbortController().signal,
        onError: () => {},
        concurrency: slots,
        gatherMs: 0,
        run: async (key) => {
          if (!started.has(key)) started.set(key, clock.monotonicMs());
          await clock.sleep(10);
          return key.startsWith("hog") ? { again: "now" } : {};
        },
      });
      for (let index = 0; index < hogs; index += 1) scheduler.add(`hog${index}`);
      await clock.advance(95);
      for (let index = 0; index < others; index += 1) scheduler.add(`other${index}`);
      await clock.advance(2_000);
      for (let index = 0; index < others; index += 1) {
        const boundMs = 95 + 10 * (Math.ceil((hogs + index + 1) / slots) + 1);
        expect(started.get(`other${index}`)).toBeLessThanOrEqual(boundMs);
      }
    },
  );
  await fc.assert(property, { numRuns: 100, seed: 20261115 });
}, 60_000);

test("the same script is played the same way every time", async () => {
  const script = fc.tuple(
    fc.array(anyStep, { maxLength: 40, size: "max" }),
    fc.array(anyBehaviour, { maxLength: 20, size: "max" }),
  );
  const property = fc.asyncProperty(script, async ([steps, behaviours]) => {
    expect(await play(steps, behaviours, [0.3])).toEqual(await play(steps, behaviours, [0.3]));
  });
  await fc.assert(property, { numRuns: 50, seed: 20261115 });
}, 60_000);

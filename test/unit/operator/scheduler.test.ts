import { describe, expect, test } from "vitest";
import { createScheduler, type Outcome, type SchedulerOptions } from "../../../src/operator/scheduler.ts";
import { settled, VirtualClock } from "../../../src/sim/virtual-clock.ts";

/** A scheduler with a written record: `12 +a` is a start at 12 ms, `20 -a` an end. */
function setUp(options: Partial<SchedulerOptions> & { readonly random?: number } = {}) {
  const clock = new VirtualClock();
  const nowMs = clock.monotonicMs;
  const controller = new AbortController();
  const lines: string[] = [];
  const errors: string[] = [];
  const { run = (): Promise<Outcome> => Promise.resolve({}) } = options;
  const scheduler = createScheduler({
    runtime: { clock, random: () => options.random ?? 0.5 },
    signal: controller.signal,
    onError: (key, error) => errors.push(`${key}: ${error instanceof Error ? error.message : String(error)}`),
    ...options,
    run: async (key, signal) => {
      lines.push(`${nowMs()} +${key}`);
      const outcome = await run(key, signal);
      lines.push(`${nowMs()} -${key}`);
      return outcome;
    },
  });
  const starts = (): string[] => lines.filter((line) => line.includes("+"));
  const lasting =
    (ms: number, outcome: Outcome = {}) =>
    async (): Promise<Outcome> => {
      await clock.sleep(ms);
      return outcome;
    };
  const advance = (ms: number): Promise<void> => clock.advance(ms);
  return { clock, nowMs, advance, timers: () => clock.pending, scheduler, controller, lines, errors, starts, lasting };
}

/** A scheduler whose runs all take so long and end so. */
function setUpLasting(ms: number, outcome: Outcome = {}, options: Partial<SchedulerOptions> = {}) {
  const world: ReturnType<typeof setUp> = setUp({ ...options, run: () => world.lasting(ms, outcome)() });
  return world;
}

describe("add", () => {
  test("the first add of a key starts at once, without any time passing", async () => {
    const { scheduler, starts } = setUp();
    scheduler.add("a");
    expect(starts()).toEqual([]);
    await settled();
    expect(starts()).toEqual(["0 +a"]);
  });

  test("what follows within the window of the last start is gathered into one run at its end", async () => {
    const { scheduler, advance, starts } = setUp();
    scheduler.add("a");
    await advance(10);
    scheduler.add("a");
    await advance(100);
    scheduler.add("a");
    await advance(1_000);
    scheduler.add("a");
    await advance(0);
    expect(starts()).toEqual(["0 +a", "250 +a", "1110 +a"]);
  });

  test("an add while its key runs is one more run afterwards, never a second at the same time", async () => {
    const { scheduler, advance, lines } = setUpLasting(400);
    scheduler.add("a");
    await advance(100);
    scheduler.add("a");
    scheduler.add("a");
    await advance(2_000);
    expect(lines).toEqual(["0 +a", "400 -a", "400 +a", "800 -a"]);
  });

  test("a delayed key is due then; an earlier wish wins, a later one does not", async () => {
    const { scheduler, advance, starts } = setUp();
    scheduler.add("a", { delayMs: 1_000 });
    scheduler.add("a", { delayMs: 5_000 });
    scheduler.add("b", { delayMs: 1_000 });
    await advance(500);
    scheduler.add("b");
    await advance(10_000);
    expect(starts()).toEqual(["500 +b", "1000 +a"]);
  });

  test("an add may ask for a window of its own, shorter or longer", async () => {
    const { scheduler, advance, starts } = setUp();
    scheduler.add("short");
    scheduler.add("long", { gatherMs: 1_000 });
    await advance(10);
    scheduler.add("short", { gatherMs: 0 });
    await advance(600);
    scheduler.add("long", { gatherMs: 1_000 });
    await advance(2_000);
    expect(starts()).toEqual(["0 +short", "0 +long", "10 +short", "1000 +long"]);
  });

  test("a new key beyond the limit is dropped and said once; known keys are still taken", async () => {
    const { scheduler, advance, errors, starts } = setUp({ keysMax: 2 });
    scheduler.add("a", { delayMs: 10 });
    scheduler.add("b", { delayMs: 10 });
    scheduler.add("c");
    scheduler.add("d");
    scheduler.add("a");
    await advance(300);
    scheduler.add("e");
    await advance(0);
    expect(errors).toEqual(["c: the queue is full: it holds 2 keys"]);
    expect(starts()).toEqual(["0 +a", "10 +b", "300 +e"]);
  });

  test("a key that was handled leaves nothing behind once its window is over", async () => {
    const { scheduler, advance, timers } = setUp();
    scheduler.add("a");
    await advance(100);
    expect([scheduler.size(), timers()]).toEqual([0, 1]);
    await advance(200);
    expect([scheduler.size(), timers()]).toEqual([0, 0]);
  });

  test("a delay that is no number is a fault of the caller", () => {
    expect(() => setUp().scheduler.add("a", { delayMs: Number.NaN })).toThrow("broken invariant");
  });
});

describe("outcomes", () => {
  test("now means another run as soon as the window allows", async () => {
    const { scheduler, advance, starts } = setUpLasting(100, { again: "now" });
    scheduler.add("a");
    await advance(600);
    expect(starts()).toEqual(["0 +a", "250 +a", "500 +a"]);
  });

  test("a number means another run after that time, counted from the end of this one", async () => {
    const { scheduler, advance, starts } = setUpLasting(100, { again: 1_000 });
    scheduler.add("a");
    await advance(2_500);
    expect(starts()).toEqual(["0 +a", "1100 +a", "2200 +a"]);
  });

  test.each([
    ["half", 0, [25, 75, 175, 375, 775, 1575]],
    ["nearly whole", 0.999_999, [50, 150, 350, 750, 1550, 3150]],
  ])("back-off doubles from 50 ms, by chance %s of it", async (_, random, expected) => {
    const { scheduler, advance, starts } = setUp({ random, run: () => Promise.resolve({ again: "backoff" }) });
    scheduler.add("a");
    await advance(3_200);
    const times = starts().map((line) => Math.round(Number.parseFloat(line)));
    expect(times.slice(0, 7)).toEqual([0, ...expected]);
  });

  test("back-off ends at 30 s", async () => {
    const { scheduler, advance, starts } = setUp({ random: 1, run: () => Promise.resolve({ again: "backoff" }) });
    scheduler.add("a");
    await advance(600_000);
    const times = starts().map((line) => Number.parseFloat(line));
    expect(times.slice(-3).map((time, index, last) => time - (last[index - 1] ?? time))).toEqual([0, 30_000, 30_000]);
  });

  test("an outcome without back-off starts the series anew", async () => {
    const outcomes: Outcome[] = [
      { again: "backoff" },
      { again: "backoff" },
      { again: 1_000 },
      { again: "backoff" },
      {},
    ];
    const { scheduler, advance, starts } = setUp({ random: 1, run: () => Promise.resolve(outcomes.shift() ?? {}) });
    scheduler.add("a");
    await advance(5_000);
    expect(starts()).toEqual(["0 +a", "50 +a", "150 +a", "1150 +a", "1200 +a"]);
  });

  test("an add during back-off is tried one second after the last failure at the soonest, then at once", async () => {
    const world = setUp({ random: 1, run: () => Promise.resolve({ again: "backoff" }) });
    world.scheduler.add("a");
    await world.advance(6_400); // started at 0, 50, 150, 350, 750, 1550, 3150, 6350; next at 12750
    world.lines.length = 0;
    world.scheduler.add("a");
    await world.advance(2_000);
    world.scheduler.add("a");
    world.scheduler.add("a");
    await world.advance(0);
    expect(world.starts()).toEqual(["7350 +a", "8400 +a"]);
  });

  test("an add while a run fails is tried a second later, not after the whole back-off", async () => {
    const { scheduler, advance, starts } = setUpLasting(
      500,
      { again: "backoff" },
      { backoff: { firstMs: 60_000, maxMs: 60_000 } },
    );
    scheduler.add("a");
    await advance(100);
    scheduler.add("a");
    await advance(3_000);
    expect(starts()).toEqual(["0 +a", "1500 +a"]);
  });

  test("a run that throws is reported once and tried again after a back-off; others go on", async () => {
    const outcomes: (() => Promise<Outcome>)[] = [
      () => {
        throw new Error("broken invariant: x");
      },
      () => Promise.resolve({ again: Number.NaN }),
    ];
    const { scheduler, advance, starts, errors } = setUp({
      random: 1,
      run: (key) => (key === "a" ? (outcomes.shift() ?? (() => Promise.resolve({})))() : Promise.resolve({})),
    });
    scheduler.add("a");
    scheduler.add("b");
    await advance(1_000);
    expect(errors).toEqual(["a: broken invariant: x", "a: broken invariant: an outcome names a real delay"]);
    expect(starts()).toEqual(["0 +a", "0 +b", "50 +a", "150 +a"]);
  });
});

describe("slots", () => {
  test("due keys run in the order they became due, so many at a time", async () => {
    const { scheduler, advance, lines } = setUpLasting(100, {}, { concurrency: 2 });
    for (const key of ["a", "b", "c", "d", "e"]) scheduler.add(key);
    await advance(50);
    expect([scheduler.size(), scheduler.due()]).toEqual([5, 3]);
    await advance(1_000);
    expect(lines.filter((line) => line.includes("+"))).toEqual(["0 +a", "0 +b", "100 +c", "100 +d", "200 +e"]);
  });

  test("sixteen run at once unless told otherwise", async () => {
    const { scheduler, starts } = setUpLasting(100);
    for (let index = 0; index < 40; index += 1) scheduler.add(`k${index}`);
    await settled();
    expect(starts()).toHaveLength(16);
  });

  test("hanging converge runs leave slots for planning and reports", async () => {
    const world: ReturnType<typeof setUp> = setUp({
      concurrency: 4,
      lanes: (key) => (key.startsWith("converge/") ? { lane: "converge", max: 3 } : { lane: "other", max: 4 }),
      run: (key) => world.lasting(key.startsWith("converge/") ? 15_000 : 5)(),
    });
    for (let index = 0; index < 10; index += 1) world.scheduler.add(`converge/${index}`);
    await world.advance(100);
    world.scheduler.add("plan");
    world.scheduler.add("report/m");
    await world.advance(50);
    expect(world.starts()).toEqual(["0 +converge/0", "0 +converge/1", "0 +converge/2", "100 +plan", "105 +report/m"]);
  });

  test("a lane that may take every slot still cannot keep another from running, one key at a time", async () => {
    const world: ReturnType<typeof setUp> = setUp({
      concurrency: 2,
      lanes: (key) => (key.startsWith("converge/") ? { lane: "converge", max: 64 } : { lane: "other", max: 8 }),
      run: (key) => world.lasting(key.startsWith("converge/") ? 15_000 : 5)(),
    });
    for (let index = 0; index < 4; index += 1) world.scheduler.add(`converge/${index}`);
    await world.advance(100);
    world.scheduler.add("plan");
    world.scheduler.add("report/m");
    await world.advance(50);
    expect(world.starts()).toEqual(["0 +converge/0", "0 +converge/1", "100 +plan", "105 +report/m"]);
  });

  test("a key that always wants more does not keep others from running", async () => {
    const world: ReturnType<typeof setUp> = setUp({
      concurrency: 1,
      gatherMs: 0,
      run: (key) => world.lasting(10, key === "hog" ? { again: "now" } : {})(),
    });
    world.scheduler.add("hog");
    world.scheduler.add("a");
    world.scheduler.add("b");
    await world.advance(45);
    expect(world.starts()).toEqual(["0 +hog", "10 +a", "20 +b", "30 +hog", "40 +hog"]);
  });

  test("a run that asks for itself without end still lets time pass", async () => {
    const { scheduler, advance, starts } = setUp({ gatherMs: 0, run: () => Promise.resolve({ again: "now" }) });
    scheduler.add("a");
    await advance(3);
    expect(starts()).toEqual(["0 +a", "1 +a", "2 +a", "3 +a"]);
  });

  test("a hundred thousand due keys are started in little time", async () => {
    const { scheduler, starts } = setUp();
    for (let index = 0; index < 100_000; index += 1) scheduler.add(`k${index}`);
    for (let index = 0; index < 50_000; index += 1) scheduler.remove(`k${index}`);
    const startedMs = performance.now();
    while (scheduler.due() > 0) await settled();
    expect(starts()).toHaveLength(50_000);
    expect(performance.now() - startedMs).toBeLessThan(20_000); // a queue that is quadratic takes minutes
  }, 60_000);
});

describe("remove", () => {
  test("a key that waits or is due does not run", async () => {
    const { scheduler, advance, starts } = setUpLasting(100, {}, { concurrency: 1 });
    scheduler.add("a");
    scheduler.add("b");
    scheduler.add("c", { delayMs: 10 });
    await advance(5);
    scheduler.remove("b");
    scheduler.remove("c");
    scheduler.remove("never added");
    await advance(1_000);
    expect(starts()).toEqual(["0 +a"]);
    expect(scheduler.size()).toBe(0);
  });

  test("the outcome of a run whose key was removed counts for nothing, but the key is not run twice at once", async () => {
    const { scheduler, advance, lines } = setUpLasting(100, { again: "backoff" }, { gatherMs: 10 });
    scheduler.add("a");
    await advance(50);
    scheduler.add("a");
    scheduler.remove("a");
    await advance(500);
    expect(lines).toEqual(["0 +a", "100 -a"]);
    scheduler.add("a");
    await advance(50);
    scheduler.remove("a");
    scheduler.add("a");
    await advance(60);
    expect(lines.slice(2)).toEqual(["550 +a", "650 -a", "650 +a"]);
  });
});

describe("the end", () => {
  test("idle waits for what is due or running, not for what is delayed", async () => {
    const { scheduler, advance, nowMs } = setUpLasting(100, {}, { concurrency: 1 });
    await scheduler.idle();
    scheduler.add("a");
    scheduler.add("b");
    scheduler.add("later", { delayMs: 60_000 });
    let idleMs = -1;
    void scheduler.idle().then(() => (idleMs = nowMs()));
    await advance(1_000);
    expect(idleMs).toBe(200);
  });

  test("draining takes nothing more, drops what waits and lets running ones end", async () => {
    const { scheduler, advance, starts, timers } = setUpLasting(100, { again: "now" }, { concurrency: 1 });
    scheduler.add("a");
    scheduler.add("b");
    scheduler.add("c", { delayMs: 10 });
    await advance(5);
    const drained = scheduler.drain(1_000);
    scheduler.add("d");
    await advance(2_000);
    expect(await drained).toBe(true);
    expect(starts()).toEqual(["0 +a"]);
    expect([scheduler.size(), timers()]).toEqual([0, 0]);
  });

  test("draining gives up on a run that does not end in time", async () => {
    const { scheduler, advance } = setUpLasting(60_000);
    scheduler.add("a");
    await advance(5);
    const drained = scheduler.drain(1_000);
    await advance(1_000);
    expect(await drained).toBe(false);
  });

  test("when the signal is aborted nothing starts any more, and aborted runs are no errors", async () => {
    const world: ReturnType<typeof setUp> = setUp({
      concurrency: 2,
      run: async (key, signal) => {
        if (key === "a") await world.clock.sleep(10_000, signal);
        else await world.clock.sleep(10);
        if (key === "b") throw new Error("a real fault");
        return {};
      },
    });
    world.scheduler.add("a");
    world.scheduler.add("b");
    world.scheduler.add("c");
    await world.advance(5);
    world.controller.abort();
    await world.advance(100);
    await world.scheduler.idle();
    expect(world.starts()).toEqual(["0 +a", "0 +b"]);
    expect(world.errors).toEqual(["b: a real fault"]);
    expect([world.scheduler.size(), world.timers()]).toEqual([0, 0]);
  });

  test("an AbortError without a shutdown is a fault", async () => {
    const { scheduler, advance, errors } = setUp({
      run: () => Promise.reject(new DOMException("This operation was aborted", "AbortError")),
    });
    scheduler.add("a");
    await advance(0);
    expect(errors).toEqual(["a: This operation was aborted"]);
  });

  test("a scheduler made after its end does nothing", async () => {
    const { scheduler, advance, starts } = setUp({ signal: AbortSignal.abort() });
    scheduler.add("a");
    await advance(10);
    expect([starts(), scheduler.size()]).toEqual([[], 0]);
  });
});

describe("observe", () => {
  test("says how long a key was due, how long it ran and how it ended", async () => {
    const seen: string[] = [];
    const { scheduler, advance } = setUpLasting(
      100,
      { again: 5_000 },
      {
        concurrency: 1,
        observe: {
          onStart: (key, queuedMs) => seen.push(`${key} waited ${queuedMs}`),
          onEnd: (key, ms, { again }) => seen.push(`${key} took ${ms}, again ${String(again)}`),
        },
      },
    );
    scheduler.add("a");
    scheduler.add("b");
    await advance(250);
    expect(seen).toEqual(["a waited 0", "a took 100, again 5000", "b waited 100", "b took 100, again 5000"]);
  });
});

import { describe, expect, test } from "vitest";
import { rateLimit, rateLimits } from "../../../src/kube/rate-limit.ts";
import type { Clock } from "../../../src/kube/runtime.ts";

/** A clock that only moves when it is told to. */
function handClock() {
  let nowMs = 0;
  let timers: { atMs: number; run: () => void }[] = [];
  const clock: Clock = {
    nowMs: () => nowMs,
    monotonicMs: () => nowMs,
    sleep: () => Promise.reject(new Error("not used")),
    after: (ms, run) => {
      const timer = { atMs: nowMs + ms, run };
      timers.push(timer);
      return () => {
        timers = timers.filter((other) => other !== timer);
      };
    },
  };
  const advance = async (ms: number): Promise<void> => {
    const endMs = nowMs + ms;
    for (;;) {
      const next = timers.filter(({ atMs }) => atMs <= endMs).toSorted((a, b) => a.atMs - b.atMs)[0];
      if (next === undefined) break;
      nowMs = next.atMs;
      timers = timers.filter((timer) => timer !== next);
      next.run();
      await Promise.resolve();
    }
    nowMs = endMs;
    await Promise.resolve();
  };
  return { clock, advance };
}

const never = new AbortController().signal;

describe("rateLimit", () => {
  test("lets a burst pass at once and the rest at its rate, in order of arrival", async () => {
    const { clock, advance } = handClock();
    const limit = rateLimit({ qps: 100, burst: 3 }, clock);
    const passed: number[] = [];
    for (let index = 0; index < 6; index += 1) void limit.turn(never).then(() => passed.push(index));
    await advance(0);
    expect(passed).toEqual([0, 1, 2]);
    await advance(10);
    expect(passed).toEqual([0, 1, 2, 3]);
    await advance(20);
    expect(passed).toEqual([0, 1, 2, 3, 4, 5]);
  });

  test("a pause saves up no more than a burst", async () => {
    const { clock, advance } = handClock();
    const limit = rateLimit({ qps: 10, burst: 2 }, clock);
    await advance(60_000);
    const passed: number[] = [];
    for (let index = 0; index < 4; index += 1) void limit.turn(never).then(() => passed.push(index));
    await advance(0);
    expect(passed).toEqual([0, 1]);
  });

  test("over a long time the rate is kept", async () => {
    const { clock, advance } = handClock();
    const limit = rateLimit({ qps: 30, burst: 1 }, clock);
    let passed = 0;
    for (let index = 0; index < 1_000; index += 1)
      void limit.turn(new AbortController().signal).then(() => {
        passed += 1;
      });
    await advance(10_000);
    expect(passed).toBeGreaterThanOrEqual(290);
    expect(passed).toBeLessThanOrEqual(302);
  });

  test("who gives up leaves the queue with the signal's reason, and the next one moves up", async () => {
    const { clock, advance } = handClock();
    const limit = rateLimit({ qps: 10, burst: 1 }, clock);
    await limit.turn(never);
    const impatient = new AbortController();
    const first = limit.turn(impatient.signal);
    let second = false;
    void limit.turn(never).then(() => {
      second = true;
    });
    impatient.abort(new Error("no more time"));
    await expect(first).rejects.toThrow("no more time");
    await advance(100);
    expect(second).toBe(true);
  });

  test("an aborted signal gets no turn at all", async () => {
    const { clock } = handClock();
    const limit = rateLimit({ qps: 10, burst: 1 }, clock);
    await expect(limit.turn(AbortSignal.abort(new Error("too late")))).rejects.toThrow("too late");
    await limit.turn(never); // the one token is still there
  });
});

describe("rateLimits", () => {
  test("whoever reconnects under the same key finds what was left; others do not notice", async () => {
    const { clock, advance } = handClock();
    const limitOf = rateLimits(clock);
    const rate = { qps: 100, burst: 200 };
    let passed = 0;
    for (let session = 0; session < 50; session += 1) {
      for (let request = 0; request < 7; request += 1) {
        void limitOf("evil/s/k 192.0.2.1:6443", rate)
          .turn(never)
          .then(() => (passed += 1));
      }
    }
    await advance(1_000);
    expect(passed).toBe(300);
    let others = 0;
    for (let request = 0; request < 7; request += 1) {
      void limitOf("victim/s/k 192.0.2.1:6443", rate)
        .turn(never)
        .then(() => (others += 1));
    }
    await advance(0);
    expect(others).toBe(7);
  });

  test("keys that come and go are forgotten once they are as good as new", async () => {
    const { clock, advance } = handClock();
    const limitOf = rateLimits(clock);
    const rate = { qps: 1, burst: 2 };
    const used = limitOf("used", rate);
    const idle = limitOf("idle", rate);
    await Promise.all([used.turn(never), used.turn(never)]);
    for (let other = 0; other < 300; other += 1) limitOf(`other-${other}`, rate);
    expect(limitOf("used", rate)).toBe(used);
    expect(limitOf("idle", rate)).not.toBe(idle);
    await advance(0);
  });
});

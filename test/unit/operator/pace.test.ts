// When writes that disturb are made.

import { expect, test } from "vitest";
import type { ClusterId } from "../../../src/core/world.ts";
import { Pace, type Turn } from "../../../src/operator/pace.ts";
import { VirtualClock } from "../../../src/sim/virtual-clock.ts";

const [a, b, c] = ["a", "b", "c"] as unknown as [ClusterId, ClusterId, ClusterId];
const forever = new AbortController().signal;
const intervalMs = 200;

/** Writes on targets, and when they were made. */
function stage(joined: Readonly<Record<string, readonly ClusterId[]>> = {}) {
  const clock = new VirtualClock();
  let heldUpUntilMs = 0;
  const sleep = (ms: number, signal?: AbortSignal): Promise<void> =>
    clock.sleep(Math.max(ms, heldUpUntilMs - clock.monotonicMs()), signal);
  const pace = new Pace({ monotonicMs: clock.monotonicMs, sleep });
  const beganMs = clock.monotonicMs();
  const made: string[] = [];
  const turn = (target: ClusterId, signal = forever, urgent?: string, changedMs?: number): Promise<Turn> =>
    pace.turn({ target, intervalMs, joined: new Set(joined[target]), urgent, changedMs }, signal);
  const write = async (target: ClusterId, times = 1, takesMs = 0, urgent?: string): Promise<void> => {
    for (let time = 0; time < times; time += 1) {
      const { done } = await turn(target, forever, urgent);
      made.push(`${target} ${clock.monotonicMs() - beganMs}`);
      if (takesMs > 0) await clock.sleep(takesMs);
      done();
    }
  };
  /** Until then no timer fires: the process is at something else. */
  const holdUp = (untilMs: number): void => {
    heldUpUntilMs = untilMs;
  };
  return { clock, made, turn, write, holdUp, rest: (target: ClusterId) => pace.rest(target) };
}

test("a lone write goes at once, and so does one after a pause", async () => {
  const { clock, made, write } = stage();
  await write(a);
  await clock.advance(intervalMs);
  await write(a);
  expect(made).toEqual(["a 0", "a 200"]);
});

test("writes on one target are an interval apart", async () => {
  const { clock, made, write } = stage();
  const writes = write(a, 3, 30);
  await clock.advance(10_000);
  await writes;
  expect(made).toEqual(["a 0", "a 200", "a 400"]);
});

test("a slow answer leaves half an interval: the write may have taken effect as late as that", async () => {
  const { clock, made, write } = stage();
  const writes = write(a, 3, 190);
  await clock.advance(10_000);
  await writes;
  expect(made).toEqual(["a 0", "a 290", "a 580"]);
});

test("targets that share no tunnels do not wait for each other", async () => {
  const { clock, made, write } = stage();
  const writes = Promise.all([write(a, 2), write(b, 2)]);
  await clock.advance(10_000);
  await writes;
  expect(made).toEqual(["a 0", "b 0", "a 200", "b 200"]);
});

test("targets that share tunnels are never written at the same moment", async () => {
  const { clock, made, write } = stage({ a: [b, c], b: [a, c], c: [a, b] });
  const writes = Promise.all([write(a, 2), write(b, 2), write(c, 2)]);
  await clock.advance(10_000);
  await writes;
  expect(made).toEqual(["a 0", "b 50", "c 100", "a 200", "b 266", "c 332"]);
});

test("what follows from a change in a joined cluster waits until the agents there have acted on it", async () => {
  const { clock, made, turn, write } = stage({ a: [b], b: [a] });
  const nowMs = clock.monotonicMs();
  const follow = async (target: ClusterId, urgent?: string): Promise<void> => {
    const { done } = await turn(target, forever, urgent, nowMs);
    made.push(`${target} ${clock.monotonicMs() - nowMs}`);
    done();
  };
  const writes = Promise.all([follow(a), follow(b, "n1"), follow(c)]);
  await clock.advance(1_000);
  await writes;
  await write(a);
  expect(made).toEqual(["b 0", "c 0", "a 50", "a 1000"]);
});

test("two targets with a series of writes each are as far apart as the interval allows", async () => {
  const { clock, made, write } = stage({ a: [b], b: [a] });
  const writes = Promise.all([write(a, 3), write(b, 3)]);
  await clock.advance(10_000);
  await writes;
  expect(made).toEqual(["a 0", "b 50", "a 200", "b 300", "a 400", "b 500"]);
});

test("a turn that is given up or given back costs nobody anything", async () => {
  const { clock, made, turn, write } = stage({ a: [b], b: [a] });
  await write(a);
  const ended = new AbortController();
  const waiting = turn(a, ended.signal);
  ended.abort(new Error("stopped"));
  await expect(waiting).rejects.toThrow("stopped");
  await clock.advance(intervalMs);
  (await turn(a)).giveBack();
  await write(a);
  await clock.advance(intervalMs);
  await write(b);
  expect(made).toEqual(["a 0", "a 200", "b 400"]);
});

test("tunnels that come up in the course of a series do not slow it down, but count for the next one", async () => {
  const joined: Record<string, ClusterId[]> = {};
  const { clock, made, write, rest } = stage(joined);
  const first = Promise.all([write(a), write(b)]);
  joined["a"] = [b];
  joined["b"] = [a];
  const writes = first.then(() => Promise.all([write(a), write(b)]));
  await clock.advance(1_000);
  await writes;
  rest(a);
  rest(b);
  const next = Promise.all([write(a), write(b)]);
  await clock.advance(1_000);
  await next;
  expect(made).toEqual(["a 0", "b 0", "a 200", "b 200", "a 1000", "b 1050"]);
});

test("what is urgent and alone waits for no other target, and for its own interval all the same", async () => {
  const { clock, made, write, rest } = stage({ a: [b], b: [a] });
  const first = Promise.all([write(a, 1, 0, "n1"), write(b, 1, 0, "n1")]);
  await clock.advance(10);
  await first;
  rest(a);
  rest(b);
  const second = write(a, 1, 0, "n1");
  await clock.advance(10_000);
  await second;
  expect(made).toEqual(["a 0", "b 0", "a 200"]);
});

test("an object that is urgent all the time is paced like everything else, and another one is not for it", async () => {
  const { clock, made, write, rest } = stage({ a: [b], b: [a] });
  const change = async (urgent: string, pauseMs: number): Promise<void> => {
    const writes = Promise.all([write(a, 1, 0, urgent), write(b, 1, 0, urgent)]);
    await clock.advance(pauseMs);
    await writes;
    rest(a);
    rest(b);
  };
  const moments = (): number => new Set(made.map((each) => each.split(" ")[1])).size;
  for (let time = 0; time < 80; time += 1) await change("n1", 250);
  // Only the first at the same moment on both.
  expect([made.length, moments()]).toEqual([160, 159]);
  await change("n2", 10_000);
  expect(made.slice(-2)).toEqual(["a 20000", "b 20000"]);
  await change("n1", 250);
  expect(made.slice(-2)).toEqual(["a 30000", "b 30000"]);
  await change("n1", 250);
  expect(made.slice(-2)).toEqual(["a 30250", "b 30300"]);
  made.length = 0;
  for (let time = 0; time < 10; time += 1) await change("n3", 7_000);
  // Six of ten, and one more that had come back.
  expect([made.length, moments()]).toEqual([20, 13]);
});

test("a process that was held up does not make up for it at one moment", async () => {
  const { clock, made, write, holdUp } = stage({ a: [b, c], b: [a, c], c: [a, b] });
  holdUp(180);
  const writes = Promise.all([write(a), write(b), write(c)]);
  await clock.advance(10_000);
  await writes;
  expect(made).toEqual(["a 0", "b 180", "c 230"]);
});

test("a series that nothing is left of is over, also while a turn of it is waited for", async () => {
  const { clock, made, turn, write, rest } = stage({ a: [b], b: [a] });
  await write(a);
  const waiting = turn(a);
  rest(a);
  await clock.advance(intervalMs);
  (await waiting).giveBack();
  await clock.advance(intervalMs);
  const next = Promise.all([write(b, 1, 0, "n1"), write(a, 1, 0, "n1")]);
  await clock.advance(intervalMs);
  await next;
  expect(made.slice(1)).toEqual(["b 400", "a 400"]);
});

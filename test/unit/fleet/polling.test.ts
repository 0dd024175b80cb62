import { expect, test } from "vitest";
import type { Poll } from "../../../src/core/provider.ts";
import { err, ok, type Result } from "../../../src/core/result.ts";
import { type Polling, startPolling } from "../../../src/fleet/polling.ts";
import type { KubeApi } from "../../../src/kube/api.ts";
import type { Runtime } from "../../../src/kube/runtime.ts";
import { VirtualClock } from "../../../src/sim/virtual-clock.ts";
import { MemoryApi } from "../../support/memory-api.ts";

type Told = { readonly key: string; readonly text: string };
type Lab = {
  readonly polling: Polling<Told>;
  readonly asked: string[];
  readonly changes: () => number;
  readonly pass: (ms: number) => Promise<void>;
  readonly end: () => Promise<void>;
};

function openLab(answer: (pod: string, time: number) => Promise<Result<string, { readonly detail: string }>>): Lab {
  const clock = new VirtualClock();
  const none = (): void => undefined;
  const log = { debug: none, info: none, warn: none, error: none };
  const runtime: Runtime = { clock, random: () => 0, log };
  const asked: string[] = [];
  const api: KubeApi = Object.assign(new MemoryApi(), {
    ask: async ({ pod }: { readonly pod: string }, signal: AbortSignal) => {
      asked.push(`${clock.monotonicMs()} ${pod}`);
      const given = await Promise.race([answer(pod, asked.length), ended(signal)]);
      return given.ok ? given : err({ kind: "unreachable" as const, detail: given.error.detail });
    },
  });
  const lifetime = new AbortController();
  let changes = 0;
  const polling = startPolling<Told>({
    api,
    probe: (probe) => Promise.resolve(ok(`probed ${String(probe)}`)),
    runtime,
    onChange: () => {
      changes += 1;
    },
    signal: lifetime.signal,
  });
  return {
    polling,
    asked,
    changes: () => changes,
    pass: (ms) => clock.advance(ms),
    end: async () => {
      lifetime.abort();
      await polling.done();
    },
  };
}

const ended = (signal: AbortSignal): Promise<never> =>
  new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));

const poll = (key: string, everyMs: number): Poll<Told> => ({
  key,
  everyMs,
  question: { via: "pod", namespace: "kube-system", pod: key, port: 9964, path: "/metrics" },
  read: (answer) => ({ key, text: answer.ok ? String(answer.value) : `not told: ${answer.error.detail}` }),
  same: (a, b) => a.text === b.text,
});

test("a question is asked at once and then again and again; the same answer is no news", async () => {
  const lab = openLab(() => Promise.resolve(ok("fine")));
  lab.polling.want([poll("a", 5_000)]);
  await lab.pass(12_000);
  expect(lab.asked).toEqual(["0 a", "5000 a", "10000 a"]);
  expect(lab.polling.facts()).toEqual([{ key: "a", text: "fine" }]);
  expect(lab.changes()).toBe(1);
  await lab.end();
});

test("asked for more often, it is asked as soon as that is due; asked for less often, it waits", async () => {
  const lab = openLab(() => Promise.resolve(ok("fine")));
  lab.polling.want([poll("a", 300_000)]);
  await lab.pass(10_000);
  lab.polling.want([poll("a", 5_000)]);
  await lab.pass(1);
  expect(lab.asked).toEqual(["0 a", "10000 a"]);
  lab.polling.want([poll("a", 60_000)]);
  await lab.pass(50_000);
  expect(lab.asked.length).toBeLessThanOrEqual(3);
  await lab.end();
});

test("what is no longer wanted is no longer asked, nor told", async () => {
  const lab = openLab((pod) => Promise.resolve(ok(pod)));
  lab.polling.want([poll("a", 5_000), poll("b", 5_000)]);
  await lab.pass(1);
  lab.polling.want([poll("b", 5_000)]);
  await lab.pass(20_000);
  expect(lab.asked.filter((line) => line.endsWith(" a"))).toEqual(["0 a"]);
  expect(lab.polling.facts()).toEqual([{ key: "b", text: "b" }]);
  await lab.end();
});

test("no answer in time is an answer, and one pod that hangs keeps no other waiting", async () => {
  const lab = openLab((pod) => (pod === "hangs" ? new Promise(() => undefined) : Promise.resolve(ok("fine"))));
  lab.polling.want([poll("hangs", 5_000), poll("b", 5_000)]);
  await lab.pass(6_000);
  expect(lab.asked.filter((line) => line.endsWith(" b"))).toEqual(["0 b", "5000 b"]);
  expect(lab.polling.facts()).toEqual([{ key: "b", text: "fine" }]);
});

test("a question that is not for a pod goes to whoever knows to ask it; a failure is told as one", async () => {
  const lab = openLab(() => Promise.resolve(err({ detail: "the pod is gone" })));
  lab.polling.want([poll("a", 5_000), { ...poll("p", 5_000), question: { via: "probe", probe: "flows" } }]);
  await lab.pass(1);
  expect(lab.polling.facts()).toEqual([
    { key: "a", text: "not told: the pod is gone" },
    { key: "p", text: "probed flows" },
  ]);
  await lab.end();
});

test("a mesh is not reported anew after a restart: what was never answered is still awaited", async () => {
  const lab = openLab((pod) =>
    pod === "slow"
      ? new Promise(() => undefined)
      : Promise.resolve(pod === "bad" ? err({ detail: "down" }) : ok("fine")),
  );
  expect(lab.polling.isSettling()).toBe(false);
  lab.polling.want([poll("good", 5_000), poll("bad", 5_000)]);
  expect(lab.polling.isSettling()).toBe(true);
  await lab.pass(1);
  expect(lab.polling.isSettling()).toBe(false);
  lab.polling.want([poll("good", 5_000), poll("bad", 5_000), poll("slow", 5_000)]);
  await lab.pass(1);
  expect(lab.polling.isSettling()).toBe(true);
  await lab.end();
});
